"""Merging of nodes that change dimensions of tensors with several unknown ones."""

from __future__ import annotations

from collections.abc import Iterator

import onnx_ir as ir

from converters.passes.patterns import PatternPass, Rewrite, rewrite
from converters.passes.simplification.data_movement import SHAPES, one_target, same_dimensions
from onnx_specops.building import Builder, Value
from onnx_specops.graphs import attributes_of, constant_array, constant_list


def _places(value: Value, rank: int | None) -> list[int] | None:
    """Return the axes of a Squeeze or Unsqueeze of a tensor of the rank as non-negative numbers."""
    node = value.producer()
    axes = None if node is None or len(node.inputs) < 2 else constant_list(node.inputs[1])
    return None if axes is None or rank is None else [axis % rank for axis in axes]


@rewrite(
    "Unsqueeze",
    lambda op, x, first, second: op.Unsqueeze(op.Unsqueeze(x, first, _outputs=["inner"]), second, _outputs=["whole"]),
    exclusive=False,
)
def two_insertions(op: Builder, *, x: Value, inner: Value, whole: Value, **_: Value) -> Value | None:
    """Merge two Unsqueezes."""
    before, after = _places(inner, inner.rank), _places(whole, whole.rank)
    if before is None or after is None or whole.rank is None:
        return None
    kept = [axis for axis in range(whole.rank) if axis not in after]
    result: Value = op.Unsqueeze(x, sorted([*after, *(kept[axis] for axis in before)]))
    return result


@rewrite(
    "Squeeze",
    lambda op, x, first, second: op.Squeeze(op.Squeeze(x, first, _outputs=["inner"]), second, _outputs=["whole"]),
    exclusive=False,
)
def two_removals(op: Builder, *, x: Value, inner: Value, whole: Value, **_: Value) -> Value | None:
    """Merge two Squeezes."""
    before, after = _places(inner, x.rank), _places(whole, inner.rank)
    if before is None or after is None or x.rank is None:
        return None
    kept = [axis for axis in range(x.rank) if axis not in before]
    result: Value = op.Squeeze(x, sorted([*before, *(kept[axis] for axis in after)]))
    return result


def _undone(inserts: bool) -> Rewrite:
    first, second = (SHAPES["Unsqueeze"], SHAPES["Squeeze"]) if inserts else (SHAPES["Squeeze"], SHAPES["Unsqueeze"])

    @rewrite(
        "Squeeze" if inserts else "Unsqueeze",
        lambda op, x, axes, again: second(op, first(op, x, axes, _outputs=["inner"]), again, _outputs=["whole"]),
        exclusive=False,
    )
    def replace(op: Builder, *, x: Value, inner: Value, whole: Value, **_: Value) -> Value | None:
        """Remove a Squeeze of the dimensions that an Unsqueeze inserts, or the reverse."""
        rank = inner.rank if inserts else x.rank
        before, after = _places(inner, rank), _places(whole, rank)
        return x if before is not None and after is not None and sorted(before) == sorted(after) else None

    return replace


def _reshaped(inner: str) -> Rewrite:
    @rewrite(
        "Reshape",
        lambda op, x, before, given: op.Reshape(
            SHAPES[inner](op, x, before), given, _allow_other_attributes=True, _outputs=["whole"]
        ),
        exclusive=False,
    )
    def replace(op: Builder, *, x: Value, given: Value, whole: Value, **_: Value) -> Value | None:
        """Remove a change of dimensions before a Reshape whose target does not refer to it."""
        node, target = whole.producer(), constant_array(given)
        if node is None:
            return None
        exact = bool(node.attributes.get_int("allowzero", 0))
        if not exact and (target is None or (target == 0).any()):
            return None
        result: Value = op.Reshape(x, given, **({"allowzero": 1} if exact else {}))
        return result

    return replace


@rewrite(
    "Reshape",
    lambda op, x, given: op.Reshape(x, given, _allow_other_attributes=True, _outputs=["whole"]),
    exclusive=False,
)
def computed_target(op: Builder, *, x: Value, given: Value, whole: Value) -> Value | None:
    """Make the computed target of a Reshape constant, with -1 for the only unknown dimension."""
    if constant_array(given) is not None or given.is_graph_input():
        return None
    target = one_target(x, whole)
    return None if target is None else op.Reshape(x, target)


