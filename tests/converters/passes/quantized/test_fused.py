"""Convolutions fused with the following function."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
import pytest
from openvino import opset13 as ops

import onnx_specops
from converters.openvino import convert
from tests.converters.passes.quantized.networks import answers, compared, constant, names, quantized, rounded

pytestmark = pytest.mark.unverified  # integers have no NaN, and round ties differently
STEP = 1 / 64
CHANNELS = 6

FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "prelu": lambda x: ops.prelu(x, constant(np.linspace(-0.5, 1.5, CHANNELS))),
    "leaky": lambda x: ops.prelu(x, constant(np.array([0.1]))),
    "clamp": lambda x: ops.clamp(x, -0.7, 1.1),
    "hswish": ops.hswish,
    "hsigmoid": ops.hsigmoid,
    "hard_sigmoid": lambda x: ops.hard_sigmoid(x, np.float32(0.3), np.float32(0.4)),
    "sigmoid": ops.sigmoid,
    "swish": ops.swish,
    "swish_beta": lambda x: ops.swish(x, np.float32(1.7)),
    "gelu": lambda x: ops.gelu(x, "ERF"),
    "gelu_tanh": lambda x: ops.gelu(x, "TANH"),
    "elu": lambda x: ops.elu(x, 0.8),
    "mish": ops.mish,
}


def convolution(x: Any, out: int = CHANNELS, size: int = 3, seed: int = 1, **limits: Any) -> Any:
    """Build a convolution with quantized weights and a bias, for the spatial dimensions of ``x``."""
    rank = len(x.get_output_shape(0))
    weights = np.clip(
        np.random.default_rng(seed).standard_normal((out, x.get_output_shape(0)[1], *[size] * (rank - 2))), -2, 2
    )
    ones, pads = [1] * (rank - 2), [size // 2] * (rank - 2)
    limits = {"low": -2, "high": 2, "levels": 255} | limits
    result = ops.convolution(x, quantized(constant(weights * 0.3), **limits), ones, pads, pads, ones)
    return ops.add(result, constant(np.linspace(-1, 1, out).reshape(1, -1, *ones)))


def depthwise(x: Any, seed: int = 2, times: int = 1, size: int = 1) -> Any:
    """Build the same as a depthwise convolution with ``times`` columns for each channel, or for each group of ``size``."""
    groups = x.get_output_shape(0)[1] // size
    weights = np.clip(np.random.default_rng(seed).standard_normal((groups, times, size, 3, 3)), -2, 2)
    filters = quantized(constant(weights), -2, 2, 255)
    return ops.group_convolution(x, filters, [1, 1], [1, 1], [1, 1], [1, 1])


def given(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("space", [[9], [7, 5], [3, 4, 5]], ids=len)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_functions(function: str, space: list[int], tmp_path: Path) -> None:
    x = ops.parameter([2, 4, *space], np.float32, name="x")
    inner = FUNCTIONS[function](convolution(quantized(x)))
    model = ov.Model([quantized(inner)], [x])
    follows = ov.Model([convolution(quantized(FUNCTIONS[function](convolution(quantized(x)))), 5, 1)], [x])
    made = compared(follows, tmp_path, given(2, 4, *space), atol=6 * STEP)
    assert names(made).count("QuantizedConv") == 2
    assert not set(names(made)) & {"Conv", "QuantizeLinear", "Sigmoid", "PRelu", "Elu", "Gelu", "Mish"} - {"QuantizeLinear"}
    assert names(made).count("QuantizeLinear") == 1  # for the input
    compared(model, tmp_path, given(2, 4, *space), atol=1.01 * STEP)


@pytest.mark.parametrize("function", ["prelu", "swish"])
def test_functions_with_a_float_result(function: str, tmp_path: Path) -> None:
    x = ops.parameter([2, 4, 7, 5], np.float32, name="x")
    made = compared(ov.Model([FUNCTIONS[function](convolution(quantized(x)))], [x]), tmp_path, given(2, 4, 7, 5), atol=1e-4)
    assert [name for name in names(made) if name not in ("Transpose", "Constant")] == ["QuantizeLinear", "QuantizedConv"]


def _shared(x: Any) -> Any:
    """The function's input has another consumer."""
    inner = convolution(quantized(x))
    return ops.add(ops.multiply(inner, ops.sigmoid(inner)), inner)


