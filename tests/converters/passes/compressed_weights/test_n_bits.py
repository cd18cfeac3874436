"""Compressed weights as MatMulNBits: where it is equivalent, and where not."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

from converters.passes.compressed_weights.codes import pack
from converters.passes.compressed_weights.n_bits import ConvertToMatMulNBits
from onnx_specops.building import Value
from tests.converters.passes.graphs import floats, rewritten

D = ir.DataType
N, K = 6, 96


def _random(*shape: int) -> np.ndarray:
    return np.asarray(np.random.default_rng(sum(shape)).standard_normal(shape), np.float32)


def _codes(bits: int, n: int = N, k: int = K) -> np.ndarray:
    codes = np.random.default_rng(bits).integers(0, 1 << bits, (n, k), np.uint8)
    return codes if bits == 8 else pack(codes.reshape(-1), bits).reshape(n, -1)


def _product(op, x: Value, codes: Any, *more: Any, **attributes: Any) -> Value:
    attributes = {"N": N, "K": K, "block_size": 32, **attributes}
    numbers = [None if value is None else op.const(value) for value in (codes, *more)]
    return op.specops.MatMulCompressed(x, *numbers, **attributes)


_ZEROS = np.random.default_rng(7).integers(0, 16, (N, 3), np.uint8)
_SIGNED = (_ZEROS.astype(np.int8) - 8).astype(np.int8)


@pytest.mark.parametrize(
    ("emit", "found"),
    [
        (lambda op, x: _product(op, x, _codes(8), _random(N, 3)), True),
        (lambda op, x: _product(op, x, _codes(8).view(np.int8), _random(N, 3)), True),
        (lambda op, x: _product(op, x, _codes(8), _random(N, 3), _ZEROS), True),
        (lambda op, x: _product(op, x, _codes(8).view(np.int8), _random(N, 3), _SIGNED), True),
        (lambda op, x: _product(op, x, _codes(8), _random(N, 3), _random(N, 3)), False),  # zero points of floats
        (lambda op, x: _product(op, x, _codes(8), _random(N, 3), _ZEROS.view(np.int8)), True),
        (lambda op, x: _product(op, x, _codes(8), _random(N, 3), _SIGNED), False),  # some are negative
        (lambda op, x: _product(op, x, _codes(8).view(np.int8), _random(N, 3), _ZEROS * 8), True),
        (lambda op, x: _product(op, x, _codes(8).view(np.int8), _random(N, 3), _ZEROS * 16), False),  # some exceed 127
        (lambda op, x: _product(op, x, _codes(4), _random(N, 3), packed="uint4"), True),
        (lambda op, x: _product(op, x, _codes(4), _random(N, 3), packed="int4"), True),
        (lambda op, x: _product(op, x, _codes(4), _random(N, 3), _ZEROS, packed="uint4"), True),
        (lambda op, x: _product(op, x, _codes(4), _random(N, 3), _SIGNED, packed="int4"), True),
        (lambda op, x: _product(op, x, _codes(4), _random(N, 1), packed="int4", block_size=K), True),  # repeated
        (lambda op, x: _product(op, x, _codes(4), _random(1, 1), packed="int4", block_size=K), True),
        (lambda op, x: _product(op, x, _codes(4), None, packed="int4", block_size=K), True),
        (lambda op, x: _product(op, x, _codes(4), _random(N, 2), packed="int4", block_size=48), True),  # 16 divides 48
        (lambda op, x: _product(op, x, _codes(4), _random(N, 2), _ZEROS[:, 1:], packed="uint4", block_size=48), True),
        (lambda op, x: _product(op, x, _codes(4), _random(N, 4), packed="int4", block_size=24), False),
        (lambda op, x: _product(op, x, _codes(4), _random(N, 12), packed="int4", block_size=8), False),
        (lambda op, x: _product(op, x, _codes(4), _random(N, 2), packed="int4", block_size=64), False),  # 64 + 32
        (lambda op, x: _product(op, x, _codes(2), _random(N, 3), packed="uint2"), False),
        (lambda op, x: _product(op, x, _codes(4), _random(N, 3), None, _random(16), packed="uint4"), False),  # a codebook
        (lambda op, x: _product(op, x, _codes(8), _random(N, 3), activations="int8"), False),
        (lambda op, x: _product(op, x, _codes(8, K, N), _random(3, N), transB=0), False),
        (lambda op, x: _product(op, x, _random(N, K).astype(np.float16), None), False),
        (lambda op, x: _product(op, x, np.stack([_codes(8)] * 2), _random(N, 3)), False),  # two matrices
    ],
)
def test_conditions(emit: Any, found: bool) -> None:
    operators = rewritten(emit, floats("x", 3, K), by=[ConvertToMatMulNBits()], atol=2e-3)
    assert ("MatMulNBits" in operators) is found
    assert ("MatMulCompressed" in operators) is not found


@pytest.mark.parametrize(("largest", "found"), [(127, True), (128, False)])
def test_transposed_zero_points(largest: int, found: bool) -> None:
    """Transposes of large constants are not folded."""
    n, blocks = 1024, 6
    zeros = np.full((blocks, n), largest, np.uint8)

    def emit(op, x):
        codes = _codes(8, n).view(np.int8)
        return op.specops.MatMulCompressed(
            x, codes, _random(n, blocks), op.Transpose(op.const(zeros), perm=[1, 0]), N=n, K=K, block_size=16
        )

    operators = rewritten(emit, floats("x", 3, K), by=[ConvertToMatMulNBits()], atol=0.1)
    assert ("MatMulNBits" in operators) is found


def test_a_run_time_matrix_stays() -> None:
    def emit(op, x):
        return op.specops.MatMulCompressed(x, op.Cast(op.Floor(op.Abs(x)), to=D.UINT8), N=N, K=K, block_size=K)

    assert "MatMulCompressed" in rewritten(emit, floats("x", N, K), by=[ConvertToMatMulNBits()], atol=1e-3)


@pytest.mark.parametrize("function", ["none", "gelu"])
def test_the_bias_and_the_function_follow(function: str) -> None:
    def emit(op, x):
        return _product(op, x, _codes(4), _random(N, 3), None, None, _random(N), packed="int4", function=function)

    operators = rewritten(emit, floats("x", 2, 3, K), by=[ConvertToMatMulNBits()], atol=2e-3)
    assert ("Gelu" in operators) is (function == "gelu") and "Add" in operators and "MatMulNBits" in operators
