"""Forms for onnx2torch, and near misses."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

from converters.passes.spellings.onnx2torch_forms import CopiedOutputs, FlatNonZero, OneRowOfNonZero
from onnx_specops.building import new_value
from tests.converters.passes.graphs import floats, graph, operators, rewritten

D = ir.DataType


@pytest.mark.parametrize("kind", [D.BOOL, D.FLOAT, D.INT32])
@pytest.mark.parametrize(
    ("dims", "found"),
    [
        ((5,), ["NonZero"]),
        ((None,), ["NonZero"]),
        ((2, 3), ["Concat", "Div", "Mod", "NonZero", "Reshape"]),
        ((2, 3, 4), ["Concat", "Div", "Div", "Mod", "Mod", "NonZero", "Reshape"]),
        ((1, 3, 1), ["Concat", "Div", "Mod", "Mod", "NonZero", "Reshape"]),
        ((None, 3), ["NonZero"]),
        ((0, 3), ["NonZero"]),
        ((), ["NonZero"]),
    ],
)
def test_nonzero_elements(dims: tuple[int | None, ...], found: list[str], kind: D) -> None:
    shape = [5 if size is None else size for size in dims]
    numbers = [np.array(np.random.default_rng(0).integers(0, 2, shape)).astype(kind.numpy())]
    assert rewritten(lambda op, x: op.NonZero(x), new_value(kind, dims, "x"), by=[FlatNonZero()], numbers=numbers) == found


@pytest.mark.parametrize(("dims", "found"), [((5,), ["NonZero", "Reshape"]), ((2, 3), ["NonZero"])])
def test_rows_of_nonzero_elements(dims: tuple[int, ...], found: list[str]) -> None:
    assert rewritten(lambda op, x: op.NonZero(x), floats("x", *dims), by=[OneRowOfNonZero()]) == found


@pytest.mark.parametrize(
    ("emit", "copies"),
    [
        (lambda op, x: op.TopK(x, [2], outputs=2)[1], 1),
        (lambda op, x: list(op.TopK(x, [2], outputs=2)), 2),
        (lambda op, x: op.Neg(op.TopK(x, [2], outputs=2)[0]), 0),
        (lambda op, x: op.Neg(x), 0),
    ],
)
def test_outputs_of_several(emit: Any, copies: int) -> None:
    model = graph(emit, floats("x", 2, 3))
    names = [f"result_{index}" for index, _ in enumerate(model.graph.outputs)]
    for value, name in zip(model.graph.outputs, names, strict=True):
        value.name = name
    assert CopiedOutputs()(model).modified == bool(copies)
    assert operators(model).count("Identity") == copies
    assert [value.name for value in model.graph.outputs] == names
    rewritten(emit, floats("x", 2, 3), by=[CopiedOutputs()])