_SHAPE_OF_FIRST = frozenset((
    "Abs", "BatchNormalization", "Cast", "Clip", "Elu", "Erf", "Exp", "Gelu", "GroupNormalization", "HardSigmoid",
    "HardSwish", "Identity", "InstanceNormalization", "LRN", "LayerNormalization", "LeakyRelu", "Log", "LogSoftmax",
    "Neg", "Not", "Relu", "Round", "Sigmoid", "Softmax", "Softplus", "Sqrt", "Tanh",
))  # fmt: skip
"""The operators whose first output has the shape of the first input."""

_MAX_STEPS = 8


@rewrite(
    "Reshape",
    lambda op, x, y: op.Reshape(y, op.Shape(x, _outputs=["shape"]), _allow_other_attributes=True),
    exclusive=False,
)
def own_shape(op: Builder, *, x: Value, y: Value, shape: Value) -> Value | None:
    """Remove a Reshape to the whole shape of a tensor from which nodes compute another of the same shape."""
    node = shape.producer()
    if node is None or node.attributes.get_int("start", 0) != 0 or "end" in node.attributes:
        return None
    return y if any(value is x for value in _of_same_shape(y)) else None


@rewrite(
    "Reshape",
    lambda op, y, given: op.Reshape(y, given, _allow_other_attributes=True, _outputs=["whole"]),
    exclusive=False,
)
def same_target(op: Builder, *, y: Value, given: Value, whole: Value) -> Value | None:
    """Remove a Reshape by the target of another, after nodes that do not change the shape."""
    node = whole.producer()
    for value in _of_same_shape(y):
        before = value.producer()
        if node is None or before is None or before.domain or before.op_type != "Reshape" or before.inputs[1] is not given:
            continue
        if node.attributes.get_int("allowzero", 0) == before.attributes.get_int("allowzero", 0):
            return y
    return None


def _of_same_shape(value: ir.Value) -> Iterator[ir.Value]:
    """Yield a value and those before it that have the same shape."""
    found: ir.Value | None = value
    for _ in range(_MAX_STEPS):
        if found is None:
            return
        yield found
        node = found.producer()
        if node is None or node.domain or node.op_type not in _SHAPE_OF_FIRST or node.outputs[0] is not found:
            return
        found = node.inputs[0]


_FUNCTIONS = frozenset((
    "Abs", "Elu", "Erf", "Exp", "Gelu", "HardSigmoid", "HardSwish", "LeakyRelu", "Log", "Neg", "Not", "Relu", "Round",
    "Sigmoid", "Softplus", "Sqrt", "Tanh",
))  # fmt: skip
"""The operators that compute each element of their only input."""


def _around(outer: str) -> Rewrite:
    @rewrite(
        outer,
        lambda op, y, given: SHAPES[outer](op, y, given, _allow_other_attributes=True, _outputs=["whole"]),
        exclusive=False,
    )
    def replace(op: Builder, *, y: Value, whole: Value, **_: Value) -> Value | None:
        """Remove changes of dimensions before and after functions of each element, if they cancel."""
        functions: list[ir.Node] = []
        found: ir.Value | None = y
        for _step in range(_MAX_STEPS):
            node = None if found is None else found.producer()
            if node is None or node.domain or found is None or len(found.uses()) != 1 or found.is_graph_output():
                return None
            found = node.inputs[0]
            if node.op_type in SHAPES:
                break
            if node.op_type not in _FUNCTIONS:
                return None
            functions.append(node)
        if not functions or not isinstance(found, Value) or not same_dimensions(found, whole):
            return None
        result = found
        for node in reversed(functions):
            result = op.node(node.op_type, result, **attributes_of(node))
        return result

    return replace


class MergeDimensions(PatternPass):
    """Merge chains of Reshape, Squeeze and Unsqueeze, also around functions of each element, and make the targets of Reshape
    constant.
    """

    rewrites = (
        two_insertions,
        two_removals,
        _undone(inserts=True),
        _undone(inserts=False),
        *(_reshaped(inner) for inner in SHAPES),
        own_shape,
        same_target,
        computed_target,
        *(_around(outer) for outer in SHAPES),
    )
