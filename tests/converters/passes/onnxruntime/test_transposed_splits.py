"""Splits before Transposes, where ONNX Runtime would move the Transposes."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from onnx_ir.passes.common import RemoveUnusedNodesPass

from converters.passes.onnxruntime import SplitBeforeTranspose, fusion_guards
from onnx_specops.building import Builder, Value
from onnx_specops.replacing import checked_by
from tests.converters.passes.graphs import floats, graph, operators, rewritten


def _parts(op: Builder, x: Value, perm: Sequence[int], axis: int, squeezed: Sequence[int], count: int = 3) -> list[Value]:
    found = op.Split(op.Transpose(x, perm=perm), axis=axis, num_outputs=count, outputs=count)
    return [op.Squeeze(part, squeezed) for part in (found if count > 1 else [found])]


def _with_a_part(op: Builder, x: Value) -> list[Value]:
    first, second, third = op.Split(op.Transpose(x, perm=[2, 0, 3, 4, 1]), axis=0, num_outputs=3, outputs=3)
    return [op.Squeeze(first, [0]), op.Squeeze(second, [0]), op.Neg(third)]


def _and_the_whole(op: Builder, x: Value) -> list[Value]:
    whole = op.Transpose(x, perm=[2, 0, 3, 4, 1])
    parts = op.Split(whole, axis=0, num_outputs=3, outputs=3)
    return [*(op.Squeeze(part, [0]) for part in parts), op.Neg(whole)]


@pytest.mark.parametrize(
    ("emit", "found"),
    [
        (lambda op, x: _parts(op, x, [2, 0, 3, 4, 1], 0, [0]), True),
        (lambda op, x: _parts(op, x, [2, 0, 3, 1, 4], -5, [-5]), True),
        (lambda op, x: _parts(op, x, [4, 3, 2, 1, 0], 2, [2]), True),
        (lambda op, x: _parts(op, x, [2, 0, 3, 4, 1], 0, [0, 1]), False),  # another dimension of 1
        (lambda op, x: _parts(op, x, [2, 0, 3, 4, 1], 0, [1]), False),
        (lambda op, x: _parts(op, x, [2, 0, 3, 4, 1], 4, [1], count=5), False),
        (lambda op, x: [*_parts(op, y := op.Relu(x), [2, 0, 3, 4, 1], 0, [0]), op.Transpose(y, perm=[2, 0, 3, 4, 1])], True),
        (lambda op, x: [op.Relu(part) for part in op.Split(op.Transpose(x), axis=2, num_outputs=3, outputs=3)], False),
        (_and_the_whole, False),
        (_with_a_part, False),
    ],
)
def test_conditions(emit, found: bool) -> None:
    got = rewritten(emit, floats("x", 1, 5, 3, 4, 2), by=[SplitBeforeTranspose()])
    if found:
        assert got.count("Split") == 1 and got.count("Transpose") >= 3
    else:
        assert got.count("Transpose") == 1


def test_transposes_after_the_parts() -> None:
    """They are merged with the Transposes of the parts, and those without effect are removed."""

    def emit(op: Builder, x: Value) -> list[Value]:
        first, second, third = _parts(op, x, [2, 0, 3, 4, 1], 0, [0])
        return [op.Transpose(first, perm=[0, 3, 1, 2]), op.Relu(second), op.Transpose(third, perm=[0, 1, 3, 2])]

    got = rewritten(emit, floats("x", 1, 5, 3, 4, 2), by=[SplitBeforeTranspose()])
    assert got.count("Transpose") == 2  # that of the first part is the inverse of the one before


def test_parts_in_their_order() -> None:
    got = rewritten(lambda op, x: _parts(op, x, [2, 0, 1, 3], 0, [0]), floats("x", 2, 5, 3, 4), by=[SplitBeforeTranspose()])
    assert "Transpose" not in got and got.count("Squeeze") == 3


def test_unequal_parts_stay() -> None:
    def emit(op: Builder, x: Value) -> list[Value]:
        first, second = op.Split(op.Transpose(x, perm=[1, 0, 2]), [1, 2], axis=0, outputs=2)
        return [op.Squeeze(first, [0]), second]

    assert "Squeeze" in (got := rewritten(emit, floats("x", 2, 3, 4), by=[SplitBeforeTranspose()]))
    assert got.count("Transpose") == 1


@pytest.mark.parametrize("opset", [13, 17])
def test_older_opsets_stay(opset: int) -> None:
    """Split of these opsets has no attribute ``num_outputs``."""
    assert not any(isinstance(step, SplitBeforeTranspose) for step in fusion_guards(opset))


def test_a_rejected_replacement() -> None:
    model = graph(lambda op, x: _parts(op, x, [2, 0, 3, 4, 1], 0, [0]), floats("x", 1, 5, 3, 4, 2))
    with checked_by(lambda pairs, _: False):
        assert not SplitBeforeTranspose()(model).modified
    RemoveUnusedNodesPass()(model)
    assert operators(model).count("Transpose") == 1
