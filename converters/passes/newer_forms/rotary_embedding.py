"""RotaryEmbedding of opset 23."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import onnx_ir as ir
from onnx_ir.passes import InPlacePass, PassResult

from converters.passes.newer_forms.matching import inputs, number, orders, produced, size_of
from onnx_specops.building import Builder, Value
from onnx_specops.graphs import all_nodes, constant_list, dimension
from onnx_specops.replacing import replace_value

_LIKE = frozenset(("Cos", "Sin", "Cast", "Neg", "Identity", "Exp"))
_PAIRWISE = frozenset(("Add", "Div", "Mul", "Sub"))
_DEEP = 20


@dataclass(frozen=True)
class _Rotation:
    """A value of rotated pairs.

    Attributes:
        x: the value before the rotation.
        cosine, sine: the cosines and sines of the angles, broadcast to ``x``, of pairs or of elements (``doubled``).
        interleaved: whether adjacent elements are a pair, rather than elements of the two halves.
        doubled: whether there are cosines and sines for both elements of each pair.
        through: the values whose nodes make the angles of a pair's elements equal.
    """

    x: Value
    cosine: Value
    sine: Value
    interleaved: bool
    doubled: bool
    through: Sequence[ir.Value] = ()


@dataclass
class _Emission:
    """The state of one traversal.

    Attributes:
        root: the builder of the graph.
        following: the node after each node of the graph, before the traversal. New nodes do not change this order.
        angles: the emitted cosines and sines, which layers share.
    """

    root: Builder
    following: Mapping[ir.Node, ir.Node]
    angles: dict[Hashable, list[Value]] = field(default_factory=dict)


class FuseRotaryEmbedding(InPlacePass):
    """Fuse rotations of pairs of elements by angles that all heads share.

    The last axis has an even, known size. The cosines and sines of the two elements of a pair are the same value. They are
    broadcast along the heads: [batch or 1, 1, tokens, size] for x [batch, heads, tokens, size], [batch or 1, tokens, 1,
    size] for [batch, tokens, heads, size], [1, tokens, size] for [heads, tokens, size]. If the number of tokens or rows of
    the angles is known, that of ``x`` is known, too. If neither is known and they differ at run time, the operator raises an
    error.
    """

    def call(self, model: ir.Model) -> PassResult:
        emission: _Emission | None = None
        count = 0
        for node in list(all_nodes(model.graph)):
            if node.domain or node.graph is not model.graph:
                continue
            rotation = _rotation(node)
            if rotation is None or rotation.x.dtype != ir.DataType.FLOAT:
                continue
            if (layout := _layout(rotation)) is None:
                continue
            emission = emission or _Emission(Builder.of_existing(model.graph), dict(pairwise(model.graph)))
            count += _replaced(node, rotation, layout, emission)
        return PassResult(model, modified=count > 0)


def _rotation(node: ir.Node) -> _Rotation | None:
    if node.op_type == "Add":
        return _by_elements(node)
    if node.op_type == "Concat":
        return _by_pairs(node)
    if node.op_type == "Reshape":
        return _by_neighbors(node)
    return None


# -- x * cos + rotated(x) * sin --------------------------------------------------------------------------------------------


def _by_elements(node: ir.Node) -> _Rotation | None:
    for first, second in orders(node):
        straight, turned = produced(first, "Mul"), produced(second, "Mul")
        if straight is None or turned is None:
            continue
        for half, sine in orders(turned):
            found = _quarter_turn(half)
            if found is None:
                continue
            x, interleaved = found
            for same, cosine in orders(straight):
                if same is not x or size_of(cosine) != size_of(x) or size_of(sine) != size_of(x):
                    continue
                through: list[ir.Value] = []
                seen: set[ir.Value] = set()
                if all(_is_doubled(angles, interleaved, through, seen) for angles in (cosine, sine)):
                    return _Rotation(x, cosine, sine, interleaved, doubled=True, through=through)
    return None


def _quarter_turn(value: Value) -> tuple[Value, bool] | None:
    """Return ``x`` if the value is ``x`` with its pairs rotated by 90 degrees, and whether adjacent elements are pairs."""
    if (node := produced(value, "Concat")) is not None and _is_last(node, value):
        if len(node.inputs) == 2:
            x, first = _half(_negated(node.inputs[0]), interleaved=False)
            same, second = _half(node.inputs[1], interleaved=False)
            if x is not None and same is x and (first, second) == (1, 0):
                return x, False
        return None
    if (node := produced(value, "Reshape")) is not None:
        concat = produced(node.inputs[0], "Concat")
        if concat is None or not _is_last(concat, concat.outputs[0]) or len(concat.inputs) != 2:  # type: ignore[arg-type]
            return None
        x, first = _column(concat.inputs[0], negated=True)
        same, second = _column(concat.inputs[1], negated=False)
        if x is not None and same is x and (first, second) == (1, 0) and _is_alike(value, x):
            return x, True
    return None


def _is_alike(value: Value, x: Value) -> bool:
    """Return whether two values of equal size have the same dimensions."""
    if value.shape is None or x.shape is None or len(value.shape) != len(x.shape):
        return False
    return sum(dimension(value, axis) != dimension(x, axis) for axis in range(len(x.shape))) <= 1


def _has_rows_of(half: Value, x: Value) -> bool:
    """Return whether a value of half the size has the same dimensions before the last."""
    rank = x.rank or 0
    return half.rank == rank and sum(dimension(half, axis) != dimension(x, axis) for axis in range(rank - 1)) <= 1


def _column(value: ir.Value | None, *, negated: bool) -> tuple[Value | None, int]:
    """Return ``x`` if the value [..., 1] has the first (0) or second (1) element of its adjacent pairs, or its negative."""
    if not isinstance(value, Value) or size_of(value) != 1:
        return None, -1
    count = size_of(value, -2)
    signs = 0
    for _ in range(_DEEP):
        found = _half(value, interleaved=True)
        if found[0] is None:
            found = _part_of_pairs(value)
        if found[0] is not None:
            right = signs % 2 == negated and count is not None and size_of(found[0]) == 2 * count
            return found if right else (None, -1)
        if (inner := _negated(value)) is not None:
            signs += 1
        elif (node := produced(value, "Reshape", "Squeeze", "Unsqueeze")) is not None:
            inner = node.inputs[0]
        else:
            break
        if not isinstance(inner, Value):
            break
        value = inner
    return None, -1


def _is_last(node: ir.Node, value: Value) -> bool:
    axis = node.attributes.get_int("axis", 0)
    return value.rank is not None and axis % value.rank == value.rank - 1


def _stacked(node: ir.Node) -> tuple[Value, Value] | None:
    """Return two values whose elements alternate along the last axis of a Reshape's result."""
    pairs = node.inputs[0]
    concat = produced(pairs, "Concat")
    whole = node.outputs[0]
    if concat is None or len(concat.inputs) != 2 or not isinstance(pairs, Value) or not isinstance(whole, Value):
        return None
    if not _is_last(concat, pairs) or pairs.rank is None or whole.rank != pairs.rank - 1 or size_of(pairs) != 2:
        return None
    parts = [_unsqueezed(value) for value in concat.inputs]
    first, second = parts
    if first is None or second is None or size_of(whole) is None or size_of(first) != (size_of(whole) or 0) // 2:
        return None
    return first, second


