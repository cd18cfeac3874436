"""Normalizations: by batch statistics, by mean and variance, by neighbors, by length."""

from __future__ import annotations

import numpy as np

from converters.errors import Unsupported
from converters.inference_engine.rule import layer, shaped
from converters.inference_engine.rules._channels import by_channel, count_for_channels
from converters.openvino.rules import normalization as opset
from onnx_specops.building import Builder, Value


@layer("BatchNormalization")
def batch_normalization(op: Builder, x: Value, weights: Value, biases: Value, *, epsilon: float):
    """BatchNormalization: the weights are the variances, the biases the means."""
    count = count_for_channels(x, weights, "weights")
    ones, zeros = op.const(np.ones(count, np.float32)), op.const(np.zeros(count, np.float32))
    variance, mean = (shaped(op, blob, [count]) for blob in (weights, biases))
    return op.BatchNormalization(x, ones, zeros, mean, variance, epsilon=epsilon)


@layer("Norm", "LRN")
def norm(
    op: Builder,
    x: Value,
    *,
    local_size: int,
    alpha: float,
    beta: float,
    k: int = 1,
    region: str = "across",
):
    """Norm: by the squares of neighbors, across channels or in the same channel."""
    axes = [1] if region.lower() == "across" else [2, 3]
    return opset.lrn(op, x, op.const(axes), alpha=alpha, beta=beta, bias=k, size=local_size)


@layer("MVN")
def mvn(op: Builder, x: Value, *, across_channels: int = 0, normalize_variance: int = 1, eps: float = 1e-9):
    """MVN: subtraction of the mean and division by the standard deviation."""
    return opset.mvn_1(op, x, eps=eps, across_channels=bool(across_channels), normalize_variance=bool(normalize_variance))


@layer("Normalize")
def normalize(
    op: Builder,
    x: Value,
    weights: Value,
    *,
    across_spatial: bool = False,
    channel_shared: bool = False,
    eps: float,
):
    """Normalize: division by the length along the channels, or of a whole image, and multiplication by a factor."""
    if x.rank is None:
        raise Unsupported("the rank of its data is unknown", "set the shape of the model's input with --input-shape")
    squares = op.ReduceSum(op.Mul(x, x), [*range(1, x.rank)] if across_spatial else [1], keepdims=1)
    normal = op.Div(x, op.Sqrt(op.Add(squares, eps)))
    first = op.Slice(weights, [0], [1]) if channel_shared else weights
    return op.Mul(normal, by_channel(op, x, first, "weights"))
