"""Convolutions of volumes, small groups, lines and few output channels by the domain's VolumeConv."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

from converters.passes.onnxruntime import DirectConvolutions, fusion_guards
from onnx_specops.building import Builder, Value, new_value
from tests.converters.passes.graphs import floats, graph, rewritten

DIMS = (2, 4, 5, 6, 7)
OURS, CONV = ["VolumeConv"], ["Conv"]


def numbers(*dims: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(dims).astype(np.float32)


def convolution(kernel: tuple[int, ...] = (3, 3, 3), into: int = 4, out: int = 6, bias: bool = False, **stated: Any) -> Any:
    """Return a function that emits a convolution."""
    given = [numbers(out, into, *kernel), numbers(out, seed=1)] if bias else [numbers(out, into, *kernel)]
    return lambda op, x: op.Conv(x, *given, **stated)


def by_pass(emit: Any, *inputs: Value, **options: Any) -> list[str]:
    return rewritten(emit, *inputs, by=[DirectConvolutions()], atol=1e-4, **options)


@pytest.mark.parametrize(
    ("emit", "found"),
    [
        (convolution(), OURS),
        (convolution(bias=True, pads=[1, 0, 2, 0, 1, 0], strides=[2, 1, 3], dilations=[1, 2, 1]), OURS),
        (convolution(kernel=(3, 1, 1), kernel_shape=[3, 1, 1]), OURS),
        (convolution(kernel=(1, 1, 1), strides=[1, 1, 2]), OURS),
        (convolution(kernel=(1, 1, 1), strides=[1, 1, 1]), CONV),  # a matrix product
        (convolution(kernel=(1, 1, 1)), CONV),
        (convolution(into=2, group=2), OURS),
        (convolution(auto_pad="NOTSET"), OURS),
        (convolution(auto_pad="SAME_UPPER"), CONV),
        (convolution(pads=[3, 0, 0, 3, 0, 0], strides=[999_999, 1, 1]), OURS),
        (convolution(pads=[3, 0, 0, 3, 0, 0], strides=[1_000_000, 1, 1]), CONV),  # it has too many digits
        (convolution(pads=[50] * 6, strides=[100, 100, 100]), OURS),
        (convolution(pads=[51] * 6, strides=[100, 100, 100]), CONV),  # a million pixels of padding
    ],
)
def test_conditions(emit: Any, found: list[str]) -> None:
    assert by_pass(emit, floats("x", *DIMS)) == found


def test_unknown_dimensions() -> None:
    assert by_pass(convolution(), floats("x", None, 4, None, 6, None)) == OURS


def test_unknown_weights() -> None:
    def emit(op: Builder, x: Value, weights: Value) -> Value:
        result: Value = op.Conv(x, weights)
        return result

    assert by_pass(emit, floats("x", *DIMS), floats("weights", 6, 4, 3, 3, 3)) == OURS
    unknown = graph(emit, floats("x", *DIMS), floats("weights", 6, 4, 3, 3, None))
    assert not DirectConvolutions()(unknown).modified
    without = graph(emit, floats("x", *DIMS), new_value(ir.DataType.FLOAT, None, "weights"))
    assert not DirectConvolutions()(without).modified


def test_16_bits_and_other_images_stay() -> None:
    def emit(op: Builder, x: Value, weights: Value) -> Value:
        result: Value = op.Conv(x, weights)
        return result

    halves = graph(
        emit, *(new_value(ir.DataType.FLOAT16, dims, name) for name, dims in (("x", DIMS), ("w", [6, 4, 3, 3, 3])))
    )
    assert not DirectConvolutions()(halves).modified
    assert by_pass(convolution(kernel=(3, 3)), floats("x", 1, 4, 6, 7)) == CONV


@pytest.mark.parametrize(
    ("emit", "found"),
    [
        (convolution((3, 3), 2, 8, group=4), OURS),
        (convolution((3, 3), 2, 8, True, group=4, pads=[1, 2, 0, 1], strides=[2, 1], dilations=[1, 2]), OURS),
        (convolution((1, 3), 2, 8, group=4), OURS),
        (convolution((1, 1), 2, 8, group=4), CONV),
        (convolution((3, 3), 2, 8, group=4, auto_pad="SAME_UPPER"), CONV),
    ],
)
def test_groups_of_images(emit: Any, found: list[str]) -> None:
    assert by_pass(emit, floats("x", 2, 8, 9, 7)) == found
    assert by_pass(emit, floats("x", None, 8, None, 7)) == found


@pytest.mark.parametrize(
    ("channels", "outputs", "group", "found"),
    [
        (48, 48, 2, OURS),  # 24 channels each
        (32, 32, 2, CONV),  # 16
        (32, 24, 2, OURS),  # from 16 to 12
        (24, 32, 2, OURS),  # from 12 to 16
        (32, 32, 32, CONV),  # depthwise
        (20, 20, 20, CONV),
        (18, 18, 18, OURS),
        (18, 36, 18, OURS),  # two results for each channel
    ],
)
def test_channels_of_groups(channels: int, outputs: int, group: int, found: list[str]) -> None:
    emit = convolution((3, 3), channels // group, outputs, group=group)
    assert by_pass(emit, floats("x", 1, channels, 9, 7)) == found


@pytest.mark.parametrize(
    ("emit", "dims", "found"),
    [
        (convolution((3,), 4, 8), (1, 4, 64), OURS),
        (convolution((3,), 4, 8, True, pads=[1, 2], strides=[2], dilations=[3]), (1, 4, 64), OURS),
        (convolution((3,), 4, 8), (1, 4, 63), CONV),
        (convolution((3,), 4, 8), (1, 4, None), CONV),
        (convolution((1,), 4, 8), (1, 4, 64), CONV),
        (convolution((1,), 4, 8, strides=[2]), (1, 4, 64), CONV),
        (convolution((3,), 128, 8), (1, 128, 64), OURS),
        (convolution((3,), 129, 8), (1, 129, 64), CONV),
        (convolution((3,), 129, 16), (1, 129, 66), OURS),
        (convolution((3,), 129, 16, True, pads=[1, 1], strides=[1], dilations=[1]), (1, 129, 64), OURS),
        (convolution((3,), 129, 16), (1, 129, 65), CONV),
        (convolution((3,), 129, 16), (1, 129, None), CONV),
        (convolution((3,), 129, 15), (1, 129, 66), CONV),
        (convolution((3,), 129, 16, strides=[2]), (1, 129, 200), CONV),
        *((convolution((taps,), 129, 16), (1, 129, 200), OURS) for taps in (6, 8, 9, 11, 12, 16)),
        *((convolution((taps,), 129, 16), (1, 129, 200), CONV) for taps in (1, 2, 4, 5, 7, 10, 13)),
        (convolution((9,), 129, 16), (1, 129, 71), CONV),
        (convolution((9,), 129, 16), (1, 129, 72), OURS),
        (convolution((3,), 129, 16, dilations=[32], pads=[32, 32]), (1, 129, 128), OURS),
        (convolution((3,), 129, 16, dilations=[32], pads=[32, 32]), (1, 129, 127), CONV),
        (convolution((3,), 129, 16, auto_pad="VALID"), (1, 129, 66), CONV),
        (convolution((3,), 2, 8, group=2), (1, 4, None), OURS),
        (convolution((3,), 1, 4, group=4), (1, 4, 9), OURS),
    ],
)
def test_lines(emit: Any, dims: tuple[int | None, ...], found: list[str]) -> None:
    assert by_pass(emit, floats("x", *dims)) == found


def test_lines_of_unknown_weights() -> None:
    def emit(op: Builder, x: Value, weights: Value) -> Value:
        result: Value = op.Conv(x, weights)
        return result

    assert by_pass(emit, floats("x", 1, 129, 66), floats("weights", 16, 129, 3)) == CONV


def test_lines_of_16_bit_weights() -> None:
    def stored(op: Builder, x: Value) -> Value:
        result: Value = op.Conv(x, op.Cast(numbers(16, 129, 3).astype(np.float16), to=ir.DataType.FLOAT))
        return result

    def given(op: Builder, x: Value, weights: Value) -> Value:
        result: Value = op.Conv(x, op.Cast(weights, to=ir.DataType.FLOAT))
        return result

    halves = new_value(ir.DataType.FLOAT16, [16, 129, 3], "weights")
    assert by_pass(stored, floats("x", 1, 129, 66))[-1:] == OURS
    assert not DirectConvolutions()(graph(given, floats("x", 1, 129, 66), halves)).modified


@pytest.mark.parametrize(
    ("emit", "found"),
    [
        (convolution((3, 3), 6, 3), OURS),
        (convolution((3, 3), 6, 3, True, pads=[1, 2, 0, 1], strides=[2, 1], dilations=[1, 2]), OURS),
        (convolution((3, 3), 6, 4), OURS),
        (convolution((3, 3), 6, 5), CONV),
        (convolution((1, 3), 6, 1), OURS),
        (convolution((1, 1), 6, 3), CONV),  # a matrix product
        (convolution((3, 3), 6, 3, auto_pad="SAME_UPPER"), CONV),
    ],
)
def test_few_outputs(emit: Any, found: list[str]) -> None:
    assert by_pass(emit, floats("x", 1, 6, 64, 64)) == found


@pytest.mark.parametrize(
    ("dims", "changed"),
    [((None, 6, 64, 64), True), ((1, 6, 64, 63), False), ((1, 6, None, 64), False), ((1, 6, 1, 4096), True)],
)
def test_pixels_of_few_outputs(dims: tuple[int | None, ...], changed: bool) -> None:
    emit = convolution((3, 3), 6, 3, pads=[1] * 4)
    assert DirectConvolutions()(graph(emit, floats("x", *dims))).modified is changed


@pytest.mark.parametrize("pads", [[-1, 1], [0, -1]])
def test_negative_padding_stays(pads: list[int]) -> None:
    model = graph(convolution((3,), 1, 4, group=4, pads=[0, 0]), floats("x", 1, 4, 9))
    node = next(node for node in model.graph if node.op_type == "Conv")
    node.attributes["pads"] = ir.AttrInt64s("pads", pads)
    assert not DirectConvolutions()(model).modified


def test_unknown_channels_stay() -> None:
    def emit(op: Builder, x: Value, weights: Value) -> Value:
        result: Value = op.Conv(x, weights)
        return result

    for dims in ([None, 6, 3, 3], [3, None, 3, 3]):
        assert not DirectConvolutions()(graph(emit, floats("x", 1, 6, 64, 64), floats("w", *dims))).modified


def test_four_spatial_dimensions_stay() -> None:
    def emit(op: Builder, x: Value, weights: Value) -> Value:
        result: Value = op.Conv(x, weights)
        return result

    assert not DirectConvolutions()(graph(emit, floats("x", 1, 4, 8, 8, 8, 8), floats("w", 4, 4, 2, 2, 2, 2))).modified


@pytest.mark.parametrize(
    ("emit", "found"),
    [
        (lambda op, x: op.Relu(x), OURS),
        (lambda op, x: op.LeakyRelu(x, alpha=0.3), OURS),
        (lambda op, x: op.LeakyRelu(x), OURS),
        (lambda op, x: op.LeakyRelu(x, alpha=0.0), ["LeakyRelu", *OURS]),  # infinity times 0 is NaN
        (lambda op, x: op.LeakyRelu(op.Relu(x), alpha=0.3), ["LeakyRelu", *OURS]),  # one activation
        (lambda op, x: op.Sigmoid(x), ["Sigmoid", *OURS]),
        (lambda op, x: op.Mul(x, op.Relu(x)), ["Mul", "Relu", *OURS]),  # another consumer
    ],
)
def test_activations(emit: Any, found: list[str]) -> None:
    assert by_pass(lambda op, x: emit(op, convolution(bias=True)(op, x)), floats("x", *DIMS)) == found


@pytest.mark.parametrize(("opset", "is_for_cpu", "found"), [(20, True, False), (21, True, True), (21, False, False)])
def test_opsets_and_devices(opset: int, is_for_cpu: bool, found: bool) -> None:
    """The plugin's kernels do not apply to older opsets, and are for the CPU."""
    assert any(isinstance(step, DirectConvolutions) for step in fusion_guards(opset, is_for_cpu=is_for_cpu)) is found
