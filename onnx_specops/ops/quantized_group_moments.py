"""QuantizedGroupMoments: the mean and the deviation of groups of channels of integers, with channels last."""

from __future__ import annotations

import math
from typing import Annotated

import numpy as np

from onnx_specops.attributes import Limits
from onnx_specops.domain import operator
from onnx_specops.ops._levels import check_scalar, scalar

_NAME = "QuantizedGroupMoments"
_FLOAT = 1  # onnx.TensorProto.FLOAT


@operator(
    inputs={"X": "tensor(uint8)", "x_scale": "T", "x_zero_point": "tensor(uint8)"},
    outputs={"Mean": "T", "InvStdDev": "T"},
    types={"T": ("float",)},
)
def QuantizedGroupMoments(
    X,
    x_scale,
    x_zero_point,
    *,
    channels: Annotated[int, Limits(1, 1 << 24)],
    num_groups: Annotated[int, Limits(1, 1 << 24)],
    epsilon: float,
):
    """Computes the mean of each group of channels of each image, and ``1 / sqrt(variance + epsilon)``:
    ``x = x_scale * (X - x_zero_point)``.

    The results are repeated for each channel of a group. ``(x - Mean) * InvStdDev`` is ONNX's GroupNormalization without
    scale and bias, or InstanceNormalization if each channel is a group.

    Inputs:
        X: ``[N, S1, ..., C]`` with at least one spatial dimension.
        x_scale, x_zero_point: ``[]``, the scale of the integers, and the integer that represents zero.

    Attributes:
        channels: ``C``.
        num_groups: the number of groups, which divides ``C``.
        epsilon: the number that is added to the variance.

    Outputs:
        Mean: ``[N, 1, ..., C]``.
        InvStdDev: the same shape.

    Source: OpenVINO specification, MVN-6 and GroupNormalization-12.
    """
    _check(X.ndim, X.shape[-1] if X.ndim else 0, channels, num_groups)
    for given, array in (("x_scale", x_scale), ("x_zero_point", x_zero_point)):
        check_scalar(_NAME, given, array)
    pixels = math.prod(X.shape[1:-1])
    rows = X.reshape(X.shape[0], pixels, num_groups, channels // num_groups).astype(np.float64)
    with np.errstate(all="ignore"):
        scale = np.float64(x_scale.reshape(()))
        mean = rows.mean(axis=(1, 3)) if rows.size else np.full((X.shape[0], num_groups), np.nan)
        apart = rows - mean[:, None, :, None]
        variance = (apart * apart).mean(axis=(1, 3)) * scale * scale if rows.size else mean
        numbers = ((mean - float(x_zero_point.reshape(()))) * scale, 1 / np.sqrt(variance + np.float32(epsilon)))
    shape = (X.shape[0], *(1 for _ in X.shape[1:-1]), channels)
    return tuple(np.repeat(of, channels // num_groups, axis=1).reshape(shape).astype(np.float32) for of in numbers)


def _check(rank: int, size: int, channels: int, num_groups: int) -> None:
    """Raise ``ValueError`` if X has another number of channels or dimensions."""
    if channels % num_groups:
        raise ValueError(f"{_NAME}: num_groups = {num_groups} does not divide {channels} channels")
    if rank < 3 or size != channels:
        raise ValueError(f"{_NAME}: X has {rank} dimensions and {size} channels; expected at least 3, and {channels}")


@QuantizedGroupMoments.infer_shapes
def _(node):
    x = node.shape(0)
    shape = None if x is None or len(x) < 3 else [x[0], *(1 for _ in x[1:-1]), node.attributes["channels"]]
    return [shape, shape]


@QuantizedGroupMoments.body_facts
def _(X, x_scale, x_zero_point, *, channels, num_groups, epsilon):
    """Return the rank of X."""
    return {"rank": 0 if X.shape is None else len(X.shape)}


@QuantizedGroupMoments.body
def _(op, X, x_scale, x_zero_point, *, channels, num_groups, epsilon, rank):
    _check(rank, channels, channels, num_groups)
    size, batch = channels // num_groups, op.Shape(X, start=0, end=1)
    pixels = op.ReduceProd(op.Shape(X, start=1, end=rank - 1), keepdims=1)
    rows = op.Reshape(X, op.Concat(batch, pixels, [channels], axis=0), allowzero=1)
    x = op.DequantizeLinear(rows, scalar(op, x_scale), scalar(op, x_zero_point))
    # ONNX Runtime's ReduceMean over the first of two dimensions takes nine times as long as a matrix multiplication.
    ones = op.Expand(np.float32(1), op.Concat([1], pixels, axis=0))
    count = op.Cast(pixels, to=_FLOAT)

    def of_groups(numbers):
        """Emit the mean over pixels and the channels of each group, for each channel."""
        means = op.Div(op.MatMul(ones, numbers), count)
        if size == 1:
            return means
        means = op.ReduceMean(op.Reshape(means, [0, num_groups, size]), [2], keepdims=1)
        return op.Reshape(op.Expand(means, [1, 1, size]), [0, 1, channels])

    mean = of_groups(x)
    apart = op.Sub(x, mean)
    variance = of_groups(op.Mul(apart, apart))
    inverse = op.Reciprocal(op.Sqrt(op.Add(variance, np.float32(epsilon))))
    shape = [0, *(1 for _ in range(rank - 2)), channels]
    return (mean, inverse) if rank == 3 else (op.Reshape(mean, shape), op.Reshape(inverse, shape))
