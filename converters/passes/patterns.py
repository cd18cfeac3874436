"""Passes that look for patterns, said in the language of `onnxscript.rewriter`, and emit what replaces them with a
`Builder`.

A pattern is a function that reads like the graph that it matches: its parameters after ``op`` stand for any values, numbers
    for constants without dimensions of that value, ``number(1.5)`` for those with one element, ``_outputs=["name"]`` names
    what a node gives. The replacement takes what was matched by
    those names::

    def swish(op, x):
        return op.Mul(x, op.Sigmoid(x))

    @rewrite("Mul", swish, commute=True)
    def as_swish(op, *, x):
        return op.Swish(x)

    class FuseActivations(PatternPass):
        rewrites = (as_swish,)

`onnxscript` finds the matches; its own way to replace them is not used: the values that it makes have neither types nor
shapes, which the passes behind need.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import onnx_ir as ir
from onnx_ir.passes import InPlacePass, PassResult
from onnxscript.rewriter import pattern as language

from onnx_specops.building import Builder, Value
from onnx_specops.graphs import all_nodes
from onnx_specops.replacing import may_replace, replace_value, rewriting


@dataclass(frozen=True)
class Rewrite:
    """A pattern and what replaces it.

    Attributes:
        root: domain and operator of the node that gives the pattern's (first) result, by which candidates are found.
        patterns: the pattern, in each order of its commutative operators' inputs.
        replace: emits what takes its place; gives ``None`` where that cannot be, before it emits anything.
        exclusive: whether nothing else may use the values within the pattern.
        needs: domain and operator of nodes without which there is no match.
        finite: whether what it emits is equal for finite numbers only.
        tolerance: by how much that may differ where numbers are rounded otherwise.
    """

    root: tuple[str, str]
    patterns: Sequence[language.Pattern]
    replace: Callable[..., Value | Sequence[Value] | None]
    exclusive: bool
    needs: frozenset[tuple[str, str]]
    finite: bool = False
    tolerance: float = 0.0

    @property
    def name(self) -> str:
        """By which it is told of."""
        name = self.replace.__name__
        return name if name != "replace" else self.replace.__qualname__.partition(".")[0].strip("_")

    def find(self, model: ir.Model, node: ir.Node) -> language.MatchResult | None:
        """The match whose result the node gives, if there is one."""
        assert node.graph is not None
        for pattern in self.patterns:
            match = pattern.match(model, node.graph, node, check_nodes_are_removable=self.exclusive)
            if match:
                return match
        return None


def rewrite(
    root: str,
    pattern: Callable[..., Any],
    *,
    domain: str = "",
    commute: bool = False,
    exclusive: bool = True,
    finite: bool = False,
    tolerance: float = 0.0,
) -> Callable[[Callable[..., Any]], Rewrite]:
    """Decorator: the function emits what replaces the pattern, ``function(op, **matched)``; see the module's docstring.

    Args:
        root: the operator of the node that gives the pattern's (first) result.
        pattern: the pattern.
        domain: the operator's domain.
        commute: whether inputs of commutative operators may stand in any order.
        exclusive: whether nothing else may use the values within the pattern.
        finite: whether what the function emits is equal for finite numbers only.
        tolerance: by how much that may differ where numbers are rounded otherwise.
    """
    rule = language.RewriteRule(pattern, lambda op, **_: None)
    patterns = tuple(rule.commute()) if commute else (rule,)
    needs = _needs(rule)
    return lambda replace: Rewrite((domain, root), patterns, replace, exclusive, needs, finite, tolerance)


def _needs(rule: language.RewriteRule) -> frozenset[tuple[str, str]]:
    """Domain and operator of the pattern's nodes, but for those that are one choice of several."""
    found = set()
    pending = [value.producer() for value in rule._target_pattern.outputs]
    while pending:
        node = pending.pop()
        if node is None:
            continue
        if (identifier := node.op_identifier()) is not None:
            found.add(identifier[:2])
        pending += [value.producer() for value in node.inputs if value is not None]
    return frozenset(found)


