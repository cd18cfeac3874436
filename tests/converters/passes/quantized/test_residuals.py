"""Additions to the quantized results of convolutions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import openvino as ov
import pytest
from openvino import opset13 as ops

from tests.converters.passes.quantized.networks import answers, compared, constant, names, quantized
from tests.converters.passes.quantized.test_fused import STEP, convolution, depthwise, given

pytestmark = pytest.mark.unverified  # integers round ties differently
CHANNELS = 6


def _positive(x: Any, step: float = STEP) -> Any:
    return quantized(x, 0, 255 * step)


def _by_channels(x: Any) -> Any:
    steps = np.linspace(1, 2, CHANNELS).reshape(1, -1, 1, 1) / 64
    return quantized(x, -128 * steps, 127 * steps)


def _residual(after: Callable[[Any], Any], then: Callable[[Any], Any] = convolution) -> Callable[[Any], Any]:
    """A convolution of a quantized tensor, which is added to it; the nodes after the sum; and another convolution."""

    def build(x: Any) -> Any:
        first = quantized(convolution(quantized(x)))
        return then(after(ops.add(first, quantized(convolution(first, seed=3), -4, 4 * 127 / 128))))

    return build


def _nodes(model: onnx.ModelProto) -> tuple[list[str], list[list[str]]]:
    """Return the operators, and the convolutions' inputs from the residual on. Empty tensors do not count as inputs."""
    empty = {tensor.name for tensor in model.graph.initializer if 0 in tensor.dims}
    found = [node for node in model.graph.node if node.op_type == "QuantizedConv"]
    inputs = [["" if name in empty else name for name in node.input[8:]] for node in found]
    kept = [name for name in names(model) if name not in ("Transpose", "Constant")]
    return kept, [given for given in inputs if given and given[0]]


def _made(
    build: Callable[[Any], Any], folder: Path, shape: Any = (2, 4, 6, 6), atol: float = 8 * STEP, **options: Any
) -> Any:
    x = ops.parameter(list(shape), np.float32, name="x")
    sizes = [2 if size == -1 else size for size in shape]
    return compared(ov.Model([build(x)], [x]), folder, given(*sizes), atol=atol, **options)


FUNCTIONS = {
    "none": lambda x: quantized(x, -4, 4 * 127 / 128),
    "relu": lambda x: _positive(ops.relu(x)),
    "relu_of_signed": lambda x: quantized(ops.relu(x)),
    "leaky": lambda x: quantized(ops.prelu(x, constant(np.array([0.1])))),
    "prelu": lambda x: quantized(ops.prelu(x, constant(np.linspace(-0.5, 1.5, CHANNELS)))),
    "clamp_that_the_quantization_implies": lambda x: _positive(ops.clamp(x, 0, 4)),
}


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_sum_and_its_function(function: str, tmp_path: Path) -> None:
    made = _made(_residual(FUNCTIONS[function]), tmp_path)
    found, added = _nodes(made)
    assert found == ["QuantizeLinear", *["QuantizedConv"] * 3]
    assert [bool(inputs[5]) for inputs in added] == [function in ("relu_of_signed", "leaky", "prelu")]


def _channels(*numbers: float) -> Any:
    return constant(np.resize(numbers, CHANNELS).reshape(1, -1, 1, 1))


def _normalized(x: Any) -> Any:
    """A BatchNormalization with negative factors, and one of 0."""
    return ops.add(ops.multiply(x, _channels(0.5, -1.5, 0, 1)), _channels(0.5, -0.25, 1))


LINES = {
    "factors_and_addends": lambda x: _positive(ops.relu(_normalized(x))),
    "before_slopes": lambda x: quantized(ops.prelu(_normalized(x), constant(np.linspace(-0.5, 1.5, CHANNELS)))),
    "several": lambda x: quantized(ops.multiply(_normalized(ops.add(x, constant(0.3))), constant(-0.7))),
    "one_addend": lambda x: quantized(ops.add(x, constant(0.3))),
    "scales_of_channels": lambda x: _by_channels(_normalized(x)),
}


@pytest.mark.parametrize("line", LINES)
def test_factors_and_addends_of_a_sum(line: str, tmp_path: Path) -> None:
    then = depthwise if line == "scales_of_channels" else convolution
    found, added = _nodes(_made(_residual(LINES[line], then), tmp_path))
    assert found == ["QuantizeLinear", *["QuantizedConv"] * 3]
    assert [bool(inputs[6]) for inputs in added] == [True]


def test_factors_of_a_sum_in_a_bias_free_normalization(tmp_path: Path) -> None:
    made = _made(_residual(lambda x: quantized(ops.multiply(x, _channels(0.5, -1.5)))), tmp_path)
    assert [bool(inputs[6]) for inputs in _nodes(made)[1]] == [False]


@pytest.mark.parametrize("space", [[9], [3, 4, 5]], ids=len)
def test_other_dimensions(space: list[int], tmp_path: Path) -> None:
    made = _made(_residual(FUNCTIONS["relu"]), tmp_path, (2, 4, *space))
    assert _nodes(made)[0] == ["QuantizeLinear", *["QuantizedConv"] * 3]


