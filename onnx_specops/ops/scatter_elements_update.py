"""ScatterElementsUpdate: writes or reduces updates into a copy of a tensor, at indices along a run-time axis."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from onnx import TensorProto as Type
from onnx.helper import tensor_dtype_to_np_dtype

from onnx_specops.assertions import required
from onnx_specops.domain import INTEGERS, NUMERIC, operator
from onnx_specops.ops._checks import FLOAT16S, position

Reduction = Literal["none", "sum", "prod", "min", "max", "mean"]

_UFUNCS = {"sum": np.add, "mean": np.add, "prod": np.multiply, "min": np.minimum, "max": np.maximum}
_BOOLEAN_UFUNCS = {"sum": np.logical_or, "max": np.logical_or, "prod": np.logical_and, "min": np.logical_and}
_ONNX_REDUCTIONS = {"none": None, "sum": "add", "mean": "add", "prod": "mul", "min": "min", "max": "max"}


@operator(
    inputs={"data": "T", "indices": "T_IND", "updates": "T", "axis": "tensor(int64)"},
    outputs={"output": "T"},
    types={"T": ("bool", *NUMERIC), "T_IND": INTEGERS},
)
def ScatterElementsUpdate(data, indices, updates, axis, *, reduction: Reduction = "none", use_init_val: int = 1):
    """Copies ``data`` and writes or reduces ``updates`` into the copy, at ``indices`` along ``axis``.

    For every position ``p`` of ``updates``, the output element at ``p``, with its coordinate along ``axis`` replaced by
    ``indices[p]``, is updated with ``updates[p]``. Updates of the same element are applied in row-major order.

    Inputs:
        data: any shape of rank 1 or more.
        indices: the rank of ``data``. No dimension except ``axis`` may be larger than the corresponding dimension of
            ``data``. If ``axis`` has ``d`` elements, indices are in ``[-d, d - 1]``; a negative index counts from the end.
        updates: the shape of ``indices``.
        axis: scalar or ``[1]``, in ``[-rank, rank - 1]``.

    Attributes:
        reduction: ``none`` (the last update remains), ``sum``, ``prod``, ``min``, ``max`` or ``mean``. For booleans,
            ``sum`` and ``max`` are OR, ``prod`` and ``min`` are AND, and ``mean`` is not supported.
        use_init_val: whether the element of ``data`` is part of the reduction (and of the count of the mean). If not, an
            updated element is the reduction of its updates only; the other elements keep the value of ``data``.

    Output: the shape of ``data``. Integer sums and products wrap around in their own type, also within the mean, which
    is rounded toward minus infinity. 16-bit floats are reduced in float32.

    Source: OpenVINO specification, ScatterElementsUpdate-12.
    """
    name = "ScatterElementsUpdate"
    if data.dtype == bool and reduction == "mean":
        raise ValueError(f"{name}: data: booleans have no mean")
    if indices.shape != updates.shape:
        raise ValueError(f"{name}: updates has the shape {list(updates.shape)}, indices {list(indices.shape)}")
    if indices.ndim != data.ndim:
        raise ValueError(f"{name}: indices has the rank {indices.ndim}, data {data.ndim}")
    if np.size(axis) != 1:
        raise ValueError(f"{name}: axis has {np.size(axis)} elements instead of one")
    along = int(np.reshape(axis, -1)[0])
    if not -data.ndim <= along < data.ndim:
        raise IndexError(f"{name}: axis = {along} is out of range [{-data.ndim}, {data.ndim - 1}]")
    along %= data.ndim
    if any(n > d for k, (n, d) in enumerate(zip(indices.shape, data.shape, strict=True)) if k != along):
        raise ValueError(
            f"{name}: indices has the shape {list(indices.shape)}, longer than data {list(data.shape)} outside axis {along}"
        )
    size = data.shape[along]
    bad = (indices >= size) if indices.dtype.kind == "u" else (indices < -size) | (indices >= size)
    if bad.any():
        at = np.unravel_index(int(bad.argmax()), bad.shape)
        raise IndexError(f"{name}: indices{position(at)} = {indices[at]} is out of range [{-size}, {size - 1}]")

    accumulated = np.float32 if data.dtype.name in FLOAT16S and reduction != "none" else data.dtype
    output = data.astype(accumulated).reshape(-1)
    if indices.size:
        targets = _targets(data.shape, indices, along)
        values = updates.astype(accumulated, copy=False).reshape(-1)
        _reduce(output, targets, values, reduction, bool(use_init_val))
    return output.astype(data.dtype, copy=False).reshape(data.shape)


def _targets(shape: tuple[int, ...], indices: np.ndarray, along: int) -> np.ndarray:
    """Return the position of every update in the flattened data."""
    strides = _strides(shape)
    targets = indices.astype(np.int64)
    targets[targets < 0] += shape[along]
    targets *= strides[along]
    for k, count in enumerate(indices.shape):
        if k != along:
            targets += (np.arange(count) * strides[k]).reshape(-1, *[1] * (indices.ndim - 1 - k))
    return targets.reshape(-1)


def _strides(shape: tuple[int, ...]) -> list[int]:
    return [math.prod(shape[k + 1 :]) for k in range(len(shape))]


def _reduce(output: np.ndarray, targets: np.ndarray, updates: np.ndarray, reduction: str, use_init_val: bool) -> None:
    if reduction == "none":
        output[targets] = updates
        return
    if not use_init_val:
        # A minimum or maximum may start with one of its own updates, which is then applied twice without effect.
        neutral = {"sum": 0, "mean": 0, "prod": 1}
        output[targets] = neutral.get(reduction, updates)
    (_BOOLEAN_UFUNCS if output.dtype == bool else _UFUNCS)[reduction].at(output, targets, updates)
    if reduction == "mean":
        counts = np.bincount(targets, minlength=output.size)
        reached = np.flatnonzero(counts)
        counts, sums = counts[reached] + use_init_val, output[reached]
        if output.dtype.kind == "f":
            output[reached] = sums / counts.astype(output.dtype)
        else:
            wide = np.uint64 if output.dtype == np.uint64 else np.int64
            output[reached] = sums.astype(wide) // counts.astype(wide)


@ScatterElementsUpdate.infer_shapes
def _(node):
    return [node.shape(0)]


@ScatterElementsUpdate.body
def _(op, data, indices, updates, axis, *, reduction, use_init_val):
    type_, shape = data.dtype, op.Shape(data)
    reduced_type = type_
    if type_ == Type.BOOL and reduction != "none":
        if reduction == "mean":
            raise ValueError("ScatterElementsUpdate: data: booleans have no mean")
        reduced_type, reduction = Type.UINT8, {"sum": "max", "prod": "min"}.get(reduction, reduction)
    elif type_ in (Type.FLOAT16, Type.BFLOAT16) and reduction != "none":
        reduced_type = Type.FLOAT
    if reduced_type != type_:
        data, updates = op.Cast(data, to=reduced_type), op.Cast(updates, to=reduced_type)
    if indices.dtype == Type.UINT64:
        indices = op.Min(indices, 2**63 - 1)  # values that int64 cannot represent stay out of range
    indices = op.Cast(indices, to=Type.INT64)

    if axis.constant is not None:
        along = int(axis.constant.reshape(-1)[0])
    else:
        # The axis of ScatterElements is an attribute, so scatter into the flattened data instead.
        along, indices = 0, _flat_targets(op, shape, indices, updates, axis)
        data, updates = op.Reshape(data, [-1]), op.Reshape(updates, [-1])

    def scatter(into, values, how):
        return op.ScatterElements(into, indices, values, axis=along, reduction=_ONNX_REDUCTIONS[how])

    def filled(like, number, type_):
        return op.ConstantOfShape(op.Shape(like), value=np.array([number], tensor_dtype_to_np_dtype(type_)))

    if reduction != "none" and not use_init_val:
        # A minimum or maximum may start with one of its own updates, which is then applied twice without effect.
        start = {"sum": 0, "mean": 0, "prod": 1}.get(reduction)
        data = scatter(data, updates if start is None else filled(updates, start, reduced_type), "none")
    output = scatter(data, updates, reduction)
    if reduction == "mean":
        counts = scatter(filled(data, use_init_val, Type.INT64), filled(updates, 1, Type.INT64), "sum")
        output = _divided(op, output, op.Max(counts, 1))
    if reduced_type != type_:
        output = op.Cast(output, to=type_)
    return op.Reshape(output, shape, allowzero=1) if axis.constant is None else output


def _flat_targets(op, shape, indices, updates, axis):
    """Return the position of every update in the flattened data, for a run-time axis."""
    extent, rank = op.Shape(indices), op.Shape(shape)
    axis = op.Reshape(op.Cast(axis, to=Type.INT64), [1])
    axis = required(op, "axis_out_of_range", op.Or(op.Less(axis, op.Neg(rank)), op.GreaterOrEqual(axis, rank)), axis)
    axis = op.Where(op.Less(axis, 0), op.Add(axis, rank), axis)
    dimensions = op.Range(0, op.Squeeze(rank, [0]), 1)
    on_axis = op.Equal(dimensions, axis)
    size = op.Gather(shape, axis)

    unequal = op.Not(op.Equal(extent, op.Shape(updates)))
    indices = required(op, "updates_and_indices_differ_in_shape", unequal, indices)
    indices = required(op, "indices_and_data_differ_in_rank", op.Not(op.Equal(op.Shape(extent), rank)), indices)
    longer = op.And(op.Greater(extent, shape), op.Not(on_axis))
    indices = required(op, "indices_longer_than_data_beside_the_axis", longer, indices)
    beyond = op.Or(op.Less(indices, op.Neg(size)), op.GreaterOrEqual(indices, size))
    indices = required(op, "indices_out_of_range", beyond, indices)
    indices = op.Reshape(op.Where(op.Less(indices, 0), op.Add(indices, size), indices), [-1])

    def strides(of):
        later = op.Less(op.Unsqueeze(dimensions, [1]), op.Unsqueeze(dimensions, [0]))
        return op.ReduceProd(op.Where(later, of, 1), [1], keepdims=0)

    extent = op.Max(extent, 1)  # runtimes reject a zero divisor even without updates
    positions = op.Unsqueeze(op.Range(0, op.Size(indices), 1), [1])
    coordinates = op.Mod(op.Div(positions, strides(extent)), extent)
    beside = op.ReduceSum(op.Mul(coordinates, op.Where(on_axis, 0, strides(shape))), [1], keepdims=0)
    return op.Add(beside, op.Mul(indices, op.Gather(strides(shape), axis)))


def _divided(op, sums, counts):
    """Divide, with rounding toward minus infinity for integers; ``counts`` are positive."""
    type_ = sums.dtype
    if type_ in (Type.FLOAT, Type.DOUBLE):
        return op.Div(sums, op.Cast(counts, to=type_))
    if type_ == Type.UINT64:
        return op.Div(sums, op.Cast(counts, to=type_))
    sums = op.Cast(sums, to=Type.INT64)
    quotient = op.Div(sums, counts)  # rounds toward zero
    inexact = op.Not(op.Equal(op.Mul(quotient, counts), sums))
    quotient = op.Sub(quotient, op.Cast(op.And(op.Less(sums, 0), inexact), to=Type.INT64))
    return op.Cast(quotient, to=type_)
