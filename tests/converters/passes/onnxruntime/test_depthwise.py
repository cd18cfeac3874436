"""Depthwise convolutions between tensors whose channels are last."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from converters.passes.onnxruntime import DepthwiseChannelsLast
from onnx_specops.building import Builder, Value
from tests.converters.passes.graphs import Emit, floats, graph, rewritten

LEVELS = np.array(0.05, np.float32), np.array(128, np.uint8)


def _weights(*dims: int) -> np.ndarray:
    return np.random.default_rng(5).standard_normal(dims).astype(np.float32)


def _conv(op: Builder, x: Value, channels: int = 32, window: Sequence[int] = (3, 3), **stated: Any) -> Value:
    pads = stated.pop("pads", [size // 2 for size in window] * 2)
    group = stated.pop("group", channels)
    weights = stated.pop("weights", None)
    weights = _weights(channels, channels // group, *window) if weights is None else weights
    found: Value = op.Conv(x, weights, *stated.pop("bias", ()), group=group, pads=pads, **stated)
    return found


def _first(op: Builder, x: Value) -> Value:
    assert x.rank is not None
    found: Value = op.Transpose(x, perm=[0, x.rank - 1, *range(1, x.rank - 1)])
    return found


def _last(op: Builder, x: Value) -> Value:
    assert x.rank is not None
    found: Value = op.Transpose(x, perm=[0, *range(2, x.rank), 1])
    return found


def _found(emit: Emit, *dims: int | None, share: float = 0.0) -> bool:
    got = rewritten(emit, floats("x", *(dims or (1, 24, 18, 32))), by=[DepthwiseChannelsLast()], atol=1e-4, share=share)
    assert "DepthwiseConv" not in got or not {"Conv"} & set(got)
    return "DepthwiseConv" in got


@pytest.mark.parametrize(
    ("emit", "found"),
    [
        (lambda op, x: _last(op, _conv(op, _first(op, x))), True),
        (lambda op, x: _last(op, _conv(op, _first(op, x), bias=[_weights(32)])), True),
        (lambda op, x: _last(op, _conv(op, _first(op, x), window=(5, 7), pads=[1, 0, 2, 3])), True),
        (lambda op, x: _last(op, _conv(op, _first(op, x), strides=[2, 1], dilations=[1, 2])), True),
        (lambda op, x: _last(op, _conv(op, _first(op, x), strides=[10**6, 1], pads=[3 * 10**6, 1] * 2)), False),  # 7 digits
        (lambda op, x: _last(op, _conv(op, _first(op, x), group=16)), False),  # two channels for each group
        (lambda op, x: _last(op, op.Conv(_first(op, x), _weights(64, 1, 3, 3), group=32)), False),  # two results
        (lambda op, x: _last(op, _conv(op, _first(op, x), auto_pad="SAME_UPPER", pads=None)), False),
        (lambda op, x: _conv(op, _first(op, x)), False),  # channels stay first
        (lambda op, x: op.Transpose(_conv(op, _first(op, x)), perm=[0, 3, 2, 1]), False),
        (lambda op, x: _last(op, _conv(op, op.Transpose(x, perm=[0, 3, 2, 1]))), False),
        (lambda op, x: _last(op, _conv(op, op.Reshape(x, [1, 32, 24, 18]))), False),
    ],
)
def test_the_convolution(emit: Emit, found: bool) -> None:
    assert _found(emit) == found


def _pool(op: Builder, x: Value, *kernel: int, **stated: Any) -> Value:
    found: Value = op.AveragePool(_first(op, x), kernel_shape=kernel, **stated)
    return _last(op, found)


@pytest.mark.parametrize(
    ("emit", "found"),
    [
        (lambda op, x: _pool(op, x, 2, 2, strides=[2, 2]), True),
        (lambda op, x: _pool(op, x, 3, 2, dilations=[1, 3]), True),
        (lambda op, x: _pool(op, x, 3, 3, pads=[1, 1, 1, 1]), True),  # windows of 4, 6 and 9 elements
        (lambda op, x: _pool(op, x, 3, 3, pads=[1, 0, 0, 1], count_include_pad=1), True),
        (lambda op, x: _pool(op, x, 4, 3, pads=[0, 1, 0, 2], strides=[1, 2]), True),
        (lambda op, x: _pool(op, x, 2, 2, strides=[2, 2], ceil_mode=1), True),  # 24 and 18 are even
        (lambda op, x: _pool(op, x, 2, 2, strides=[5, 1], ceil_mode=1), False),  # another window at the end
        (lambda op, x: _pool(op, x, 2, 2, auto_pad="SAME_UPPER"), False),
        (lambda op, x: op.AveragePool(_first(op, x), kernel_shape=[2, 2]), False),  # channels stay first
        (lambda op, x: _last(op, op.MaxPool(_first(op, x), kernel_shape=[2, 2])), False),
    ],
)
def test_average_pools(emit: Emit, found: bool) -> None:
    assert _found(emit, 1, 24, 18, 64) == found


def test_large_windows() -> None:
    """They would need as many weights."""
    assert _found(lambda op, x: _pool(op, x, 45, 45), 1, 46, 46, 2048)
    assert not _found(lambda op, x: _pool(op, x, 46, 46), 1, 47, 47, 2048)


def test_two_consumers_of_the_transpose() -> None:
    def two(op: Builder, x: Value) -> list[Value]:
        moved = _first(op, x)
        return [_last(op, op.AveragePool(moved, kernel_shape=[2, 2])), _last(op, op.QuantizeLinear(moved, *LEVELS))]

    assert _found(two)


def test_weights() -> None:
    """They depend on constants only: the domain's operator does not multiply padding by infinite weights."""

    def of(op: Builder, x: Value, scale: Value) -> Value:
        integers = np.random.default_rng(3).integers(-9, 9, (32, 1, 3, 3)).astype(np.int8)
        return _last(op, _conv(op, _first(op, x), weights=op.Mul(op.Cast(integers, to=1), scale)))

    assert _found(lambda op, x: of(op, x, op.const(_weights(32, 1, 1, 1))))
    assert not _found(lambda op, x: of(op, x, op.ReduceMax(op.Abs(x), keepdims=0)))
    infinite = np.full((32, 1, 3, 3), np.inf, np.float32)
    assert not _found(lambda op, x: _last(op, _conv(op, _first(op, x), weights=infinite)))