def test_a_sum_with_a_scale_for_each_channel(tmp_path: Path) -> None:
    made = _made(_residual(_by_channels, depthwise), tmp_path)
    assert _nodes(made)[0] == ["QuantizeLinear", *["QuantizedConv"] * 3]


def test_a_function_before_the_sum(tmp_path: Path) -> None:
    def build(x: Any) -> Any:
        first = quantized(convolution(quantized(x)))
        return convolution(quantized(ops.add(quantized(ops.swish(convolution(first, seed=3))), first)))

    assert _nodes(_made(build, tmp_path))[0] == ["QuantizeLinear", *["QuantizedConv"] * 3]


def test_an_addend_that_is_computed_after_the_convolution(tmp_path: Path) -> None:
    """One of two convolutions computes the sum; a third one of the same tensor is between them."""

    def build(x: Any) -> Any:
        first = quantized(ops.relu(convolution(quantized(x))))
        parts = [quantized(convolution(first, seed=seed), -4, 4 * 127 / 128) for seed in (3, 4, 5)]
        whole = quantized(ops.add(quantized(ops.add(parts[0], parts[2])), parts[1]))
        return convolution(whole)

    assert _nodes(_made(build, tmp_path))[0] == ["QuantizeLinear", *["QuantizedConv"] * 5]


def _twice(x: Any) -> Any:
    """The result is added to itself."""
    part = quantized(convolution(quantized(x)), -4, 4 * 127 / 128)
    return convolution(quantized(ops.add(part, part)))


def _of_floats(x: Any) -> Any:
    """The other tensor is not quantized."""
    part = quantized(convolution(quantized(x)))
    return convolution(quantized(ops.add(part, ops.relu(convolution(quantized(x), seed=3)))))


def _broadcast(x: Any) -> Any:
    """The other tensor has one pixel."""
    first = quantized(convolution(quantized(x)))
    mean = quantized(ops.reduce_mean(first, constant(np.array([2, 3])), True))
    return convolution(quantized(ops.add(quantized(convolution(first, seed=3)), mean)))


def _both_used(x: Any) -> Any:
    """Another convolution reads the quantized result."""
    first = quantized(convolution(quantized(x)))
    second = quantized(convolution(first, seed=3))
    return ops.concat([convolution(quantized(ops.add(first, second))), convolution(second)], 1)


def _sum_used(x: Any) -> Any:
    """The sum is a result, too."""
    first = quantized(convolution(quantized(x)))
    total = ops.add(first, quantized(convolution(first, seed=3)))
    return ops.concat([total, convolution(quantized(total))], 1)


def _of_channels(x: Any) -> Any:
    """The other tensor has a scale for each channel."""
    other = _by_channels(convolution(quantized(x)))
    second = quantized(convolution(quantized(x), seed=3))
    return ops.concat([convolution(quantized(ops.add(other, second))), depthwise(other)], 1)


def _another_zero(x: Any) -> Any:
    """The output limits of the result's quantization have another zero point than its input limits."""
    first = quantized(convolution(quantized(x)))
    limits = [constant(np.float32(limit)) for limit in (-2.0, 2.0 * 127 / 128, -1.0, 1.0 * 191 / 64)]
    second = ops.fake_quantize(convolution(first, seed=3), *limits, 256)
    return convolution(quantized(ops.add(first, second)))


@pytest.mark.parametrize(
    "near",
    [
        _twice, _of_floats, _broadcast, _both_used, _sum_used, _of_channels, _another_zero,
        _residual(lambda x: quantized(ops.swish(x))),
        _residual(lambda x: _positive(ops.clamp(x, 0, 3))),  # the quantization ends at 3.98
        _residual(lambda x: x),
        _residual(lambda x: quantized(ops.multiply(x, constant(np.linspace(-1, 1, 6).reshape(1, 1, 6, 1))))),  # of lines
        _residual(lambda x: quantized(ops.add(x, constant(np.linspace(-1, 1, 6).reshape(1, 1, 1, 6))))),
        _residual(lambda x: quantized(ops.multiply(x, ops.relu(x)))),
    ],
)  # fmt: skip
def test_near_misses(near: Callable[[Any], Any], tmp_path: Path) -> None:
    assert not _nodes(_made(near, tmp_path))[1]


def test_factors_that_would_make_a_scale_subnormal(tmp_path: Path) -> None:
    """OpenVINO's result is NaN. A factor of 0 gives the same integers."""

    def made(factor: float) -> Any:
        x = ops.parameter([2, 4, 6, 6], np.float32, name="x")
        line = _residual(lambda total: quantized(ops.multiply(total, _channels(1.0, factor))))
        return ov.Model([line(x)], [x])

    x = given(2, 4, 6, 6)
    found = compared(made(1e-39), tmp_path, x, atol=8 * STEP, expected=answers(made(0), x))
    assert not _nodes(found)[1]


def test_unknown_dimensions(tmp_path: Path) -> None:
    """Tensors of unknown dimensions may be broadcast."""
    x = ops.parameter([2, 4, 6, 6], np.float32, name="x")
    model = ov.Model([_residual(FUNCTIONS["relu"])(x)], [x])
    model.reshape([2, 4, -1, -1])
    assert not _nodes(compared(model, tmp_path, given(2, 4, 6, 6), atol=8 * STEP))[1]
