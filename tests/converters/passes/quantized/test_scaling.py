"""Factors and addends for each channel of quantized tensors."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import openvino as ov
import pytest
from openvino import opset13 as ops

from tests.converters.passes.quantized.networks import compared, constant, names, quantized
from tests.converters.passes.quantized.test_fused import STEP, convolution, given

pytestmark = pytest.mark.unverified  # integers round ties differently
CHANNELS = 6
FACTORS = np.array([0.5, -1.25, 0.0, 2.0, 1.0, -0.1])


def _normalized(x: Any, factors: np.ndarray = FACTORS, axis: int = 1) -> Any:
    """Multiply channels and add to them."""
    shape = [len(factors) if i == axis else 1 for i in range(len(x.get_output_shape(0)))]
    addends = np.linspace(-1, 1, len(factors)).reshape(shape)
    return ops.add(ops.multiply(x, constant(factors.reshape(shape))), constant(addends))


def _first(x: Any) -> Any:
    return quantized(ops.relu(convolution(quantized(x))))


def _made(build: Callable[[Any], Any], folder: Path, space: tuple[int, ...] = (6, 6), **options: Any) -> onnx.ModelProto:
    x = ops.parameter([2, 4, *space], np.float32, name="x")
    return compared(ov.Model([build(x)], [x]), folder, given(2, 4, *space), atol=8 * STEP, **options)


def _kept(model: onnx.ModelProto) -> list[str]:
    return [name for name in names(model) if name not in ("Transpose", "Constant")]


@pytest.mark.parametrize(
    "follow",
    [
        quantized,
        lambda x: quantized(ops.relu(x), 0, 255 * STEP),
        lambda x: quantized(ops.prelu(x, constant(np.linspace(-0.5, 1.5, CHANNELS)))),
        lambda x: quantized(ops.swish(x)),
    ],
)
@pytest.mark.parametrize("space", [(9,), (6, 6), (3, 4, 5)], ids=len)
def test_functions(follow: Callable[[Any], Any], space: tuple[int, ...], tmp_path: Path) -> None:
    made = _made(lambda x: convolution(follow(_normalized(_first(x)))), tmp_path, space)
    assert _kept(made) == ["QuantizeLinear", *["QuantizedConv"] * 3]


def test_a_factor_before_a_sum(tmp_path: Path) -> None:
    """One of the two, the factor or the convolution, adds the other."""

    def build(x: Any) -> Any:
        first = _first(x)
        parts = [quantized(_normalized(first)), quantized(convolution(first, seed=3))]
        return convolution(quantized(ops.add(*parts)))

    assert _kept(_made(build, tmp_path)) == ["QuantizeLinear", *["QuantizedConv"] * 4]


def test_a_concatenation_before(tmp_path: Path) -> None:
    """As in DenseNet."""

    def build(x: Any) -> Any:
        first = _first(x)
        joined = quantized(ops.concat([first, convolution(first, 3, seed=3)], 1))
        return convolution(quantized(ops.relu(_normalized(joined, np.linspace(-1, 1, 9))), 0, 255 * STEP))

    assert _kept(_made(build, tmp_path)).count("Mul") == 0


def _two_scales(x: Any) -> list[Any]:
    first = _first(x)
    return [first, quantized(convolution(first, 3, seed=3), -4, 4 * 127 / 128)]


def test_a_concatenation_of_different_scales(tmp_path: Path) -> None:
    """The channels of each part have its scale and zero point."""

    def build(x: Any) -> Any:
        joined = _normalized(ops.concat(_two_scales(x), 1), np.linspace(-1, 1, 9))
        return convolution(quantized(ops.relu(joined), 0, 255 * STEP))

    kept = _kept(_made(build, tmp_path))
    assert sorted(kept) == ["Concat", "QuantizeLinear", *["QuantizedConv"] * 4]


def _joined_pixels(x: Any) -> Any:
    """The concatenation is not along the channels."""
    first = _first(x)
    second = quantized(convolution(first, seed=3), -4, 4 * 127 / 128)
    return convolution(quantized(_normalized(ops.concat([first, second], 2))))


def _joined_and_used(x: Any) -> Any:
    """The concatenation is a result, too."""
    joined = ops.concat(_two_scales(x), 1)
    return ops.concat([joined, convolution(quantized(_normalized(joined, np.linspace(-1, 1, 9))))], 1)


def _joined_with_floats(x: Any) -> Any:
    """A part is not quantized."""
    joined = ops.concat([_first(x), ops.floor(_first(x))], 1)
    return convolution(quantized(_normalized(joined, np.linspace(-1, 1, 12))))


def _of_columns(x: Any) -> Any:
    return convolution(quantized(_normalized(_first(x), axis=3)))


def _of_another(x: Any) -> Any:
    """The factor is computed."""
    first = _first(x)
    gate = ops.sigmoid(ops.reduce_max(first, constant(np.array([2, 3])), True))
    return convolution(quantized(ops.multiply(first, gate)))


def _of_floats(x: Any) -> Any:
    """The factor is that of a tensor that is not quantized."""
    return convolution(quantized(_normalized(ops.floor(_first(x)))))


def _result(x: Any) -> Any:
    """The product is not quantized."""
    return _normalized(_first(x))


def _used_twice(x: Any) -> Any:
    """The product is a result, too."""
    product = _normalized(_first(x))
    return ops.concat([product, convolution(quantized(product))], 1)


@pytest.mark.parametrize(
    "near",
    [_of_columns, _of_another, _of_floats, _result, _used_twice, _joined_pixels, _joined_and_used, _joined_with_floats],
)
def test_near_misses(near: Callable[[Any], Any], tmp_path: Path) -> None:
    made = _made(near, tmp_path)
    groups = [
        attribute.i
        for node in made.graph.node
        if node.op_type == "QuantizedConv"
        for attribute in node.attribute
        if attribute.name == "group"
    ]
    assert groups
    assert set(groups) == {1}


def test_without_onnxruntimes_operators(tmp_path: Path) -> None:
    made = _made(lambda x: convolution(quantized(_normalized(_first(x)))), tmp_path, target="standard")
    assert "QuantizedConv" not in names(made)
