"""Biases of products become vectors, and ONNX Runtime fuses them into the product."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from converters.passes.biases import FlattenBiases
from tests.conformance.oracle import Oracle
from tests.converters.passes.agreement import FORMS, converted, operators, optimised
from tests.converters.passes.graphs import floats, graph, rewritten

RNG = np.random.default_rng(0)


def _numbers(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def _model(shape: list[int], weights: tuple[int, ...], bias: tuple[int, ...]):
    import openvino as ov
    from openvino import opset14 as ops

    x = ops.parameter(shape, np.float32)
    product = ops.matmul(x, ops.constant(_numbers(*weights)), False, False)
    return ov.Model([ops.add(ops.constant(_numbers(*bias)), product)], [x])


@pytest.mark.parametrize("form", FORMS)
def test_row_biases(form: str, oracle: Oracle, tmp_path: Path) -> None:
    model = converted(_model([2, 5, 12], (12, 6), (1, 1, 6)), [_numbers(2, 5, 12)], oracle, tmp_path, form)
    assert [6] in [list(initializer.dims) for initializer in model.graph.initializer]
    found = optimised(tmp_path / "model.onnx")
    assert "Gemm" in found and "Add" not in found


@pytest.mark.parametrize(
    ("weights", "bias"),
    [((12, 6), (1, 5, 6)), ((12, 6), (2, 1, 6)), ((12, 6), (1, 1, 1)), ((12, 1), (1, 1, 6)), ((12, 6), (1, 1, 1, 6))],
    ids=str,
)
def test_values_that_are_not_biases(weights, bias, oracle: Oracle, tmp_path: Path) -> None:
    model = converted(_model([2, 5, 12], weights, bias), [_numbers(2, 5, 12)], oracle, tmp_path)
    assert operators(model) == ["Add", "MatMul", *(["Unsqueeze"] if len(bias) > 3 else [])]
    assert list(bias) in [list(initializer.dims) for initializer in model.graph.initializer]


@pytest.mark.parametrize(
    ("bias", "weights", "flattened"),
    [
        ((1, 1, 6), (12, 6), True),
        ((1, 6), (12, 6), True),
        ((6,), (12, 6), False),  # it is a vector already
        ((), (12, 6), False),
        ((1,), (12, 1), False),
        ((1, 1, 6), (12, 1), False),  # it broadcasts the product
        ((1, 1, 1), (12, 6), False),
        ((1, 5, 6), (12, 6), False),
        ((1, 1, 1, 6), (12, 6), False),  # it adds a dimension
    ],
    ids=str,
)
@pytest.mark.parametrize("swapped", [False, True])
def test_conditions(bias: tuple[int, ...], weights: tuple[int, ...], flattened: bool, swapped: bool) -> None:
    def emit(op, x):
        product, added = op.MatMul(x, op.const(_numbers(*weights))), op.const(_numbers(*bias))
        return op.Add(added, product) if swapped else op.Add(product, added)

    assert rewritten(emit, floats("x", 2, 5, 12), by=[FlattenBiases()]) == ["Add", "MatMul"]
    model = graph(emit, floats("x", 2, 5, 12))
    assert FlattenBiases()(model).modified is flattened


def test_a_run_time_bias_is_unchanged() -> None:
    model = graph(lambda op, x, b: op.Add(op.MatMul(x, op.const(_numbers(12, 6))), b), floats("x", 5, 12), floats("b", 1, 6))
    assert not FlattenBiases()(model).modified


def test_a_product_with_another_consumer_is_unchanged() -> None:
    def emit(op, x):
        product = op.MatMul(x, op.const(_numbers(12, 6)))
        return op.Add(product, op.const(_numbers(1, 1, 6))), op.Relu(product)

    assert not FlattenBiases()(graph(emit, floats("x", 2, 5, 12))).modified
