"""Operators between quantized tensors, in integers."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import numpy as np
import openvino as ov
import pytest
from openvino import opset13 as ops

import onnx_specops
from converters.openvino import convert
from tests.converters.passes.quantized.networks import answers, compared, constant, names, quantized, rounded

pytestmark = pytest.mark.unverified  # integers have no NaN, and round ties differently
STEP = 1 / 64


@pytest.mark.parametrize(
    ("shape", "axes", "pooled"),
    [
        ([2, 4, 5, 6], [2, 3], True),
        ([2, 4, 5, 6], [-1, 2], True),
        ([2, 4, 5], [2], True),
        ([2, 4, 5, 0], [2, 3], False),
        ([2, 4, 5, 6], [3], False),
        ([2, 4, 5, 6], [1, 2, 3], False),
        ([2, 4], [], False),
        ([2, 4], [1], False),
        ([4], [], False),
    ],
    ids=str,
)
def test_mean(shape: list[int], axes: list[int], pooled: bool, tmp_path: Path) -> None:
    """A mean over all axes except batch and channels is a pooling; over no axes it is the identity, for rank 2 too. A mean
    of no elements is 0 in OpenVINO after the next FakeQuantize, or NaN.
    """
    x = ops.parameter(shape, np.float32, name="x")
    mean = ops.reduce_mean(quantized(x), constant(np.array(axes, np.int64)), True)
    weights = constant(np.float32([[0.5]]))
    flat = ops.reshape(quantized(mean), constant(np.array([-1, 1])), False)
    given = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    model = compared(ov.Model([ops.matmul(flat, weights, False, False)], [x]), tmp_path, given, atol=0.51 * STEP)
    assert ("GlobalAveragePool" in names(model)) is pooled


@pytest.mark.parametrize("axis", [0, 1, 2, 3])
@pytest.mark.parametrize("quantized_in", ["integer", "float"])
def test_limits_along_an_axis(axis: int, quantized_in: Literal["integer", "float"], tmp_path: Path) -> None:
    """Only limits along the channels become part of a convolution's weights, even if all axes have the same length.

    OpenVINO's CPU plugin itself treats limits along H as limits of channels. The specification decides.
    """
    x = ops.parameter([8, 8, 8, 8], np.float32, name="x")
    weights = np.clip(np.random.default_rng(1).standard_normal((8, 8, 1, 1)), -2, 2).astype(np.float32)
    strides, pads = [1, 1], [0, 0]

    def convolution(data: ov.Node) -> ov.Node:
        return ops.convolution(data, quantized(constant(weights), -2, 2, 255), strides, pads, pads, strides)

    top = np.float32([6, 3, 9, 4, 7, 5, 8, 2]).reshape([-1 if i == axis else 1 for i in range(4)])
    model = ov.Model([convolution(quantized(ops.relu(convolution(quantized(x))), top * 0, top))], [x])
    given = np.random.default_rng(0).standard_normal((8, 8, 8, 8)).astype(np.float32)

    matrix = rounded(weights[..., 0, 0], -2, 2, 255)
    inner = np.maximum(np.einsum("oc,nchw->nohw", matrix, rounded(given)), 0)
    expected = np.einsum("oc,nchw->nohw", matrix, rounded(inner, top * 0, top))
    compared(model, tmp_path, given, atol=0.25, expected=expected, quantized=quantized_in)


def test_integers_are_verified(tmp_path: Path) -> None:
    """``--verify`` accepts them despite NaN and limits whose zero is slightly off a level."""
    x = ops.parameter([2, 8, 6, 6], np.float32, name="x")
    limited = quantized(x, -2.4649284, 2.445671)
    weights = constant(np.random.default_rng(1).standard_normal((8, 8, 1, 1)))
    model = ov.Model([ops.convolution(limited, weights, [1, 1], [0, 0], [0, 0], [1, 1])], [x])
    result, report = convert(model, verify=True)
    assert report.verified is not None and not report.verified.differences
    assert "QuantizeLinear" in names(result)


@pytest.mark.parametrize("levels", [255, 65535])
def test_levels_above_a_relu_are_verified(levels: int) -> None:
    """The integer below an odd number of levels needs no guard if nothing is negative; the check also knows this."""
    x = ops.parameter([2, 8, 6, 6], np.float32, name="x")
    top = np.float32(1.9409431)
    limited = ops.fake_quantize(ops.relu(x), np.float32(0), top, np.float32(0), top, levels)
    weights = constant(np.random.default_rng(1).standard_normal((8, 8, 1, 1)))
    model = ov.Model([ops.convolution(limited, weights, [1, 1], [0, 0], [0, 0], [1, 1])], [x])
    result, report = convert(model, verify=True)
    assert report.verified is not None and not report.verified.differences
    assert "QuantizeLinear" in names(result)


@pytest.mark.parametrize(
    ("target", "opset", "levels", "is_integer"),
    [
        ("standard", None, 65536, True),
        ("standard", 13, 65536, False),
        ("standard", 13, 256, True),
        ("directml", None, 65536, False),  # which ends at opset 20
        ("qnn", None, 65536, True),
    ],
)
def test_16_bits_of_targets(target: str, opset: int | None, levels: int, is_integer: bool) -> None:
    """Below opset 21, QuantizeLinear has no 16 bits, and ONNX Runtime would move int32 before the Transpose."""
    step = 2.0**-13 if levels > 256 else 1 / 64
    limits: dict[str, Any] = {"low": -levels // 2 * step, "high": (levels // 2 - 1) * step, "levels": levels}
    x = ops.parameter([2, 4, 3, 3], np.float32, name="x")
    weights = constant(np.random.default_rng(1).standard_normal((4, 5)))

    def model(levels: Any) -> ov.Model:
        return ov.Model([ops.matmul(ops.transpose(levels, np.array([0, 2, 3, 1])), weights, False, False)], [x])

    given = np.random.default_rng(0).standard_normal((2, 4, 3, 3)).astype(np.float32)
    expected = answers(model(x), rounded(given, **limits).astype(np.float32))
    made = convert(model(quantized(x, **limits)), target=target, opset=opset).model
    assert ("QuantizeLinear" in names(made)) is is_integer
    (got,) = onnx_specops.InferenceSession(made, kernels="none").run(None, {"x": given})
    np.testing.assert_allclose(got, expected, atol=1e-3, strict=True)


@pytest.mark.parametrize("moved", [False, True])
@pytest.mark.parametrize(("zero", "levels"), [(0, 256), (128, 256), (57, 256), (127, 255), (0, 255)])
def test_inputs_get_the_levels_of_openvino(zero: int, levels: int, moved: bool, tmp_path: Path) -> None:
    """Numbers near halves, too: the order of operations is OpenVINO's."""
    step = 0.0352257
    low, high = np.float32(-zero * step), np.float32((levels - 1 - zero) * step)
    rng = np.random.default_rng(0)
    halves = (rng.integers(-zero - 9, levels - zero + 9, (4, 8, 64, 64)) + 0.5) * step
    given = (halves * (1 + 1e-7 * rng.integers(-4, 5, halves.shape))).astype(np.float32)
    x = ops.parameter(given.shape, np.float32, name="x")
    moves = ops.reshape(x, constant(np.array([4, 8, 32, 128])), False) if moved else x
    one = quantized(constant(np.ones((8, 1, 1, 1, 1))), -2, 2, 255)
    limited = quantized(moves, low, high, levels)
    model = ov.Model([ops.group_convolution(limited, one, [1, 1], [0, 0], [0, 0], [1, 1])], [x])
    made = compared(model, tmp_path, given, atol=0.01 * step)
    assert [node.op_type in ("QuantizeLinear", "Elementwise") for node in made.graph.node].count(True) == 1


