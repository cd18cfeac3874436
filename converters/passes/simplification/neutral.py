"""Logic, reductions, expansions and Resizes without effect, and reductions that become one or keep their dimensions."""

from __future__ import annotations

import onnx_ir as ir

from converters.passes.patterns import PatternPass, Rewrite, rewrite
from converters.passes.resized_elements import COORDINATES, scales_of
from converters.passes.simplification.data_movement import neutral, same_dimensions
from onnx_specops.building import Builder, Value
from onnx_specops.graphs import constant_array, constant_list

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


@rewrite("Where", lambda op, x, a, b: op.Where(x, a, b, _outputs=["whole"]), exclusive=False)
def known_condition(op: Builder, *, x: Value, a: Value, b: Value, whole: Value) -> Value | None:
    """Remove a Where that chooses all elements of one operand."""
    condition = constant_array(x)
    if condition is None or condition.size == 0 or condition.any() != condition.all():
        return None
    chosen = a if condition.any() else b
    return chosen if same_dimensions(chosen, whole) else None


@rewrite("Expand", lambda op, x, shape: op.Expand(x, shape), exclusive=False)
def expansion_to_itself(op: Builder, *, x: Value, shape: Value) -> Value | None:
    """Remove an Expand by ones, or to the dimensions that its input has."""
    target = constant_list(shape)
    if target is None or x.dims is None or len(target) > len(x.dims):
        return None
    own = x.dims[len(x.dims) - len(target) :]
    return x if all(size in (1, dim) for size, dim in zip(target, own, strict=True)) else None


@rewrite("Resize", lambda op, x: op.Resize(x, _allow_other_inputs=True, _outputs=["whole"]), exclusive=False, finite=True)
def resize_to_itself(op: Builder, *, x: Value, whole: Value) -> Value | None:
    """Remove a Resize whose scales are 1.

    The interpolation would multiply other elements by 0, so the result only differs for infinity and NaN.
    """
    node = whole.producer()
    if node is None or x.dims is None or not x.is_static or x.dims != whole.dims:
        return None
    if node.attributes.get_string("coordinate_transformation_mode", "half_pixel") not in COORDINATES:
        return None
    if "keep_aspect_ratio_policy" in node.attributes or node.attributes.get_int("antialias", False):
        return None
    scales = scales_of(node, x.dims, whole.dims)
    return x if scales is not None and all(scale == 1 for scale in scales) else None


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


def _whole(operator: str) -> Rewrite:
    @rewrite(
        operator, lambda op, x: getattr(op, operator)(x, _allow_other_attributes=True, _outputs=["whole"]), exclusive=False
    )
    def replace(op: Builder, *, x: Value, whole: Value) -> Value | None:
        """Remove a reduction of one element along all dimensions that are kept."""
        node = whole.producer()
        if node is None or len(node.inputs) > 1 or x.dims is None or any(size != 1 for size in x.dims):
            return None
        return x if node.attributes.get_int("keepdims", 1) else None

    return replace


_EXACT = ("ReduceMax", "ReduceMin")
_ROUNDED = ("ReduceMean", "ReduceSum")
"""Reductions of reductions: only the order of roundings differs in float32 and float64."""


def _joined(operator: str) -> Rewrite:
    @rewrite(
        operator,
        lambda op, x, first, second: getattr(op, operator)(
            getattr(op, operator)(x, first, _allow_other_attributes=True, _outputs=["inner"]),
            second,
            _allow_other_attributes=True,
            _outputs=["whole"],
        ),
        finite=True,  # ONNX Runtime's extremes of NaN depend on the order
        tolerance=0.0 if operator in _EXACT else 1e-5,
    )
    def replace(op: Builder, *, x: Value, inner: Value, whole: Value, **_: Value) -> Value | None:
        """Merge two reductions of different dimensions that are kept."""
        lists = [_kept_axes(value, x.rank) for value in (inner, whole)]
        if operator in _ROUNDED and x.dtype not in (ir.DataType.FLOAT, ir.DataType.DOUBLE):
            return None
        if lists[0] is None or lists[1] is None or set(lists[0]) & set(lists[1]):
            return None
        result: Value = op.node(operator, x, sorted([*lists[0], *lists[1]]), keepdims=1)
        return result

    return replace


def _kept_axes(value: Value, rank: int | None) -> list[int] | None:
    """Return the axes of a reduction that keeps its dimensions."""
    node = value.producer()
    axes = None if node is None else constant_list(node.inputs[1])
    if node is None or not axes or rank is None or not node.attributes.get_int("keepdims", 1):
        return None
    return [axis % rank for axis in axes]


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
    """Remove negations of negations, And with true, Or with false, Where with a known condition, reductions, expansions and
    Resizes without effect, and Unsqueezes after reductions, and merge reductions.
    """

    rewrites = (
        two_negations,
        negated_condition,
        known_condition,
        expansion_to_itself,
        resize_to_itself,
        neutral("And", 1, commute=True),
        neutral("Or", 0, commute=True),
        *(_reduction(operator) for operator in _REDUCTIONS),
        *(_whole(operator) for operator in _REDUCTIONS),
        *(_joined(operator) for operator in (*_EXACT, *_ROUNDED)),
        *(_kept(operator) for operator in (*_REDUCTIONS, "ReduceL1", "ReduceL2", "ReduceLogSumExp", "ReduceSumSquare")),
    )
