"""Multiplications by several small factors: in ONNX Runtime, each one is a pass over the large tensor.

The small factors are multiplied first, such as the gates of channels and the scale of a quantization.
"""

from __future__ import annotations

import math

import numpy as np
import onnx_ir as ir

from converters.passes.patterns import PatternPass, rewrite
from onnx_specops.building import Builder, Value

_RATIO = 16
"""A factor is small if the tensor has at least this many times its elements."""
_LEAST, _MOST = 1e-6, 1e6


def _is_large(x: Value, factor: Value, by: Value, whole: Value) -> bool:
    """Return whether ``x`` has the shape of the result, and the factors, of which the second is a constant, are small.

    The constant's numbers must be neither large nor small, so that the product of the factors keeps the first one's
    precision.
    """
    constant = by.constant
    if x.dtype != ir.DataType.FLOAT or constant is None or x.constant is not None or factor.constant is not None:
        return False
    if not (x.is_static and factor.is_static) or x.dims != whole.dims:
        return False
    size = np.abs(constant)
    if not (((size >= _LEAST) & (size <= _MOST)) | (size == 0)).all():
        return False
    small, large = ([size or 0 for size in value.dims or ()] for value in (factor, x))
    return math.prod(np.broadcast_shapes(small, constant.shape)) * _RATIO <= math.prod(large)


@rewrite("Mul", lambda op, x, y, by: op.Mul(op.Mul(x, y), by, _outputs=["whole"]), commute=True, tolerance=1e-6)
def times_a_constant(op: Builder, *, x: Value, y: Value, by: Value, whole: Value) -> Value | None:
    """Multiply a small factor by a small constant first."""
    for large, factor in ((x, y), (y, x)):
        if _is_large(large, factor, by, whole):
            return op.Mul(large, op.Mul(factor, by))
    return None


@rewrite("Div", lambda op, x, y, by: op.Div(op.Mul(x, y), by, _outputs=["whole"]), tolerance=1e-6)
def by_a_constant(op: Builder, *, x: Value, y: Value, by: Value, whole: Value) -> Value | None:
    """Divide a small factor by a small constant first."""
    for large, factor in ((x, y), (y, x)):
        if _is_large(large, factor, by, whole) and by.constant is not None and by.constant.all():
            return op.Mul(large, op.Div(factor, by))
    return None


class SmallFactorsFirst(PatternPass):
    """Multiply and divide small factors before they are multiplied with a large tensor."""

    rewrites = (times_a_constant, by_a_constant)
