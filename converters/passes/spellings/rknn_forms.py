"""Forms for Rockchip's RKNN toolkit."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise

import onnx_ir as ir

from converters.passes.sizes import parts_of_split
from converters.passes.workaround import Workaround
from onnx_specops.building import Builder, Value

D = ir.DataType


class SelectedInt64(Workaround):
    """Use int64 for Where of other integer types. RKNN's builder (2.5) crashes on a Where of these types."""

    operators = frozenset(("Where",))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        condition, *values = node.inputs
        dtype = node.outputs[0].dtype
        if dtype is None or not dtype.is_integer() or dtype == D.INT64:
            return None
        selected = op.Where(condition, *(op.Cast(value, to=D.INT64) for value in values))
        return [op.Cast(selected, to=dtype)]


class SlicedProducts(Workaround):
    """Convert a Split of a product to Slices.

    For three equal parts that attention uses, RKNN's builder (2.5) rearranges the weights and writes to the constant with
    the sizes. This is an error, because it cannot write to data of the file. Conditions: the product is the result of a
    MatMul or Gemm, or a Reshape of it, and the sizes of the parts are known.
    """

    operators = frozenset(("Split",))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        x, parts = node.inputs[0], parts_of_split(node)
        if x is None or parts is None or not _is_product(x):
            return None
        axis, sizes = parts
        return [op.Slice(x, [start], [end], [axis]) for start, end in pairwise(accumulate(sizes, initial=0))]


def _is_product(value: ir.Value) -> bool:
    """Return whether a value is the result of a MatMul or Gemm, or a Reshape of it."""
    node = value.producer()
    while node is not None and node.op_type == "Reshape":
        source = node.inputs[0]
        node = None if source is None else source.producer()
    return node is not None and node.op_type in ("MatMul", "Gemm")
