"""Forms of operators that a target computes incorrectly are rejected; near misses are not."""

from __future__ import annotations

from typing import Any
from unittest.mock import ANY

import numpy as np
import onnx_ir as ir
import pytest

from converters.targets import TARGETS, limits
from converters.targets.fitting import why_unsupported
from converters.targets.limits import Limit
from onnx_specops.building import Builder
from tests.converters.passes.graphs import floats, graph

IMAGE = (1, 3, 4, 6)


def _recurrent(operator: str, **attributes: Any):
    def emit(op: Builder, x):
        gates = {"GRU": 3, "LSTM": 4, "RNN": 1}[operator]
        w, r = (op.const(np.zeros((1, gates * 2, size), np.float32)) for size in (4, 2))
        lengths = attributes.pop("lengths", None)
        given = (None, None if lengths is None else op.const(np.array(lengths, np.int32)))
        return op.node(operator, x, w, r, *given, hidden_size=2, outputs=1, **attributes)

    return emit


def _last_state(op: Builder, x: Any):
    w, r = (op.const(np.zeros((1, 2, size), np.float32)) for size in (4, 2))
    return op.node("RNN", x, w, r, hidden_size=2, outputs=2)[1]


def _resized(scales: list[float], sizes: list[int], **attributes: Any):
    def emit(op: Builder, x):
        numbers = op.const(np.array([1, 1, *scales], np.float32))
        return op.node("Resize", x, None, numbers, types=[(ir.DataType.FLOAT, [1, 3, *sizes])], **attributes)

    return emit


def _resized_to(**attributes: Any):
    return lambda op, x: op.Resize(x, None, None, [1, 3, 8, 12], **attributes)


def _pooled(operator: str, rank: int = 2, **attributes: Any):
    return lambda op, x: op.node(operator, x, kernel_shape=[3] * rank, strides=[2] * rank, **attributes)


def _scattered(indices: list[int], **attributes: Any):
    def emit(op: Builder, x):
        index = op.const(np.array([[[indices]]], np.int64))
        return op.ScatterElements(x, index, op.const(np.ones((1, 1, 1, 2), np.float32)), axis=3, **attributes)

    return emit


def _scattered_nd(index: list[int], updates: Any):
    return lambda op, x: op.ScatterND(x, op.const(np.array([index], np.int64)), op.const(np.array(updates, np.float32)))


def _computed(op: Builder, x: Any):
    return op.Cast(op.Gather(x, [0]), to=ir.DataType.INT64)


def _either(first: Any, second: Any):
    def emit(op, x):
        condition = op.Greater(op.ReduceMax(x, keepdims=0), 0.0)
        return op.if_(condition, lambda op: op.Identity(first(op, x)), lambda op: op.Identity(second(op, x)))

    return emit


def _branched(emit: Any):
    return _either(emit, lambda op, x: op.Neg(emit(op, x)))


def _sampled(images: int, *, constant: bool = True):
    def emit(op: Builder, x):
        grid = op.const(np.zeros((images, 2, 2, 2), np.float32))
        return op.GridSample(x, grid if constant else op.Mul(grid, op.ReduceMax(x)))

    return emit


