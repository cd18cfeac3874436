"""Attention of quantized queries and keys."""

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
from tests.converters.passes.quantized.test_fused import STEP
from tests.converters.passes.quantized.test_matmuls import product

pytestmark = pytest.mark.unverified  # integers have no NaN, and round ties differently
HEADS, SIZE, TOKENS = 3, 8, 7
WIDTH = HEADS * SIZE
LIMITS = (-3.0, 3.0 * 127 / 128)


def _rows(x: Any, seed: int) -> Any:
    weights = np.random.default_rng(seed).standard_normal((WIDTH, WIDTH)) / 5
    return ops.matmul(x, constant(weights), False, False)


def _heads(rows: Any) -> Any:
    split = ops.reshape(rows, constant(np.array([0, 0, HEADS, SIZE])), True)
    return ops.transpose(split, constant(np.array([0, 2, 1, 3])))


def _joined(x: Any) -> Any:
    return ops.reshape(ops.transpose(x, constant(np.array([0, 2, 1, 3]))), constant(np.array([0, 0, WIDTH])), True)


def _before(rows: Any) -> Any:
    return _heads(quantized(rows, *LIMITS))


def _after(rows: Any) -> Any:
    return quantized(_heads(rows), *LIMITS)


def _attended(x: Any, of_query: Callable[[Any], Any], of_key: Callable[[Any], Any], mask: Any = None) -> Any:
    scores = ops.matmul(of_query(_rows(x, 1)), of_key(_rows(x, 2)), False, True)
    scores = ops.multiply(scores, constant(np.float64(0.4)))
    scores = scores if mask is None else ops.add(scores, mask)
    values = product(quantized(x), WIDTH, 3)
    return _joined(ops.matmul(ops.softmax(scores, -1), _heads(values), False, False))


def _made(
    build: Callable[[Any], Any], folder: Path, *, atol: float = 4 * STEP, **options: Any
) -> tuple[list[str], onnx.NodeProto | None]:
    """Return the operators, and the attention."""
    x = ops.parameter([2, TOKENS, WIDTH], np.float32, name="x")
    given = np.random.default_rng(3).standard_normal((2, TOKENS, WIDTH)).astype(np.float32)
    model = compared(ov.Model([build(x)], [x]), folder, given, atol=atol, **options)
    attention = next((node for node in model.graph.node if node.op_type == "QuantizedAttention"), None)
    return names(model), attention


def _type_of(model_node: onnx.NodeProto, folder: Path) -> int:
    """Return the type of the zero point, which is the type of the result."""
    model = onnx.load(folder / "model.onnx")
    return next(tensor.data_type for tensor in model.graph.initializer if tensor.name == model_node.input[8])


@pytest.mark.parametrize("of_query", [_before, _after])
@pytest.mark.parametrize("of_key", [_before, _after])
@pytest.mark.parametrize("mask", [None, (1, HEADS, TOKENS, TOKENS), (2, 1, 1, TOKENS)], ids=str)
def test_float_results(of_query: Any, of_key: Any, mask: tuple[int, ...] | None, tmp_path: Path) -> None:
    added = None if mask is None else constant(np.random.default_rng(4).standard_normal(mask))
    found, attention = _made(lambda x: _attended(x, of_query, of_key, added), tmp_path, atol=2e-3)
    assert attention is not None and _type_of(attention, tmp_path) == onnx.TensorProto.FLOAT
    assert not {"Attention", "FakeQuantize", "DequantizeLinear", "Softmax"} & {*found}


def test_quantized_results(tmp_path: Path) -> None:
    found, attention = _made(lambda x: product(quantized(_attended(x, _before, _after))), tmp_path)
    assert attention is not None and _type_of(attention, tmp_path) == onnx.TensorProto.UINT8
    assert found.count("QuantizeLinear") == 3  # of the input, the query and the key


def test_a_result_that_is_used_twice_is_floats(tmp_path: Path) -> None:
    def build(x: Any) -> Any:
        rows = _attended(x, _before, _before)
        return ops.concat([product(quantized(rows)), rows], 2)

    _, attention = _made(build, tmp_path)
    assert attention is not None and _type_of(attention, tmp_path) == onnx.TensorProto.FLOAT


def _limits_of_heads(rows: Any) -> Any:
    top = np.array([2.0, 3, 4]).reshape(1, HEADS, 1, 1)
    return quantized(_heads(rows), -top, top * 127 / 128)


def _no_zero(rows: Any) -> Any:
    """No level is near zero."""
    return quantized(_heads(rows), -2.9999, 3.01)


def _16_bits(rows: Any) -> Any:
    return quantized(_heads(rows), -3.0, 3.0, 65535)


@pytest.mark.parametrize("near", [_heads, _limits_of_heads, _no_zero, _16_bits])
@pytest.mark.parametrize("place", ["query", "key"])
def test_near_misses(near: Callable[[Any], Any], place: str, tmp_path: Path) -> None:
    both = (near, _before) if place == "query" else (_before, near)
    assert _made(lambda x: _attended(x, *both), tmp_path, atol=2e-3)[1] is None


