"""Conditions for integer computation, with near misses that must stay floats, as ONNX graphs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
from onnx_ir.passes.common import RemoveUnusedNodesPass

from converters.passes.onnxruntime import KeepFloatWeights
from converters.passes.quantized import ConvertToIntegers
from converters.passes.quantized.affine import Affine, affine, is_scale
from onnx_specops.building import Value, new_value
from tests.converters.passes.graphs import Emit, floats, graph, rewritten, run

pytestmark = pytest.mark.unverified  # integers have no NaN, and round ties differently
RNG = np.random.default_rng(0)
STEP = 1 / 64
ENDS = (-2.0, 2.0 - STEP)


def _numbers(*shape: int) -> np.ndarray:
    return np.asarray(RNG.standard_normal(shape), np.float32)


def _levels(op, x, low: Any = ENDS[0], high: Any = ENDS[1], levels: int = 256, start: Any = None, end: Any = None) -> Value:
    limits = [
        np.asarray(limit, np.float32) for limit in (low, high, low if start is None else start, high if end is None else end)
    ]
    return op.specops.FakeQuantize(x, *map(op.const, limits), levels=levels)


def _weights(op, *shape: int, low: Any = ENDS[0], high: Any = ENDS[1], levels: int = 256) -> Value:
    return _levels(op, op.const(_numbers(*shape)), low, high, levels)


def _conv(
    op, x, *, channels: int = 4, inputs: int = 4, low: Any = ENDS[0], high: Any = ENDS[1], size: int = 3, **attributes
) -> Value:
    return op.Conv(
        x, _weights(op, channels, inputs // attributes.get("group", 1), size, size, low=low, high=high), **attributes
    )


def _seen(op, q) -> Value:
    """Quantize the output of a convolution that multiplies each number by 1."""
    ones = _levels(op, op.const(np.ones((q.dims[1], 1, 1, 1), np.float32)), -2, 2 - STEP)
    return op.Sigmoid(op.Conv(q, ones, group=q.dims[1]))


def _integers(emit: Emit, *inputs: Value, share: float = 0.02, contrib: bool = True, optimized: bool = True) -> list[str]:
    """Return the operators after the pass. ONNX Runtime converts remaining floats to integers, and may round numbers halfway
    between levels to either.
    """
    given = inputs or (floats("x", 2, 4, 6, 6),)
    return rewritten(
        emit,
        *given,
        by=[ConvertToIntegers(21, contrib=contrib), RemoveUnusedNodesPass(), KeepFloatWeights()],
        atol=1e-3,
        share=share,
        optimized=optimized,
    )


# -- the range of integers -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("low", "high", "levels", "found"),
    [
        (-2.0, 2.0 - STEP, 256, True),
        (-2.0, 2.0, 255, True),
        (0.0, 6.0, 256, True),
        (-6.0, 0.0, 256, True),
        (-1.0, 1.0, 65535, True),
        (-1.0, 1.0, 256, False),  # zero is between two levels
        (-2.0, 2.0, 200, False),  # no type has this number of levels
        (0.5, 2.0, 256, False),  # zero is not a level
        (-2.0, -0.5, 256, False),
        (2.0, -2.0, 255, False),
        (0.0, 0.0, 256, False),
        (0.0, 1e-37, 256, False),  # a step that float32 cannot represent
        (-np.inf, np.inf, 255, False),
        (np.nan, 1.0, 256, False),
    ],
)
def test_affine(low: float, high: float, levels: int, found: bool) -> None:
    got = affine(np.float32(low), np.float32(high), levels, 4, rounded=False)
    assert (got is not None) is found
    if got is not None:
        last = np.iinfo(got.zero_point.dtype).max
        np.testing.assert_allclose((last - np.float64(got.zero_point)) * got.scale, high, atol=1e-6, strict=True)


@pytest.mark.parametrize(
    ("shape", "rank", "axis"),
    [
        ((4, 1, 1), 4, 1),
        ((1, 4, 1, 1), 4, 1),
        ((4, 1), 4, 2),
        ((4,), 1, 0),
        ((1, 1), 4, None),
        ((4, 4), 4, "no"),
        ((4,), None, "no"),
        ((1, 4), 1, "no"),
    ],
    ids=str,
)
def test_the_axis_of_limits(shape: tuple[int, ...], rank: int | None, axis: int | str | None) -> None:
    top = np.arange(1, 1 + np.prod(shape), dtype=np.float32).reshape(shape)
    got = affine(top * 0, top, 256, rank, rounded=False)
    if axis == "no":
        assert got is None
    else:
        assert got is not None and (None if got.is_per_tensor else got.axis) == axis


def test_scales_meet_along_one_axis_only() -> None:
    whole = Affine(np.float32(1), np.uint8(0))
    channels, rows = (Affine(np.ones(4, np.float32), np.zeros(4, np.uint8), axis) for axis in (1, 2))
    assert channels.scale_along(1) is channels.scale and channels.scale_along(2) is None
    assert whole.scale_along(1) is whole.scale and whole.scale_along(0) is whole.scale
    pairs = [(whole, whole), (whole, channels), (channels, whole), (channels, channels)]
    assert all(one.shares_axis(other) for one, other in pairs)
    assert not channels.shares_axis(rows) and not rows.shares_axis(channels)
    assert not whole.is_equal(channels) and whole.is_equal(Affine(np.float32(1), np.uint8(0)))
    assert not whole.is_equal(Affine(np.float32(1), np.int8(0)))
    with pytest.raises(ValueError, match="have different axes"):
        Affine(np.ones((4, 4), np.float32), np.zeros((4, 4), np.uint8))
    with pytest.raises(ValueError, match="have different axes"):
        Affine(np.ones(4, np.float32), np.uint8(0))


def test_scales() -> None:
    numbers = np.array([1.0, 1e-37, 1e-39, 0.0, -1.0, np.inf, np.nan, 1e39])
    assert is_scale(numbers).tolist() == [True, True, False, False, False, False, False, False]


# -- data movement -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("emit", "moved"),
    [
        (lambda op, q: op.Transpose(q, perm=[0, 2, 3, 1]), True),
        (lambda op, q: op.Slice(op.Reshape(q, [2, 144]), [1], [9], [1]), True),
        (lambda op, q: op.Slice(q, [1], [3], [1]), True),
        (lambda op, q: op.Flatten(q), True),
        (lambda op, q: op.MaxPool(q, kernel_shape=[2, 2], pads=[1, 1, 0, 0]), True),
        (lambda op, q: op.Concat(q, q, axis=1), True),
        (lambda op, q: op.Concat(q, _levels(op, op.Sigmoid(q)), axis=1), True),
        (lambda op, q: op.Concat(q, _levels(op, op.Sigmoid(q), 0, 4), axis=1), False),  # other limits
        (lambda op, q: op.Concat(q, op.Sigmoid(q), axis=1), False),  # not quantized
        (lambda op, q: op.Neg(q), False),
        (lambda op, q: op.MaxPool(q, kernel_shape=[2, 2], outputs=2)[0], False),  # it has indices, too
        (lambda op, q: op.Pad(q, [0, 0, 1, 1, 0, 0, 1, 1], 7.0), False),
    ],
)
def test_moves(emit: Callable[..., Value], moved: bool) -> None:
    """Operators that only move numbers move integers; others get floats."""

    def whole(op, x):
        result = emit(op, _levels(op, x))
        size = int(np.prod(result.dims[1:]))
        return op.MatMul(op.Reshape(result, [-1, size]), _weights(op, size, 4))

    _integers(whole, contrib=False)
    model = graph(whole, floats("x", 2, 4, 6, 6))
    ConvertToIntegers(21, contrib=False)(model)
    mover = next((node for node in model.graph if node.op_type in _MOVED), None)
    assert mover is not None and mover.inputs[0] is not None
    assert (mover.inputs[0].dtype == ir.DataType.UINT8) is moved


_MOVED = ("Transpose", "Slice", "Flatten", "MaxPool", "Concat", "Neg", "Pad")


@pytest.mark.parametrize("limits", ["whole", "channels", "rows"])
@pytest.mark.parametrize("same", [True, False])
def test_several_quantizations_of_one_tensor(limits: str, same: bool) -> None:
    """Two equal quantizations are merged; two that differ in the shape of the limits are not."""
    shapes = {"whole": (), "channels": (1, 4, 1, 1), "rows": (1, 1, 4, 1)}
    top = np.arange(1, 1 + int(np.prod(shapes[limits])), dtype=np.float32).reshape(shapes[limits]) + 1

    def emit(op, x):
        other = top if same or not top.ndim else top.reshape(1, 1, 1, 4)
        ones = [_levels(op, x, top * 0, top), _levels(op, x, other * 0, other if same or top.ndim else top + 1)]
        return [op.MatMul(_levels(op, q), _weights(op, 4, 4)) for q in ones]

    _integers(emit, floats("x", 2, 4, 4, 4))


# -- matrix products -----------------------------------------------------------------------------------------------------


def _of_columns(op, *shape: int) -> Value:
    """Return weights with limits per column."""
    top = np.arange(1.0, 1.0 + shape[-1])
    return _weights(op, *shape, low=-top, high=top, levels=255)


def _of_rows(op, *shape: int) -> Value:
    """Return weights with limits per row."""
    top = np.arange(1.0, 1.0 + shape[-2]).reshape(-1, 1)
    return _weights(op, *shape, low=-top, high=top, levels=255)


@pytest.mark.parametrize(
    ("dims", "emit", "found"),
    [
        ((3, 8), lambda op, q: op.MatMul(q, _weights(op, 8, 4)), True),
        ((2, 3, 8), lambda op, q: op.MatMul(q, _weights(op, 8, 4)), True),
        ((8,), lambda op, q: op.MatMul(q, _weights(op, 8, 4)), None),
        ((3, 8), lambda op, q: op.MatMul(q, _of_columns(op, 8, 4)), True),
        ((3, 8), lambda op, q: op.MatMul(q, _of_rows(op, 8, 4)), False),
        ((3, 8), lambda op, q: op.MatMul(q, _of_rows(op, 8, 8)), False),
        ((3, 8), lambda op, q: op.MatMul(q, op.Transpose(_of_rows(op, 4, 8), perm=[1, 0])), True),
        ((3, 8), lambda op, q: op.MatMul(q, op.Transpose(_of_columns(op, 8, 8), perm=[1, 0])), False),
        ((3, 8), lambda op, q: op.MatMul(q, _weights(op, 2, 8, 4)), False),  # several matrices
        ((3, 8), lambda op, q: op.MatMul(q, op.const(_numbers(8, 4))), False),
        ((3, 8), lambda op, q: op.MatMul(op.Neg(q), _weights(op, 8, 4)), False),
        ((8, 3), lambda op, q: op.MatMul(_weights(op, 4, 8), q), False),
        ((3, 8), lambda op, q: op.Add(product := op.MatMul(q, _weights(op, 8, 4)), product), True),
    ],
)
@pytest.mark.parametrize("contrib", [True, False])
def test_products(dims: tuple[int, ...], emit: Callable[..., Value], found: bool | None, contrib: bool) -> None:
    got = _integers(lambda op, x: emit(op, _levels(op, x)), floats("x", *dims), contrib=contrib)
    if contrib and found is not None:
        assert bool({"MatMulIntegerToFloat", "QuantizedConv"} & set(got)) is found


@pytest.mark.parametrize("bias", [(4,), (1, 4), (1, 1, 4), (4, 1), (2, 1, 4), (4, 4), (1,), ()], ids=str)
@pytest.mark.parametrize("columns", [4, 1])
def test_biases_of_products(bias: tuple[int, ...], columns: int) -> None:
    """A number for each column becomes part of the product, but not one that broadcasts the product or differs by row."""
    found = _integers(
        lambda op, x: op.Add(op.MatMul(_levels(op, x), _weights(op, 8, columns)), op.const(_numbers(*bias))),
        floats("x", 4, 8),
    )
    is_bias = (columns == 4 and bias in [(4,), (1, 4)]) or (columns == 1 and bias == (1,))
    assert (found.count("Add") == 1) is is_bias  # the other is part of the quantization of x


@pytest.mark.parametrize("second", [(-2.0, 2.0 - STEP, 256), (0.0, 4.0, 256), (-2.0, 2.0, 255), (-1.0, 1.0, 65535)], ids=str)
def test_products_of_two_computed_matrices(second: tuple[float, float, int]) -> None:
    def emit(op, x, y):
        return op.MatMul(_levels(op, x), _levels(op, y, *second))

    found = _integers(emit, floats("x", 2, 3, 8), floats("y", 2, 8, 4))
    assert ("MatMulIntegerToFloat" in found) is (second[2] < 1000)


# -- convolutions --------------------------------------------------------------------------------------------------------


def _of_channels(*numbers: float) -> np.ndarray:
    return np.array(numbers, np.float32).reshape(-1, 1, 1, 1)


PER_CHANNEL = {"low": _of_channels(-1, -2, -0.5, -3), "high": _of_channels(1, 2, 0.5, 3) * np.float32(127 / 128)}
ASYMMETRIC = {"low": _of_channels(0, -1, -2, 0), "high": _of_channels(2.55, 1.55, 0.55, 5.1)}


@pytest.mark.parametrize(
    "between",
    [
        lambda op, y: y,
        lambda op, y: op.Relu(y),
        lambda op, y: op.Clip(y, 0.0, 100.0),
        lambda op, y: op.Clip(y, 0.503, 100.0),
        lambda op, y: op.Clip(y, 0.0, 1.0),
        lambda op, y: op.Clip(y, None, 100.0),
        lambda op, y: op.Add(y, _numbers(1, 4, 1, 1)),
        lambda op, y: op.Add(op.Add(y, _numbers(4, 1, 1)), 0.5),
        lambda op, y: op.Add(y, _numbers(1, 1, 4, 1)),
        lambda op, y: op.Add(y, _numbers(4)),
        lambda op, y: op.Add(y, y),
        lambda op, y: op.Sigmoid(y),
        lambda op, y: op.HardSigmoid(y, alpha=1 / 6, beta=0.5),
    ],
)
@pytest.mark.parametrize("ends", [(0.0, 6.0, 256), (-2.0, 2.0 - STEP, 256), (0.0, 1.0, 256)], ids=str)
@pytest.mark.parametrize("weights", [{}, PER_CHANNEL, ASYMMETRIC], ids=["whole", "channels", "asymmetric"])
def test_between_convolutions(
    between: Callable[..., Value], ends: tuple[float, float, int], weights: dict[str, Any]
) -> None:
    """Activations after a convolution become part of its quantization if they are equivalent."""

    def emit(op, x):
        inner = _conv(op, _levels(op, x), **weights)
        return _seen(op, _levels(op, between(op, inner), *ends))

    _integers(emit, floats("x", 8, 4, 6, 6), share=0.06)


@pytest.mark.parametrize(
    "between",
    [
        lambda op, y, limit: op.Clip(y, limit),
        lambda op, y, limit: op.Clip(y, None, limit),
        lambda op, y, limit: op.Clip(y, 0.0, limit),
    ],
)
def test_run_time_limits(between: Callable[..., Value]) -> None:
    """They may clip more than the quantization does."""

    def emit(op, x, limit):
        return _seen(op, _levels(op, between(op, _conv(op, _levels(op, x)), limit), 0.0, 6.0))

    numbers = [_numbers(2, 4, 6, 6), np.array(1.001, np.float32)]
    rewritten(
        emit, floats("x", 2, 4, 6, 6), new_value(ir.DataType.FLOAT, [], "limit"),
        by=[ConvertToIntegers(21), RemoveUnusedNodesPass(), KeepFloatWeights()], numbers=numbers, share=0.06, optimized=True,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("attributes", "inputs"),
    [
        ({}, 4),
        ({"pads": [1, 0, 2, 1]}, 4),
        ({"strides": [2, 1]}, 4),
        ({"dilations": [2, 1]}, 4),
        ({"auto_pad": "SAME_UPPER"}, 4),
        ({"group": 2}, 4),
        ({"group": 4}, 4),
        ({"pads": [1, 1, 1, 1], "strides": [2, 2], "dilations": [1, 2]}, 16),
    ],
    ids=str,
)
@pytest.mark.parametrize("low", [-2.0, -1.0, 0.0])
@pytest.mark.parametrize("contrib", [True, False])
def test_convolutions(attributes: dict[str, Any], inputs: int, low: float, contrib: bool) -> None:
    """Without a quantization after them: in floats, as integer matrix products, or unchanged."""

    def emit(op, x):
        return op.Sigmoid(_conv(op, _levels(op, x, low, low + 255 * STEP), inputs=inputs, **attributes))

    _integers(emit, floats("x", 2, inputs, 7, 7), contrib=contrib)


@pytest.mark.parametrize("axis", [0, 1, 2, 3])
@pytest.mark.parametrize("group", [1, 4])
@pytest.mark.parametrize("follows", ["levels", "sigmoid"])
def test_scales_along_any_axis(axis: int, group: int, follows: str) -> None:
    """For data whose axes all have the length of the channel axis."""
    top = np.array([4, 2, 6, 3], np.float32).reshape([-1 if i == axis else 1 for i in range(4)])

    def emit(op, x):
        y = _conv(op, _levels(op, op.Relu(x), top * 0, top), size=1, group=group)
        return _conv(op, _levels(op, y, top * 0, top), size=1, group=group) if follows == "levels" else op.Sigmoid(y)

    _integers(emit, floats("x", 4, 4, 4, 4), share=0.05)


# -- weights that stay floats --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("emit", "kept"),
    [
        (lambda op, d, w: op.Conv(d, w), True),
        (lambda op, d, w: op.Relu(op.Conv(d, w)), True),
        (lambda op, d, w: op.MaxPool(op.Conv(op.MaxPool(d, kernel_shape=[2, 2]), w), kernel_shape=[2, 2]), True),
        (lambda op, d, w: op.Sigmoid(op.Conv(d, w)), False),
        (lambda op, d, w: op.Conv(op.Neg(d), w), False),
    ],
)
def test_float_weights(emit: Callable[..., Value], kept: bool) -> None:
    weights = _numbers(4, 4, 1, 1) * np.array([1, 10, 100, 1000], np.float32).reshape(4, 1, 1, 1)
    scale, zero = np.float32(STEP), np.uint8(128)

    def whole(op, x):
        data = op.DequantizeLinear(op.QuantizeLinear(x, scale, zero), scale, zero)
        return op.DequantizeLinear(
            op.QuantizeLinear(emit(op, data, op.const(weights)), np.float32(1), zero), np.float32(1), zero
        )

    found = rewritten(whole, floats("x", 2, 4, 6, 6), by=[KeepFloatWeights()], atol=1e-3, share=0.02, optimized=True)
    assert ("Max" in found) is kept


def test_the_order_of_users_is_not_that_of_the_graph() -> None:
    scale, zero = np.float32(STEP), np.uint8(128)

    def emit(op, x):
        data = op.DequantizeLinear(op.QuantizeLinear(x, scale, zero), scale, zero)
        result = op.Conv(data, op.const(_numbers(4, 4, 1, 1)))
        first, second = op.QuantizeLinear(result, scale, zero), op.QuantizeLinear(result, np.float32(1), zero)
        first.producer().replace_input_with(0, data)
        first.producer().replace_input_with(0, result)
        assert next(iter(result.consumers())) is second.producer()
        return first, second

    model = graph(emit, floats("x", 2, 4, 6, 6))
    assert KeepFloatWeights()(model).modified
    run(model, _numbers(2, 4, 6, 6))