@pytest.mark.parametrize(
    ("dims", "window", "found"),
    [((1, 200, 32), (9,), True), ((1, 6, 7, 8, 16), (3, 3, 1), True), ((1, 4, 4, 4, 4, 16), (1, 1, 3, 3), False)],
)
def test_dimensions(dims: Sequence[int], window: Sequence[int], found: bool) -> None:
    def emit(op: Builder, x: Value) -> Value:
        return _last(op, _conv(op, _first(op, x), channels=dims[-1], window=window))

    if len(window) == 4:  # ONNX Runtime has no kernel
        from tests.converters.passes.graphs import graph, operators

        model = graph(emit, floats("x", *dims))
        DepthwiseChannelsLast()(model)
        assert "DepthwiseConv" not in operators(model)
    else:
        assert _found(emit, *dims) == found


@pytest.mark.parametrize(
    ("dims", "found"),
    [((1, 16, 8, 32), True), ((1, 16, 7, 32), False), ((1, None, 16, 32), False), ((3, 8, 8, 32), True)],
)
def test_sizes(dims: Sequence[int | None], found: bool) -> None:
    assert _found(lambda op, x: _last(op, _conv(op, _first(op, x))), *dims) == found


def _lines(op: Builder, x: Value) -> Value:
    found: Value = op.Transpose(x, perm=[0, 2, 1])
    return found


def _pixels(op: Builder, x: Value, height: int, width: int) -> Value:
    """Tokens as an image, as vision transformers have it."""
    found: Value = op.Reshape(_lines(op, x), [1, 32, height, width])
    return found


@pytest.mark.parametrize(
    ("emit", "found"),
    [
        (lambda op, x: op.Transpose(op.Reshape(_conv(op, _pixels(op, x, 12, 16)), [1, 32, 192]), perm=[0, 2, 1]), True),
        (lambda op, x: _last(op, _conv(op, _pixels(op, x, 12, 16))), True),
        (
            lambda op, x: op.Transpose(op.Gelu(op.Reshape(_conv(op, _pixels(op, x, 12, 16)), [1, 32, 192])), perm=[0, 2, 1]),
            True,
        ),
        (lambda op, x: _last(op, _conv(op, op.Reshape(op.Sub(_weights(1, 1, 192), _lines(op, x)), [1, 32, 12, 16]))), True),
        (lambda op, x: _last(op, _conv(op, op.Reshape(op.Relu(_lines(op, x)), [1, 16, 24, 16]), 16)), False),
        (lambda op, x: op.Reshape(op.Reshape(_conv(op, _pixels(op, x, 12, 16)), [1, 32, 192]), [1, 192, 32]), False),
        (lambda op, x: op.Transpose(op.Reshape(_conv(op, _pixels(op, x, 12, 16)), [1, 384, 16]), perm=[0, 2, 1]), False),
        (lambda op, x: _last(op, _conv(op, op.Reshape(x, [1, 32, 12, 16]))), False),
        (lambda op, x: _last(op, _conv(op, op.Reshape(op.Transpose(x, perm=[1, 2, 0]), [1, 32, 12, 16]))), False),
    ],
)
def test_tokens(emit: Emit, found: bool) -> None:
    assert _found(emit, 1, 192, 32) == found


