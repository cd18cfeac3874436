"""Constants of 4 bits for all releases of ONNX Runtime: packed bytes and a lookup of their codes.

Casts of 4-bit types need ONNX Runtime 1.23, and the types need opset 21. With a lookup by bytes, the weights stay small in
the file at any opset. ONNX Runtime folds the lookup when it loads the model.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
from onnx_ir.passes import InPlacePass, PassResult

from onnx_specops.building import Builder, Value, constant_value
from onnx_specops.folding import FOLDED_ELEMENTS
from onnx_specops.mapped import same_bytes
from onnx_specops.replacing import replace_value
from onnx_specops.retyping import converted

D = ir.DataType

_WIDE = {D.INT4: D.INT8, D.UINT4: D.UINT8}

PACKED_ELEMENTS = 2 * FOLDED_ELEMENTS
"""Larger constants stay packed. The builder would fold the lookup of smaller ones."""


class LookUpFourBits(InPlacePass):
    """Look up the values of 4-bit constants wherever they are used, up to the casts to another type."""

    def call(self, model: ir.Model) -> PassResult:
        constants = [value for value in model.graph.initializers.values() if value.dtype in _WIDE]
        found = [
            (value, moved) for value in constants if not value.is_graph_input() and (moved := _moved(value)) is not None
        ]
        if found:
            root = Builder.of_existing(model.graph)
            for value, moved in found:
                _replace(root, value, moved)
        return PassResult(model, modified=bool(found))


def _moved(value: ir.Value) -> list[ir.Value] | None:
    """Return the values that contain elements of a constant; ``None`` if they are combined or leave the model."""
    found, pending = {value: None}, [value]
    while pending:
        current = pending.pop()
        if current.is_graph_output():
            return None
        for node in current.consumers():
            if (node.domain, node.op_type) != ("", "Cast"):
                for output in node.outputs:
                    if output.dtype in _WIDE and output not in found:
                        found[output] = None
                        pending.append(output)
    users = {node for current in found for node in current.consumers()}
    others = [x for node in users for x in node.inputs if x is not None and x.dtype in _WIDE and x not in found]
    return None if others else list(found)


def _replace(root: Builder, value: ir.Value, moved: list[ir.Value]) -> None:
    assert value.dtype is not None and value.const_value is not None
    wide, tensor, graph = _WIDE[value.dtype], value.const_value, root.graph
    op = Builder(graph, root=root, before=next(iter(graph)))
    op.scope = value.name or "constant"
    packed = _packed(tensor) if tensor.size > PACKED_ELEMENTS else None
    replaced = []
    for cast in [node for node in value.consumers() if (node.domain, node.op_type) == ("", "Cast")]:
        result = cast.outputs[0]
        assert result.dtype is not None and cast.graph is not None
        if replace_value(result, op.place(_values(op, tensor, packed, result.dtype))):
            replaced.append(cast)
    if any(node not in replaced for node in value.consumers()):
        inner = op.place(_values(op, tensor, packed, wide))
        for current in moved:
            current.type = ir.TensorType(wide)
        value.replace_all_uses_with(inner)
    for cast in replaced:  # last, because another node may be inserted before one of the casts
        assert cast.graph is not None
        cast.graph.remove(cast, safe=True)
    del graph.initializers[value.name or ""]


def _values(op: Builder, tensor: ir.TensorProtocol, packed: Value | None, dtype: ir.DataType) -> Value:
    if packed is None:
        return constant_value(converted(tensor, dtype))
    every = np.arange(256, dtype=np.uint8)
    codes = np.stack([every & 15, every >> 4], axis=1).astype(np.int8)
    if tensor.dtype == D.INT4:
        codes = np.where(codes < 8, codes, codes - 16)
    shape = [int(dim) for dim in tensor.shape.numpy()]
    pairs = op.Gather(op.const(codes.astype(dtype.numpy())), op.Cast(packed, to=D.INT32))
    if tensor.size % 2:
        pairs = op.Slice(op.Reshape(pairs, [-1]), [0], [tensor.size], [0])
    return op.Reshape(pairs, shape)


def _packed(tensor: ir.TensorProtocol) -> Value:
    """Return the bytes, with two elements in each."""
    size = (tensor.size + 1) // 2
    name = f"{tensor.name}/codes" if tensor.name else None
    if isinstance(tensor, ir.ExternalTensor):
        return constant_value(same_bytes(tensor, D.UINT8, [size]), name=name)

    def compute() -> ir.TensorProtocol:
        return ir.Tensor(np.frombuffer(tensor.tobytes(), np.uint8))

    lazy = ir.LazyTensor(compute, dtype=D.UINT8, shape=ir.Shape([size]), name=name or "")
    return constant_value(lazy, name=name)
