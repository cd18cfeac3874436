"""Merging of nodes that only move elements, and removal of those without effect."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import onnx_ir as ir

from converters.passes.patterns import PatternPass, Rewrite, rewrite
from onnx_specops.building import Builder, Value
from onnx_specops.graphs import constant_array, constant_list, dimension

D = ir.DataType

_MOVES = ("Reshape", "Squeeze", "Unsqueeze", "Flatten")


def permutation(value: ir.Value, rank: int | None) -> list[int] | None:
    """Return the permutation of a Transpose of a tensor of the given rank; by default the dimensions are reversed."""
    node = value.producer()
    if node is None or rank is None:
        return None
    return list(node.attributes.get_ints("perm", ())) or list(range(rank))[::-1]


@rewrite(
    "Transpose",
    lambda op, x: op.Transpose(op.Transpose(x, _outputs=["inner"]), _outputs=["whole"]),
    exclusive=False,
)
def two_transposes(op: Builder, *, x: Value, inner: Value, whole: Value) -> Value | None:
    """Merge two Transposes."""
    first, second = permutation(inner, x.rank), permutation(whole, x.rank)
    if first is None or second is None:
        return None
    order = [first[axis] for axis in second]
    if order == sorted(order):
        return x
    target = one_target(x, whole) if _keeps_order(order, x) else None
    return op.Transpose(x, perm=order) if target is None else op.Reshape(x, target)


def _keeps_order(order: list[int], x: Value) -> bool:
    """Return whether a Transpose moves only dimensions of 1, so that the elements keep their order."""
    moved = [axis for axis in order if (x.dims or [])[axis] != 1]
    return moved == sorted(moved)


@rewrite("Transpose", lambda op, x: op.Transpose(x, _outputs=["whole"]), exclusive=False)
def transpose_of_ones(op: Builder, *, x: Value, whole: Value) -> Value | None:
    """Replace a Transpose that moves only dimensions of 1 by a Reshape, if it is next to a node that merges with it."""
    order, before = permutation(whole, x.rank), x.producer()
    if order is None or not _keeps_order(order, x) or (target := one_target(x, whole)) is None:
        return None
    neighbors = [node for node in (before, *(user for user, _ in whole.uses())) if node is not None]
    if not any(not node.domain and node.op_type in _MOVES for node in neighbors):
        return None
    return op.Reshape(x, target)


@rewrite(
    "Transpose",
    lambda op, x, target: op.Transpose(
        op.Reshape(op.Transpose(x, _outputs=["first"]), target, _outputs=["middle"]), _outputs=["whole"]
    ),
    exclusive=False,
)
def transposes_that_cancel(op: Builder, *, x: Value, first: Value, middle: Value, whole: Value, **_: Value) -> Value | None:
    """Replace two Transposes around a Reshape by a Reshape if the elements keep their order.

    Channels of pixels that become those of tokens, and back, are an example.
    """
    there, back = permutation(first, x.rank), permutation(whole, middle.rank)
    if (
        there is None
        or back is None
        or first.dims is None
        or middle.dims is None
        or (target := one_target(x, whole)) is None
    ):
        return None
    before, after = list(first.dims), list(middle.dims)
    if before[:1] == after[:1] == [None] and there[0] == back[0] == 0:  # a batch, which stays outside
        before[0] = after[0] = 1
    if None in before or None in after or (factors := _common_factors(before, after)) is None:
        return None
    # The factors of each dimension in the order of `x`, and in that of the result.
    source = [factor for axis in range(len(there)) for factor in factors if factor[0] == there.index(axis)]
    result = [factor for axis in back for factor in factors if factor[1] == axis]
    return op.Reshape(x, target) if source == result else None


def _common_factors(before: list[Any], after: list[Any]) -> list[tuple[int, int]] | None:
    """Return the axis before and the axis after a Reshape of each of the largest factors that both shapes consist of;
    ``None`` if there are none.
    """
    old = [(axis, size) for axis, size in enumerate(before) if size != 1]
    new = [(axis, size) for axis, size in enumerate(after) if size != 1]
    found = []
    while old and new:
        (left, one), (right, other) = old.pop(0), new.pop(0)
        size = min(one, other)
        if not size or one % size or other % size:
            return None
        found.append((left, right))
        if one != size:
            old.insert(0, (left, one // size))
        if other != size:
            new.insert(0, (right, other // size))
    return None if old or new else found


@rewrite("Transpose", lambda op, x: op.Transpose(x, _outputs=["whole"]), exclusive=False)
def identity_transpose(op: Builder, *, x: Value, whole: Value) -> Value | None:
    """Remove a Transpose without effect."""
    order = permutation(whole, x.rank)
    return x if order is not None and order == sorted(order) else None


def _between_transposes(function: str) -> Rewrite:
    """Return the rewrite that merges the Transposes before and after a function along an axis."""

    @rewrite(
        "Transpose",
        lambda op, x: op.Transpose(
            getattr(op, function)(op.Transpose(x, _outputs=["before"]), _outputs=["inner"]), _outputs=["whole"]
        ),
    )
    def transposed_twice(op: Builder, *, x: Value, before: Value, inner: Value, whole: Value) -> Value | None:
        """Merge the Transposes before and after a Softmax whose axis becomes the last one, along which it is fastest."""
        node, first, second = inner.producer(), permutation(before, x.rank), permutation(whole, x.rank)
        if node is None or x.rank is None or first is None or second is None:
            return None
        axis = second.index(node.attributes.get_int("axis", -1) % x.rank)
        if axis != x.rank - 1:
            return None
        return op.node(function, op.Transpose(x, perm=[first[axis] for axis in second]), axis=-1)

    return transposed_twice


SHAPES: Mapping[str, Callable[..., Any]] = {
    "Reshape": lambda op, x, given, **kw: op.Reshape(x, given, **kw),
    "Squeeze": lambda op, x, given, **kw: op.Squeeze(x, given, **kw),
    "Unsqueeze": lambda op, x, given, **kw: op.Unsqueeze(x, given, **kw),
    "Flatten": lambda op, x, given, **kw: op.Flatten(x, **kw),
}
"""Operator -> its pattern, for operators that change dimensions only."""


def joined(outer: str, inner: str) -> Rewrite:
    """Return the rewrite that merges two of `SHAPES` if the result has at most one unknown dimension."""

    def pattern(op: Any, x: Any, given: Any, before: Any) -> Any:
        return SHAPES[outer](op, SHAPES[inner](op, x, before), given, _outputs=["whole"])

    @rewrite(outer, pattern, exclusive=False)
    def replace(op: Builder, *, x: Value, whole: Value, **_: Value) -> Value | None:
        if x.dims is not None and whole.dims is not None and x.is_static and whole.is_static and x.dims == whole.dims:
            return x
        target = one_target(x, whole)
        return None if target is None else op.Reshape(x, target)

    return replace


def one_target(x: Value, whole: Value) -> list[int] | None:
    """Return the constant shape of a Reshape from ``x`` to ``whole``; ``None`` if it is unknown."""
    if whole.dims is None or 0 in whole.dims:
        return None
    unknown = [axis for axis, dim in enumerate(whole.dims) if dim is None]
    if len(unknown) > 1:
        return None
    if unknown and (x.dims is None or 0 in x.dims):
        return None
    return [-1 if dim is None else dim for dim in whole.dims]


def same_dimensions(a: Value, b: Value) -> bool:
    """Return whether two tensors have the same dimensions: the same numbers or names."""
    if a.rank is None or a.rank != b.rank:
        return False
    return all(dimension(a, axis) == dimension(b, axis) for axis in range(a.rank))


def _same_shape(operator: str) -> Rewrite:
    @rewrite(
        operator,
        lambda op, x: getattr(op, operator)(x, _allow_other_inputs=True, _outputs=["whole"]),
        exclusive=False,
    )
    def replace(op: Builder, *, x: Value, whole: Value) -> Value | None:
        return x if x.is_static and isinstance(whole, Value) and x.dims == whole.dims else None

    return replace


@rewrite("Reshape", lambda op, x, shape: op.Reshape(x, shape, _outputs=["whole"]), exclusive=False)
def reshape_to_itself(op: Builder, *, x: Value, shape: Value, whole: Value) -> Value | None:
    """Remove a Reshape that keeps each dimension, except that it computes one from the others."""
    target, node = constant_list(shape), whole.producer()
    if target is None or x.dims is None or len(target) != len(x.dims) or target.count(-1) > 1:
        return None
    copies = node is not None and not node.attributes.get_int("allowzero", 0)
    kept = [size == dim or (size == 0 and copies) for size, dim in zip(target, x.dims, strict=True)]
    return x if all(same or size == -1 for same, size in zip(kept, target, strict=True)) else None


def neutral(operator: str, number: int, *, commute: bool) -> Rewrite:
    """Return the rewrite that removes an operator with a constant that changes nothing."""

    @rewrite(operator, lambda op, a, b: getattr(op, operator)(a, b, _outputs=["whole"]), exclusive=False)
    def replace(op: Builder, *, a: Value, b: Value, whole: Value) -> Value | None:
        """Remove the arithmetic with a constant that changes nothing, and adds no dimension.

        A sum of 0 and -0.0 is 0. OpenVINO also returns -0.0, because it removes such an addition.
        """
        orders = [(a, b), (b, a)] if commute else [(a, b)]
        return next((x for x, other in orders if _is_neutral(other, number, x)), None)

    return replace


def _is_neutral(other: Value, number: int, x: Value) -> bool:
    array = constant_array(other) if (other.const_value is not None and other.const_value.size <= _MAX_NEUTRAL) else None
    if array is None or array.size == 0 or x.dims is None or x.dtype != other.dtype or array.ndim > len(x.dims):
        return False
    aligned = [1] * (len(x.dims) - array.ndim) + list(array.shape)
    if any(size not in (1, dim) for size, dim in zip(aligned, x.dims, strict=True)):
        return False
    return array.dtype.kind in "bfiu" and bool((array == number).all())


_MAX_NEUTRAL = 1 << 20
"""The number of elements of a constant that is read."""

_EXACT = {
    D.BOOL: (D.UINT8, D.INT8, D.INT32, D.INT64, D.FLOAT, D.DOUBLE),
    D.UINT8: (D.INT16, D.UINT16, D.INT32, D.INT64, D.FLOAT, D.DOUBLE),
    D.INT8: (D.INT16, D.INT32, D.INT64, D.FLOAT, D.DOUBLE),
    D.INT32: (D.INT64, D.DOUBLE),
    D.FLOAT16: (D.FLOAT, D.DOUBLE),
    D.BFLOAT16: (D.FLOAT, D.DOUBLE),
    D.FLOAT: (D.DOUBLE,),
}
"""Type -> the types that represent all its numbers."""


@rewrite("Cast", lambda op, x: op.Cast(x, _outputs=["whole"]), exclusive=False)
def identity_cast(op: Builder, *, x: Value, whole: Value) -> Value | None:
    """Remove a Cast to the type of its input."""
    return x if x.dtype is not None and x.dtype == whole.dtype else None


@rewrite("Cast", lambda op, x: op.Cast(op.Cast(x, _outputs=["inner"]), _outputs=["whole"]), exclusive=False)
def two_casts(op: Builder, *, x: Value, inner: Value, whole: Value) -> Value | None:
    """Merge two Casts if the inner type represents all numbers of the first."""
    if x.dtype is None or inner.dtype not in _EXACT.get(x.dtype, ()) or whole.dtype is None:
        return None
    # Integers from bool or other integers may wrap around differently than from floats.
    if whole.dtype != x.dtype and not (inner.dtype.is_integer() or whole.dtype.is_floating_point() or whole.dtype == D.BOOL):
        return None
    if x.dtype == D.BOOL and whole.dtype == D.STRING:  # words instead of 1 and 0, except in ONNX Runtime
        return None
    # Casts to 8-bit floats may saturate, and ONNX Runtime computes those of float16 incorrectly if they do not.
    if whole.dtype.is_floating_point() and whole.dtype.bitwidth <= 8:
        return None
    return x if whole.dtype == x.dtype else op.Cast(x, to=whole.dtype)


@rewrite(
    "Slice",
    lambda op, x: op.Slice(
        op.Slice(x, _allow_other_inputs=True, _outputs=["inner"]), _allow_other_inputs=True, _outputs=["whole"]
    ),
    exclusive=False,
)
def two_slices(op: Builder, *, x: Value, inner: Value, whole: Value) -> Value | None:
    """Merge a Slice with those after it along different axes, if they are its only consumers."""
    if inner.is_graph_output() or any(_merged_slice(x, inner, user) is None for user, _ in inner.uses()):
        return None
    node = whole.producer()
    lists = None if node is None else _merged_slice(x, inner, node)
    return None if lists is None else op.Slice(x, *lists)


@rewrite("Slice", lambda op, x: op.Slice(x, _allow_other_inputs=True, _outputs=["whole"]), exclusive=False)
def whole_slice(op: Builder, *, x: Value, whole: Value) -> Value | None:
    """Remove a Slice of all elements."""
    node = whole.producer()
    lists = None if node is None else _slice_lists(node)
    if lists is None or x.dims is None:
        return None
    sizes = [x.dims[axis] for axis in lists[2]]
    ends = [end >= (_LAST if size is None else size) for end, size in zip(lists[1], sizes, strict=True)]
    return x if not any(lists[0]) and all(ends) and all(step == 1 for step in lists[3]) else None


_LAST = (1 << 63) - 1
"""The end of a Slice to the last element."""


def _merged_slice(x: Value, inner: Value, node: ir.Node) -> list[list[int]] | None:
    """Return the starts, ends, axes and steps of a Slice together with the one before it."""
    first = inner.producer()
    if first is None or node.domain or node.op_type != "Slice" or node.inputs[0] is not inner or x.rank is None:
        return None
    before, after = _slice_lists(first), _slice_lists(node)
    if before is None or after is None:
        return None
    lists = [one + other for one, other in zip(before, after, strict=True)]
    lists[2] = [axis % x.rank for axis in lists[2]]
    return lists if len(set(lists[2])) == len(lists[2]) else None


def _slice_lists(node: ir.Node) -> list[list[int]] | None:
    """Return the constant starts, ends, axes and steps of a Slice; by default the steps are 1."""
    lists = [constant_list(value) for value in node.inputs[1:4]]
    if len(lists) < 3 or any(of is None for of in lists):
        return None
    given = node.inputs[4] if len(node.inputs) > 4 else None
    steps = [1] * len(lists[0] or []) if given is None else constant_list(given)
    return None if steps is None else [*(of or [] for of in lists), steps]


@rewrite("Identity", lambda op, x: op.Identity(x, _outputs=["whole"]), exclusive=False)
def identity(op: Builder, *, x: Value, whole: Value) -> Value | None:
    """Remove an Identity, except one for a graph's output, which must be computed in that graph."""
    return None if whole.is_graph_output() else x


