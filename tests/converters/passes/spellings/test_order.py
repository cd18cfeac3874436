"""The order of nodes, and near misses."""

from __future__ import annotations

from tests.converters.passes.spellings.spelled import spelled


def test_levels() -> None:
    def emit(op, x):
        late = op.Exp(op.Sin(op.Neg(x)))
        return op.Add(late, op.Abs(x))

    assert [node.op_type for node in spelled("sorted by depth", emit).graph] == ["Neg", "Abs", "Sin", "Exp", "Add"]
