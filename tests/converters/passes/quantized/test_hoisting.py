"""Quantization before numbers are moved, and products whose results are split."""

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
from tests.converters.passes.quantized.test_fused import STEP, given
from tests.converters.passes.quantized.test_matmuls import product

pytestmark = pytest.mark.unverified  # integers have no NaN, and round ties differently
SHAPE = (2, 6, 10)


def _heads(x: Any) -> Any:
    """Move heads before tokens: [2, 6, 8] to [2, 4, 6, 2]."""
    return ops.transpose(ops.reshape(x, constant(np.array([2, 6, 4, 2])), False), constant(np.array([0, 2, 1, 3])))


def _last(x: Any) -> Any:
    """Multiply the moved numbers by weights."""
    return product(x, 3, 9)


def made(build: Callable[[Any], Any], folder: Path, **options: Any) -> onnx.ModelProto:
    x = ops.parameter(SHAPE, np.float32, name="x")
    return compared(ov.Model([build(x)], [x]), folder, given(*SHAPE), **{"atol": 6 * STEP} | options)


@pytest.mark.parametrize(
    "moves",
    [
        _heads,
        lambda x: ops.multiply(_heads(x), constant(np.array(0.35))),
        lambda x: _heads(ops.multiply(x, constant(np.array([[0.35]])))),
        lambda x: ops.squeeze(ops.unsqueeze(_heads(x), constant(np.array([0]))), constant(np.array([0]))),
    ],
)
@pytest.mark.parametrize("function", [lambda x: x, ops.relu], ids=["none", "relu"])
def test_moves(function: Callable[[Any], Any], moves: Callable[[Any], Any], tmp_path: Path) -> None:
    model = made(lambda x: _last(quantized(moves(function(product(quantized(x), 8))))), tmp_path)
    assert names(model).count("QuantizedConv") == 2
    assert names(model).count("QuantizeLinear") == 1 + (function is ops.relu)  # a function ends the product's own columns


def _negative(x: Any) -> Any:
    return quantized(ops.multiply(_heads(product(quantized(x), 8)), constant(np.array(-0.5))))


def _per_channel(x: Any) -> Any:
    return quantized(ops.multiply(_heads(product(quantized(x), 8)), constant(np.array([0.5, 1.5]))))


def _limits_of_channels(x: Any) -> Any:
    top = np.array([1.0, 2.0], np.float32)
    return quantized(_heads(product(quantized(x), 8)), -top, top * 127 / 128)


def _used_before(x: Any) -> Any:
    inner = product(quantized(x), 8)
    return ops.add(quantized(_heads(inner)), ops.reduce_max(inner, constant(np.array([0, 1, 2])), True))


def _used_after(x: Any) -> Any:
    inner = _heads(product(quantized(x), 8))
    return ops.add(quantized(inner), ops.reduce_max(inner, constant(np.array([0])), True))


@pytest.mark.parametrize("near", [_negative, _per_channel, _limits_of_channels, _used_before, _used_after])
def test_near_misses(near: Callable[[Any], Any], tmp_path: Path) -> None:
    model = made(lambda x: _last(near(x)), tmp_path)
    assert any(node.op_type in ("QuantizeLinear", "FakeQuantize", "Cast") for node in model.graph.node[3:])


def _split(x: Any, sizes: tuple[int, ...] = (8, 8, 8), axis: int = 2) -> list[Any]:
    parts = ops.variadic_split(x, constant(np.array(axis)), constant(np.array(sizes)))
    return list(parts.outputs())


def test_parts(tmp_path: Path) -> None:
    def build(x: Any) -> Any:
        q, k, v = _split(product(quantized(x), 24))
        scores = ops.matmul(quantized(_heads(q)), quantized(_heads(k)), False, True)
        return ops.matmul(ops.softmax(ops.multiply(scores, constant(np.array(0.7))), -1), _heads(v), False, False)

    found = names(made(build, tmp_path, atol=2 * STEP))
    assert found.count("QuantizedConv") == 3 and "Split" not in found and found.count("QuantizeLinear") == 1


@pytest.mark.parametrize("sizes", [(8, 8), (1, 15), (3, 8, 5), (16,)])
@pytest.mark.parametrize("seed", [1, None], ids=["weights-of-columns", "one-scale"])
def test_sizes_of_parts(sizes: tuple[int, ...], seed: int | None, tmp_path: Path) -> None:
    def build(x: Any) -> Any:
        limits: Any = np.linspace(0.5, 2, 16).reshape(1, 16) if seed else 2.0
        weights = np.clip(np.random.default_rng(1).standard_normal((10, 16)), -limits, limits)
        inner = ops.matmul(quantized(x), quantized(constant(weights), -limits, limits, 255), False, False)
        parts = _split(ops.add(inner, constant(np.linspace(-1, 1, 16))), sizes)
        return ops.concat([ops.sigmoid(part) if i else ops.gelu(part, "ERF") for i, part in enumerate(parts)], 2)

    found = names(made(build, tmp_path, atol=1e-4))
    assert found.count("QuantizedConv") == len(sizes) and not {"Split", "Gelu", "Sigmoid"} & set(found)


def test_an_unused_part(tmp_path: Path) -> None:
    found = names(made(lambda x: _split(product(quantized(x), 24))[1], tmp_path, atol=1e-4))
    assert found.count("QuantizedConv") == 1 and "Split" not in found


def test_parts_of_rows(tmp_path: Path) -> None:
    def build(x: Any) -> Any:
        return ops.concat(_split(product(quantized(x), 6), (4, 2), 1)[::-1], 1)

    found = names(made(build, tmp_path, atol=1e-4))
    assert found.count("QuantizedConv") == 1 and "Split" in found


def test_a_split_result_with_another_consumer(tmp_path: Path) -> None:
    def build(x: Any) -> Any:
        inner = product(quantized(x), 16)
        return ops.add(ops.concat(_split(inner, (4, 12))[::-1], 2), inner)

    found = names(made(build, tmp_path, atol=1e-4))
    assert found.count("QuantizedConv") == 1 and "Split" in found