def _unsqueezed(value: ir.Value | None) -> Value | None:
    """Return the value before a dimension of 1 was appended."""
    node = produced(value, "Unsqueeze", "Reshape")
    if node is None or not isinstance(value, Value) or not isinstance(node.inputs[0], Value):
        return None
    x = _unexpanded(node.inputs[0])
    if x.rank is None or value.rank != x.rank + 1 or size_of(value) != 1 or size_of(value, -2) != size_of(x):
        return None
    if node.op_type == "Unsqueeze":
        axes = constant_list(node.inputs[1]) or []
        if [axis % value.rank for axis in axes] != [value.rank - 1]:
            return None
    return x


def _unexpanded(value: Value) -> Value:
    """Return the input of an Expand that has no effect: each requested size is 1 or already present."""
    node = produced(value, "Expand")
    x = None if node is None else node.inputs[0]
    if node is None or not isinstance(x, Value) or value.rank != x.rank:
        return value
    target, dims = constant_list(node.inputs[1]), x.dims or []
    if target is None or len(target) > len(dims):
        return value
    kept = all(size in (1, dim) for size, dim in zip(target[::-1], dims[::-1], strict=False))
    return x if kept else value


def _negated(value: ir.Value | None) -> ir.Value | None:
    if (node := produced(value, "Neg")) is not None:
        return node.inputs[0]
    if (node := produced(value, "Mul")) is not None:
        for x, factor in orders(node):
            if number(factor) == -1 and (factor.rank or 0) <= (x.rank or 0):
                return x
    return None