def number(value: float, tolerance: float = 0.0) -> Callable[[Any, ir.Value], bool]:
    """In a pattern: a constant with one element, of any rank, which lies within ``tolerance`` of ``value``."""

    def is_near(context: Any, found: ir.Value) -> bool:
        tensor = found.const_value
        if tensor is None or tensor.size != 1:
            return False
        given = float(tensor.numpy().item())
        return given == value or abs(given - value) <= tolerance

    return is_near


class PatternPass(InPlacePass):
    """Applies a class's ``rewrites``, the first one that matches, to every node, those of nested graphs included."""

    rewrites: ClassVar[Sequence[Rewrite]] = ()

    def call(self, model: ir.Model) -> PassResult:
        nodes = list(all_nodes(model.graph))
        operators = [(node.domain, node.op_type) for node in nodes]
        present = set(operators)
        by_root = _by_root(found for found in self.rewrites if found.needs <= present)
        if not by_root:
            return PassResult(model, modified=False)
        root: Builder | None = None
        count = 0
        for node, operator in zip(nodes, operators, strict=True):
            for found in by_root.get(operator, ()):
                # Without a graph it was part of an earlier match.
                match = None if node.graph is None else found.find(model, node)
                if match is None:
                    continue
                if root is None:
                    root = Builder.of_existing(model.graph)
                if _replaced(found, match, node, root):
                    count += 1
                    by_root = _by_root(self.rewrites)  # what was emitted may be what others need
                    break
        return PassResult(model, modified=count > 0)


def _by_root(rewrites: Iterable[Rewrite]) -> dict[tuple[str, str], list[Rewrite]]:
    found = defaultdict(list)
    for rewrite in rewrites:
        found[rewrite.root].append(rewrite)
    return found


def _replaced(rewrite: Rewrite, match: language.MatchResult, node: ir.Node, root: Builder) -> bool:
    """Put what replaces the match into its place, if anything does."""
    if not isinstance(node.graph, ir.Graph):
        return False
    op = Builder(node.graph, root=root, before=node)
    op.scope = node.name or node.op_type
    with rewriting(rewrite.name, finite=rewrite.finite, tolerance=rewrite.tolerance):
        return _emitted(rewrite, match, op)


def _emitted(rewrite: Rewrite, match: language.MatchResult, op: Builder) -> bool:
    results = rewrite.replace(op, **match.bindings)
    if results is None:
        return False
    pairs = list(zip(match.outputs, [results] if isinstance(results, ir.Value) else results, strict=True))
    if not all(_is_as_large(old, new) for old, new in pairs):
        for _, new in pairs:
            _remove_unused(new.producer())
        return False
    pairs = [(old, op.place(new)) for old, new in pairs]
    if not may_replace(pairs):
        for _, new in pairs:
            _remove_unused(new.producer())
        return False
    for old, new in pairs:
        replace_value(old, new, checked=True)
    # At once: what is left would count as a use of the values within other patterns.
    for old in match.outputs:
        _remove_unused(old.producer())
    return True


def _is_as_large(old: ir.Value, new: ir.Value) -> bool:
    """Whether two values have the same shape, as far as it is known: a constant of one element in a pattern may have more
    dimensions than what it is combined with, and give them to it."""
    if old.shape is None or new.shape is None:
        return True
    if len(old.shape) != len(new.shape):
        return False
    return all(not (isinstance(a, int) and isinstance(b, int)) or a == b for a, b in zip(old.shape, new.shape, strict=True))


def _remove_unused(node: ir.Node | None) -> None:
    """Remove the node, and whatever was there for it alone."""
    pending = [node]
    while pending:
        node = pending.pop()
        if node is None or node.graph is None or any(value.uses() or value.is_graph_output() for value in node.outputs):
            continue
        sources = [value.producer() for value in node.inputs if value is not None]
        node.graph.remove(node, safe=True)
        pending += sources
