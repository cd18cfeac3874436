"""PRelu with constant slopes: ONNX Runtime's kernel (1.32) branches at each element.

For 24 channels of 112 x 112 numbers of both signs, it takes 1.4 ms. Mul and Max take 0.08 ms. For equal slopes, LeakyRelu
can become part of the preceding convolution.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from converters.passes.patterns import PatternPass, rewrite
from onnx_specops.building import Builder, Value
from onnx_specops.graphs import constant_array


@rewrite("PRelu", lambda op, x, slope: op.PRelu(x, slope))
def of_constant_slopes(op: Builder, *, x: Value, slope: Value) -> Value | None:
    """Compute PRelu with finite constant slopes by other operators, with the same rounding.

    Each formula gives ``x`` for positive numbers, ``slope * x`` for negative ones and NaN for NaN. Slopes of 0 exclude the
    first formula, because 0 times infinity is NaN.
    """
    numbers = constant_array(slope)
    # float16 is for GPUs.
    if numbers is None or x.dtype != ir.DataType.FLOAT or not numbers.size or not np.isfinite(numbers).all():
        return None
    if (numbers == numbers.flat[0]).all() and x.rank is not None and numbers.ndim <= x.rank:
        return op.LeakyRelu(x, alpha=float(numbers.flat[0]))
    if (numbers <= 1).all() and numbers.all():
        return op.Max(x, op.Mul(x, slope))
    return op.Add(op.Relu(x), op.Mul(op.Min(x, np.float32(0)), slope))


class PReluByProducts(PatternPass):
    """Compute PRelu with constant slopes by LeakyRelu, or by products."""

    rewrites = (of_constant_slopes,)
