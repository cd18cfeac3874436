"""Logic, reductions and expansions without effect, and reductions that keep their dimensions."""

from __future__ import annotations

from converters.passes.patterns import PatternPass, Rewrite, rewrite
from converters.passes.simplification.data_movement import neutral
from onnx_specops.building import Builder, Value
from onnx_specops.graphs import constant_list

_REDUCTIONS = ("ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum")


@rewrite("Not", lambda op, x: op.Not(op.Not(x)), exclusive=False)
def two_negations(op: Builder, *, x: Value) -> Value:
    """Remove two negations."""
    return x


@rewrite("Where", lambda op, x, a, b: op.Where(op.Not(x), a, b), exclusive=False)
def negated_condition(op: Builder, *, x: Value, a: Value, b: Value) -> Value:
    """Exchange the operands of a Where instead of a negation of its condition."""
    result: Value = op.Where(x, b, a)
    return result


@rewrite("Expand", lambda op, x, shape: op.Expand(x, shape), exclusive=False)
def expansion_to_itself(op: Builder, *, x: Value, shape: Value) -> Value | None:
    """Remove an Expand by ones, or to the dimensions that its input has."""
    target = constant_list(shape)
    if target is None or x.dims is None or len(target) > len(x.dims):
        return None
    own = x.dims[len(x.dims) - len(target) :]
    return x if all(size in (1, dim) for size, dim in zip(target, own, strict=True)) else None


def _reduction(operator: str) -> Rewrite:
    @rewrite(
        operator,
        lambda op, x, axes: getattr(op, operator)(x, axes, _allow_other_attributes=True, _outputs=["whole"]),
        exclusive=False,
    )
    def replace(op: Builder, *, x: Value, axes: Value, whole: Value) -> Value | None:
        """Remove a reduction of dimensions of 1, or convert it to Squeeze."""
        node, places = whole.producer(), constant_list(axes)
        if node is None or not places or x.dims is None or any(x.dims[place] != 1 for place in places):
            return None
        if node.attributes.get_int("keepdims", 1):
            return x
        result: Value = op.Squeeze(x, places)
        return result

    return replace


def _kept(operator: str) -> Rewrite:
    @rewrite(
        "Unsqueeze",
        lambda op, x, axes, places: op.Unsqueeze(
            getattr(op, operator)(x, axes, _allow_other_attributes=True, _outputs=["reduced"]), places, _outputs=["whole"]
        ),
    )
    def replace(op: Builder, *, x: Value, axes: Value, places: Value, reduced: Value, whole: Value) -> Value | None:
        """Keep the reduced dimensions instead of adding them again."""
        node, removed, added = reduced.producer(), constant_list(axes), constant_list(places)
        if node is None or not removed or added is None or x.rank is None or whole.rank != x.rank:
            return None
        if node.attributes.get_int("keepdims", 1):
            return None
        if sorted(axis % x.rank for axis in removed) != sorted(axis % x.rank for axis in added):
            return None
        result: Value = op.node(operator, x, axes, keepdims=1)
        return result

    return replace


class RemoveNeutral(PatternPass):
    """Remove negations of negations, And with true, Or with false, reductions and expansions without effect, and Unsqueezes
    after reductions.
    """

    rewrites = (
        two_negations,
        negated_condition,
        expansion_to_itself,
        neutral("And", 1, commute=True),
        neutral("Or", 0, commute=True),
        *(_reduction(operator) for operator in _REDUCTIONS),
        *(_kept(operator) for operator in (*_REDUCTIONS, "ReduceL1", "ReduceL2", "ReduceLogSumExp", "ReduceSumSquare")),
    )
