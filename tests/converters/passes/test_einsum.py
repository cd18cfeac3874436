"""Einsum becomes MatMul where it is a product of matrices, and near misses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.conformance.oracle import Oracle
from tests.converters.passes.agreement import converted, operators

Shape = tuple[int | None, ...]

PRODUCTS: list[tuple[str, Shape, Shape]] = [
    ("ab,bc->ac", (2, 3), (3, 4)),
    ("ab,cb->ca", (2, 3), (4, 3)),
    ("ab,bcd->acd", (2, 3), (3, 4, 5)),
    ("abc,dbc->ad", (2, 3, 4), (5, 3, 4)),
    ("abcd,ecd->abe", (2, 3, 4, 5), (6, 4, 5)),
    ("abcd,aecd->acbe", (2, 3, 4, 5), (2, 6, 4, 5)),
    ("abcd,aecd->aebc", (2, 3, 4, 5), (2, 6, 4, 5)),
    ("abcd,ecd->acbe", (2, 3, 4, 5), (6, 4, 5)),
    ("ecd,abcd->acbe", (6, 4, 5), (2, 3, 4, 5)),
    ("abcd,bef->acdef", (2, 3, 4, 5), (3, 6, 7)),
    ("abc,cde->dbae", (2, 3, 4), (4, 5, 6)),
    ("abc,bcd->bda", (2, 3, 4), (3, 4, 5)),
    # Dimensions of 1 that broadcast, none, and unknown ones that need not be merged.
    ("abcd,aecd->acbe", (1, 3, 4, 5), (2, 6, 4, 5)),
    ("abcd,aecd->acbe", (2, 3, 1, 5), (2, 6, 4, 5)),
    ("abc,bcd->bda", (0, 3, 4), (3, 4, 5)),
    ("abcd,ecd->acbe", (None, 3, None, 5), (6, None, 5)),
    ("ab,bcd->acd", (None, 3), (3, 4, 5)),
    ("abcd,aecd->acbe", (None, None, 4, 5), (None, None, 4, 5)),
    ("abcd,adbe->acbe", (None, 3, None, None), (None, None, 3, 6)),
    ("abc,cde->dbae", (2, 3, None), (None, 5, 6)),
]
OTHERS: list[tuple[str, Shape, Shape]] = [
    ("ab,ab->ab", (2, 3), (2, 3)),
    ("ab,ab->a", (2, 3), (2, 3)),
    ("ab,b->a", (2, 3), (3,)),
    ("ab,cd->abcd", (2, 3), (4, 5)),
    ("aab,bc->ac", (2, 2, 3), (3, 4)),  # a diagonal
    ("abc,dbc->ad", (2, 1, 4), (5, 3, 4)),  # one product for three
    ("abc,dbc->ad", (2, None, 4), (5, 3, 4)),
    ("abc,dbc->ad", (2, None, None), (5, None, None)),
    ("ab,bc->ac", (2, 1), (3, 4)),
    ("abcd,adbe->acbe", (None, 3, None, 1), (None, None, 3, 6)),
    ("abcd,adbe->acbe", (None, 3, None, 5), (None, None, 3, 6)),
    ("abc,adc->abd", (2, 3, 5), (2, 4, 1)),
]


def _convert(
    equation: str, shapes: list[Shape], oracle: Oracle, folder: Path, dtype: Any = np.float32, a: int = 2
) -> list[str]:
    import openvino as ov
    from openvino import opset13 as ops

    operands = [ops.parameter([-1 if size is None else size for size in shape], dtype) for shape in shapes]
    model = ov.Model([ops.einsum(operands, equation)], operands, "einsum")
    rng = np.random.default_rng(0)
    sizes = dict(zip("abcdefg", (a, 3, 4, 5, 6, 5, 7), strict=True))
    terms = equation.partition("->")[0].split(",")
    inputs = [
        (3 * rng.standard_normal([sizes[c] if size is None else size for c, size in zip(term, shape, strict=True)])).astype(
            dtype
        )
        for term, shape in zip(terms, shapes, strict=True)
    ]
    return operators(converted(model, inputs, oracle, folder))


@pytest.mark.parametrize(("equation", "left", "right"), PRODUCTS)
def test_products(equation: str, left: Shape, right: Shape, oracle: Oracle, tmp_path: Path) -> None:
    found = _convert(equation, [left, right], oracle, tmp_path)
    assert "MatMul" in found and "Einsum" not in found


def test_products_of_nothing(oracle: Oracle, tmp_path: Path) -> None:
    """ONNX Runtime (1.32) ends the process for an Einsum without elements."""
    shapes: list[Shape] = [(None, 3, None, None), (None, None, 3, 6)]
    assert "Einsum" not in _convert("abcd,adbe->acbe", shapes, oracle, tmp_path, a=0)


@pytest.mark.parametrize(("equation", "left", "right"), OTHERS)
def test_other_sums(equation: str, left: Shape, right: Shape, oracle: Oracle, tmp_path: Path) -> None:
    assert "Einsum" in _convert(equation, [left, right], oracle, tmp_path)


@pytest.mark.parametrize(
    ("equation", "shape", "found"),
    [
        ("abc->cb", (2, 3, 4), ["ReduceSum", "Transpose"]),
        ("abc->ac", (None, 3, None), ["ReduceSum"]),
        ("abc->", (2, 3, 4), ["ReduceSum"]),
        ("abc->cab", (2, 3, 4), ["Transpose"]),
        ("aab->b", (2, 2, 4), ["Einsum"]),  # a diagonal
    ],
)
def test_sums_of_one_operand(equation: str, shape: Shape, found: list[str], oracle: Oracle, tmp_path: Path) -> None:
    assert _convert(equation, [shape], oracle, tmp_path) == found


@pytest.mark.parametrize(
    ("equation", "left", "right", "found"),
    [
        ("abe,bc->ac", (2, 3, 6), (3, 4), ["ReduceSum", "MatMul"]),
        ("abc,acd->", (None, 3, 4), (None, 4, 5), ["ReduceSum", "ReduceSum", "Einsum"]),
        ("ab,bc->c", (2, 3), (3, 4), ["ReduceSum", "Einsum"]),
        ("ab,bc->b", (2, 3), (3, 0), ["ReduceSum", "ReduceSum", "Einsum"]),
        ("ab,bc->abc", (2, 3), (3, 4), ["Einsum"]),
        ("ab,cd->ab", (2, 3), (4, 5), ["Einsum"]),  # nothing of the operand would be left
        ("aab,bc->c", (2, 2, 3), (3, 4), ["Einsum"]),  # a diagonal
    ],
)
def test_sums_of_one_of_two_operands(
    equation: str, left: Shape, right: Shape, found: list[str], oracle: Oracle, tmp_path: Path
) -> None:
    assert sorted(_convert(equation, [left, right], oracle, tmp_path)) == sorted(found)