CASES: list[tuple[Limit, tuple[int, ...], Any, Any]] = [
    (limits.recurrent, (3, 2, 4), _recurrent("LSTM", direction="reverse"), _recurrent("LSTM")),
    (limits.recurrent, (3, 2, 4), _recurrent("GRU", clip=0.5), _recurrent("GRU", activations=["Sigmoid", "Tanh"])),
    (limits.recurrent, (3, 2, 4), _recurrent("RNN", lengths=[3, 2]), _recurrent("RNN", lengths=[3, 3])),
    (limits.recurrent, (3, 2, 4), _recurrent("RNN", activations=["Relu"]), _recurrent("RNN", activations=["Tanh"])),
    (limits.reset_before, (3, 2, 4), _recurrent("GRU"), _recurrent("GRU", linear_before_reset=1)),
    (limits.reset_before_of_unknown_sizes, (None, 2, 4), _recurrent("GRU"), _recurrent("GRU", linear_before_reset=1)),
    (limits.several_sequences, (3, 2, 4), _recurrent("LSTM"), lambda op, x: op.Abs(x)),
    (limits.several_sequences, (2, 3, 4), lambda op, x: _recurrent("LSTM")(op, op.Abs(op.Transpose(x, perm=[1, 0, 2]))),
     lambda op, x: _recurrent("LSTM")(op, op.Transpose(x, perm=[1, 0, 2]))),
    (limits.several_sequences, (2, 3, 4), lambda op, x: _recurrent("GRU")(op, op.Transpose(x, perm=[0, 1, 2])),
     lambda op, x: _recurrent("GRU")(op, op.Transpose(x, perm=[1, 0, 2]))),
    (limits.several_sequences, (2, 3, 4), lambda op, x: _recurrent("GRU")(op, op.Transpose(x, perm=[1, 2, 0])),
     lambda op, x: _recurrent("GRU")(op, op.Transpose(x, perm=[2, 0, 1]))),
    (limits.several_sequences, (2, 3, 4), lambda op, x: _last_state(op, op.Transpose(x, perm=[1, 0, 2])),
     lambda op, x: _recurrent("RNN")(op, op.Transpose(x, perm=[1, 0, 2]))),
    (
        limits.several_sequences,
        (3, 2, 4),
        _recurrent("GRU"),
        lambda op, x: _recurrent("GRU")(op, op.Slice(x, [0], [1], [1])),
    ),
    (limits.smoothed_images, IMAGE, *(_resized_to(mode="linear", antialias=k) for k in (1, 0))),
    (limits.free_scales, IMAGE, _resized([1.7, 2], [6, 12]), _resized([1.5, 2], [6, 12])),
    (
        limits.free_scales_of_corners,
        IMAGE,
        _resized([1.7, 2], [6, 12], coordinate_transformation_mode="align_corners"),
        _resized([1.7, 2], [6, 12]),
    ),
    (limits.rounded_up, IMAGE, _resized_to(nearest_mode="ceil"), _resized_to(nearest_mode="floor")),
    (limits.rounded_up, IMAGE, _resized_to(nearest_mode="round_prefer_ceil"), _resized_to()),
    (
        limits.cubic_centers,
        IMAGE,
        _resized_to(mode="cubic"),
        _resized_to(mode="cubic", coordinate_transformation_mode="asymmetric"),
    ),
    (limits.cubic_centers, IMAGE, _resized_to(mode="cubic", cubic_coeff_a=-0.5), _resized_to(mode="linear")),
    (
        limits.counted_padding,
        IMAGE,
        *(_pooled("AveragePool", ceil_mode=m, count_include_pad=1, pads=[1] * 4) for m in (1, 0)),
    ),
    (limits.reductions, IMAGE, _scattered([0, 1], reduction="add"), _scattered([0, 1])),
    (limits.negative_indices, IMAGE, _scattered([0, -1]), _scattered([0, 1])),
    (limits.negative_pads, IMAGE, *(lambda op, x, n=n: op.Pad(x, [0, 0, n, 0, 0, 0, 0, 0]) for n in (-1, 1))),
    (limits.remainders, IMAGE, lambda op, x: op.Mod(x, op.const(2.0), fmod=1), lambda op, x: op.Abs(x)),
    (limits.diagonals, (3, 3), *(lambda op, x, e=e: op.Einsum(x, equation=e) for e in ("ii->i", "ij->i"))),
    (
        limits.indices_with_auto_pad,
        IMAGE,
        _pooled("MaxPool", outputs=2, auto_pad="SAME_UPPER"),
        _pooled("MaxPool", outputs=2, pads=[1] * 4),
    ),
    (limits.indices_of_maxima, IMAGE, _pooled("MaxPool", outputs=2), _pooled("MaxPool")),
    (limits.indices_of_tensors, IMAGE, _pooled("MaxPool", outputs=2), _pooled("MaxPool")),
    (limits.indices_of_tensors, IMAGE, *(
        lambda op, x, n=n: op.Mod(_pooled("MaxPool", outputs=2)(op, x)[1], op.const([n])) for n in (72, 24)
    )),
    (limits.indices_of_tensors, IMAGE, *(
        lambda op, x, n=n: op.Mod(_pooled("MaxPool", outputs=2, storage_order=n)(op, x)[1], op.const([24])) for n in (1, 0)
    )),
    (limits.uneven_padding, IMAGE, _pooled("MaxPool", pads=[0, 0, 1, 1]), _pooled("MaxPool", pads=[1, 1, 1, 1])),
    (limits.uneven_padding, (1, 2, 5, 5, 5), *(
        lambda op, x, n=n: op.MaxPool(x, kernel_shape=[3] * 3, strides=[2] * 3, pads=[n] * 6) for n in (1, 0)
    )),
    (limits.last_windows, (1, 3, 5, 5), *(
        lambda op, x, n=n: op.MaxPool(x, kernel_shape=[2, 2], strides=[n, n], pads=[1] * 4, ceil_mode=1) for n in (3, 1)
    )),
    (limits.last_windows, (1, 3, 6, 6), *(
        lambda op, x, n=n: op.MaxPool(x, kernel_shape=[n, n], strides=[2, 2], ceil_mode=1) for n in (1, 2)
    )),
    (limits.pooled_volumes, (2, 1, 4, 4, 4), _pooled("MaxPool", rank=3), lambda op, x: op.Abs(x)),
    (limits.pooled_volumes, (1, 1, 4, 4, 4), *(_pooled("AveragePool", rank=3, ceil_mode=m) for m in (1, 0))),
    (limits.pooled_volumes, (2, 1, 4, 4, 4), lambda op, x: op.GlobalMaxPool(x), lambda op, x: op.ReduceMax(x, [2, 3, 4])),
    (limits.integers, (3,), lambda op, x: op.Abs(op.Cast(x, to=ir.DataType.INT32)), lambda op, x: op.Abs(x)),
    (limits.integers, (3,), lambda op, x: op.Add(y := op.Cast(x, to=7), y), lambda op, x: op.Add(x, x)),
    (limits.integers, (3, 3), lambda op, x: op.Einsum(y := op.Cast(x, to=7), y, equation="ij,jk->ik"),
     lambda op, x: op.Einsum(x, x, equation="ij,jk->ik")),
    (limits.integers, (3, 3), lambda op, x: op.MatMul(y := op.Cast(x, to=7), y), lambda op, x: op.MatMul(x, x)),
    (limits.means_of_integers, (3,), *(lambda op, x, k=k: op.ReduceMean(op.Cast(x, to=k), [0]) for k in (7, 1))),
    (limits.narrow_maxima, IMAGE, *(
        lambda op, x, p=p: op.MaxPool(x, kernel_shape=[2, 2], pads=p) for p in ([0, 1, 0, 0], [0, 0, 1, 1])
    )),
    (limits.narrow_maxima, IMAGE, *(lambda op, x, n=n: op.MaxPool(x, kernel_shape=[n, n], pads=[1] * 4) for n in (2, 3))),
    (limits.resized_integers, IMAGE, lambda op, x: _resized_to()(op, op.Cast(x, to=ir.DataType.UINT8)), _resized_to()),
    (
        limits.selected_boxes,
        (1, 1, 6),
        lambda op, x: op.GatherND(
            x, op.NonMaxSuppression(op.const(np.zeros((1, 6, 4), np.float32)), x, op.const([3]), op.const([np.float32(0.5)]))
        ),
        lambda op, x: op.GatherND(x, op.const([[0, 0, 2]])),
    ),
    (limits.means_of_regions, IMAGE, *(
        lambda op, x, m=m: op.RoiAlign(
            x, np.ones((1, 4), np.float32), np.zeros(1, np.int64), mode="avg", coordinate_transformation_mode=m
        ) for m in ("output_half_pixel", "half_pixel")
    )),
    (limits.dilated_maxima, (1, 1, 6, 6), *(_pooled("MaxPool", dilations=[n, n]) for n in (2, 1))),
    (limits.transposed_products, (3, 3), *(
        lambda op, x, t=t: op.Gemm(x, op.const(np.ones((3, 3), np.float32)), transA=t) for t in (1, 0)
    )),
    (limits.blocks, (4, 3), _scattered_nd([1], [[1.0, 2.0, 3.0]]), _scattered_nd([1, 2], [1.0])),
    (limits.scattered_in_place, (4,), _scattered_nd([1], [2.0]), lambda op, x: _scattered_nd([1], [2.0])(op, op.Abs(x))),
    (limits.scattered_in_place, (4,), *(
        lambda op, x, name=name: _scattered_nd([1], [2.0])(op, getattr(op, name)(op.Abs(x))) for name in ("Identity", "Neg")
    )),
    (limits.scattered_in_place, (4,), *(
        lambda op, x, n=n: op.Add(y := op.Abs(x), _scattered_nd([1], [2.0])(op, (y, op.Neg(y))[n])) for n in (0, 1)
    )),
    (limits.lines_of_updates, (4,), _scattered_nd([1], [2.0]), lambda op, x: op.Abs(x)),
    (limits.lines_of_updates, (4,), _scattered_nd([1], [2.0]),
     lambda op, x: _scattered_nd([1], [[2.0]])(op, op.Unsqueeze(x, [1]))),
    (limits.scalars, (4,), *(lambda op, x, k=k: op.ReduceSum(x, [0], keepdims=k) for k in (0, 1))),
    (limits.scalars, (1,), lambda op, x: op.Unsqueeze(op.Squeeze(x, [0]), [0]), lambda op, x: op.Unsqueeze(x, [0])),
    (limits.computed_states, (1, 2, 4), *(
        lambda op, x, k=k: op.GRU(
            op.const(np.ones((3, 2, 4), np.float32)), *(op.const(np.ones((1, 12, 4), np.float32)) for _ in range(2)),
            None, None, x if k else op.const(np.ones((1, 2, 4), np.float32)), hidden_size=4, outputs=2
        ) for k in (1, 0)
    )),
    (limits.computed_powers, (2, 3), lambda op, x: op.Pow(x, np.float32(1.5)), lambda op, x: op.Pow(x, np.float32(2))),
    (limits.computed_targets, (3,), *(
        lambda op, x, n=n: op.Reshape(z := op.NonZero(x), (op.Neg(s := op.Shape(z)), s)[n]) for n in (0, 1)
    )),
    (limits.computed_targets, (3,), *(
        lambda op, x, f=f: op.Reshape(x, op.Cast(x, to=7) if f else [-1]) for f in (True, False)
    )),
    (limits.computed_powers, (2, 3), lambda op, x: op.Pow(x, x), lambda op, x: op.Pow(np.float32(2), x)),
    (limits.computed_powers, (2, 3), lambda op, x: op.Pow(0.0, x), lambda op, x: op.Pow(op.Max(x, 1.0), x)),
    (limits.computed_powers, (2, 3), *(
        lambda op, x, n=n: op.Pow(op.Max(x, op.Sub(np.float32(n), op.Sign(op.Relu(x)))), x) for n in (0, 1)
    )),
    (limits.computed_powers, (2, 3), *(
        lambda op, x, n=n: op.Pow(op.Max(x, op.Sub(np.float32(1), op.Sign(op.Relu((op.Neg(x), x)[n])))), x) for n in (0, 1)
    )),
    (limits.constant_places, (2, 3, 5, 5), _sampled(2), _sampled(2, constant=False)),
    (limits.constant_places, (1, 3, 5, 5), lambda op, x: _sampled(2)(op, op.Concat(x, x, axis=0)), _sampled(1)),
    (
        limits.computed_axis,
        (2, 3),
        lambda op, x: op.CumSum(x, op.Cast(op.ReduceMax(x, keepdims=0), to=7)),
        lambda op, x: op.CumSum(x, 1),
    ),
    (
        limits.unknown_dimensions,
        (None, 3),
        lambda op, x: op.Expand(x, [4, 3]),
        lambda op, x: op.Expand(op.ReduceMax(x, [0]), [4, 3]),
    ),
    (
        limits.computed_from_dimensions,
        (None, 3),
        lambda op, x: op.TopK(x, op.Slice(op.Shape(x), [0], [1]), axis=0, outputs=2),
        lambda op, x: op.TopK(x, [2], axis=0, outputs=2),
    ),
    (
        limits.computed_from_dimensions,
        (None, 3),
        lambda op, x: op.Mul(op.Shape(x), op.Shape(x)),
        lambda op, x: op.Mul(op.Shape(op.ReduceMax(x, [0])), op.Gather(op.Shape(x), [1, 0])),
    ),
    (
        limits.computed_from_dimensions,
        (None, 3),
        lambda op, x: op.Add(op.Where(op.Equal(op.Shape(x), 3), op.Shape(x), [7, 7]), [1, 1]),
        lambda op, x: op.Add(op.Expand(op.Cast(op.Abs(x), to=7), op.Shape(x)), [[1, 1, 1]]),
    ),
    (limits.computed_dimensions, (1, 3), lambda op, x: op.Expand(x, op.Cast(op.ReduceMax(x, [0], keepdims=0), to=7)),
     lambda op, x: op.Expand(x, [2, 3])),
    (limits.small_floats, (3,), *(lambda op, x, t=t: op.Cast(x, to=t) for t in (ir.DataType.FLOAT8E4M3FN, 10))),
    (limits.backward_or_computed_steps, (4,), *(lambda op, x, n=n: op.Slice(x, [3], [-9], [0], [n]) for n in (-1, 1))),
    (limits.backward_or_computed_steps, (4,), lambda op, x: op.Slice(x, [0], [9], [0], _computed(op, x)),
     lambda op, x: op.Slice(x, [0], [9], [0])),
    (limits.backward_slices, (4,), *(lambda op, x, n=n: op.Slice(x, [n], [-9], [0], [-1]) for n in (-2, -1))),
    (limits.backward_slices, (4,), *(lambda op, x, n=n: op.Slice(x, [n], [-9], [0], [-2]) for n in (2, 3))),
    (limits.backward_slices, (4,), *(lambda op, x, n=n: op.Slice(x, _computed(op, x), [-9], [0], [n]) for n in (-1, 1))),
    (limits.backward_slices, (4,), lambda op, x: op.Slice(x, [3], [-9], [0], _computed(op, x)),
     lambda op, x: op.Slice(x, _computed(op, x), [-9])),
    (limits.backward_slices, (4,), lambda op, x: op.Slice(op.Abs(x), [2], [-9], [0], [-1]),
     lambda op, x: op.Slice(op.Cast(x, to=7), [2], [-9], [0], [-1])),
    (limits.divisors_of_0, (3,), *(lambda op, x, n=n: op.Div(x, op.const(np.float32([2, n, 1]))) for n in (0, 3))),
    (limits.floored_remainders, (3,), *(
        lambda op, x, f=f: op.Mod(op.Cast(x, to=7), op.const(np.array([2])), fmod=f) for f in (0, 1)
    )),
    (limits.computed_axes, (3,), lambda op, x: op.ReduceSum(x, op.Cast(op.Gather(x, [0]), to=7)),
     lambda op, x: op.ReduceSum(x, [0])),
    (limits.even_windows, IMAGE, *(lambda op, x, n=n: op.LRN(x, size=n) for n in (4, 3))),
    (limits.dilated_means, (1, 1, 6, 6), *(_pooled("AveragePool", dilations=[n, n]) for n in (2, 1))),
    (limits.wide_unsigned, (3,), *(lambda op, x, t=t: op.Cast(x, to=t) for t in (ir.DataType.UINT32, ir.DataType.UINT8))),
    (limits.casts_of_integers, (3,), *(lambda op, x, t=t: op.Cast(x, to=t) for t in (ir.DataType.INT32, 10))),
    (limits.casts_of_integers, (3,), *(lambda op, x, t=t: op.Cast(x, to=t) for t in (ir.DataType.BOOL, ir.DataType.DOUBLE))),
    (limits.computed_factors, (2, 3),
     lambda op, x: op.LayerNormalization(x, op.ReduceMax(x, [0], keepdims=0)),
     lambda op, x: op.LayerNormalization(x, np.ones(3, np.float32))),
    (limits.products_of_integers, (3, 3), *(lambda op, x, to=to: op.MatMul(*[op.Cast(x, to=to)] * 2) for to in (6, 1))),
    (limits.long_unsigned_casts, (3,), *(lambda op, x, to=to: op.Cast(x, to=to) for to in (12, 6))),
    (limits.long_unsigned_casts, (3,), *(lambda op, x, to=to: op.Cast(x, to=to) for to in (13, 2))),
    (limits.long_transpositions, (4, 4, 16), *(
        lambda op, x, n=n: op.Transpose(op.Reshape(x, [256 >> (n - 1)] + [2] * (n - 1)), perm=list(range(n))[::-1])
        for n in (8, 7)
    )),
    (limits.many_dimensions, (2, 6, 6), *(lambda op, x, d=d: op.Reshape(x, d) for d in ([2, 3, 2, 2, 3], [1, 6, 2, 2, 3]))),
    (limits.many_dimensions, (2, 6, 6), *(
        lambda op, x, d=d: op.Reshape(x, d) for d in ([1, 2, 3, 2, 2, 3], [6, 2, 2, 3]))),
    *((limits.unsqueezed_volumes, (1, 2, 3, 4),
       lambda op, x, emit=emit: emit(op, op.Mul(op.Unsqueeze(x, [1]), np.ones((1, 2, 1, 3, 4), np.float32))),
       lambda op, x, emit=emit: emit(op, op.Unsqueeze(op.Reshape(x, [2, 3, 4]), [1])))
      for emit in (
          lambda op, x: op.Softmax(x, axis=2),
          lambda op, x: op.Slice(x, [0], [1], [2]),
          lambda op, x: op.ReduceSum(x, [2]),
          lambda op, x: op.Concat(x, x, axis=2),
      )),
    (limits.unsqueezed_volumes, (1, 2, 3, 4), lambda op, x: op.Softmax(op.Unsqueeze(x, [2]), axis=1),
     lambda op, x: op.Softmax(op.Relu(op.Conv(op.Unsqueeze(x, [1]), np.ones((2, 1, 1, 1, 1), np.float32))), axis=1)),
    (limits.padded_integers, (3,), *(
        lambda op, x, n=n: op.Pad(op.Cast(x, to=7), [1, 1], op.const(np.array(n, np.int64))) for n in (2, 0)
    )),
    (limits.padded_integers, (3,),
     lambda op, x: op.Pad(op.Cast(x, to=7), [1, 1], op.Cast(op.ReduceMax(x, keepdims=0), to=7)),
     lambda op, x: op.Pad(x, [1, 1], 2.0)),
    (limits.untested_branches, (2, 3), *(_branched(lambda op, x, n=n: op.node(n, x)) for n in ("Elu", "Sigmoid"))),
    (limits.largest_in_branches, (2, 3), *(
        _branched(emit) for emit in (lambda op, x: op.TopK(x, [2], outputs=2)[0], lambda op, x: op.Softmax(x))
    )),
    (limits.shapes_of_branches, (2, 3), _either(lambda op, x: op.Neg(x), lambda op, x: op.Slice(x, [0], [1])),
     _branched(lambda op, x: op.Slice(x, [0], [1]))),
    (limits.shapes_of_branches, (2, 3), _either(lambda op, x: op.NonZero(x), lambda op, x: np.zeros((2, 0), np.int64)),
     _branched(lambda op, x: op.NonZero(x))),
    (limits.images_in_branches, IMAGE, _branched(lambda op, x: op.ReduceMax(x, [2, 3], keepdims=0)),
     lambda op, x: _branched(lambda op, x: op.Abs(x))(op, op.ReduceMax(x, [2, 3], keepdims=0))),
    (limits.images_in_branches, (2, 3), _branched(lambda op, x: op.Reshape(x, [1, 2, 1, 3])),
     _branched(lambda op, x: op.Squeeze(op.Mul(op.Unsqueeze(x, [0]), np.ones((1, 2, 3), np.float32)), [0]))),
    (limits.negative_thresholds, (1, 3, 4), *(
        lambda op, x, t=t: op.NonMaxSuppression(x, op.ReduceMax(x, [2], keepdims=1), [9], [0.5], t) for t in ([-1.0], [0.0])
    )),
    (limits.absent_thresholds, (1, 3, 4), *(
        lambda op, x, t=t: op.NonMaxSuppression(x, op.ReduceMax(x, [2], keepdims=1), [9], [0.5], *t) for t in ([], [[-1.0]])
    )),
]  # fmt: skip


