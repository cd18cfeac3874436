"""PRelu with slopes along axes other than the channels."""

from __future__ import annotations

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
    return op.Add(op.Max(x, zero), op.Mul(op.Min(x, zero), slope))


class ChannelSlopes(PatternPass):
    """Convert PRelu with slopes along axes other than the channels to Max, Min, Mul and Add.

    OpenCV (5.0.0) and MNN (3.6) apply these slopes to the channels.
    """

    rewrites = (other_slopes,)
