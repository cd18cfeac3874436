"""Chains of element-wise nodes in one pass."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

from converters.passes.elementwise import FuseElementwise
from converters.passes.simplification import MergeDataMovement
from onnx_specops.building import Value, new_value
from tests.converters.passes.graphs import floats, graph, rewritten

DIMS = (2, 8, 12, 12)
ONE = ["Elementwise"]
BYTES = np.random.default_rng(0).integers(0, 256, DIMS).astype(np.uint8)


def numbers(*dims: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(dims).astype(np.float32)


def column(size: int = 8) -> np.ndarray:
    return numbers(size, 1, 1)


def quantized(op: Any, x: Value, zero: Any = 100, scale: Any = 1 / 32) -> Value:
    result: Value = op.QuantizeLinear(x, np.asarray(scale, np.float32), np.asarray(zero, np.uint8))
    return result


def floats_of(op: Any, x: Value, zero: Any = 100) -> Value:
    result: Value = op.DequantizeLinear(x, np.float32(1 / 32), np.asarray(zero, np.uint8))
    return result


def by_pass(emit: Callable[..., Any], *inputs: Value, **options: Any) -> list[str]:
    return rewritten(emit, *inputs, by=[FuseElementwise()], share=2e-3, **options)


FUNCTIONS: dict[str, Callable[[Any, Value], Value]] = {
    "Relu": lambda op, x: op.Relu(x),
    "Sigmoid": lambda op, x: op.Sigmoid(x),
    "Gelu": lambda op, x: op.Gelu(x),
    "Elu": lambda op, x: op.Elu(x),
    "Mish": lambda op, x: op.Mish(x),
    "LeakyRelu": lambda op, x: op.LeakyRelu(x, alpha=0.3),
    "PRelu": lambda op, x: op.PRelu(x, column()),
    "HardSigmoid": lambda op, x: op.HardSigmoid(x, alpha=0.3, beta=0.4),
    "HardSwish": lambda op, x: op.HardSwish(x),
    "Clip": lambda op, x: op.Clip(x, np.float32(-0.5), np.float32(1)),
    "Pow": lambda op, x: op.Pow(x, np.full([1, 1, 1, 1], 2, np.float32)),
    "Pow of an integer": lambda op, x: op.Pow(x, np.int64(2)),
    "Gelu with tanh": lambda op, x: op.Gelu(x, approximate="tanh"),
    "Clip below": lambda op, x: op.Clip(x, None, np.float32(1)),
    "Min": lambda op, x: op.Min(x, np.float32(0.5)),
    "Max": lambda op, x: op.Max(x, np.float32(0.5)),
    "Div": lambda op, x: op.Div(x, np.float32(0.7)),
    "Sub": lambda op, x: op.Sub(np.float32(0.7), x),
}


@pytest.mark.parametrize("function", FUNCTIONS)
def test_functions(function: str) -> None:
    assert by_pass(lambda op, x: FUNCTIONS[function](op, op.Mul(x, column())), floats("x", *DIMS)) == ONE
    assert by_pass(lambda op, x: quantized(op, FUNCTIONS[function](op, x)), floats("x", *DIMS)) == ONE


@pytest.mark.parametrize(
    ("emit", "found"),
    [
        (lambda op, x: op.Elu(op.Mul(x, column()), alpha=0.5), ["Elu", "Mul"]),
        (lambda op, x: op.Pow(op.Mul(x, column()), np.float32(3)), ["Mul", "Pow"]),
        (lambda op, x: op.Pow(op.Mul(x, column()), np.linspace(1, 2, 12, dtype=np.float32)), ["Mul", "Pow"]),
        (lambda op, x: op.Pow(op.Mul(x, column()), np.full([1] * 5, 2, np.float32)), ["Mul", "Pow"]),
        (lambda op, x: op.ReduceMean(op.Pow(op.Mul(x, column()), np.float32(2)), [-1]), ["Mul", "Pow", "ReduceMean"]),
        (lambda op, x: op.Tanh(op.Mul(x, column())), ["Mul", "Tanh"]),
        (lambda op, x: op.Clip(op.Mul(x, column()), op.ReduceMin(x, keepdims=0)), ["Clip", "Mul", "ReduceMin"]),
        (lambda op, x: op.Relu(x), ["Relu"]),
        (lambda op, x: quantized(op, x), ["QuantizeLinear"]),
        (lambda op, x: op.Max(op.Mul(x, column()), x, np.float32(0.5)), ["Max", "Mul"]),
    ],
)  # fmt: skip
def test_nodes_that_stay(emit: Callable[..., Any], found: list[str]) -> None:
    assert by_pass(emit, floats("x", *DIMS)) == found


def test_sizes() -> None:
    def emit(op: Any, x: Value) -> Any:
        return op.Relu(op.Mul(x, np.float32(2)))

    assert by_pass(emit, floats("x", 2048)) == ONE
    assert by_pass(emit, floats("x", 2047)) == ["Mul", "Relu"]
    assert by_pass(emit, floats("x", None, 2048)) == ["Mul", "Relu"]


def test_types() -> None:
    def emit(op: Any, x: Value) -> Any:
        return op.Relu(op.Mul(x, x))

    for type_ in (ir.DataType.DOUBLE, ir.DataType.FLOAT16):
        assert not FuseElementwise()(graph(emit, new_value(type_, DIMS, "x"))).modified


@pytest.mark.parametrize(
    ("emit", "found"),
    [
        (lambda op, x: quantized(op, op.Relu(x), zero=[3] * 8, scale=[1 / 32] * 8), ["QuantizeLinear", "Relu"]),
        (lambda op, x: op.QuantizeLinear(op.Relu(x), np.float32(1 / 32), np.int8(3)), ["QuantizeLinear", "Relu"]),
        (lambda op, x: op.QuantizeLinear(op.Relu(x), np.float32(1 / 32), np.uint16(3)), ["QuantizeLinear", "Relu"]),
        (lambda op, x: op.QuantizeLinear(op.Relu(op.Mul(x, x)), np.float32(1 / 32)), ["Elementwise", "QuantizeLinear"]),
    ],
)
def test_quantizations_that_stay(emit: Callable[..., Any], found: list[str]) -> None:
    assert by_pass(emit, floats("x", *DIMS)) == found


@pytest.mark.parametrize(
    ("emit", "found"),
    [
        # Another consumer of the first result.
        (lambda op, x: [(first := op.Mul(x, column())), op.Relu(first)], ["Mul", "Relu"]),
        (lambda op, x: op.Concat(first := op.Mul(x, column()), op.Relu(first), axis=1), ["Concat", "Mul", "Relu"]),
        # All consumers are within the chain.
        (lambda op, x: op.Mul(first := op.Mul(x, column()), op.Sigmoid(first)), ONE),
        # The first result is broadcast.
        (lambda op, x: op.Relu(op.Mul(op.Slice(x, [0], [1], [0]), numbers(2, 1, 1, 1))), ["Elementwise", "Slice"]),
        (lambda op, x: op.Add(x, op.Relu(op.Slice(x, [0], [1], [0]))), ["Add", "Relu", "Slice"]),
    ],
)
def test_consumers_and_shapes(emit: Callable[..., Any], found: list[str]) -> None:
    assert by_pass(emit, floats("x", *DIMS)) == found


def test_numbers_of_a_smaller_shape_may_be_computed() -> None:
    def emit(op: Any, x: Value) -> Any:
        return op.Add(op.Mul(x, op.ReduceMean(x, [2, 3])), x)

    assert by_pass(emit, floats("x", *DIMS)) == ["Elementwise", "ReduceMean"]


@pytest.mark.parametrize(
    ("emit", "found"),
    [
        (lambda op, a, b: op.Add(a, b), ["Add", "DequantizeLinear", "DequantizeLinear", "QuantizeLinear"]),
        (lambda op, a, b: op.Mul(a, b), ["DequantizeLinear", "DequantizeLinear", "Mul", "QuantizeLinear"]),
        (lambda op, a, b: op.Sub(a, b), ONE),  # ONNX Runtime has no integer kernel
        (lambda op, a, b: op.Relu(op.Add(a, b)), ONE),
        (lambda op, a, b: op.Add(op.Add(a, b), column()), ONE),
        (lambda op, a, _: op.LeakyRelu(a), ["DequantizeLinear", "LeakyRelu", "QuantizeLinear"]),
        (lambda op, a, _: op.Sigmoid(a), ["DequantizeLinear", "QuantizeLinear", "Sigmoid"]),
        (lambda op, a, _: op.Gelu(a), ONE),
    ],
)
def test_between_integers(emit: Callable[..., Any], found: list[str]) -> None:
    def build(op: Any, a: Value, b: Value) -> Any:
        return quantized(op, emit(op, floats_of(op, a), floats_of(op, b, 90)), scale=1 / 8)

    given = [BYTES, BYTES[::-1]]
    inputs = [new_value(ir.DataType.UINT8, DIMS, name) for name in ("a", "b")]
    assert by_pass(build, *inputs, numbers=given, atol=1.01 if found == ONE else 1e-5) == found


@pytest.mark.parametrize(
    ("zero", "emit", "found"),
    [
        (0, lambda op, x: op.Relu(x), ["Add", "DequantizeLinear", "DequantizeLinear", "QuantizeLinear", "Relu"]),
        (100, lambda op, x: op.Relu(x), ONE),
        (0, lambda op, x: op.Gelu(x), ONE),
        (0, lambda op, x: op.Relu(op.Mul(x, np.float32(0.5))), ONE),
    ],
)
def test_a_relu_that_the_quantization_implies(zero: int, emit: Callable[..., Any], found: list[str]) -> None:
    def build(op: Any, a: Value, b: Value) -> Any:
        return quantized(op, emit(op, op.Add(floats_of(op, a), floats_of(op, b))), zero, 1 / 8)

    inputs = [new_value(ir.DataType.UINT8, DIMS, name) for name in ("a", "b")]
    assert by_pass(build, *inputs, numbers=[BYTES, BYTES[::-1]], atol=1.01) == found


def test_integers_that_others_read_too_are_dequantized_again() -> None:
    def build(op: Any, a: Value) -> Any:
        x = floats_of(op, a)
        return [op.Relu(op.Mul(x, column())), op.ReduceMean(x, [1])]

    found = by_pass(build, new_value(ir.DataType.UINT8, DIMS, "a"), numbers=[BYTES])
    assert found == ["DequantizeLinear", "Elementwise", "ReduceMean"]


@pytest.mark.parametrize(
    ("function", "found"),
    [
        (lambda op, x: op.Mul(op.Relu(x), column(6)), ["Conv", "Mul", "Relu"]),  # ONNX Runtime fuses both with the Conv
        (lambda op, x: op.Mul(op.Gelu(x), column(6)), ["Conv", "Elementwise"]),
        (lambda op, x: op.Add(op.Mul(op.Relu(x), column(6)), column(6)), ["Conv", "Elementwise", "Relu"]),
    ],
)
def test_functions_of_convolutions(function: Callable[..., Any], found: list[str]) -> None:
    def emit(op: Any, x: Value) -> Any:
        return function(op, op.Conv(x, numbers(6, 8, 1, 1)))

    assert by_pass(emit, floats("x", 4, 8, 12, 12)) == found


def test_ten_operands_at_most() -> None:
    def emit(count: int) -> Callable[..., Any]:
        def build(op: Any, x: Value) -> Any:
            for seed in range(count):
                x = op.Add(x, numbers(8, 1, 1, seed=seed))
            return x

        return build

    assert by_pass(emit(9), floats("x", *DIMS)) == ONE
    assert by_pass(emit(10), floats("x", *DIMS)) == ["Add", "Elementwise"]


LAST, FIRST = [0, 2, 3, 1], [0, 3, 1, 2]


@pytest.mark.parametrize(
    ("emit", "found"),
    [
        # Channels are last before and after the chain.
        (lambda op, x: op.Transpose(op.Relu(op.Mul(op.Transpose(x, perm=FIRST), column(12))), perm=LAST), ONE),
        # Only before it, only after it, and through nodes that a Transpose moves through.
        (lambda op, x: op.Relu(op.Mul(op.Transpose(x, perm=FIRST), column(12))), ["Elementwise", "Transpose"]),
        (lambda op, x: op.Transpose(op.Relu(op.Mul(x, column())), perm=LAST), ["Elementwise", "Transpose"]),
        (lambda op, x: op.Relu(op.Mul(op.MaxPool(op.Transpose(x, perm=FIRST), kernel_shape=[1, 1]), column(12))),
         ["Elementwise", "MaxPool", "Transpose", "Transpose", "Transpose"]),
        # Another order.
        (lambda op, x: op.Relu(op.Mul(op.Transpose(x, perm=[0, 1, 3, 2]), column())), ["Elementwise", "Transpose"]),
        # A second operand.
        (lambda op, x: op.Relu(op.Mul(first := op.Transpose(x, perm=FIRST), op.ReduceMean(first, [2, 3]))),
         ["Elementwise", "ReduceMean", "Transpose", "Transpose", "Transpose"]),
    ],
)  # fmt: skip
def test_the_order_of_channels(emit: Callable[..., Any], found: list[str]) -> None:
    by = [FuseElementwise(), MergeDataMovement()]
    assert rewritten(emit, floats("x", *DIMS), by=by) == found


def test_the_numbers_of_channels_last() -> None:
    """Constants have fewer dimensions than the chain."""

    def emit(op: Any, x: Value) -> Any:
        return op.Transpose(op.Add(op.Mul(op.Transpose(x, perm=FIRST), column(12)), numbers(8, 12)), perm=LAST)

    assert rewritten(emit, floats("x", *DIMS), by=[FuseElementwise(), MergeDataMovement()]) == ONE


def _normalized(op: Any, x: Value, scale: np.ndarray, of: Value | None = None) -> Value:
    squares = op.ReduceMean(op.Pow(x if of is None else of, np.float32(2)), [-1], keepdims=1)
    result: Value = op.Mul(op.Div(x, op.Sqrt(op.Add(squares, np.float32(1e-6)))), scale)
    return result


def test_rms_normalizations() -> None:
    """ONNX Runtime fuses them."""
    scale, kept = numbers(12), ["Add", "Div", "Mul", "Pow", "QuantizeLinear", "ReduceMean", "Sqrt"]
    assert by_pass(lambda op, x: quantized(op, _normalized(op, x, scale)), floats("x", *DIMS)) == kept
    others: list[Callable[[Any, Value], Any]] = [
        lambda op, x: quantized(op, _normalized(op, x, scale, of=op.Exp(x))),  # the mean is of other numbers
        lambda op, x: quantized(op, _normalized(op, x, column())),  # one factor for each channel
    ]
    for emit in others:
        assert "Elementwise" in by_pass(emit, floats("x", *DIMS))
