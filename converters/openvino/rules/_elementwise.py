"""Alignment of the operands of elementwise operations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np
import onnx_ir as ir

from converters.errors import Malformed
from converters.openvino.rule import Departure, rule
from converters.openvino.rules._precision import D
from onnx_specops.building import Builder, Value

AutoBroadcast = Literal["numpy", "none", "explicit", "pdpd"]
"""The attribute ``auto_broadcast``. In OpenVINO, "explicit" is a synonym of "none"."""

PDPD_REJECTED = Departure(
    where="`auto_broadcast=pdpd`",
    cpu="rejects it",
    reference="broadcasts the second operand to the first",
    follows="reference",
)


def binary(
    *operations: str, since: str = "opset1", departs: Sequence[Departure] = ()
) -> Callable[[Callable[..., Value]], Callable[..., Value]]:
    """Register ``function(op, a, b)`` as the rule of binary operations whose only attribute is ``auto_broadcast``."""

    def register(function: Callable[..., Value]) -> Callable[..., Value]:
        def emit(
            op: Builder,
            a: Value,
            b: Value,
            *,
            auto_broadcast: AutoBroadcast = "numpy",
            auto_broadcast_axis: int = 0,
        ):
            return function(op, a, align(op, a, b, auto_broadcast, auto_broadcast_axis))

        emit.__doc__, emit.__module__ = function.__doc__, function.__module__
        rule(*operations, since=since, departs=departs)(emit)
        return function

    return register


def align(op: Builder, a: Value, b: Value, auto_broadcast: AutoBroadcast, axis: int) -> Value:
    """Reshape ``b`` so that NumPy's broadcasting, which ONNX uses, gives the result of ``auto_broadcast``.

    "pdpd" aligns b's dimensions with a's from ``axis`` (-1: right-aligned). Trailing ones of b are ignored, and the result
    has a's shape. The serializer writes the axis as ``auto_broadcast.auto_broadcast_axis``. If a file omits it, OpenVINO
    reads 0, although the specification's default is -1.
    """
    if auto_broadcast == "numpy":
        return b
    if auto_broadcast != "pdpd":
        _check_equal(a, b)
        return b
    if axis < -1:
        raise Malformed(f"its broadcast axis {axis} is negative", "-1 means right-aligned; no other value is allowed")
    if b.rank is not None:
        if b.rank == 0 or (a.rank is not None and axis in (-1, a.rank - b.rank)):
            return checked_onto(a, b)
        if a.rank is not None:
            dims = b.dims or []
            trailing = len(dims)
            while trailing and dims[trailing - 1] == 1:
                trailing -= 1
            start = a.rank - b.rank if axis == -1 else axis
            behind = a.rank - start - trailing
            if start < 0 or behind < 0:
                raise Malformed(f"its second input {b.dims} does not match the first {a.dims} from axis {start} on")
            kept = op.Slice(op.Shape(b), [0], [trailing])
            return checked_onto(a, op.Reshape(b, op.Concat([1] * start, kept, [1] * behind, axis=0), allowzero=1))
    # For ranks of run time, remove trailing ones of b, and append ones up to a's rank.
    shape, rank = op.Shape(b), op.Shape(op.Shape(a))
    begin = op.Sub(rank, op.Shape(shape)) if axis == -1 else op.const([axis])
    positions = op.CumSum(op.Cast(op.Not(op.Equal(shape, 1)), to=D.INT64), 0, reverse=1)
    kept = op.Compress(shape, op.Greater(positions, 0), axis=0)
    end = op.Sub(op.Sub(rank, begin), op.Shape(kept))
    ones = [op.Expand(op.const(1), count) for count in (begin, end)]
    return op.Reshape(b, op.Concat(ones[0], kept, ones[1], axis=0), allowzero=1)


def within_rank(op: Builder, a: Value, b: Value) -> Value:
    """Remove leading dimensions of 1 from ``b`` beyond the rank of ``a``, so that the result has a's shape."""
    if b.rank is not None and b.rank <= (a.rank or 0):
        return b
    if a.rank is None and b.dims is not None:
        if all(size == 1 for size in b.dims):
            return op.Reshape(b, op.const(np.zeros(0, np.int64)))
        if len(b.dims) == 1 and b.dims[0] is not None:  # several elements do not broadcast to a scalar
            return b
    shape, rank = op.Shape(b), op.Shape(op.Shape(a))
    surplus = op.Max(op.Sub(op.Shape(shape), rank), 0)
    return op.Reshape(b, op.Slice(shape, surplus, op.Shape(shape)), allowzero=1)


def _check_equal(a: Value, b: Value) -> None:
    mismatch = a.rank is not None and b.rank is not None and a.rank != b.rank
    if not mismatch and a.dims is not None and b.dims is not None:
        mismatch = any(m is not None and n is not None and m != n for m, n in zip(a.dims, b.dims, strict=True))
    if mismatch:
        raise Malformed(f"its inputs' shapes {a.dims} and {b.dims} differ, which auto_broadcast='none' forbids")


def checked_onto(a: Value, b: Value) -> Value:
    """Return ``b`` if it does not enlarge ``a``. It may make the result empty."""
    if a.dims is not None and b.dims is not None:
        tail = a.dims[len(a.dims) - len(b.dims) :] if b.dims else []
        if len(b.dims) > len(a.dims) or any(
            m is not None and n not in (1, None, m) and (m, n) != (1, 0) for m, n in zip(tail, b.dims, strict=True)
        ):
            raise Malformed(f"its second input {b.dims} does not broadcast to the first {a.dims}")
    return b


def check_types(*values: Value) -> None:
    """Raise `Malformed` if the element types differ."""
    if len({value.dtype for value in values}) > 1:
        names = ", ".join(str(value.dtype and value.dtype.name) for value in values)
        raise Malformed(f"its inputs are {names}, of different types")


def typed(value: float, dtype: ir.DataType | None) -> np.ndarray:
    """Return a number as a scalar of ``dtype``; beyond its range infinite."""
    assert dtype is not None
    with np.errstate(over="ignore"):
        return np.asarray(value, np.float64).astype(dtype.numpy())
