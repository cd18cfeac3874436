"""PRelu with slopes along axes other than the channels."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from converters.passes.patterns import PatternPass, rewrite
from onnx_specops.building import Builder, Value


@rewrite("PRelu", lambda op, x, slope: op.PRelu(x, slope))
def other_slopes(op: Builder, *, x: Value, slope: Value) -> Value | None:
    """Return positive numbers unchanged, and negative numbers times the slopes."""
    if slope.dims is None or x.rank is None or x.dtype not in (ir.DataType.FLOAT, ir.DataType.DOUBLE):
        return None
    dims = [1] * (x.rank - len(slope.dims)) + slope.dims
    if all(dim == 1 for axis, dim in enumerate(dims) if axis != 1):
        return None
    zero = op.const(0.0, x.dtype)
    if slope.constant is None or not np.isfinite(slope.constant).all():  # 0 times an infinite slope is NaN
        return op.Where(op.Less(x, zero), op.Mul(x, slope), x)
    return op.Add(op.Max(x, zero), op.Mul(op.Min(x, zero), slope))


class ChannelSlopes(PatternPass):
    """Convert PRelu with slopes along axes other than the channels to Max, Min, Mul and Add, or to Less, Mul and Where if
    a slope may be infinite.

    OpenCV (5.0.0) and MNN (3.6) apply these slopes to the channels.
    """

    rewrites = (other_slopes,)