@pytest.mark.parametrize("option", [{"quantized": "float"}, {"opset": 20}, {"contrib": False}], ids=str)
def test_options(option: dict[str, Any], tmp_path: Path) -> None:
    """Only files with operators of the domain and of ONNX Runtime contain it."""
    assert _made(lambda x: _attended(x, _before, _before), tmp_path, atol=2e-3, **option)[1] is None


FACTORS = np.linspace(0.3, 2, WIDTH)


def _smoothed(factors: np.ndarray, build: Callable[[Any, Any], Any] = lambda scaled, rows: scaled) -> Callable[[Any], Any]:
    def made(x: Any) -> Any:
        rows = _attended(x, _before, _before)
        return build(product(quantized(ops.multiply(rows, constant(factors)))), rows)

    return made


@pytest.mark.parametrize("factors", [FACTORS, FACTORS.reshape(1, 1, -1), np.array(0.7)], ids=np.shape)
def test_factors_of_smooth_quant(factors: np.ndarray, tmp_path: Path) -> None:
    """They become part of the projection of the values, or of the scale."""
    found, attention = _made(_smoothed(factors), tmp_path)
    assert attention is not None and _type_of(attention, tmp_path) == onnx.TensorProto.UINT8
    assert not {"Mul", "Elementwise"} & {*found}


def _of_rows(x: Any) -> Any:
    factors = np.linspace(0.5, 2, TOKENS).reshape(1, -1, 1)
    return product(quantized(ops.multiply(_attended(x, _before, _before), constant(factors))))


def _zero(x: Any) -> Any:
    return _smoothed(np.where(np.arange(WIDTH) == 3, 0.0, FACTORS))(x)


def _used_twice(x: Any) -> Any:
    return _smoothed(FACTORS, lambda scaled, rows: ops.concat([scaled, rows], 2))(x)


@pytest.mark.parametrize("near", [_of_rows, _zero, _used_twice])
def test_near_misses_of_factors(near: Callable[[Any], Any], tmp_path: Path) -> None:
    _, attention = _made(near, tmp_path)
    assert attention is not None and _type_of(attention, tmp_path) == onnx.TensorProto.FLOAT


def _by_batch(
    x: Any, heads: tuple[int, ...], mask: Any = None, of_key: Callable[[Any], Any] = lambda k: quantized(k, *LIMITS)
) -> Any:
    """Build attention of ``[*heads, tokens, size]``, without transposed heads."""

    def split(seed: int) -> Any:
        return ops.reshape(_rows(x, seed), constant(np.array([*heads, TOKENS, SIZE])), False)

    scores = ops.matmul(quantized(split(1), *LIMITS), of_key(split(2)), False, True)
    scores = scores if mask is None else ops.add(scores, mask)
    return ops.matmul(ops.softmax(scores, -1), split(3), False, False)


@pytest.mark.parametrize("heads", [(2, HEADS), (1, 6), (3, 1, 2)], ids=str)
@pytest.mark.parametrize("mask", [None, "whole", "shared"])
def test_heads_before_tokens(heads: tuple[int, ...], mask: str | None, tmp_path: Path) -> None:
    """Each head is a batch of one head. The file has no transposed keys."""
    rng = np.random.default_rng(4)
    added = {
        None: None,
        "whole": rng.standard_normal((*heads, TOKENS, TOKENS)),
        "shared": rng.standard_normal((1, TOKENS)),
    }[mask]
    given = None if added is None else constant(added)
    found, attention = _made(lambda x: _by_batch(x, heads, given), tmp_path, atol=2e-3)
    assert attention is not None and not {"Transpose", "Softmax"} & {*found}


@pytest.mark.parametrize(
    ("heads", "mask", "of_key"),
    [
        ((2, HEADS), (1, HEADS, 1, TOKENS), None),  # the mask has only some of the dimensions
        ((2, HEADS), (2, 1, TOKENS, TOKENS), None),
        ((1, 2, HEADS), None, lambda k: k),  # only the queries are quantized
    ],
    ids=["heads", "batch", "floats"],
)
def test_near_misses_of_heads_before_tokens(heads: Any, mask: Any, of_key: Any, tmp_path: Path) -> None:
    added = None if mask is None else constant(np.random.default_rng(4).standard_normal(mask))
    options = {} if of_key is None else {"of_key": of_key}
    assert _made(lambda x: _by_batch(x, heads, added, **options), tmp_path, atol=2e-3)[1] is None


def test_keys_of_another_batch(tmp_path: Path) -> None:
    """Keys that broadcast are not batches of one head."""

    def build(x: Any) -> Any:
        first = ops.reduce_mean(_rows(x, 2), constant(np.array([0])), True)
        keys = ops.reshape(first, constant(np.array([1, HEADS, TOKENS, SIZE])), False)
        return _by_batch(x, (2, HEADS), None, lambda k: quantized(keys, *LIMITS))

    assert _made(build, tmp_path, atol=2e-3)[1] is None
