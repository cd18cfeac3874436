"""Largest and smallest elements, distinct elements, nonzero elements."""

from __future__ import annotations

from typing import Literal

import onnx_ir as ir

from converters.errors import Malformed, Unsupported
from converters.openvino.reader.element_types import ElementType
from converters.openvino.rule import Departure, rule
from converters.openvino.rules._indices import as_indices, constant_axis, integer, vector
from onnx_specops.building import Builder, Value
from onnx_specops.padding import pad

Mode = Literal["max", "min"]
Sort = Literal["value", "index", "none"]

_TIES = "equal elements stay in input order"
_OTHERS = Departure(
    where="equal elements",
    cpu="may select them in another order",
    reference="selects those at lower positions first",
    follows="reference",
)
_UNSIGNED = Departure(
    where="u64 beyond the range of i64",
    cpu="uses only their lower bits",
    reference="orders them as numbers",
    follows="reference",
)
_NONE = Departure(where="a `k` of 0", cpu="rejects it", specification="selects no elements", follows="specification")
_NAN = Departure(
    where="a NaN among the elements",
    cpu="orders it before or after others, depending on their positions",
    reference="treats it as neither greater nor less than any number",
    follows="runtime",
)


@rule("TopK", restrictions=_TIES, departs=[_OTHERS, _UNSIGNED, _NAN, _NONE])
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
    """TopK-1 and TopK-3: equal elements stay in input order."""
    return _top_k(op, data, k, axis, mode, sort, index_element_type)


@rule("TopK", since="opset11", restrictions=_TIES, departs=[_OTHERS, _UNSIGNED, _NAN, _NONE])
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
    """TopK-11: always stable, also with sorting by index."""
    if stable and sort == "none":
        raise Malformed("stable=true requires an order, but sort is none")
    return _top_k(op, data, k, axis, mode, sort, index_element_type)


def _top_k(
    op: Builder, data: Value, k: Value, axis: int, mode: str, sort: str, index_element_type: ElementType
) -> tuple[Value, Value]:
    if (count := integer(k, "k")) is not None and count < 0:
        raise Malformed(f"its k is {count}; it must be 0 or more")
    if data.dtype == ir.DataType.BOOL:  # ONNX orders numbers only
        values, indices = _top_k(op, op.Cast(data, to=ir.DataType.INT32), k, axis, mode, sort, index_element_type)
        return op.Cast(values, to=data.dtype), indices
    data = _extended(op, data, axis, count)
    k = vector(op, k)
    values, indices = op.TopK(data, k, axis=axis, largest=int(mode == "max"), sorted=int(sort == "value"))
    if sort == "index":
        indices, _ = op.TopK(indices, k, axis=axis, largest=0, sorted=1)
        values = op.GatherElements(data, indices, axis=axis)
    return values, as_indices(op, indices, index_element_type)


@rule(
    "Unique",
    since="opset10",
    departs=[
        Departure(
            where="the indices of i8 and u8 along an axis",
            cpu="gives indices of other slices",
            specification="gives the indices of the first occurrences",
            follows="specification",
        ),
        Departure(
            where="slices without elements",
            cpu="returns no slice and uninitialized indices, or fails",
            specification="returns the first slice, because all others are equal to it",
            follows="specification",
        ),
        Departure(
            where="a NaN among the elements",
            cpu="counts each NaN, and with `sorted` also other numbers several times",
            specification="leaves it undefined",
            follows="runtime",
        ),
    ],
)
def unique(
    op: Builder,
    data: Value,
    axis: Value | None = None,
    *,
    sorted: bool = True,
    index_element_type: ElementType = ElementType.I64,
    count_element_type: ElementType = ElementType.I64,
):
    """Unique-10: the axis is a constant."""
    at = None if axis is None else constant_axis(axis, data.rank)
    if axis is not None and at is None:
        raise Unsupported("its axis is not a constant")
    values, *indices, counts = op.Unique(data, axis=at, sorted=int(sorted), outputs=4)
    places = (as_indices(op, x, index_element_type) for x in indices)
    return values, *places, as_indices(op, counts, count_element_type)


@rule("NonZero", since="opset3")
def non_zero(op: Builder, data: Value, *, output_type: ElementType = ElementType.I64):
    """NonZero-3: a scalar is treated as a vector of one element."""
    if data.dtype not in (ir.DataType.FLOAT, ir.DataType.INT32, ir.DataType.INT64, ir.DataType.UINT8, ir.DataType.BOOL):
        data = op.Cast(data, to=ir.DataType.BOOL)
    if not data.rank:
        shape = op.if_(op.Equal(op.Size(op.Shape(data)), 0), lambda op: op.const([1]), lambda op: op.Shape(data))
        data = op.Reshape(data, shape, allowzero=1)
    return as_indices(op, op.NonZero(data), output_type)


def _extended(op: Builder, data: Value, axis: int, k: int | None) -> Value:
    """Extend ``data`` to ``k`` elements if it is empty, because OpenVINO then compares nothing."""
    dims = data.dims
    if k is None or dims is None or not -len(dims) <= axis < len(dims):
        return data
    at = axis % len(dims)
    size = dims[at]
    if 0 not in dims[:at] + dims[at + 1 :]:
        return data
    return data if size is not None and size >= k else pad(op, data, [at], [0], [k if size is None else k - size])