def _of_columns(x: Any) -> Any:
    """Slopes along the last dimension, which has the length of the channel axis."""
    slopes = constant(np.linspace(-0.5, 1.5, CHANNELS).reshape(1, 1, 1, CHANNELS))
    return ops.prelu(convolution(quantized(x)), slopes)


def _of_another(x: Any) -> Any:
    """A gate that is computed from another value."""
    return ops.multiply(convolution(quantized(x)), ops.sigmoid(convolution(quantized(x), seed=5)))


def _tanh(x: Any) -> Any:
    return ops.tanh(convolution(quantized(x)))


@pytest.mark.parametrize("near", [_shared, _of_columns, _of_another, _tanh])
def test_near_misses_of_functions(near: Callable[[Any], Any], tmp_path: Path) -> None:
    x = ops.parameter([2, 4, 6, 6], np.float32, name="x")
    made = compared(ov.Model([near(x)], [x]), tmp_path, given(2, 4, 6, 6), atol=1e-4)
    found = [node for node in made.graph.node if node.op_type == "QuantizedConv"]
    assert found
    assert {attribute.s for node in found for attribute in node.attribute if attribute.name == "function"} <= {
        b"none",
        b"sigmoid",
    }


@pytest.mark.parametrize(("rank", "function"), [(4, b"swish"), (5, b"none")])
def test_a_factor_that_adds_a_dimension(rank: int, function: bytes) -> None:
    """OpenVINO's CPU drops the dimension, which the model states."""
    x = ops.parameter([2, 4, 6, 6], np.float32, name="x")
    inner = convolution(quantized(x))
    network = ops.multiply(inner, ops.sigmoid(ops.multiply(inner, constant(np.full([1] * rank, 1.5)))))
    made = convert(ov.Model([network], [x])).model
    (node,) = (node for node in made.graph.node if node.op_type == "QuantizedConv")
    assert next(attribute.s for attribute in node.attribute if attribute.name == "function") == function
    got = onnx_specops.InferenceSession(made.SerializeToString()).run(None, {"x": given(2, 4, 6, 6)})[0]
    assert got.shape == tuple(network.shape)


def test_weights_with_another_zero(tmp_path: Path) -> None:
    """Weights whose zero point is not in the middle stay in a product."""
    x = ops.parameter([2, 4, 6, 6], np.float32, name="x")
    network = ops.hswish(convolution(quantized(x), low=-0.5, high=0.5 * 255 * 3 / 255, levels=256))
    made = compared(ov.Model([network], [x]), tmp_path, given(2, 4, 6, 6), atol=1e-3)
    assert "QuantizedConv" not in names(made)


def _limits(channels: int) -> dict[str, Any]:
    """Return limits with a different zero point for each channel."""
    zeros = np.arange(10, 10 + 13 * channels, 13)
    steps = np.linspace(1, 2, channels) / 64
    return {"low": (-zeros * steps).reshape(1, -1, 1, 1), "high": ((255 - zeros) * steps).reshape(1, -1, 1, 1)}


def test_zero_points_per_channel(tmp_path: Path) -> None:
    """Before a depthwise convolution, activations may have a zero point for each channel."""
    x = ops.parameter([2, 4, 6, 6], np.float32, name="x")
    inner = quantized(ops.swish(convolution(quantized(x))), **_limits(CHANNELS))
    made = compared(ov.Model([ops.swish(depthwise(inner))], [x]), tmp_path, given(2, 4, 6, 6), atol=4 * STEP)
    assert [name for name in names(made) if name not in ("Transpose", "Constant")] == [
        "QuantizeLinear",
        "QuantizedConv",
        "QuantizedConv",
    ]


@pytest.mark.parametrize("zero", [True, False], ids=["zero points", "offsets"])
@pytest.mark.parametrize("times", [2, 3, 5])
def test_zero_points_per_channel_with_several_columns(times: int, zero: bool, tmp_path: Path) -> None:
    """The scale and the offset of a channel belong to all of its columns."""
    x = ops.parameter([2, 4, 6, 6], np.float32, name="x")
    limits = {name: limit + (0 if zero else STEP * 0.3) for name, limit in _limits(CHANNELS).items()}
    inner = quantized(ops.swish(convolution(quantized(x))), **limits)
    model = ov.Model([ops.swish(depthwise(inner, times=times))], [x])
    made = compared(model, tmp_path, given(2, 4, 6, 6), atol=4 * STEP)
    assert names(made).count("QuantizedConv") == 2 and "FakeQuantize" not in names(made)


