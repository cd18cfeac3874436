"""Greatest and smallest elements, distinct elements, elements other than zero."""

from __future__ import annotations

from typing import Literal

import onnx_ir as ir

from converters.openvino.element_types import ElementType
from converters.openvino.onnx_types import data_type
from converters.openvino.rule import Unsupported, rule
from converters.openvino.rules._indices import FIRST, vector
from onnx_specops.building import Builder, Value

Mode = Literal["max", "min"]
Sort = Literal["value", "index", "none"]


@rule("TopK")
def top_k_1(
    op: Builder,
    data: Value,
    k: Value,
    *,
    axis: int,
    mode: Mode,
    sort: Sort,
    index_element_type: ElementType = ElementType.I32,
):
    """TopK-1 and TopK-3: among equal elements the first go before, as in the reference (the CPU plugin's choice is open)."""
    return _top_k(op, data, k, axis, mode, sort, index_element_type)


@rule("TopK", since="opset11")
def top_k(
    op: Builder,
    data: Value,
    k: Value,
    *,
    axis: int,
    mode: Mode,
    sort: Sort,
    index_element_type: ElementType = ElementType.I32,
    stable: bool = False,
):
    """TopK-11: always stable, by index too, where the CPU plugin is not."""
    if stable and sort == "none":
        raise Unsupported("it is stable without an order")
    return _top_k(op, data, k, axis, mode, sort, index_element_type)


def _top_k(
    op: Builder, data: Value, k: Value, axis: int, mode: str, sort: str, index_element_type: ElementType
) -> tuple[Value, Value]:
    # ONNX Runtime has no order of 64-bit unsigned integers: shifted by half their range they are signed ones.
    unsigned = data.dtype == ir.DataType.UINT64
    keys = op.Add(op.Cast(data, to=ir.DataType.INT64), FIRST) if unsigned else data
    k = vector(op, k)
    values, indices = op.TopK(keys, k, axis=axis, largest=int(mode == "max"), sorted=int(sort == "value"))
    if sort == "index":
        indices, _ = op.TopK(indices, k, axis=axis, largest=0, sorted=1)
    if sort == "index" or unsigned:
        values = op.GatherElements(data, indices, axis=axis)
    to = data_type(index_element_type)
    return values, indices if to == ir.DataType.INT64 else op.Cast(indices, to=to)
