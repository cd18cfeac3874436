"""Attention with a cache becomes GroupQueryAttention if its attributes can represent it; near misses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from openvino import opset13 as ops

from tests.converters.passes.language_models import agrees, floats, layer, runs

GIVEN = runs(5, 1, 1)
KERNELS = ["native", "python", "none"]


def times(*factors: float) -> Callable[[Any, Any], Any]:
    def change(x: Any, _: Any) -> Any:
        for factor in factors:
            x = ops.multiply(x, floats(factor))
        return x

    return change


def capped(scale: float, softcap: float) -> Callable[[Any, Any], Any]:
    return lambda x, _: ops.multiply(ops.tanh(ops.multiply(x, floats(scale))), floats(softcap))


def divided(*divisors: float) -> Callable[[Any, Any], Any]:
    def change(x: Any, _: Any) -> Any:
        for divisor in divisors:
            x = ops.divide(x, floats(divisor))
        return x

    return change


@pytest.mark.parametrize("kernels", KERNELS)
@pytest.mark.parametrize("cache", ["float32", "float16"])
@pytest.mark.parametrize(
    ("products", "grouped"),
    [
        (times(0.3), 1),
        (times(-0.3), 1),
        (times(1e-37), 1),
        (times(1e-20, 1e-17), 1),
        (divided(4.0, -0.5), 1),
        (capped(0.1, 5.0), 1),
        (capped(0.1, -5.0), 1),
        (capped(-0.1, 5.0), 1),
        (times(0.0), 0),  # GroupQueryAttention interprets 0 as 1 / sqrt(head size)
        (times(1e-40), 0),
        (times(1e-20, 1e-20), 0),
        (times(1e25, 1e25, 1e-30, 1e-20), 0),  # infinite scores
        (capped(0.1, 0.0), 0),  # GroupQueryAttention interprets 0 as no softcap
        (capped(0.0, 5.0), 0),
        (capped(1e-30, 1e-30), 0),
        (divided(1e-39, 1e38), 0),
    ],
)
def test_scales_and_softcaps(products: Any, grouped: int, cache: Any, kernels: Any) -> None:
    decoder = agrees(layer(products=products), GIVEN, kernels=kernels, kv_cache=cache)
    assert decoder.grouped == grouped
    assert grouped or "its attention scores are multiplied by " in " ".join(decoder.kept)


@pytest.mark.parametrize("factor", [0.5, 1e-25])
def test_a_scaled_query(factor: float) -> None:
    """Two factors whose product is 1: one stays."""
    products = times(1e-25 if factor == 1e-25 else 0.5)
    decoder = agrees(layer(query=times(factor), products=products), GIVEN)
    assert decoder.grouped == 1


@pytest.mark.parametrize(
    ("size", "cache", "grouped"), [(24, "float32", 1), (20, "float32", 0), (20, "float16", 1), (5, "uint8", 1)]
)
@pytest.mark.parametrize("kernels", KERNELS)
def test_sizes_of_heads(size: int, cache: Any, grouped: int, kernels: Any) -> None:
    decoder = agrees(layer(size=size), GIVEN, kernels=kernels, kv_cache=cache)
    assert decoder.grouped == grouped
    assert grouped or list(decoder.kept) == ["its heads have 20 elements, no multiple of 8 as ONNX Runtime takes them"]