@pytest.mark.parametrize(
    "last", [convolution, functools.partial(depthwise, size=2, times=2)], ids=["whole", "groups of two"]
)
def test_zero_points_per_channel_elsewhere(last: Callable[[Any], Any], tmp_path: Path) -> None:
    """Before another convolution, they stay a FakeQuantize."""
    x = ops.parameter([2, 4, 6, 6], np.float32, name="x")
    inner = quantized(ops.swish(convolution(quantized(x))), **_limits(CHANNELS))
    made = compared(ov.Model([last(inner)], [x]), tmp_path, given(2, 4, 6, 6), atol=4 * STEP)
    assert "FakeQuantize" in names(made)


def test_zero_points_per_channel_of_16_bits(tmp_path: Path) -> None:
    """Only bytes have a zero point for each channel. OpenVINO's plugin rejects 65,536 levels, or omits the FakeQuantize."""
    x = ops.parameter([2, 4, 6, 6], np.float32, name="x")
    zeros, step = np.arange(20000, 60000, 10000).reshape(1, -1, 1, 1), 2.0**-13
    limits: dict[str, Any] = {"low": -zeros * step, "high": (65535 - zeros) * step, "levels": 65536}
    expected = answers(ov.Model([depthwise(x)], [x]), rounded(given(2, 4, 6, 6), **limits).astype(np.float32))
    model = ov.Model([depthwise(quantized(x, **limits))], [x])
    made = compared(model, tmp_path, given(2, 4, 6, 6), atol=1e-3, expected=expected)
    assert "FakeQuantize" in names(made)


def test_split_concat_and_nearest_neighbors(tmp_path: Path) -> None:
    """Split, Concat and nearest-neighbor Interpolate move integers."""
    x = ops.parameter([1, 4, 6, 6], np.float32, name="x")
    whole = quantized(ops.swish(convolution(quantized(x))))
    first, second = ops.split(whole, 1, 2).outputs()
    wide = ops.interpolate(ops.concat([second, first], 1), [12, 12], "nearest", "sizes", axes=[2, 3])
    made = compared(ov.Model([convolution(wide)], [x]), tmp_path, given(1, 4, 6, 6), atol=8 * STEP)
    assert [name for name in names(made) if name not in ("Transpose", "Constant")] == [
        "QuantizeLinear", "QuantizedConv", "Split", "Concat", "Gather", "Gather", "QuantizedConv",
    ]  # fmt: skip


@pytest.mark.parametrize("first", [True, False])
def test_differences(first: bool, tmp_path: Path) -> None:
    """Quantized tensors that are only subtracted are integers, which a convolution computes."""
    x = ops.parameter([2, 4, 6, 6], np.float32, name="x")
    one, other = quantized(ops.swish(convolution(quantized(x)))), quantized(ops.relu(convolution(quantized(x), seed=5)))
    result = ops.subtract(one, other) if first else ops.subtract(other, ops.multiply(one, constant(np.array(0.3))))
    made = compared(ov.Model([result], [x]), tmp_path, given(2, 4, 6, 6), atol=4 * STEP)
    assert "FakeQuantize" not in names(made) and names(made).count("QuantizedConv") == 2


def _clamped(low: float, high: float) -> Callable[[Any], Any]:
    return lambda x: quantized(ops.clamp(convolution(quantized(x)), low, high), 0, 255 * STEP)


def _of_line(high: float) -> Callable[[Any], Any]:
    return lambda x: quantized(ops.hard_sigmoid(convolution(quantized(x)), np.float32(0.3), np.float32(0.4)), 0, high)


@pytest.mark.parametrize(
    ("emit", "function"),
    [
        (_clamped(0, 4), b"none"),  # the quantization clips as much: it ends at 3.98
        (_clamped(0, 3.9), b"clip"),
        (_clamped(0.1, 4), b"clip"),
        (_of_line(1), b"none"),
        (_of_line(2), b"hard_sigmoid"),  # which saturates before the quantization does
    ],
)
def test_functions_that_the_quantization_clips(emit: Callable[[Any], Any], function: bytes, tmp_path: Path) -> None:
    x = ops.parameter([2, 4, 6, 6], np.float32, name="x")
    made = compared(ov.Model([convolution(emit(x), 5, 1)], [x]), tmp_path, given(2, 4, 6, 6), atol=4 * STEP)
    found = [
        a.s for node in made.graph.node if node.op_type == "QuantizedConv" for a in node.attribute if a.name == "function"
    ]
    assert found == [function, b"none"]