@pytest.mark.parametrize(("limit", "dims", "hit", "miss"), CASES)
def test_conditions(limit: Limit, dims: tuple[int, ...], hit: Any, miss: Any) -> None:
    for emit, applies in ((hit, True), (miss, False)):
        found = [node for node in graph(emit, floats("x", *dims)).graph if node.op_type in limit.operators]
        assert [limit.applies(node) for node in found] == [applies] * len(found) and (found or not applies)


def test_every_limit_belongs_to_a_target() -> None:
    used = {id(limit) for target in TARGETS.values() for limit in target.limits}
    stated = {name: value for name, value in vars(limits).items() if isinstance(value, Limit)}
    assert {name for name, limit in stated.items() if id(limit) not in used} == set()


def test_errors_of_a_target_are_not_reported_as_wrong_results() -> None:
    target = TARGETS["opencv4"]
    (node,) = graph(lambda op, x: op.ReduceSum(x, [0], keepdims=0), floats("x", 4)).graph
    assert why_unsupported(node, target) == ("ReduceSum from or to a scalar", ANY)
    (node,) = graph(_pooled("MaxPool", dilations=[2, 2]), floats("x", 1, 1, 6, 6)).graph
    assert why_unsupported(node, target) == ("MaxPool with dilations, which it computes incorrectly", ANY)


@pytest.mark.parametrize(("target", "computes"), [("ncnn", False), ("tract", True), ("standard", True)])
def test_remainders_of_floats(target: str, computes: bool) -> None:
    """ncnn's remainder of a multiple is the divisor."""
    (node,) = graph(lambda op, x: op.Mod(x, 2.0, fmod=1), floats("x", 4)).graph
    assert (why_unsupported(node, TARGETS[target]) is None) == computes


def test_a_gru_of_known_sizes() -> None:
    model = graph(_recurrent("GRU"), floats("x", 3, 2, 4))
    (node,) = [node for node in model.graph if node.op_type == "GRU"]
    assert not limits.reset_before_of_unknown_sizes.applies(node)
