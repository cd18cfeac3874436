"""Forms for Rockchip's RKNN toolkit."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

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
