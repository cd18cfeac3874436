"""Functions of images between convolutions, as depthwise convolutions of one pixel."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx_ir as ir
import pytest

from converters.passes.onnxruntime import KeepBlocks, fusion_guards
from onnx_specops.building import Builder, Value, new_value
from tests.converters.passes.graphs import floats, graph, rewritten

Emit = Callable[[Builder, Value], Value]
DIMS = (2, 32, 6, 5)


def numbers(*dims: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(dims).astype(np.float32)


FACTORS, TERMS = numbers(32, 1, 1), numbers(1, 32, 1, 1, seed=1)


def pool(op: Builder, x: Value) -> Value:
    pooled: Value = op.MaxPool(x, kernel_shape=[2, 2])
    return pooled


def convolution(op: Builder, x: Value, channels: int = 32, group: int = 1) -> Value:
    result: Value = op.Conv(x, numbers(32, channels // group, 1, 1, seed=2), group=group)
    return result


def between(emit: Emit) -> Emit:
    """Return a function that emits nodes between a pool and a convolution."""
    return lambda op, x: convolution(op, emit(op, pool(op, x)))


def by_pass(emit: Emit, *inputs: Value) -> list[str]:
    return rewritten(emit, *(inputs or (floats("x", *DIMS),)), by=[KeepBlocks()])


@pytest.mark.parametrize(
    ("emit", "found"),
    [
        (lambda op, x: op.Add(x, TERMS), ["Conv"]),
        (lambda op, x: op.Add(FACTORS, x), ["Conv"]),
        (lambda op, x: op.Mul(x, FACTORS), ["Conv"]),
        (lambda op, x: op.Relu(op.Add(x, TERMS)), ["Conv", "Relu"]),
        (lambda op, x: op.LeakyRelu(op.Add(x, TERMS)), ["Conv", "LeakyRelu"]),
        (lambda op, x: op.Add(op.Mul(x, FACTORS), TERMS), ["Conv"]),
        (lambda op, x: op.Relu(op.Add(TERMS, op.Mul(FACTORS, x))), ["Conv", "Relu"]),
        (lambda op, x: op.Add(op.Mul(x, x), TERMS), ["Add", "Mul"]),
        (lambda op, x: op.Sigmoid(op.Add(x, TERMS)), ["Add", "Sigmoid"]),  # not part of a convolution
        (lambda op, x: op.Add(x, numbers(1)), ["Add"]),
        (lambda op, x: op.Add(x, numbers(32, 1, 4)), ["Add"]),
        (lambda op, x: op.Add(x, numbers(2, 32, 1, 1)), ["Add"]),
        (lambda op, x: op.Sub(x, TERMS), ["Sub"]),
        (lambda op, x: op.Add(op.Sigmoid(x), TERMS), ["Add", "Sigmoid"]),  # no blocks before
    ],
)
def test_constants_of_channels(emit: Emit, found: list[str]) -> None:
    assert by_pass(between(emit)) == sorted([*found, "Conv", "MaxPool"])


def test_a_product_with_another_consumer() -> None:
    def emit(op: Builder, x: Value) -> Value:
        product = op.Mul(x, FACTORS)
        result: Value = op.Add(op.Add(product, TERMS), product)
        return result

    assert by_pass(between(emit)) == ["Add", "Add", "Conv", "MaxPool", "Mul"]


@pytest.mark.parametrize(
    ("emit", "found"),
    [
        (lambda op, x: op.LeakyRelu(op.Add(x, convolution(op, x)), alpha=0.3), ["Add", "Conv", "Conv", "LeakyRelu"]),
        (lambda op, x: op.LeakyRelu(op.Concat(x, x, axis=2)), ["Concat", "Conv", "LeakyRelu"]),
        (lambda op, x: op.LeakyRelu(convolution(op, x)), ["Conv", "LeakyRelu"]),  # part of it
        (lambda op, x: op.LeakyRelu(op.Sigmoid(x)), ["LeakyRelu", "Sigmoid"]),
        (lambda op, x: op.Sigmoid(op.LeakyRelu(op.Add(x, x))), ["Add", "LeakyRelu", "Sigmoid"]),
    ],
)
def test_leaky_relu(emit: Emit, found: list[str]) -> None:
    assert by_pass(between(emit)) == sorted([*found, "Conv", "MaxPool"])


@pytest.mark.parametrize(("channels", "group", "found"), [(32, 1, True), (32, 32, True), (32, 2, False), (24, 1, False)])
def test_channels(channels: int, group: int, found: bool) -> None:
    def emit(op: Builder, x: Value) -> Value:
        terms = numbers(channels, 1, 1, seed=3)
        return convolution(op, op.Add(pool(op, x), terms), channels, group)

    assert ("Add" not in by_pass(emit, floats("x", 1, channels, 4, 4))) is found


@pytest.mark.parametrize(("dims", "terms"), [((2, 32, 9), (32, 1)), ((2, 32, 4, 4, 4), (32, 1, 1, 1))])
def test_lines_and_volumes_stay(dims: tuple[int, ...], terms: tuple[int, ...]) -> None:
    def emit(op: Builder, x: Value) -> Value:
        result: Value = op.Conv(op.Add(op.Relu(x), numbers(*terms)), numbers(4, 32, *[1] * (len(dims) - 2)))
        return result

    assert by_pass(emit, floats("x", *dims)) == ["Add", "Conv", "Relu"]


def test_images_that_are_repeated_stay() -> None:
    emit = lambda op, x: convolution(op, op.Add(pool(op, x), TERMS))  # noqa: E731
    assert by_pass(emit, floats("x", 2, 1, 4, 4)) == ["Add", "Conv", "MaxPool"]


@pytest.mark.parametrize(
    ("dims", "found"),
    [((None, 32, 6, 5), True), ((1, 32, None, 5), False), ((1, 32, 6, None), False), ((1, 32, 1, 5), False)],
)
def test_sizes(dims: tuple[int | None, ...], found: bool) -> None:
    """A pool of one row has no pixels."""
    assert KeepBlocks()(graph(between(lambda op, x: op.Add(x, TERMS)), floats("x", *dims))).modified is found


def test_halves_stay() -> None:
    def emit(op: Builder, x: Value) -> Value:
        halves = op.Add(pool(op, x), TERMS.astype(np.float16))
        result: Value = op.Conv(halves, numbers(32, 32, 1, 1).astype(np.float16))
        return result

    assert not KeepBlocks()(graph(emit, new_value(ir.DataType.FLOAT16, DIMS, "x"))).modified


def test_numbers_that_are_not_finite() -> None:
    x = np.ones(DIMS, np.float32)
    x[0, :3, 0, 0] = np.inf, -np.inf, np.nan
    x[1, :2, :2, :2] = -np.inf
    factors = np.ones((32, 1, 1), np.float32)
    factors[1] = 0
    emit = lambda op, x: op.Relu(op.Add(op.Mul(pool(op, x), factors), TERMS))  # noqa: E731
    whole = lambda op, x: (lambda y: (y, convolution(op, y)))(emit(op, x))  # noqa: E731
    assert "Add" not in rewritten(whole, floats("x", *DIMS), by=[KeepBlocks()], numbers=[x])


@pytest.mark.parametrize("is_for_cpu", [True, False])
def test_other_devices(is_for_cpu: bool) -> None:
    """Only the CPU has blocks."""
    assert any(isinstance(step, KeepBlocks) for step in fusion_guards(21, is_for_cpu=is_for_cpu)) is is_for_cpu
