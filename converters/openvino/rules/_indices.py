"""Axes, shapes and indices as int64 vectors and scalars; dimensions and flat positions.

All functions fold to constants for known inputs, and compute at run time otherwise.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import onnx_ir as ir

from converters.errors import Malformed
from converters.openvino.onnx_types import data_type
from converters.openvino.reader.element_types import ElementType
from onnx_specops.building import Builder, Value

INT64_MIN, INT64_MAX = np.iinfo(np.int64).min, np.iinfo(np.int64).max


def int64(op: Builder, x: Value) -> Value:
    """Convert integers to int64."""
    if x.dtype is not None and not x.dtype.is_integer():
        raise Malformed(f"one of its inputs is {x.dtype.name.lower()} instead of an integer type")
    return x if x.dtype == ir.DataType.INT64 else op.Cast(x, to=ir.DataType.INT64)


def truncated_int64(op: Builder, x: Value) -> Value:
    """Convert ``x`` to int64, for the few inputs whose integers may be floats in OpenVINO."""
    if x.dtype is None or x.dtype.is_integer():
        return x
    return op.Cast(x, to=ir.DataType.INT64) if x.constant is None else op.const(x.constant.astype(np.int64))


def vector(op: Builder, x: Value) -> Value:
    """Convert a scalar or vector to an int64 vector."""
    x = int64(op, x)
    return x if x.rank == 1 else op.Reshape(x, [-1])


def index_type(element_type: ElementType) -> ir.DataType:
    """Return the type of indices and counts that an attribute names."""
    if element_type not in (ElementType.I32, ElementType.I64):
        raise Malformed(f"the type of its indices is {element_type.value} instead of i32 or i64")
    return data_type(element_type)


def as_indices(op: Builder, x: Value, element_type: ElementType) -> Value:
    """Convert indices or counts to the type that an attribute names."""
    to = index_type(element_type)
    return x if x.dtype == to else op.Cast(x, to=to)


def scalar(op: Builder, x: Value) -> Value:
    """Convert a scalar or a tensor of one element to an int64 scalar."""
    return one_element(op, int64(op, x))


def one_element(op: Builder, x: Value) -> Value:
    """Convert a scalar or a tensor of one element to a scalar of the same type."""
    if x.is_static and math.prod(x.shape.numpy() if x.shape is not None else ()) != 1:
        raise Malformed(f"one of its inputs has the shape {x.dims} instead of one element")
    return x if x.rank == 0 else op.Reshape(x, np.zeros(0, np.int64))


def integers(x: Value | None) -> list[int] | None:
    """Return the elements of a constant; ``None`` if ``x`` is not constant."""
    return None if x is None or x.constant is None else [int(v) for v in x.constant.reshape(-1)]


def integer(x: Value, name: str) -> int | None:
    """Return the only element of a constant; ``None`` if ``x`` is not constant."""
    values = integers(x)
    if values is not None and len(values) != 1:
        raise Malformed(f"its input {name!r} has {len(values)} elements instead of one")
    return None if values is None else values[0]


def constant_axis(x: Value, rank: int | None, name: str = "axis") -> int | None:
    """Return a constant axis, which is not negative if ``rank`` is known, or ``None`` if the axis is not constant."""
    axis = integer(x, name)
    return None if axis is None else normal_axis(axis, rank, name)


def normal_axis(axis: int, rank: int | None, name: str = "axis") -> int:
    """Check ``axis``, and normalize it if ``rank`` is known."""
    if rank is None:
        return axis
    if not -rank <= axis < rank:
        raise Malformed(f"its {name} {axis} is out of range [{-rank}, {rank - 1}]")
    return axis % rank


def length(x: Value) -> int | None:
    """Return the number of elements of a vector, or ``None``."""
    dims = x.dims
    return None if dims is None else 1 if not dims else dims[0]


def rank_of(op: Builder, x: Value) -> Value:
    """Return the rank of ``x`` as an int64 vector of one element."""
    return op.const([x.rank]) if x.rank is not None else op.Shape(op.Shape(x))


def dim(op: Builder, x: Value, axis: int) -> Value:
    """Return the dimension ``axis`` of ``x`` as an int64 vector of one element."""
    return op.Shape(x, start=axis, end=axis + 1 if axis != -1 else None)


def product(op: Builder, dims: Value, keepdims: int = 1) -> Value:
    """Return the product of a vector of dimensions as a vector of one element (or a scalar)."""
    return op.ReduceProd(dims, keepdims=keepdims)


def flat_range(op: Builder, count: Value) -> Value:
    """Return 0, 1, ... up to ``count``, a vector of one element."""
    return op.Range(op.const(0), scalar(op, count), op.const(1))


def strides(op: Builder, shape: Value) -> Value:
    """Return the row-major strides of a tensor of the shape ``shape``."""
    # The exclusive product from the right, as one product over a triangle, because the rank is small.
    count = flat_range(op, op.Shape(shape))
    later = op.Less(op.Unsqueeze(count, [1]), op.Unsqueeze(count, [0]))
    return op.ReduceProd(op.Where(later, op.Unsqueeze(shape, [0]), 1), [1], keepdims=0)


def coordinates(op: Builder, shape: Value) -> Value:
    """Return the coordinates of all positions of a tensor of the shape ``shape`` in row-major order, ``[volume, rank]``."""
    positions = op.Unsqueeze(flat_range(op, product(op, shape)), [1])
    # With a dimension of 0, there are no positions to divide.
    return op.Mod(op.Div(positions, op.Max(strides(op, shape), 1)), op.Max(shape, 1))


def transposed(op: Builder, data: Value, order: Value) -> Value:
    """Transpose ``data`` by an order that may be computed at run time."""
    perm = integers(order)
    if perm is not None:
        return op.Transpose(data, perm=perm)
    dims = op.Shape(data)
    shape = op.Gather(dims, order)
    # ONNX's permutation is an attribute. Instead, gather each element from its position in the input.
    steps = op.Gather(strides(op, dims), order)
    positions = op.ReduceSum(op.Mul(coordinates(op, shape), steps), [1], keepdims=0)
    return gather_at(op, data, positions, shape)


def gather_at(op: Builder, data: Value, positions: Value, shape: Any) -> Value:
    """Gather the elements of ``data`` at flat row-major ``positions``, in the shape ``shape``."""
    return op.Reshape(op.Gather(op.Reshape(data, [-1]), positions), shape, allowzero=1)
