"""RMS normalizations that Qualcomm's HTP computes correctly."""

from __future__ import annotations

import math

import numpy as np
import onnx_ir as ir
from onnx_ir.passes import PassResult

from converters.passes.newer_forms.rms_normalization import FuseRMSNormalization
from onnx_specops.building import Builder, Value

_FUSED, _OF_LAYERS = 23, 17
"""The first opsets with RMSNormalization and LayerNormalization."""


class NormalizedMatrices(FuseRMSNormalization):
    """Convert RMS normalizations along the last axis to RMSNormalization of a matrix, with Reshape.

    In opsets 17 to 22, they become LayerNormalization of the rows and their negations, whose mean is 0. QNN's HTP (2.7)
    computes separate nodes incorrectly after some multiplications, and squares of numbers above 255 are infinite in float16.
    It computes RMSNormalization of three dimensions or more incorrectly, and reads out of bounds, unless all but the last
    two are 1. Conditions: float32, known dimensions, and a constant scale.
    """

    newest = _FUSED

    def call(self, model: ir.Model) -> PassResult:
        self.finite = self.newest < _FUSED  # the mean of an infinity and its negation is NaN
        return super().call(model)

    def normalized(self, op: Builder, x: Value, scale: Value, epsilon: float) -> Value | None:
        dims = [size or 0 for size in x.dims or ()]
        if not x.is_static or 0 in dims or self.newest < _OF_LAYERS:
            return None
        if self.newest >= _FUSED:
            if math.prod(dims[:-2]) == 1:
                return super().normalized(op, x, scale, epsilon)
            rows = super().normalized(op, op.Reshape(x, [math.prod(dims[:-1]), dims[-1]]), scale, epsilon)
            return None if rows is None else op.Reshape(rows, dims)
        both = op.Concat(x, op.Neg(x), axis=-1)
        normal = op.LayerNormalization(both, op.const(np.ones(2 * dims[-1], np.float32)), axis=-1, epsilon=epsilon)
        result: Value = op.Mul(op.Slice(normal, [0], [dims[-1]], [len(dims) - 1]), scale)
        return result
