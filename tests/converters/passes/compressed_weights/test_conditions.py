"""The products with compressed weights and the surrounding nodes that are fused, as ONNX graphs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import onnx_ir as ir
import pytest
from onnx_ir.passes.common import RemoveUnusedNodesPass

from converters.passes.compressed_weights import KeepWeightsCompressed
from onnx_specops.building import Value, constant_value
from tests.converters.passes.graphs import floats, graph, operators, rewritten

D = ir.DataType
RNG = np.random.default_rng(0)
CODES = RNG.integers(0, 256, (64, 96), np.uint8)


def _numbers(*shape: int) -> np.ndarray:
    return np.asarray(RNG.standard_normal(shape), np.float32)


def _weights(op, codes: np.ndarray = CODES, zero: Any = 128.0, scale: Any = None) -> Value:
    x = op.Cast(op.const(codes), to=D.FLOAT)
    x = x if zero is None else op.Sub(x, op.const(np.asarray(zero, np.float32)))
    scale = np.linspace(0.01, 0.02, codes.shape[-1], dtype=np.float32) if scale is None else np.asarray(scale, np.float32)
    return op.Mul(x, op.const(scale))


def _found(emit: Callable[..., Any], *dims: int) -> list[str]:
    return rewritten(emit, floats("x", *dims), by=[KeepWeightsCompressed()], atol=1e-3)


@pytest.mark.parametrize(
    ("dims", "emit", "found"),
    [
        ((3, 64), lambda op, x: op.MatMul(x, _weights(op)), True),
        ((2, 3, 64), lambda op, x: op.MatMul(x, _weights(op)), True),
        ((64,), lambda op, x: op.MatMul(x, _weights(op)), True),
        ((3, 96), lambda op, x: op.MatMul(x, op.Transpose(_weights(op), perm=[1, 0])), True),
        ((96, 3), lambda op, x: op.MatMul(_weights(op), x), True),
        ((3, 64), lambda op, x: op.MatMul(x, _weights(op, zero=_numbers(64, 1))), True),  # a block is one row in this case
        ((3, 64), lambda op, x: op.MatMul(x, _weights(op, zero=_numbers(64, 96))), True),
        ((3, 64), lambda op, x: op.MatMul(x, op.Neg(_weights(op))), False),
        ((3, 64), lambda op, x: op.MatMul(x, op.Sub(_weights(op), 1.0)), False),  # after the scale
        ((3, 64), lambda op, x: op.MatMul(x, op.Sub(1.0, op.Cast(op.const(CODES), to=D.FLOAT))), False),
        ((3, 64), lambda op, x: op.MatMul(x, op.Mul(_weights(op), 2.0)), False),  # two scales
        ((3, 64), lambda op, x: op.MatMul(x, _weights(op, CODES[:, :1], scale=_numbers(96))), False),  # a broadcast row
        # columns that are not columns of the matrix
        ((3, 96), lambda op, x: op.MatMul(x, op.Reshape(_weights(op), [96, 64])), False),
    ],
)
def test_products(dims: tuple[int, ...], emit: Callable[..., Value], found: bool) -> None:
    assert ("MatMulCompressed" in _found(emit, *dims)) is found


@pytest.mark.parametrize("computed", [False, True])
def test_zero_points_of_four_bits(computed: bool) -> None:
    """A computed zero point has no elements when the passes run."""
    zeros = RNG.integers(0, 16, (96, 1), np.uint8).astype(ml_dtypes.uint4)

    def emit(op, x: Value) -> Value:
        zero = op.Transpose(op.const(zeros), perm=[1, 0]) if computed else op.const(zeros.T)
        codes = op.Sub(op.Cast(op.const(CODES), to=D.FLOAT), op.Cast(zero, to=D.FLOAT))
        return op.MatMul(x, op.Mul(codes, op.const(np.full(96, 0.01, np.float32))))

    assert "MatMulCompressed" in _found(emit, 3, 64)


def _product(op, x: Value, scaled: bool = True) -> Value:
    return op.MatMul(x, _weights(op) if scaled else op.Sub(op.Cast(op.const(CODES), to=D.FLOAT), 128.0))


@pytest.mark.parametrize(
    ("emit", "left"),
    [
        (lambda op, x: op.Add(_product(op, x), _numbers(96)), []),
        (lambda op, x: op.Add(_numbers(1, 96), _product(op, x)), []),
        (lambda op, x: op.Add(_product(op, x), 2.0), ["Add"]),
        (lambda op, x: op.Add(_product(op, x), _numbers(3, 1)), ["Add"]),
        (lambda op, x: op.Add(_product(op, x), _numbers(3, 96)), ["Add"]),
        (lambda op, x: op.Add(_product(op, x), _numbers(1, 1, 96)), ["Add"]),  # it adds a dimension
        (lambda op, x: op.Add(_product(op, x), op.ReduceMax(x, keepdims=0)), ["Add", "ReduceMax"]),
        (lambda op, x: op.Add(y := _product(op, x), y), ["Add"]),
        (lambda op, x: op.Gelu(op.Add(_product(op, x), _numbers(96))), []),
        (lambda op, x: op.Gelu(_product(op, x)), []),
        (lambda op, x: op.Gelu(_product(op, x), approximate="tanh"), ["Gelu"]),
        (lambda op, x: op.Add(op.Gelu(_product(op, x)), _numbers(96)), ["Add"]),  # after the function
        (lambda op, x: op.Mul(_product(op, x, scaled=False), 0.25), []),
        (lambda op, x: op.Mul(_product(op, x), 0.25), ["Mul"]),  # it has a scale
        (lambda op, x: op.Mul(_product(op, x, scaled=False), _numbers(96)), ["Mul"]),
        (lambda op, x: op.Mul(op.Add(_product(op, x, scaled=False), _numbers(96)), 0.25), ["Mul"]),  # after the bias
        (lambda op, x: op.Add(op.Mul(_product(op, x, scaled=False), 0.25), _numbers(96)), []),
        (lambda op, x: [op.Add(y := _product(op, x), _numbers(96)), op.Relu(y)], ["Add", "Relu"]),
        (lambda op, x: [op.Gelu(y := op.Add(_product(op, x), _numbers(96))), y], ["Gelu"]),
    ],
)
def test_following_nodes(emit: Callable[..., Any], left: list[str]) -> None:
    assert _found(emit, 3, 64) == sorted(["MatMulCompressed", *left])


@pytest.mark.parametrize("overridable", [False, True])
def test_a_factor_that_a_caller_can_replace_stays(overridable: bool) -> None:
    quarter = constant_value(np.float32(0.25), name="quarter")
    model = graph(lambda op, x: op.Mul(_product(op, x, scaled=False), quarter), floats("x", 3, 64))
    if overridable:
        model.graph.inputs.append(quarter)
    KeepWeightsCompressed()(model)
    RemoveUnusedNodesPass()(model)
    assert operators(model) == sorted(["MatMulCompressed", *(["Mul"] if overridable else [])])


@pytest.mark.parametrize("indices", [[0, 63, 5], [-1, -64, 2]], ids=str)
@pytest.mark.parametrize(
    ("emit", "gathered"),
    [
        (lambda op, x, i: op.Gather(_weights(op), i), True),
        (lambda op, x, i: op.Gather(_weights(op, zero=np.arange(64).reshape(64, 1)), i), True),
        (lambda op, x, i: op.Gather(op.Transpose(_weights(op, scale=0.5), perm=[1, 0]), i), False),
        (lambda op, x, i: op.Gather(_weights(op, scale=0.5), i, axis=1), False),
    ],
)
def test_rows(emit: Callable[..., Value], gathered: bool, indices: list[int]) -> None:
    """Rows are gathered first, and decompressed afterwards."""

    def whole(op, x):
        return op.Add(emit(op, x, op.const(np.array(indices))), op.ReduceMax(x, keepdims=0))

    _found(whole, 3)
    model = graph(whole, floats("x", 3))
    KeepWeightsCompressed()(model)
    fetched = [node.inputs[0].dtype for node in model.graph if node.op_type == "Gather" and node.inputs[0] is not None]
    assert (D.UINT8 in fetched) is gathered


@pytest.mark.parametrize(
    ("emit", "found"),
    [
        (lambda op, x, w: op.MatMul(x, op.Transpose(op.const(w), perm=[1, 0])), True),
        (lambda op, x, w: op.MatMul(x, op.const(w)), True),
        (lambda op, x, w: op.MatMul(x, op.Transpose(op.const(w[1:]), perm=[1, 0])), False),  # below 1 MiB
        (lambda op, x, w: op.MatMul(x, op.const(w.reshape(1, 512, 512))), False),  # a batch
        (lambda op, x, w: op.MatMul(x, op.Transpose(op.Neg(op.const(w)), perm=[1, 0])), False),
        (lambda op, x, w: op.MatMul(op.const(w), op.Transpose(x, perm=[1, 0])), False),  # on the left
    ],
)
def test_float32_weights(emit: Callable[..., Value], found: bool) -> None:
    weights = _numbers(512, 512)
    for floats_too in (True, False):
        by = [KeepWeightsCompressed(floats=floats_too)]
        names = rewritten(lambda op, x: emit(op, x, weights), floats("x", 3, 512), by=by, atol=1e-3)
        assert ("MatMulCompressed" in names) is (found and floats_too)


@pytest.mark.parametrize("transposed", [False, True])
def test_float32_weights_in_the_layout_of_the_file(transposed: bool) -> None:
    """Without transposed constants, only weights that are stored column by column are used."""
    weights = _numbers(512, 512)

    def emit(op, x: Value) -> Value:
        return op.MatMul(x, op.Transpose(op.const(weights), perm=[1, 0]) if transposed else op.const(weights))

    names = rewritten(emit, floats("x", 3, 512), by=[KeepWeightsCompressed(floats=True, fold=False)], atol=1e-3)
    assert ("MatMulCompressed" in names) is transposed


@pytest.mark.parametrize("following", ["Mul", "Add"])
def test_what_follows_float32_weights(following: str) -> None:
    """A factor stays separate, because weights without scales are faster. A bias becomes part of the product."""
    weights, bias = _numbers(512, 512), _numbers(512)

    def emit(op, x: Value) -> Value:
        product = op.MatMul(x, op.Transpose(op.const(weights), perm=[1, 0]))
        return op.Mul(product, 0.5) if following == "Mul" else op.Add(product, op.const(bias))

    names = rewritten(emit, floats("x", 3, 512), by=[KeepWeightsCompressed(floats=True)], atol=1e-3)
    assert "MatMulCompressed" in names and (following in names) is (following == "Mul")
