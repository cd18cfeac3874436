"""Conditions under which a target computes the same results, such as the size of numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import onnx_ir as ir

from onnx_specops.graphs import MOVES, all_nodes, constant_array, producer_of


@dataclass(frozen=True)
class Assumption:
    """A condition on the numbers that some operators compute with.

    Attributes:
        operators: the operators.
        condition: the condition; the report contains *correct on the target only if* before it.
        applies: whether the condition applies to a node.
    """

    operators: frozenset[str]
    condition: str
    applies: Callable[[ir.Node], bool]


def _computed(index: int) -> Callable[[ir.Node], bool]:
    """Return a function that returns whether an input of a node is not a constant."""
    return lambda node: index < len(node.inputs) and constant_array(node.inputs[index]) is None


def _unbounded(node: ir.Node) -> bool:
    """Return whether the input of a node is neither a constant nor an angle of `WrappedAngles`."""
    value = node.inputs[0]
    while value is not None and (before := value.producer()) is not None and before.op_type in MOVES:
        value = before.inputs[0]
    total = producer_of(value, "Add")
    return _computed(0)(node) and (total is None or not all(map(_is_multiple_of_integers, total.inputs)))


def _is_multiple_of_integers(value: ir.Value | None) -> bool:
    product = producer_of(value, "Mul")
    cast = None if product is None else producer_of(product.inputs[0], "Cast")
    return cast is not None and cast.inputs[0] is not None and cast.inputs[0].dtype == ir.DataType.INT32


def _several(node: ir.Node) -> bool:
    count = constant_array(node.inputs[1])
    return _computed(0)(node) and (count is None or bool((count > 1).any()))


def _ordered(node: ir.Node) -> bool:
    indices = node.outputs[1]
    return _several(node) and (bool(indices.uses()) or indices.is_graph_output())


HALF_ANGLES = Assumption(
    frozenset(("Cos", "Sin")), "the angles are between -10 and 10, because it reduces them in float16", _unbounded
)
HALF_TIES = Assumption(frozenset(("TopK",)), "no two of the elements are equal in float16", _several)
TIES = Assumption(frozenset(("TopK",)), "no two of the elements are equal", _ordered)
NUMBERS_ONLY = Assumption(frozenset(("ArgMax", "ArgMin", "TopK")), "no element is NaN", _computed(0))
DISTINCT_INDICES = Assumption(frozenset(("ScatterElements", "ScatterND")), "no two indices are equal", _computed(1))

ROUNDED = "each result may be rounded to float16"
"""The condition for the float outputs of a model on a target that computes in float16."""


def assumptions_of(model: ir.Model, assumptions: tuple[Assumption, ...], *, halves: bool) -> Mapping[str, str]:
    """Return the conditions of a model, by the name of a value.

    Args:
        model: a finished model.
        assumptions: the conditions of the target.
        halves: whether the target computes in float16.
    """
    found: dict[str, str] = {}
    for node in all_nodes(model.graph):
        for one in assumptions:
            if not node.domain and node.op_type in one.operators and one.applies(node):
                found[node.outputs[0].name or ""] = one.condition
    if halves:
        for value in model.graph.outputs:
            if value.dtype is None or value.dtype.is_floating_point():
                found.setdefault(value.name or "", ROUNDED)
    return found
