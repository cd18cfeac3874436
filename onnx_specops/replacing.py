"""One value in the place of another."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace

import onnx_ir as ir

from onnx_specops.building import Value
from onnx_specops.naming import Names


@dataclass(frozen=True)
class Rewriting:
    """What replaces values at the moment.

    Attributes:
        name: the pass, or one rewrite of a pass.
        finite: whether its replacements are equal for finite numbers only.
        tolerance: by how much the replacement may differ, in the values' own unit.
        through: values that are never arbitrary: what is known of the numbers that their nodes compute counts.
        level: the distance of two levels, where numbers are rounded to levels. A number halfway between two may be rounded
            to either: one of a thousand may differ by this much.
    """

    name: str = ""
    finite: bool = False
    tolerance: float = 0.0
    through: Sequence[ir.Value] = ()
    level: float = 0.0


Check = Callable[[Sequence[tuple[ir.Value, ir.Value]], Rewriting], bool]
"""Takes values and what is to replace them, before anything is replaced; returns whether it may be."""

_check: ContextVar[Check | None] = ContextVar("check", default=None)
_rewriting: ContextVar[Rewriting | None] = ContextVar("rewriting", default=None)


@contextmanager
def checked_by(check: Check) -> Iterator[None]:
    """Within the context every replacement that has to give equal values is put to ``check`` first."""
    token = _check.set(check)
    try:
        yield
    finally:
        _check.reset(token)


@contextmanager
def rewriting(name: str, *, finite: bool = False, tolerance: float = 0.0) -> Iterator[None]:
    """Within the context replacements are those of the pass or rewrite ``name``; the others as of `Rewriting`."""
    token = _rewriting.set(Rewriting(name, finite, tolerance))
    try:
        yield
    finally:
        _rewriting.reset(token)


def may_replace(
    pairs: Sequence[tuple[ir.Value, ir.Value]],
    *,
    tolerance: float = 0.0,
    through: Sequence[ir.Value] = (),
    level: float = 0.0,
) -> bool:
    """Whether the second value of each pair may replace the first: yes, unless a check of `checked_by` refuses.

    ``tolerance``, ``through`` and ``level`` as of `Rewriting`.
    """
    if (check := _check.get()) is None:
        return True
    current = _rewriting.get() or Rewriting()
    tolerance, through = max(tolerance, current.tolerance), (*current.through, *through)
    return check(pairs, replace(current, tolerance=tolerance, through=through, level=level))


def replace_value(
    old: ir.Value,
    new: ir.Value,
    *,
    equal: bool = True,
    checked: bool = False,
    tolerance: float = 0.0,
    through: Sequence[ir.Value] = (),
    level: float = 0.0,
) -> bool:
    """Replace ``old`` by ``new``: for the nodes that use it, among graph outputs, under its name.

    ``new`` has to be of the same element type and, as far as both know it, shape; what it does not know it takes from
    ``old``. The node that made ``old`` stays, for `RemoveUnusedNodesPass` to remove.

    Args:
        old: the value that is replaced.
        new: the value that replaces it.
        equal: whether both are meant to be equal for all inputs of the graph. Only such replacements are checked.
        checked: whether `may_replace` was asked already.
        tolerance, through, level: for the check, see `Rewriting`.

    Returns:
        Whether it was replaced; not where a check refuses.
    """
    if equal and not checked and not may_replace([(old, new)], tolerance=tolerance, through=through, level=level):
        return False
    if new.type is None:
        new.type = old.type
    if new.shape is None:
        new.shape = old.shape
    producer, has_name = old.producer(), new.is_graph_output()
    if old.is_graph_output() and (new.producer() is None or new.is_graph_output() or new.graph is not old.graph):
        # An input, a constant or another output cannot be this output: a copy of it is.
        assert producer is not None and producer.graph is not None
        assert isinstance(producer.graph, ir.Graph)
        copy = Value(name=Names.of(producer.graph).unique(f"{old.name}_copy"), type=old.type, shape=old.shape)
        node, source = ir.Node("", "Identity", [new], outputs=[copy]), new.producer()
        if source is not None and source.graph is producer.graph:
            producer.graph.insert_after(source, node)
        else:
            producer.graph.insert_before(producer, node)
        new, has_name = copy, False
    old.replace_all_uses_with(new, replace_graph_outputs=True)
    if new.producer() is not None and not has_name:
        new.name, old.name = old.name, new.name
    return True
