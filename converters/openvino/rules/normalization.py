"""Normalizations by batch statistics, mean and variance, neighbors, or length."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
import onnx_ir as ir

from converters.errors import Malformed, Unsupported
from converters.openvino.rule import Departure, omitted, rule
from converters.openvino.rules._precision import halves_in_float32, require_floats
from onnx_specops.building import Builder, Value

_INT64 = ir.DataType.INT64


@rule("BatchNormInference")
def batch_norm_inference_1(
    op: Builder, gamma: Value, beta: Value, data: Value, mean: Value, variance: Value, *, epsilon: float
):
    """BatchNormInference-1: the data is the third input."""
    return _batch_norm(op, data, gamma, beta, mean, variance, epsilon)


@rule("BatchNormInference", since="opset5")
def batch_norm_inference_5(
    op: Builder, data: Value, gamma: Value, beta: Value, mean: Value, variance: Value, *, epsilon: float
):
    """BatchNormInference-5."""
    return _batch_norm(op, data, gamma, beta, mean, variance, epsilon)


@rule("MVN", departs=[omitted("normalize_variance", "false", "true")])
def mvn_1(
    op: Builder,
    data: Value,
    *,
    eps: float,
    across_channels: bool = False,
    normalize_variance: bool = False,
    reduction_axes: tuple[int, ...] | None = None,
):
    """MVN-1: ``across_channels`` and the rank determine the axes. OpenVINO also writes ``reduction_axes``."""
    first = 1 if across_channels else 2
    if data.rank is None and not reduction_axes:
        axes = op.Range(first, op.Size(op.Shape(data)), 1)
    else:
        axes = op.const(list(reduction_axes or range(first, data.rank or 0)))
    return _mean_variance(op, data, axes, normalize_variance, eps, outside=False)


@rule("MVN", since="opset6")
def mvn_6(
    op: Builder,
    data: Value,
    axes: Value,
    *,
    eps: float,
    normalize_variance: bool,
    eps_mode: Literal["inside_sqrt", "outside_sqrt"],
):
    """MVN-6."""
    return _mean_variance(op, data, _as_list(op, axes), normalize_variance, eps, outside=eps_mode == "outside_sqrt")


@rule(
    "NormalizeL2",
    departs=[
        Departure(
            where="no axes, at run time",
            cpu="fails",
            specification="gives 1 for every number other than 0",
            follows="specification",
        ),
    ],
)
def normalize_l2(op: Builder, data: Value, axes: Value, *, eps: float, eps_mode: Literal["add", "max"]):
    """NormalizeL2-1. Without axes, every number other than 0 becomes 1."""
    require_floats(data, "normalizes")
    axes = _as_list(op, axes)

    def ones(op: Builder) -> Value:
        return op.Cast(op.Not(op.Equal(data, 0.0)), to=data.dtype)

    def normalized(op: Builder) -> Value:
        # float16 would round eps, often to 0.
        def divided(data: Value) -> Value:
            squares = op.ReduceSum(op.Mul(data, data), axes, keepdims=1)
            combined = op.Add(squares, eps) if eps_mode == "add" else op.Max(squares, op.const(eps, data.dtype))
            return op.Div(data, op.Sqrt(combined))

        return halves_in_float32(op, divided, data)

    return op.if_(op.Equal(op.Size(axes), 0), ones, normalized)


@rule("GroupNormalization", since="opset12")
def group_normalization(op: Builder, data: Value, scale: Value, bias: Value, *, num_groups: int, epsilon: float):
    """GroupNormalization-12 as InstanceNormalization of groups.

    ONNX's GroupNormalization has a scale for each channel only from opset 21 on.
    """
    require_floats(data, "normalizes")
    channels = data.dims[1] if data.dims and len(data.dims) > 1 else None
    if num_groups < 1 or (channels is not None and channels % num_groups):
        raise Malformed(f"its {channels} channels are not a multiple of num_groups={num_groups}")
    size = op.Div(op.ReduceProd(op.Shape(data, start=1), keepdims=1), num_groups)
    groups = op.Reshape(data, op.Concat(op.Shape(data, start=0, end=1), [num_groups], size, axis=0), allowzero=1)
    normal = op.Reshape(_instances(op, groups, num_groups, epsilon), op.Shape(data), allowzero=1)
    behind = op.Sub(op.Shape(op.Shape(data)), 2)
    each = op.Concat([-1], op.Expand(op.const([1]), behind), axis=0)
    return op.Add(op.Mul(normal, op.Reshape(scale, each)), op.Reshape(bias, each))


@rule(
    "LRN",
    restrictions="if the rank is unknown, its axes must be constants that are not negative",
    departs=[
        Departure(
            where="an even `size`",
            cpu="sums `(size - 1) // 2` elements on both sides, as the reference kernel does",
            specification="sums `size // 2`",
            follows="cpu",
        ),
        Departure(
            where="a `bias` that is not an integer", cpu="truncates it", specification="adds it", follows="specification"
        ),
        Departure(
            where="axes that include all dimensions after the channels and others",
            cpu="ignores the others",
            specification="sums along all axes",
            follows="specification",
        ),
        Departure(
            where="axes that are not constant, negative, or neither only the channels nor all dimensions after them",
            cpu="rejects them",
            specification="allows them",
            follows="specification",
        ),
    ],
)
def lrn(op: Builder, data: Value, axes: Value, *, alpha: float, beta: float, bias: float, size: int):
    """LRN-1. A region extends ``(size - 1) // 2`` elements to both sides."""
    require_floats(data, "normalizes")
    if size < 1:
        raise Malformed(f"its size is {size}; it must be 1 or more")
    axes = _as_list(op, axes)
    known = _known_axes(data, axes)
    region = 2 * ((size - 1) // 2) + 1
    if known == [1]:
        return op.LRN(data, alpha=alpha * region / size, beta=beta, bias=bias, size=region)

    def divided(data: Value) -> Value:
        squares = op.Mul(data, data)
        for k in known or ():
            squares = _summed(op, squares, k, region)
        for k in range(data.rank or 0) if known is None else ():
            hit = op.Or(op.Equal(axes, k), op.Equal(axes, k - (data.rank or 0)))
            used = op.Greater(op.ReduceSum(op.Cast(hit, to=_INT64), keepdims=0), 0)
            squares = _summed_if(op, used, squares, k, region)
        if axes.dims and axes.dims[0] is not None:
            factor: object = alpha / float(size) ** axes.dims[0]
        else:
            power = op.Pow(op.const(float(size), data.dtype), op.Cast(op.Size(axes), to=data.dtype))
            factor = op.Div(op.const(alpha, data.dtype), power)
        return op.Div(data, op.Pow(op.Add(op.Mul(squares, factor), bias), op.const(beta, data.dtype)))

    return halves_in_float32(op, divided, data)


def _known_axes(data: Value, axes: Value) -> list[int] | None:
    """Return the axes without repetitions; ``None`` if they are computed. Raise `Malformed` if the rank is needed but
    unknown.
    """
    rank, given = data.rank, None if axes.constant is None else axes.constant.tolist()
    if rank is None and (given is None or min(given, default=0) < 0):
        raise Unsupported(
            "its axes are negative or not constant, and the rank of its data is unknown",
            "set the shape of the model's input with --input-shape",
        )
    if given is None:
        return None
    if rank is not None and any(not -rank <= axis < rank for axis in given):
        raise Malformed(f"its axes are {given} for a rank of {rank}")
    return sorted({axis + (rank or 0) if axis < 0 else axis for axis in given})


def _summed_if(op: Builder, condition: Value, x: Value, axis: int, region: int) -> Value:
    return op.if_(condition, lambda op: _summed(op, x, axis, region), lambda op: op.Identity(x))


def _summed(op: Builder, x: Value, axis: int, region: int) -> Value:
    """Return the sums of an odd number of elements around each element along an axis."""
    reach, shape = region // 2, op.Shape(x)
    length = x.dims[axis] if x.dims else None
    if length is not None:
        reach = min(reach, length)
    # With one dimension before the axis and one after it, the window is a column.
    before = op.ReduceProd(op.Slice(shape, [0], [axis]), keepdims=1)
    after = op.ReduceProd(op.Slice(shape, [axis + 1], [2**31]), keepdims=1)
    columns = op.Reshape(x, op.Concat(before, [1], op.Slice(shape, [axis], [axis + 1]), after, axis=0), allowzero=1)
    kernel = 2 * reach + 1
    means = op.AveragePool(columns, kernel_shape=[kernel, 1], pads=[reach, 0, reach, 0], count_include_pad=1)
    return op.Reshape(op.Mul(means, float(kernel)), shape, allowzero=1)


def _batch_norm(op: Builder, data: Value, gamma: Value, beta: Value, mean: Value, variance: Value, epsilon: float) -> Value:
    return op.BatchNormalization(data, gamma, beta, mean, variance, epsilon=epsilon)


def _mean_variance(op: Builder, data: Value, axes: Value, normalize_variance: bool, eps: float, outside: bool) -> Value:
    """Subtract the mean of ``data`` over ``axes``, and divide by the standard deviation."""
    require_floats(data, "normalizes")
    channels = data.dims[1] if data.dims and len(data.dims) > 3 else None
    inner = None if axes.constant is None else sorted(int(a) % len(data.dims or [1]) for a in axes.constant)
    if channels and normalize_variance and not outside and inner == [*range(2, len(data.dims or []))]:
        return _instances(op, data, channels, eps)
    if normalize_variance and not outside and inner and data.dims and _are_layers(data, inner):
        ones = op.const(np.ones([data.dims[axis] for axis in inner]), data.dtype)
        return op.LayerNormalization(data, ones, axis=inner[0] - len(data.dims), epsilon=eps)

    def divided(data: Value) -> Value:
        centered = op.Sub(data, op.ReduceMean(data, axes, keepdims=1, noop_with_empty_axes=1))
        if not normalize_variance:
            return centered
        variance = op.ReduceMean(op.Pow(centered, op.const(2.0, data.dtype)), axes, keepdims=1, noop_with_empty_axes=1)
        if outside:
            return op.Div(centered, op.Add(op.Sqrt(variance), eps))
        return op.Div(centered, op.Sqrt(op.Add(variance, eps)))

    return halves_in_float32(op, divided, data)


_MAX_FEATURES = 2**16
"""The maximum size of the scale of LayerNormalization, which the file contains."""


def _are_layers(data: Value, axes: list[int]) -> bool:
    """Return whether LayerNormalization computes this: the sorted axes are the last ones, with known sizes."""
    dims = data.dims or []
    features = math.prod(dims[axis] or 0 for axis in axes)
    # It computes float64 in float32.
    return data.dtype != ir.DataType.DOUBLE and axes == [*range(axes[0], len(dims))] and 0 < features <= _MAX_FEATURES


def _instances(op: Builder, data: Value, channels: int, epsilon: float) -> Value:
    """Emit InstanceNormalization without scale and bias."""
    ones, zeros = (op.Expand(op.const(number, data.dtype), [channels]) for number in (1, 0))
    return op.InstanceNormalization(data, ones, zeros, epsilon=epsilon)


def _as_list(op: Builder, axes: Value) -> Value:
    """Convert axes to a vector of int64, also from a scalar."""
    return op.Reshape(op.Cast(axes, to=_INT64), [-1])