@rewrite("Concat", lambda op, x: op.Concat(x), exclusive=False)
def of_one(op: Builder, *, x: Value) -> Value:
    """Remove a Concat of one tensor."""
    return x


@rewrite("Split", lambda op, x: op.Split(x, _allow_other_inputs=True, _outputs=["whole"]), exclusive=False)
def into_one(op: Builder, *, x: Value, whole: Value) -> Value | None:
    """Remove a Split into one part."""
    node = whole.producer()
    return x if node is not None and len(node.outputs) == 1 else None


class MergeDataMovement(PatternPass):
    """Merge chains of Transpose, Reshape, Squeeze, Unsqueeze, Flatten and Cast, and remove those without effect, and
    arithmetic without effect.
    """

    rewrites = (
        two_transposes,
        transposes_that_cancel,
        identity_transpose,
        transpose_of_ones,
        _between_transposes("Softmax"),
        _between_transposes("LogSoftmax"),
        two_slices,
        whole_slice,
        *(joined(outer, inner) for outer in _MOVES for inner in _MOVES),
        _same_shape("Reshape"),
        reshape_to_itself,
        _same_shape("Expand"),
        _same_shape("Tile"),
        identity_cast,
        two_casts,
        identity,
        of_one,
        into_one,
        neutral("Add", 0, commute=True),
        neutral("Sub", 0, commute=False),
        neutral("Mul", 1, commute=True),
        neutral("Div", 1, commute=False),
    )
