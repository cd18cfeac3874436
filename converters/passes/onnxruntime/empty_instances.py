"""InstanceNormalization of 16-bit floats without elements: ONNX Runtime (1.32) crashes.

ONNX Runtime may move and remove the casts before and after a float32 InstanceNormalization, which then computes in float16.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import onnx_ir as ir
from onnx_ir.passes import PassResult

from converters.passes.workaround import KernelWorkaround
from onnx_specops.building import Builder, Value
from onnx_specops.graphs import all_nodes, attributes_of


class InstancesWithoutElements(KernelWorkaround):
    """Reshape the data of an InstanceNormalization of float16 whose channels may have no elements.

    Such data become an empty batch of single elements, and other data three-dimensional. If the model has float16 data,
    InstanceNormalization of float32 is reshaped, too.
    """

    operators = frozenset(("InstanceNormalization",))

    def __init__(self) -> None:
        super().__init__()
        self.has_halves = False

    def call(self, model: ir.Model) -> PassResult:
        nodes = [node for node in all_nodes(model.graph) if node.op_type in ("Cast", "InstanceNormalization")]
        data = [node.inputs[0] for node in nodes]
        self.has_halves = any(value is not None and value.dtype == ir.DataType.FLOAT16 for value in data)
        return super().call(model)

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        x, *parameters = (cast(Value, value) for value in node.inputs)
        if not self.has_halves or x.dtype == ir.DataType.DOUBLE or (x.dims is not None and all(x.dims[2:])):
            return None
        shape, size = op.Shape(x), op.ReduceProd(op.Shape(x, start=2), keepdims=1)
        batch = op.Mul(op.Shape(x, start=0, end=1), op.Min(size, 1))
        rows = op.Reshape(x, op.Concat(batch, op.Shape(x, start=1, end=2), op.Max(size, 1), axis=0), allowzero=1)
        normal = op.InstanceNormalization(rows, *parameters, **attributes_of(node))
        return [op.Reshape(normal, shape, allowzero=1)]
