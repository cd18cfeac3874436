"""Convolutions of images with windows of 3 x 3 by the domain's VolumeConv, which transforms squares of pixels."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

from converters.passes.onnxruntime import WinogradConvolutions, fusion_guards, winograd
from onnx_specops.building import Builder, Value, new_value
from tests.converters.passes.graphs import floats, graph, rewritten

OURS, CONV = ["VolumeConv"], ["Conv"]


def numbers(*dims: int, seed: int = 0) -> np.ndarray:
    return (np.random.default_rng(seed).standard_normal(dims) / 16).astype(np.float32)


def convolution(into: int = 32, out: int = 32, window: tuple[int, ...] = (3, 3), bias: bool = False, **stated: Any) -> Any:
    """Return a function that emits a convolution."""
    given = [numbers(out, into, *window), numbers(out, seed=1)] if bias else [numbers(out, into, *window)]
    return lambda op, x: op.Conv(x, *given, **stated)


def by_pass(emit: Any, *inputs: Value) -> list[str]:
    return rewritten(emit, *inputs, by=[WinogradConvolutions()], atol=1e-4)


@pytest.mark.parametrize(
    ("emit", "found"),
    [
        (convolution(), OURS),
        (convolution(bias=True, pads=[1, 2, 0, 1], strides=[1, 1], dilations=[1, 1], kernel_shape=[3, 3]), OURS),
        (convolution(window=(2, 3)), CONV),
        (convolution(window=(3, 4)), CONV),
        (convolution(window=(1, 1)), CONV),
        (convolution(strides=[1, 2]), CONV),
        (convolution(strides=[2, 1]), CONV),
        (convolution(dilations=[1, 2]), CONV),
        (convolution(dilations=[2, 1]), CONV),
        (convolution(auto_pad="NOTSET"), OURS),
        (convolution(auto_pad="SAME_UPPER"), CONV),
        (convolution(out=31), CONV),  # the gain
        (convolution(into=16, out=16, group=2), CONV),
    ],
)
def test_conditions(emit: Any, found: list[str]) -> None:
    assert by_pass(emit, floats("x", 2, 32, 22, 22)) == found


@pytest.mark.parametrize(
    ("channels", "outputs", "group", "pixels", "found"),
    [
        (16, 512, 1, 400, CONV),  # a gain of 15.5
        (18, 144, 1, 400, OURS),  # 16
        (15, 512, 1, 400, CONV),
        (64, 64, 2, 400, OURS),
        (60, 64, 2, 400, CONV),
        (64, 60, 2, 400, CONV),
        (64, 64, 1, 399, OURS),
        (63, 64, 1, 399, CONV),  # a gain of 31.7
        (63, 64, 1, 400, OURS),
        (64, 64, 1, 144, OURS),
        (64, 64, 1, 143, CONV),
    ],
)
def test_channels_and_pixels(channels: int, outputs: int, group: int, pixels: int, found: list[str]) -> None:
    emit = convolution(channels // group, outputs, group=group, pads=[1, 1, 1, 1])
    height = next(size for size in range(12, 0, -1) if pixels % size == 0)
    assert by_pass(emit, floats("x", 1, channels, height, pixels // height)) == found


def test_pixels_of_the_result() -> None:
    assert by_pass(convolution(64, 64), floats("x", 1, 64, 14, 14)) == OURS
    assert by_pass(convolution(64, 64), floats("x", 1, 64, 14, 13)) == CONV


def test_unknown_dimensions() -> None:
    assert by_pass(convolution(), floats("x", None, 32, 22, 22)) == OURS
    assert by_pass(convolution(), floats("x", 1, 32, 22, None)) == CONV


def test_other_dimensions_stay() -> None:
    assert by_pass(convolution(window=(3,)), floats("x", 1, 32, 500)) == CONV
    assert by_pass(convolution(window=(3, 3, 3)), floats("x", 1, 32, 8, 9, 10)) == CONV


SCALES = numbers(1, 32, 1, 1)


@pytest.mark.parametrize(
    ("emit", "found"),
    [
        (lambda op, y: op.Mul(y, SCALES), False),
        (lambda op, y: op.Mul(SCALES, y), False),
        (lambda op, y: op.Add(y, SCALES), False),
        (lambda op, y: op.BatchNormalization(y, *[np.ones(32, np.float32)] * 4), False),
        (lambda op, y: op.Mul(y, op.Sigmoid(y)), True),
        (lambda op, y: op.Add(op.Mul(y, SCALES), op.Relu(y)), True),  # another user
        (lambda op, y: op.Sub(y, SCALES), True),
        (lambda op, y: [op.Mul(y, SCALES), y], True),  # an output
    ],
)
def test_scales_stay_part_of_the_convolution(emit: Any, found: bool) -> None:
    model = graph(lambda op, x: emit(op, convolution()(op, x)), floats("x", 1, 32, 22, 22))
    assert WinogradConvolutions()(model).modified is found


def test_computed_scales_do_not_count() -> None:
    def emit(op: Builder, x: Value, scales: Value) -> Value:
        result: Value = op.Mul(convolution()(op, x), scales)
        return result

    assert WinogradConvolutions()(graph(emit, floats("x", 1, 32, 22, 22), floats("s", 1, 32, 1, 1))).modified


def _of_weights(op: Builder, x: Value, weights: Value) -> Value:
    result: Value = op.Conv(x, weights)
    return result


def test_weights_of_16_bits_are_constant_after_a_cast() -> None:
    def emit(op: Builder, x: Value) -> Value:
        return _of_weights(op, x, op.Cast(op.const(numbers(32, 32, 3, 3).astype(np.float16)), to=ir.DataType.FLOAT))

    model = graph(emit, floats("x", 1, 32, 22, 22))
    assert WinogradConvolutions()(model).modified


def test_computed_weights_stay() -> None:
    dims = [32, 32, 3, 3]
    assert not WinogradConvolutions()(graph(_of_weights, floats("x", 1, 32, 22, 22), floats("w", *dims))).modified

    def cast(op: Builder, x: Value, weights: Value) -> Value:
        return _of_weights(op, x, op.Cast(weights, to=ir.DataType.FLOAT))

    halves = new_value(ir.DataType.FLOAT16, dims, "w")
    assert not WinogradConvolutions()(graph(cast, floats("x", 1, 32, 22, 22), halves)).modified


def test_16_bits_stay() -> None:
    def emit(op: Builder, x: Value) -> Value:
        return _of_weights(op, x, op.const(numbers(32, 32, 3, 3).astype(np.float16)))

    x = new_value(ir.DataType.FLOAT16, [1, 32, 22, 22], "x")
    assert not WinogradConvolutions()(graph(emit, x)).modified


@pytest.mark.parametrize(("most", "found"), [(2 * 65536, [False, True, True]), (2 * 65536 - 1, [False, False, True])])
def test_weights_of_a_model(monkeypatch: pytest.MonkeyPatch, most: int, found: list[bool]) -> None:
    """Convolutions with the most pixels come first. The transformed weights of 32 x 32 channels have 65,536 bytes."""
    monkeypatch.setattr(winograd, "_MOST_BYTES", most)

    def emit(op: Builder, *images: Value) -> list[Value]:
        return [op.Conv(x, numbers(32, 32, 3, 3, seed=seed)) for seed, x in enumerate(images)]

    model = graph(emit, *(floats(f"x{size}", 1, 32, size, size) for size in (22, 23, 24)))
    WinogradConvolutions()(model)
    producers = [value.producer() for value in model.graph.outputs]
    assert [node is not None and node.op_type == "VolumeConv" for node in producers] == found


@pytest.mark.parametrize(("opset", "is_for_cpu", "found"), [(20, True, False), (21, True, True), (21, False, False)])
def test_opsets_and_devices(opset: int, is_for_cpu: bool, found: bool) -> None:
    """The plugin's kernels do not apply to older opsets, and are for the CPU."""
    assert any(isinstance(step, WinogradConvolutions) for step in fusion_guards(opset, is_for_cpu=is_for_cpu)) is found
