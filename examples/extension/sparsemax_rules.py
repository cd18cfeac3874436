"""The onnx-specops part of the example: an operator and a rule for Sparsemax, an operation of an OpenVINO extension.

``specops convert sparsemax.xml --rules sparsemax_rules.py`` loads this file; docs/extending.md explains it.
"""

import numpy as np

from converters.errors import Malformed
from converters.openvino.rule import rule
from onnx_specops.domain import operator


@operator(inputs={"z": "T"}, outputs={"p": "T"}, types={"T": ("float", "double")})
def Sparsemax(z, *, axis: int = -1):
    """The Euclidean projection of ``z`` onto the probability simplex, along ``axis`` (arXiv:1602.02068).

    Inputs:
        z: any shape of rank 1 or more.

    Output: the shape of ``z``. Along the axis, the elements are not negative, and their sum is 1.
    """
    descending = -np.sort(-z, axis=axis)
    sums = np.cumsum(descending, axis=axis, dtype=z.dtype)
    ranks = np.arange(1, z.shape[axis] + 1, dtype=z.dtype).reshape([-1] + [1] * (z.ndim - 1 - axis % z.ndim))
    inside = 1 + ranks * descending > sums  # the elements that stay above 0
    count = inside.sum(axis=axis, keepdims=True, dtype=z.dtype)
    threshold = (np.where(inside, descending, 0).sum(axis=axis, keepdims=True, dtype=z.dtype) - 1) / count
    return np.maximum(z - threshold, 0)


@Sparsemax.infer_shapes
def _(node):
    return [node.shape(0)]


@Sparsemax.body
def _(op, z, *, axis):
    length = op.Gather(op.Shape(z), [axis])
    descending, _ = op.TopK(z, length, axis=axis)
    sums = op.CumSum(descending, np.int64(axis))
    ones = op.Where(op.Equal(descending, descending), op.CastLike(1, z), op.CastLike(0, z))
    inside = op.Greater(op.Add(op.Mul(op.CumSum(ones, np.int64(axis)), descending), op.CastLike(1, z)), sums)
    count = op.ReduceSum(op.CastLike(inside, z), [axis])
    total = op.ReduceSum(op.Where(inside, descending, op.CastLike(0, z)), [axis])
    threshold = op.Div(op.Sub(total, op.CastLike(1, z)), count)
    return op.Max(op.Sub(z, threshold), op.CastLike(0, z))


@rule("Sparsemax", since="extension")
def sparsemax(op, z, *, axis: int = -1):
    """Convert Sparsemax of the extension."""
    if z.rank is not None and not -z.rank <= axis < z.rank:
        raise Malformed(f"its axis is {axis} for a rank of {z.rank}")
    return op.specops.Sparsemax(z, axis=axis)
