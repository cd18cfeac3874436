"""Passes that match patterns with `onnxscript.rewriter` and emit replacements with a `Builder`.

A pattern is a function that reads like the graph that it matches. Its parameters after ``op`` match any values. Numbers
match constants of that value without dimensions, ``number(1.5)`` matches constants with one element, and
``_outputs=["name"]`` names the result of a node. The replacement receives the matched values by these names::

    def swish(op, x):
        return op.Mul(x, op.Sigmoid(x))

    @rewrite("Mul", swish, commute=True)
    def as_swish(op, *, x):
        return op.Swish(x)

    class FuseActivations(PatternPass):
        rewrites = (as_swish,)

`onnxscript` finds the matches. Its own replacement is not used, because its values lack the types and shapes that later
passes need.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import onnx_ir as ir
from onnx_ir.passes import PassResult
from onnxscript.rewriter import pattern as language

from converters.passes.running import Operators, SelectivePass
from onnx_specops.building import Builder, Value
from onnx_specops.graphs import all_nodes, constant_array
from onnx_specops.replacing import may_replace, replace_value, rewriting


@dataclass(frozen=True)
class Rewrite:
    """A pattern and its replacement.

    Attributes:
        root: the domain and operator of the node with the pattern's first result, by which candidates are found.
        patterns: the pattern, in each order of the inputs of commutative operators.
        replace: emits the replacement, or returns ``None`` before it emits anything.
        exclusive: whether values inside the pattern must have no other consumers.
        needs: the domains and operators of nodes that every match contains.
        finite: whether the replacement is equal for finite numbers only.
        tolerance: the allowed difference from other roundings.
        equal: whether ONNX Runtime computes the same from both. Only then are they compared.
    """

    root: tuple[str, str]
    patterns: Sequence[language.Pattern]
    replace: Callable[..., Value | Sequence[Value] | None]
    exclusive: bool
    needs: frozenset[tuple[str, str]]
    finite: bool = False
    tolerance: float = 0.0
    equal: bool = True

    @property
    def name(self) -> str:
        """The name in reports."""
        name = self.replace.__name__
        return name if name != "replace" else self.replace.__qualname__.partition(".")[0].strip("_")

    def find(self, model: ir.Model, node: ir.Node) -> language.MatchResult | None:
        """Return the match whose result the node computes, if any.

        Its nodes use no graph input with an initializer, which is not a constant, because a caller can replace it.
        """
        assert node.graph is not None
        for pattern in self.patterns:
            match = pattern.match(model, node.graph, node, check_nodes_are_removable=self.exclusive)
            if match and not any(_has_default(value) for found in match.nodes for value in found.inputs):
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
    equal: bool = True,
) -> Callable[[Callable[..., Any]], Rewrite]:
    """Decorate a function that emits the replacement of a pattern, ``function(op, **matched)``; see the module's docstring.

    Args:
        root: the operator of the node with the pattern's first result.
        pattern: the pattern.
        domain: the operator's domain.
        commute: whether the inputs of commutative operators may have any order.
        exclusive: whether values inside the pattern must have no other consumers.
        finite: whether the replacement is equal for finite numbers only.
        tolerance: the allowed difference from other roundings.
        equal: whether ONNX Runtime computes the same from both. Only then are they compared.
    """
    rule = language.RewriteRule(pattern, lambda op, **_: None, matcher=_Matcher)
    patterns = tuple(rule.commute()) if commute else (rule,)
    needs = _needs(rule)
    return lambda replace: Rewrite((domain, root), patterns, replace, exclusive, needs, finite, tolerance, equal)


class _Matcher(language.SimplePatternMatcher):
    """Forgets the graph after each match. Patterns exist as long as the process, and would keep the last graph in memory."""

    def match(self, *args: Any, **keywords: Any) -> Any:
        try:
            return super().match(*args, **keywords)
        finally:
            del self._graph, self._match
            self._current_node = None


def of_weights(operator: str) -> Callable[..., Any]:
    """Return the pattern of an operator with ``x``, ``weights`` and perhaps other inputs; its result is ``whole``."""
    return lambda op, x, weights: getattr(op, operator)(x, weights, _allow_other_inputs=True, _outputs=["whole"])


def _needs(rule: language.RewriteRule) -> frozenset[tuple[str, str]]:
    """Return the domains and operators of the pattern's nodes, except alternatives."""
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


def _has_default(value: ir.Value | None) -> bool:
    return value is not None and value.is_graph_input() and value.const_value is not None


def number(value: float, tolerance: float = 0.0) -> Callable[[Any, ir.Value], bool]:
    """Match a constant with one element, of any rank, within ``tolerance`` of ``value``."""

    def is_near(context: Any, found: ir.Value) -> bool:
        array = constant_array(found)
        if array is None or array.size != 1:
            return False
        given = float(array.item())
        return given == value or abs(given - value) <= tolerance

    return is_near


class PatternPass(SelectivePass):
    """Apply the first matching rewrite of a class's ``rewrites`` to every node, including those of nested graphs."""

    rewrites: ClassVar[Sequence[Rewrite]] = ()

    def may_change(self, operators: Operators) -> bool:
        return any(found.needs <= operators for found in self.rewrites)

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
                # A node without a graph was part of an earlier match.
                match = None if node.graph is None else found.find(model, node)
                if match is None:
                    continue
                if root is None:
                    root = Builder.of_existing(model.graph)
                if _replaced(found, match, node, root):
                    count += 1
                    by_root = _by_root(self.rewrites)  # other rewrites may need the emitted nodes
                    break
        return PassResult(model, modified=count > 0)


def _by_root(rewrites: Iterable[Rewrite]) -> dict[tuple[str, str], list[Rewrite]]:
    found = defaultdict(list)
    for rewrite in rewrites:
        found[rewrite.root].append(rewrite)
    return found


def _replaced(rewrite: Rewrite, match: language.MatchResult, node: ir.Node, root: Builder) -> bool:
    """Emit and insert the replacement of a match. Return whether there is one."""
    if not isinstance(node.graph, ir.Graph):
        return False
    op = Builder.before_node(node, root)
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
    if rewrite.equal and not may_replace(pairs):
        for _, new in pairs:
            _remove_unused(new.producer())
        return False
    for old, new in pairs:
        replace_value(old, new, checked=True)
    # Remove them now. Otherwise they would count as consumers of values inside other patterns.
    for old in match.outputs:
        _remove_unused(old.producer())
    return True


def _is_as_large(old: ir.Value, new: ir.Value) -> bool:
    """Return whether two values have the same shape, as far as it is known.

    A constant of one element in a pattern may have a higher rank than the value that it is combined with, and add dimensions
    to it.
    """
    if old.shape is None or new.shape is None:
        return True
    if len(old.shape) != len(new.shape):
        return False
    return all(not (isinstance(a, int) and isinstance(b, int)) or a == b for a, b in zip(old.shape, new.shape, strict=True))


def _remove_unused(node: ir.Node | None) -> None:
    """Remove the node and the nodes that only it used."""
    pending = [node]
    while pending:
        node = pending.pop()
        if node is None or node.graph is None or any(value.uses() or value.is_graph_output() for value in node.outputs):
            continue
        sources = [value.producer() for value in node.inputs if value is not None]
        node.graph.remove(node, safe=True)
        pending += sources
