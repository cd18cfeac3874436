"""Forms that onnx2torch computes."""

from __future__ import annotations

import math
from collections.abc import Sequence

import onnx_ir as ir
from onnx_ir.passes import InPlacePass, PassResult

from converters.passes.copied_nodes import copy_outputs
from converters.passes.workaround import Workaround
from onnx_specops.building import Builder, Value


class FlatNonZero(Workaround):
    """Find the nonzero elements of the flattened tensor, and compute their indices along each axis.

    NonZero of onnx2torch (1.5.15) returns a row for each element instead of a row for each axis.
    """

    operators = frozenset(("NonZero",))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        x = node.inputs[0]
        if not isinstance(x, Value) or not x.rank or x.rank < 2 or not x.is_static:
            return None
        dims = [dim or 0 for dim in x.dims or ()]
        if 0 in dims:
            return None
        places = op.NonZero(op.Reshape(x, [-1]))
        rows = []
        for axis, size in enumerate(dims):
            step = math.prod(dims[axis + 1 :])
            row = op.Div(places, [step]) if step > 1 else places
            rows.append(op.Mod(row, [size]) if axis else row)
        return [op.Concat(*rows, axis=0)]


class OneRowOfNonZero(Workaround):
    """Reshape the indices of the nonzero elements of a vector to a row.

    NonZero of onnx2torch (1.5.15) returns a column. In other programs, the Reshape has no effect.
    """

    operators = frozenset(("NonZero",))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        x = node.inputs[0]
        if not isinstance(x, Value) or x.rank != 1:
            return None
        return [op.Reshape(op.NonZero(x), [1, -1])]


class CopiedOutputs(InPlacePass):
    """Copy outputs of the model that are not the only output of their node. For an output of such a node, onnx2torch
    (1.5.15) returns all outputs of the node.
    """

    def call(self, model: ir.Model) -> PassResult:
        return PassResult(model, modified=copy_outputs(model.graph, _is_of_several, "of_several"))


def _is_of_several(value: ir.Value) -> bool:
    node = value.producer()
    return node is not None and len(node.outputs) > 1