def test_computed_numbers_are_divided_by_the_scale(tmp_path: Path) -> None:
    """Nothing but the numbers of an input is the same in both: QuantizeLinear alone takes less time."""
    x = ops.parameter([2, 8, 6, 6], np.float32, name="x")
    one = quantized(constant(np.ones((8, 1, 1, 1, 1))), -2, 2, 255)
    model = ov.Model([ops.group_convolution(quantized(ops.sin(x)), one, [1, 1], [0, 0], [0, 0], [1, 1])], [x])
    given = np.random.default_rng(0).standard_normal((2, 8, 6, 6)).astype(np.float32)
    made = compared(model, tmp_path, given, atol=1.01 * STEP)
    assert not {node.op_type for node in made.graph.node} & {"Mul", "Add"}


@pytest.mark.parametrize("opset", [None, 11, 12, 13])
def test_small_weights_with_scales_of_channels_in_standard_onnx(opset: int | None, tmp_path: Path) -> None:
    """They stay integers. Below opset 13 they are floats, which ONNX Runtime would round to one scale."""
    x = ops.parameter([1, 4, 6, 6], np.float32, name="x")
    limits = np.linspace(0.2, 2, 8).reshape(8, 1, 1, 1)
    weights = quantized(constant(np.random.default_rng(1).uniform(-1, 1, (8, 4, 3, 3)) * limits), -limits, limits, 255)
    inner = ops.convolution(quantized(x), weights, [1, 1], [0, 0], [0, 0], [1, 1])
    again = quantized(constant(np.random.default_rng(2).uniform(-1, 1, (5, 8, 1, 1))), -1, 1, 255)
    model = ov.Model([ops.convolution(quantized(inner, -8, 8 * 127 / 128), again, [1, 1], [0, 0], [0, 0], [1, 1])], [x])
    data = np.random.default_rng(0).standard_normal((1, 4, 6, 6)).astype(np.float32)
    made = compared(model, tmp_path, data, atol=0.1, target="standard", opset=opset)
    assert made.opset_import[0].version == (opset or 13)
    assert names(made).count("DequantizeLinear") == (2 if opset in (11, 12) else 4)