@pytest.mark.parametrize(("highest", "function"), [(4.0, b"none"), (4.2, b"clip")])
def test_functions_that_the_quantization_of_each_channel_clips(highest: float, function: bytes, tmp_path: Path) -> None:
    """The near miss: one channel has levels above the limit of the function."""
    x = ops.parameter([2, 4, 6, 6], np.float32, name="x")
    high = np.array([1.5, 4, 3.1, highest, 2, 2]).reshape(1, -1, 1, 1)
    inner = quantized(ops.clamp(convolution(quantized(x)), 0, 4), np.zeros_like(high), high)
    made = compared(ov.Model([depthwise(inner)], [x]), tmp_path, given(2, 4, 6, 6), atol=4 * STEP)
    nodes = [node for node in made.graph.node if node.op_type == "QuantizedConv"]
    assert [attribute.s for attribute in nodes[0].attribute if attribute.name == "function"] == [function]


def test_biases_are_not_rounded(tmp_path: Path) -> None:
    """ONNX Runtime's own convolution rounds biases to integers, which changes one result in a thousand by a level."""
    x = ops.parameter([1, 4, 60, 60], np.float32, name="x")
    inner = quantized(ops.relu(convolution(quantized(x))), 0, 255 * STEP)
    model = ov.Model([convolution(inner, 5, 1)], [x])
    made = compared(model, tmp_path, given(1, 4, 60, 60), atol=1e-4, body_atol=STEP)
    assert names(made).count("QuantizedConv") == 2


@pytest.mark.parametrize("space", [[9, 7], [-1, -1]], ids=["fixed", "dynamic"])
def test_padding_that_fills_a_window(space: list[int], tmp_path: Path) -> None:
    """ONNX Runtime did not load these networks without kernels while the bodies contained an If."""
    x = ops.parameter([1, 4, *space], np.float32, name="x")
    inner = quantized(x)
    for _ in range(2):
        filters = quantized(constant(np.clip(given(4, 4, 2, 2), -2, 2) * 0.3), -2, 2, 255)
        inner = quantized(ops.relu(ops.convolution(inner, filters, [1, 1], [1, 1], [1, 1], [1, 1])))
    made = compared(ov.Model([inner], [x]), tmp_path, given(1, 4, 9, 7), atol=STEP)
    assert names(made).count("QuantizedConv") == 2


@pytest.mark.parametrize("taken", [True, False])
@pytest.mark.parametrize("before", [True, False], ids=["moved before the If", "moved in each branch"])
def test_branches_share_an_input(taken: bool, before: bool, tmp_path: Path) -> None:
    """A branch cannot use integers whose channels another branch moved; both can use those of the graph around them."""
    x, condition = ops.parameter([1, 4, 6, 6], np.float32, name="x"), ops.parameter([], np.bool_, name="c")
    shared = quantized(x)
    outer = [quantized(convolution(shared, seed=3))] if before else []
    bodies, inputs = [], []
    for size in (1, 3):
        given_ = ops.parameter([1, 4, 6, 6], np.float32)
        bodies.append(ov.Model([quantized(ops.relu(convolution(given_, size=size)))], [given_]))
        inputs.append(given_)
    branches = ops.if_op(condition)
    branches.set_then_body(bodies[0])
    branches.set_else_body(bodies[1])
    branches.set_input(shared.output(0), *inputs)
    chosen = branches.set_output(*(body.results[0] for body in bodies))
    made = compared(
        ov.Model([chosen, *(one.output(0) for one in outer)], [x, condition]),
        tmp_path,
        given(1, 4, 6, 6),
        np.array(taken),
        atol=6 * STEP,
    )
    conditional = next(node for node in made.graph.node if node.op_type == "If")
    for branch in conditional.attribute:
        operators = [node.op_type for node in branch.g.node]
        assert operators.count("QuantizedConv") == 1
        assert operators.count("Transpose") == (1 if before else 2)