def _half(value: ir.Value | None, *, interleaved: bool) -> tuple[Value | None, int]:
    """Return ``x`` if the value has the first (0) or second (1) element of each of its pairs, and which."""
    missing = None, -1
    if value is None or not isinstance(value, Value):
        return missing
    if (node := produced(value, "Squeeze", "Reshape")) is not None and interleaved:
        return _half_of_pairs(node, value)
    if (node := produced(value, "Split")) is not None and not interleaved:
        x = node.inputs[0]
        axis = node.attributes.get_int("axis", 0)
        if not isinstance(x, Value) or not x.rank or axis % x.rank != x.rank - 1 or len(node.outputs) != 2:
            return missing
        size = size_of(x)
        return (x, list(node.outputs).index(value)) if size is not None and size_of(value) == size // 2 else missing
    node = produced(value, "Slice", "Gather")
    x = None if node is None else node.inputs[0]
    if node is None or not isinstance(x, Value) or not x.rank or (size := size_of(x)) is None or size % 2:
        return missing
    if node.op_type == "Gather":
        axis = node.attributes.get_int("axis", 0) % x.rank
        chosen = constant_list(node.inputs[1])
        if interleaved and size == 2 and axis == x.rank - 1 and value.rank == x.rank - 1 and chosen in ([0], [1]):
            pairs = _reshaped_to_pairs(x)
            return (pairs, chosen[0]) if pairs is not None else missing
        if axis != x.rank - 1 or chosen is None or value.rank != x.rank:
            return missing
        places = [place % size for place in chosen]
    else:
        starts, ends, axes = (constant_list(one) for one in node.inputs[1:4])
        steps = constant_list(node.inputs[4]) if len(node.inputs) > 4 else [1]
        if starts is None or ends is None or axes is None or steps is None or len(axes) != 1:
            return missing
        if axes[0] % x.rank != x.rank - 1:
            return missing
        places = list(range(size))[slice(starts[0], ends[0], steps[0])] if steps[0] > 0 else []
    for which in (0, 1):
        wanted = range(which, size, 2) if interleaved else range(which * (size // 2), (which + 1) * (size // 2))
        if places == list(wanted):
            return x, which
    return missing


def _half_of_pairs(node: ir.Node, value: Value) -> tuple[Value | None, int]:
    """Return the result of `_half` for a value that is reshaped to pairs."""
    one = node.inputs[0]
    if not isinstance(one, Value) or one.rank is None or value.rank != one.rank - 1 or size_of(value) != size_of(one, -2):
        return None, -1
    x, which = _part_of_pairs(one)
    return (x, which) if x is not None and x.rank == value.rank else (None, -1)


def _part_of_pairs(one: Value) -> tuple[Value | None, int]:
    """Return the value that is reshaped to pairs, and which of the two elements a value [..., 1] has."""
    missing = None, -1
    if one.rank is None or size_of(one) != 1:
        return missing
    node = produced(one, "Slice", "Split")
    pairs = None if node is None else node.inputs[0]
    if node is None or not isinstance(pairs, Value) or size_of(pairs) != 2:
        return missing
    if node.op_type == "Split":
        if node.attributes.get_int("axis", 0) % one.rank != one.rank - 1:
            return missing
        which = list(node.outputs).index(one)
    else:
        starts, ends, axes = (constant_list(given) for given in node.inputs[1:4])
        if starts is None or ends is None or axes is None or [axis % one.rank for axis in axes] != [one.rank - 1]:
            return missing
        places = [0, 1][slice(starts[0], ends[0])]
        if len(places) != 1:
            return missing
        which = places[0]
    x = _reshaped_to_pairs(pairs)
    return missing if x is None else (x, which)


def _reshaped_to_pairs(pairs: Value) -> Value | None:
    """Return the value that is reshaped to [..., size / 2, 2]."""
    reshaped = produced(pairs, "Reshape")
    x = None if reshaped is None else reshaped.inputs[0]
    if not isinstance(x, Value) or pairs.rank is None or x.rank != pairs.rank - 1 or size_of(pairs) != 2:
        return None
    size = size_of(x)
    return x if size is not None and size == 2 * (size_of(pairs, -2) or 0) else None


# -- concat(x1 * cos - x2 * sin, x2 * cos + x1 * sin) ----------------------------------------------------------------------


def _by_pairs(node: ir.Node) -> _Rotation | None:
    whole = node.outputs[0]
    if not isinstance(whole, Value) or len(node.inputs) != 2 or not _is_last(node, whole):
        return None
    found = _real_and_imaginary(node.inputs[0], node.inputs[1], interleaved=False)
    if found is None or size_of(whole) != size_of(found.x):
        return None
    return found


def _by_neighbors(node: ir.Node) -> _Rotation | None:
    whole = node.outputs[0]
    if not isinstance(whole, Value) or (parts := _stacked(node)) is None:
        return None
    found = _real_and_imaginary(*parts, interleaved=True)
    return found if found is not None and _is_alike(whole, found.x) else None


def _real_and_imaginary(real: ir.Value | None, imaginary: ir.Value | None, *, interleaved: bool) -> _Rotation | None:
    less, more = produced(real, "Sub"), produced(imaginary, "Add")
    if less is None or more is None:
        return None
    a, b = produced(less.inputs[0], "Mul"), produced(less.inputs[1], "Mul")
    if a is None or b is None:
        return None
    for first, cosine in orders(a):
        x, which = _half(first, interleaved=interleaved)
        if x is None or which != 0:
            continue
        for second, sine in orders(b):
            same, other = _half(second, interleaved=interleaved)
            if same is not x or other != 1 or size_of(cosine) != size_of(first) or size_of(sine) != size_of(first):
                continue
            if interleaved and not _has_rows_of(first, x):
                continue
            for one, two in orders(more):
                c, d = produced(one, "Mul"), produced(two, "Mul")
                if c is None or d is None:
                    continue
                if any(_half(u, interleaved=interleaved) == (x, 1) and v is cosine for u, v in orders(c)) and any(
                    _half(u, interleaved=interleaved) == (x, 0) and v is sine for u, v in orders(d)
                ):
                    return _Rotation(x, cosine, sine, interleaved, doubled=False)
    return None


# -- angles ----------------------------------------------------------------------------------------------------------------


def _is_doubled(value: Value, interleaved: bool, through: list[ir.Value], seen: set[ir.Value], depth: int = 0) -> bool:
    """Return whether both elements of each pair along the last axis are equal; ``through`` receives the values that decide
    it. Values in ``seen`` count as equal: if they are not, the result is false for another reason.
    """
    if value in seen:
        return True
    seen.add(value)
    size = size_of(value)
    if size is None or size % 2 or depth > _DEEP:
        return False
    if value.const_value is not None and not value.is_graph_input():
        array = value.const_value.numpy()
        return np.array_equal(_first(array, interleaved), _second(array, interleaved))
    node = value.producer()
    if node is None or node.domain:
        return False
    through.append(value)
    given = inputs(node)
    x = given[0] if given else None
    if node.op_type == "Concat" and interleaved:
        return _is_last(node, value) and all(
            one is not None and _is_doubled(one, True, through, seen, depth + 1) for one in given
        )
    if node.op_type == "Concat":
        return _is_last(node, value) and len(given) == 2 and x is not None and given[1] is x
    if node.op_type == "Tile":
        repeats = constant_list(given[1])
        return not interleaved and repeats is not None and repeats[-1] % 2 == 0
    if node.op_type == "Reshape" and interleaved and _is_repeated(node, value):
        pairs = node.inputs[0]
        assert pairs is not None and pairs.producer() is not None
        parts = [one for one in inputs(pairs.producer()) if one is not None]  # type: ignore[arg-type]
        through += [pairs, *parts]
        return True
    if node.op_type == "Gather" and x is not None and x.rank and node.attributes.get_int("axis", 0) % x.rank == x.rank - 1:
        places = np.array(constant_list(given[1]) or range(size))
        return value.rank == x.rank and bool((_second(places, interleaved) == _first(places, interleaved)).all())
    if node.op_type == "Where":
        given = [one for one in given if one is None or (one.rank != 0 and size_of(one) != 1)]
        return bool(given) and all(
            one is not None and _is_doubled(one, interleaved, through, seen, depth + 1) for one in given
        )
    if node.op_type in _LIKE:
        return x is not None and _is_doubled(x, interleaved, through, seen, depth + 1)
    if node.op_type in _PAIRWISE:
        return all(
            one is not None
            and (size_of(one) == 1 or one.rank == 0 or _is_doubled(one, interleaved, through, seen, depth + 1))
            for one in given
        )
    if x is None or size_of(x) != size or x.rank is None or value.rank is None:
        return False
    if node.op_type == "Transpose":
        order = list(node.attributes.get_ints("perm", ()))
        moved = bool(order) and order[-1] == x.rank - 1
    elif node.op_type == "Gather":
        moved = node.attributes.get_int("axis", 0) % x.rank != x.rank - 1
    elif node.op_type == "Slice":
        axes = constant_list(given[3]) if len(given) > 3 else None
        moved = axes is not None and all(axis % x.rank != x.rank - 1 for axis in axes)
    else:
        moved = node.op_type in ("Reshape", "Squeeze", "Unsqueeze", "Expand")
        if node.op_type == "Unsqueeze":
            moved = all(axis % value.rank != value.rank - 1 for axis in constant_list(given[1]) or [-1])
        if node.op_type == "Squeeze":
            moved = len(given) > 1 and all(axis % x.rank != x.rank - 1 for axis in constant_list(given[1]) or [-1])
    return moved and _is_doubled(x, interleaved, through, seen, depth + 1)


def _first(array: np.ndarray, interleaved: bool) -> np.ndarray:
    """Return the first elements of pairs."""
    return array[..., ::2] if interleaved else array[..., : array.shape[-1] // 2]


def _second(array: np.ndarray, interleaved: bool) -> np.ndarray:
    """Return the second elements of pairs."""
    return array[..., 1::2] if interleaved else array[..., array.shape[-1] // 2 :]


def _is_repeated(node: ir.Node, value: Value) -> bool:
    """Return whether a Reshape's result has each element twice: [..., size, 1], expanded to [..., size, 2] or stacked."""
    parts = _stacked(node)
    if parts is not None:
        return parts[0] is parts[1]
    pairs = node.inputs[0]
    expanded = produced(pairs, "Expand", "Tile")
    if expanded is None or not isinstance(pairs, Value) or size_of(pairs) != 2 or _size(expanded.inputs[0]) != 1:
        return False
    return value.rank is not None and pairs.rank == value.rank + 1 and size_of(pairs, -2) == (size_of(value) or 0) // 2


def _size(value: ir.Value | None) -> int | None:
    return size_of(value) if isinstance(value, Value) else None


# -- layouts ---------------------------------------------------------------------------------------------------------------


def _layout(rotation: _Rotation) -> str | None:
    """Return ``"BNSH"``, ``"BSNH"`` or ``"NSH"``: the axes of ``x``, from those along which the angles are broadcast."""
    rank, size = rotation.x.rank, size_of(rotation.x)
    if rank is None or not size or size % 2:
        return None
    found = set()
    for angles in (rotation.cosine, rotation.sine):
        dims = angles.dims
        if dims is None or len(dims) > rank:
            return None
        dims = [*[1] * (rank - len(dims)), *dims]
        # A value with one token would be broadcast to several tokens of the angles.
        if any(dim not in (None, 1, size_of(rotation.x, axis)) for axis, dim in enumerate(dims[:-1])):
            return None
        if rank == 4 and dims[1] == 1:
            found.add("BNSH")
        elif rank == 4 and dims[2] == 1 and size_of(rotation.x, 2):
            found.add("BSNH")
        elif rank == 3 and dims[0] == 1:
            found.add("NSH")
        else:
            return None
    return found.pop() if len(found) == 1 else None


def _replaced(node: ir.Node, rotation: _Rotation, layout: str, emission: _Emission) -> bool:
    x, whole = rotation.x, node.outputs[0]
    op = Builder.before_node(node, emission.root)
    made = [_angles(op, one, rotation, layout, emission) for one in (rotation.cosine, rotation.sine)]
    cosine, sine = (values[-1] for values in made)
    given: dict[str, Any] = {"interleaved": 1} if rotation.interleaved else {}
    shape: Any = None if x.shape is None else list(x.shape)
    if layout == "BNSH":
        result = op.node("RotaryEmbedding", x, cosine, sine, types=[(x.dtype, shape)], version=23, **given)
    elif layout == "NSH":
        one = op.Unsqueeze(x, [0])
        types = [(x.dtype, None if shape is None else [1, *shape])]
        result = op.Squeeze(op.node("RotaryEmbedding", one, cosine, sine, types=types, version=23, **given), [0])
    else:
        assert shape is not None
        heads, size = size_of(x, 2), size_of(x)
        flat = op.Reshape(x, [0, 0, (heads or 1) * (size or 1)])
        types = [(x.dtype, [*shape[:2], (heads or 1) * (size or 1)])]
        turned = op.node("RotaryEmbedding", flat, cosine, sine, types=types, version=23, num_heads=heads, **given)
        result = op.Reshape(turned, [0, 0, heads, size])
    return isinstance(whole, Value) and replace_value(whole, result, through=[*rotation.through, *made[0], *made[1]])


def _angles(op: Builder, value: Value, rotation: _Rotation, layout: str, emission: _Emission) -> list[Value]:
    """Emit the cosines or sines of pairs, [batch, tokens, pairs]; return the emitted values, of which the last is the
    result.
    """
    x, size = rotation.x, size_of(rotation.x) or 0
    tokens = 1 if layout == "BSNH" or layout == "NSH" else 2
    batch: Hashable = 1 if layout == "NSH" else dimension(x, 0)
    key = (value, rotation.interleaved, layout, batch, dimension(x, tokens))
    if key in emission.angles:
        return emission.angles[key]
    # Next to the angles themselves, because the next nodes may be before the rotated values.
    producer = value.producer()
    if producer is not None and producer.graph is op.graph and isinstance(producer.graph, ir.Graph):
        following = emission.following.get(producer)
        place = Builder(producer.graph, root=op.outermost, before=following) if following is not None else op
        place.scope = op.scope
    else:
        place = op
    half = value
    if rotation.doubled and rotation.interleaved:
        half = place.Slice(value, [0], [size], [-1], [2])
    elif rotation.doubled:
        half = place.Slice(value, [0], [size // 2], [-1])
    rank = half.rank or 0
    whole_rank = x.rank or 0
    if layout == "NSH":
        flat = half if rank == 3 else place.Unsqueeze(half, list(range(3 - rank)))
    else:
        wide = half if rank == whole_rank else place.Unsqueeze(half, list(range(whole_rank - rank)))
        flat = place.Squeeze(wide, [1 if layout == "BNSH" else 2])
    if (dimension(flat, 0), dimension(flat, 1)) == (batch, dimension(x, tokens)):
        emission.angles[key] = [half, flat]
        return emission.angles[key]
    # The operator's angles have the batch and tokens of ``x``.
    shape = op.Shape(x) if layout != "NSH" else op.Shape(op.Unsqueeze(x, [0]))
    target = op.Concat(
        op.Slice(shape, [0], [1], [0]),
        op.Slice(shape, [tokens if layout != "NSH" else 2], [tokens + 1 if layout != "NSH" else 3], [0]),
        [size // 2],
        axis=0,
    )
    emission.angles[key] = [half, flat, op.Expand(flat, target)]
    return emission.angles[key]
