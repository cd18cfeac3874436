"""Replacement of one value by another."""

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
    """The properties of the current replacements.

    Attributes:
        name: the name of the pass, or of one rewrite of a pass.
        finite: whether old and new values are equal for finite numbers only.
        tolerance: the allowed absolute difference.
        through: values whose nodes are evaluated rather than replaced by arbitrary inputs in a check.
        level: the distance of two levels, for values that are rounded to levels. A number halfway between two levels may be
            rounded to either, so one in a thousand values may differ by this much.
    """

    name: str = ""
    finite: bool = False
    tolerance: float = 0.0
    through: Sequence[ir.Value] = ()
    level: float = 0.0


Check = Callable[[Sequence[tuple[ir.Value, ir.Value]], Rewriting], bool]
"""Called with old and new values before a replacement; returns whether the replacement is allowed."""

_check: ContextVar[Check | None] = ContextVar("check", default=None)
_rewriting: ContextVar[Rewriting | None] = ContextVar("rewriting", default=None)


@contextmanager
def checked_by(check: Check) -> Iterator[None]:
    """Pass every replacement of equal values within the context to ``check`` first."""
    token = _check.set(check)
    try:
        yield
    finally:
        _check.reset(token)


@contextmanager
def rewriting(name: str, *, finite: bool = False, tolerance: float = 0.0) -> Iterator[None]:
    """Attribute the replacements within the context to the pass or rewrite ``name``. See `Rewriting` for the other
    arguments.
    """
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
    """Return whether the second value of each pair may replace the first: true unless a check of `checked_by` rejects it.

    See `Rewriting` for ``tolerance``, ``through`` and ``level``.
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
    """Replace ``old`` by ``new`` in the nodes that use it and among the graph outputs. ``new`` takes its name, if any.

    Both have the same element type and, as far as known, the same shape. ``new`` takes unknown properties from ``old``. The
    node that produces ``old`` remains until `RemoveUnusedNodesPass` removes it.

    Args:
        old: the value that is replaced.
        new: the value that replaces it.
        equal: whether both are equal for all inputs of the graph. Only such replacements are checked.
        checked: whether `may_replace` was called before.
        tolerance, through, level: for the check, see `Rewriting`.

    Returns:
        Whether ``old`` was replaced; false if a check rejects it.
    """
    if equal and not checked and not may_replace([(old, new)], tolerance=tolerance, through=through, level=level):
        return False
    if new.type is None:
        new.type = old.type
    if new.shape is None:
        new.shape = old.shape
    producer, has_name = old.producer(), new.is_graph_output()
    if old.is_graph_output() and (new.producer() is None or new.is_graph_output() or new.graph is not old.graph):
        # An input, a constant or another output cannot be this output, so it is copied.
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
    if new.producer() is not None and not has_name and old.name:  # an unused output has none
        new.name, old.name = old.name, new.name
    return True
