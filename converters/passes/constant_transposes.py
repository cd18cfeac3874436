"""Transposition of constants at conversion instead of run time."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
from onnx_ir.passes import InPlacePass, PassResult

from onnx_specops.building import Value
from onnx_specops.graphs import all_nodes
from onnx_specops.naming import Names
from onnx_specops.replacing import replace_value


class FoldConstantTransposes(InPlacePass):
    """Replace each Transpose of an initializer by a transposed initializer.

    If the initializer is cast first (weights stored as float16), the transposition moves before the cast.
    """

    def call(self, model: ir.Model) -> PassResult:
        folded: dict[tuple[int, tuple[int, ...]], Value] = {}
        transposes = [node for node in all_nodes(model.graph) if (node.domain, node.op_type) == ("", "Transpose")]
        names = Names.of(model.graph) if transposes else Names()
        count = sum(_fold(model.graph, node, folded, names) for node in transposes)
        return PassResult(model, modified=count > 0)


def _fold(root: ir.Graph, node: ir.Node, folded: dict[tuple[int, tuple[int, ...]], Value], names: Names) -> bool:
    if (source := node.inputs[0]) is None:
        return False
    cast = source.producer()
    if cast is not None and (cast.domain, cast.op_type) == ("", "Cast") and cast.inputs[0] is not None:
        source = cast.inputs[0]
    tensor = source.const_value
    if tensor is None or source.producer() is not None or source.is_graph_input():
        return False
    perm = tuple(node.attributes.get_ints("perm", ())) or tuple(range(len(tensor.shape)))[::-1]
    key = (id(tensor), perm)
    if key not in folded:
        folded[key] = _transposed(source, tensor, perm, f"{source.name}_transposed")
        names.register(root, folded[key])
    replacement, output = folded[key], node.outputs[0]
    if source is not node.inputs[0]:
        assert cast is not None and node.graph is not None
        result = Value(name=names.unique(f"{output.name}_cast"), type=output.type, shape=output.shape)
        attributes = list(cast.attributes.values())
        node.graph.insert_before(node, ir.Node("", "Cast", [replacement], attributes, outputs=[result], name=node.name))
        replacement = result
    return replace_value(output, replacement)


def _transposed(source: ir.Value, tensor: ir.TensorProtocol, perm: tuple[int, ...], name: str) -> Value:
    def compute(tensor: ir.TensorProtocol = tensor) -> ir.TensorProtocol:
        return ir.Tensor(np.ascontiguousarray(tensor.numpy().transpose(perm)), dtype=tensor.dtype)

    shape = ir.Shape([tensor.shape.numpy()[axis] for axis in perm])
    lazy = ir.LazyTensor(compute, dtype=tensor.dtype, shape=shape, name=name)
    return Value(name=lazy.name, type=source.type, shape=shape, const_value=lazy)
