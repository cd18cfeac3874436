"""Expands before a Transpose or arithmetic, and near misses."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

from converters.passes.simplification import MergeExpansions
from onnx_specops.building import new_value
from tests.converters.passes.graphs import floats, graph, operators, rewritten

SCALE, ZERO = np.float32(0.5), np.uint8(3)


def _quantized(op: Any, x: Any) -> Any:
    return op.QuantizeLinear(x, SCALE, ZERO)


@pytest.mark.parametrize(
    ("emit", "dims", "sizes"),
    [
        (lambda op, x: op.Transpose(op.Expand(x, [2, 5, 3]), perm=[2, 0, 1]), (2, 1, 3), [3, 2, 1]),
        (lambda op, x: op.Transpose(op.Expand(x, [2, 5, 3])), (2, 1, 3), [3, 1, 2]),
        (lambda op, x: op.Transpose(op.Expand(x, [5, 1]), perm=[1, 2, 0]), (None, 1, 3), [1, 3, None]),
        # Another rank, or another consumer.
        (lambda op, x: op.Transpose(op.Expand(x, [4, 2, 5, 3]), perm=[3, 1, 2, 0]), (2, 1, 3), None),
        (lambda op, x: op.Add(op.Transpose(y := op.Expand(x, [2, 3, 3])), op.ReduceSum(y, [0, 1, 2])), (2, 1, 3), None),
    ],
)
def test_transpositions(emit: Any, dims: tuple[int | None, ...], sizes: list[int | None] | None) -> None:
    found = rewritten(emit, floats("x", *dims), by=[MergeExpansions()])
    model = graph(emit, floats("x", *dims))
    assert found == operators(model)
    MergeExpansions()(model)
    first = next(node for node in model.graph if node.op_type in ("Expand", "Transpose"))
    assert (first.op_type == "Transpose") == (sizes is not None)
    if sizes is not None:
        shape = first.outputs[0].shape
        assert shape is not None and [size if isinstance(size, int) else None for size in shape] == sizes


@pytest.mark.parametrize("operator", ["Add", "Sub", "Mul", "Div"])
@pytest.mark.parametrize(
    ("emit", "dims", "found"),
    [
        (lambda op, x: (op.Expand(x, [2, 4, 3]), np.ones((4, 1), np.float32)), (2, 1, 3), []),
        (lambda op, x: (np.ones((2, 4, 3), np.float32), op.Expand(x, [4, 3])), (2, 1, 3), []),
        (lambda op, x: (op.Expand(x, [2, 3, 3]), op.Expand(op.Reshape(x, [2, 3, 1]), [2, 3, 3])), (2, 1, 3), ["Reshape"]),
        # One of two is needed: for the rank, or for a dimension.
        (lambda op, x: (op.Expand(x, [4, 2, 5, 3]), op.Expand(x, [5, 3])), (2, 1, 3), ["Expand"]),
        (lambda op, x: (op.Expand(x, [2, 5, 3]), op.Expand(op.Neg(x), [2, 5, 3])), (2, 1, 3), ["Expand", "Neg"]),
        (lambda op, x: (op.Expand(x, [2, 4, 3]), np.ones((1, 3), np.float32)), (2, 1, 3), ["Expand"]),
        # The shape of an operand is not known.
        (lambda op, x: (op.Expand(x, [2, 4, 3]), np.ones((4, 1), np.float32)), (2, None, 3), ["Expand"]),
    ],
)
def test_arithmetic(emit: Any, dims: tuple[int | None, ...], found: list[str], operator: str) -> None:
    numbers = [np.random.default_rng(0).uniform(1, 2, [1 if dim is None else dim for dim in dims]).astype(np.float32)]
    merged = rewritten(
        lambda op, x: getattr(op, operator)(*emit(op, x)), floats("x", *dims), by=[MergeExpansions()], numbers=numbers
    )
    assert merged == sorted([operator, *found])


@pytest.mark.parametrize(
    ("scale", "zero", "merged"),
    [
        (SCALE, ZERO, True),
        (np.full(3, SCALE), np.full(3, ZERO), False),  # along an axis
    ],
)
def test_dequantized_operands(scale: np.ndarray, zero: np.ndarray, merged: bool) -> None:
    def emit(op: Any, x: Any) -> Any:
        copies = op.Expand(_quantized(op, x), [2, 4, 3])
        return op.Add(op.DequantizeLinear(copies, scale, zero, axis=2), np.ones((4, 1), np.float32))

    found = rewritten(emit, floats("x", 2, 1, 3), by=[MergeExpansions()])
    assert found == ["Add", "DequantizeLinear", *([] if merged else ["Expand"]), "QuantizeLinear"]


@pytest.mark.parametrize(
    ("emit", "last"),
    [
        (lambda op, x, shape: op.Add(op.Expand(x, shape), np.ones((4, 1), np.float32)), "Add"),
        (lambda op, x, shape: op.Transpose(op.Expand(x, shape)), "Transpose"),
    ],
)
def test_a_shape_that_a_caller_can_replace(emit: Any, last: str) -> None:
    shape = new_value(ir.DataType.INT64, (3,), "shape")
    shape.const_value = ir.tensor(np.array([2, 4, 3]))
    model = graph(emit, floats("x", 2, 1, 3), shape)
    model.graph.initializers["shape"] = shape
    MergeExpansions()(model)
    assert [node.op_type for node in model.graph] == ["Expand", last]