@pytest.mark.parametrize(
    ("emit", "found"),
    [
        (lambda op, x: op.Relu(x), True),
        (lambda op, x: op.Mul(x, 2.5), True),
        (lambda op, x: op.Mul(x, _weights(1, 32, 1, 1)), True),  # a factor for each channel
        (lambda op, x: op.Mul(x, _weights(1, 1, 24, 18)), True),  # for each pixel
        (lambda op, x: op.Sub(_weights(1, 32, 1, 18), x), True),
        (lambda op, x: op.Mul(x, _weights(24, 18)), False),  # fewer dimensions
        (lambda op, x: op.Mul(x, x), False),
        (lambda op, x: op.Mul(x, op.ReduceMax(x)), False),  # not a constant
        (lambda op, x: op.Softmax(x, axis=1), False),
        (lambda op, x: op.specops.FakeQuantize(x, *map(np.float32, (-2, 2, -2, 2)), levels=256), True),
        (
            lambda op, x: op.specops.FakeQuantize(
                x, *[-3 * np.ones((1, 32, 1, 1), np.float32), np.float32(3)] * 2, levels=9
            ),
            True,
        ),
        (lambda op, x: op.DequantizeLinear(op.QuantizeLinear(x, *LEVELS), *LEVELS), True),
        (lambda op, x: op.Clip(x, np.float32(-1), np.float32(1)), True),
        (lambda op, x: op.Pad(x, [0, 0, 1, 2, 0, 0, 3, 0]), True),
        (lambda op, x: op.Pad(x, [0, 0, 1, 2, 0, 0, 3, 0], mode="reflect"), True),
        (lambda op, x: op.Pad(x, [0, 0, 1, 2, 0, 0, -1, 0], mode="edge"), True),
        (lambda op, x: op.Pad(x, [0, 0, 1, 2, 0, 0, 3, 0], np.float32(7)), True),
        (lambda op, x: op.Concat(op.Pad(x, [0, 1, 0, 0, 0, -1, 0, 0]), axis=0), False),  # channels
        (lambda op, x: op.Pad(x, [1, 2, 1, 2], None, [2, 3]), False),  # stated axes
    ],
)
@pytest.mark.parametrize("place", ["before", "after"])
def test_nodes_between(emit: Emit, found: bool, place: str) -> None:
    def emit_all(op: Builder, x: Value) -> Value:
        if place == "before":
            return _last(op, _conv(op, emit(op, _first(op, x))))
        return _last(op, emit(op, _conv(op, _first(op, x))))

    is_pad = "Pad" in emit.__code__.co_names
    assert _found(emit_all, share=2e-3) == (found and not (is_pad and place == "after"))


def test_quantization_of_each_channel() -> None:
    scale, zero = np.full(32, 0.07, np.float32), np.full(32, 128, np.uint8)

    def emit(op: Builder, x: Value, axis: int) -> Value:
        levels = op.QuantizeLinear(_conv(op, _first(op, x)), scale, zero, axis=axis)
        return _last(op, op.DequantizeLinear(levels, scale, zero, axis=axis))

    assert _found(lambda op, x: emit(op, x, 1), share=2e-3)
    assert _found(lambda op, x: emit(op, x, -3), share=2e-3)
    assert not _found(lambda op, x: emit(op, x, 2), 1, 32, 12, 32)


def test_several_consumers() -> None:
    def before(op: Builder, x: Value) -> list[Value]:
        y = op.Relu(_first(op, x))
        return [_last(op, _conv(op, y)), op.Neg(y)]

    def of_the_source(op: Builder, x: Value) -> list[Value]:
        y = op.Relu(x)
        return [_last(op, _conv(op, _first(op, y))), op.Neg(y)]

    def of_the_transposed(op: Builder, x: Value) -> list[Value]:
        y = _first(op, op.Relu(x))
        return [_last(op, _conv(op, y)), op.Neg(y)]

    def after(op: Builder, x: Value) -> list[Value]:
        y = _conv(op, _first(op, x))
        return [_last(op, op.Relu(y)), op.Abs(_last(op, y)), op.Neg(_last(op, y))]

    def after_without_one(op: Builder, x: Value) -> list[Value]:
        y = _conv(op, _first(op, x))
        return [_last(op, op.Relu(y)), op.Neg(y)]

    def as_an_output(op: Builder, x: Value) -> list[Value]:
        y = _conv(op, _first(op, x))
        return [_last(op, y), y]

    def as_the_second_input(op: Builder, x: Value) -> list[Value]:
        return [_last(op, op.Sub(np.float32(1), _conv(op, _first(op, x))))]

    found = {before: False, of_the_source: True, of_the_transposed: True, after: True, after_without_one: False,
             as_an_output: False, as_the_second_input: True}  # fmt: skip
    for emit, expected in found.items():
        assert _found(emit) == expected, emit.__name__


@pytest.mark.parametrize(("count", "found"), [(200, True), (2000, False)])  # many tensors are not followed
def test_a_long_chain(count: int, found: bool) -> None:
    def emit(op: Builder, x: Value) -> Value:
        moved = _conv(op, _first(op, x))
        for _ in range(count):
            moved = op.Relu(moved)
        return _last(op, moved)

    model = graph(emit, floats("x", 1, 24, 18, 32))
    assert DepthwiseChannelsLast()(model).modified == found
