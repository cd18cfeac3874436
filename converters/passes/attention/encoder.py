"""Attention without a cache as one node, `onnx_specops.Attention`.

The kernel processes the keys in blocks and never stores all attention weights of a query. The body of the operator is ONNX
Runtime's MultiHeadAttention, which also works in blocks. With a mask, the body is MatMul and Softmax, because
MultiHeadAttention then stores all weights. For 1,500 tokens and 8 heads of size 64, both take 0.8 of the time of MatMul and
Softmax; for 200 tokens and 6 heads, the time is equal.

In the operator's layout, the heads of a token are adjacent. If the graph has this layout, the transpositions around the
attention are removed. A packed projection of query, key and value is split into three. If queries and keys are quantized and
heads are before tokens, each head is a batch of one head, which needs no transposition.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import onnx_ir as ir

from converters.passes.attention.canonical import Attention, UnsupportedAttention
from converters.passes.attention.spellings import Constants, read
from converters.passes.patterns import PatternPass, rewrite
from converters.passes.quantized.graph import has_levels
from onnx_specops.building import Builder, Value
from onnx_specops.domain import DOMAIN
from onnx_specops.graphs import attributes_of, constant_array, constant_list
from onnx_specops.partial_values import Expression

_IN_ORDER = (0, 1, 2, 3)
_HEADS_FIRST = (0, 2, 1, 3)
_KEYS_LAST = (0, 1, 3, 2)
_FROM_PACKED = (2, 0, 3, 1, 4)
_LONG = 256
"""With this number of keys, the gain outweighs transpositions that only the node needs."""


@rewrite("MatMul", lambda op, scores, v: op.MatMul(op.Softmax(scores, _outputs=["weights"]), v))
def fuse_attention(op: Builder, *, scores: Value, v: Value, weights: Value) -> Value | None:
    """Fuse attention without infinite numbers."""
    del scores, v
    found = _canonical(weights)
    return None if found is None or _is_of_finite(found) else _lowered(op, found)


@rewrite("MatMul", lambda op, scores, v: op.MatMul(op.Softmax(scores, _outputs=["weights"]), v), finite=True)
def fuse_attention_of_finite(op: Builder, *, scores: Value, v: Value, weights: Value) -> Value | None:
    """Fuse attention that differs for NaN: an infinite value of a key that a boolean mask hides gives NaN in a MatMul."""
    del scores, v
    found = _canonical(weights)
    return _lowered(op, found) if found is not None and _is_of_finite(found) else None


@rewrite(
    "Reshape",
    lambda op, x, bias, mask, apart, together: op.Reshape(
        op.Add(op.Reshape(op.Add(x, bias, _outputs=["biased"]), apart, _outputs=["windows"]), mask),
        together,
        _outputs=["whole"],
    ),
    commute=True,
)
def join_window_masks(
    op: Builder, *, x: Value, bias: Value, mask: Value, biased: Value, windows: Value, whole: Value, **shapes: Value
) -> Value | None:
    """Join the two masks of window attention, as in Swin.

    A bias that all windows share is added to scores of ``[batch * windows, heads, tokens, tokens]``. A mask for each window
    is added to the same scores as ``[batch, windows, heads, tokens, tokens]``. The result is one mask.
    """
    del shapes
    if x.dims is None or bias.dims is None or not _same(biased, x):
        return None
    of_all = [1] * (4 - len(bias.dims)) + bias.dims
    if len(of_all) != 4 or of_all[0] != 1:
        return None
    return _masked_windows(op, x, mask, windows, whole, bias)


@rewrite(
    "Reshape",
    lambda op, x, mask, apart, together: op.Reshape(
        op.Add(op.Reshape(x, apart, _outputs=["windows"]), mask), together, _outputs=["whole"]
    ),
    commute=True,
)
def merge_window_masks(op: Builder, *, x: Value, mask: Value, windows: Value, whole: Value, **shapes: Value) -> Value | None:
    """Add the masks of windows to scores of ``[batch * windows, heads, tokens, tokens]``, without Reshapes."""
    del shapes
    return _masked_windows(op, x, mask, windows, whole, None)


def _masked_windows(op: Builder, x: Value, mask: Value, windows: Value, whole: Value, bias: Value | None) -> Value | None:
    """Emit the sum of scores, a mask for each window, and a bias of all windows.

    Conditions: ``windows`` splits the first of the four dimensions of ``x``, and ``whole`` has them again; the mask is the
    same for each image, and broadcasts to the windows of one.
    """
    if x.dims is None or mask.dims is None or windows.dims is None or whole.dims is None:
        return None
    if len(x.dims) != 4 or len(windows.dims) != 5 or None in windows.dims[1:]:
        return None
    # Only the first dimension is split and merged again.
    if not windows.dims[2:] == x.dims[1:] == whole.dims[1:] or len(whole.dims) != 4:
        return None
    count = windows.dims[1]
    assert count is not None
    of_windows = [1] * (5 - len(mask.dims)) + mask.dims
    if len(of_windows) != 5 or of_windows[:2] != [1, count]:
        return None
    if any(size not in (1, wanted) for size, wanted in zip(of_windows[2:], x.dims[1:], strict=True)):
        return None
    one = op.Reshape(mask, of_windows[1:])
    if bias is not None:
        one = op.Add(bias, one)
    if x.dims[0] != count:
        # Each image of a batch has the same windows.
        sizes = of_windows[2:] if bias is None else x.dims[1:]
        images = op.Div(op.Shape(_keys(x), start=0, end=1), [count])
        one = op.Expand(op.Unsqueeze(one, [0]), op.Concat(images, [count, *sizes], axis=0))
        one = op.Reshape(one, [-1, *sizes])
        if x.dims[0] is None:  # the name shows that the dimensions are equal
            x.shape, one.shape = ir.Shape([one.name, *x.dims[1:]]), ir.Shape([one.name, *sizes])
    return op.Add(x, one)


def _keys(scores: Value) -> ir.Value:
    """Return the keys, which have the same batch as the scores but are not replaced."""
    node = scores.producer()
    while node is not None and node.op_type in ("Mul", "Div") and node.inputs[0] is not None:
        node = node.inputs[0].producer()
    transposed = None if node is None or node.op_type != "MatMul" else node.inputs[1]
    return scores if transposed is None or _perm(transposed) != _KEYS_LAST else _transposed(transposed)


def _same(a: Value, b: Value) -> bool:
    """Return whether two values have the same shape, as far as it is known."""
    return a.shape is not None and a.shape == b.shape


def _broadcasts_to(mask: ir.Value, scores: ir.Value) -> bool:
    """Return whether each dimension of the mask is 1 or that of the scores."""
    if mask.shape is None or scores.shape is None or len(mask.shape) > len(scores.shape) or mask.dtype is None:
        return False
    pairs = zip(reversed(mask.shape), reversed(scores.shape), strict=False)
    return all(a == 1 or (a == b and (isinstance(a, int) or a.value is not None)) for a, b in pairs)


def _canonical(weights: Value) -> Attention | None:
    """Return the attention of the Softmax that computes ``weights``, if its inner values have no other consumers."""
    softmax = weights.producer()
    assert softmax is not None
    try:
        found = read(softmax, Constants(), ranks=(4, 5))
    except UnsupportedAttention:
        return None
    return found if found.is_exclusive else None


def _is_of_finite(found: Attention) -> bool:
    return found.mask is not None and (found.is_boolean or found.scores is found.product)


def _lowered(op: Builder, found: Attention) -> Value | None:
    """Emit the node for an attention, if the operator supports it."""
    q, k, v, mask, weights = found.query, found.key, found.value, found.mask, found.softmax.outputs[0]
    assert isinstance(q, Value) and isinstance(k, Value) and isinstance(v, Value) and isinstance(weights, Value)
    order = tuple(found.order)
    if found.softcap or found.sink is not None or (found.is_boolean and found.lowest != -math.inf):
        return None
    if mask is not None and not _broadcasts_to(mask, found.scores):
        return None
    if order not in (_IN_ORDER, _HEADS_FIRST):
        return _lowered_by_batch(op, found)
    if q.dtype != ir.DataType.FLOAT and (q.dtype != ir.DataType.FLOAT16 or mask is not None):
        return None
    # A scalar factor or mask may add a dimension.
    if any(value.dims is None or len(value.dims) != 4 for value in (q, k, v, weights)):
        return None
    assert q.dims is not None and k.dims is not None and v.dims is not None
    heads, key_dims = q.dims[1], [k.dims[axis] for axis in order]
    # The operator does not broadcast heads or batches.
    if heads is None or key_dims[1] != heads or v.dims[1] != heads or not same_batch(q, k, v):
        return None
    if q.dims[3] is None or v.dims[3] is None:
        return None
    is_long = key_dims[2] is not None and key_dims[2] >= _LONG and mask is None
    heads_first = (q, k, v) if order == _IN_ORDER else (q, v)
    turned = [_turned(x) for x in heads_first]
    if not is_long and any(one is None or (mask is None and one.is_only_scaled) for one in turned):
        return _lowered_by_batch(op, found)
    # The size of a key may be unknown; it is that of a query.
    queries, values = _rows(op, q, heads * q.dims[3]), _rows(op, v, heads * v.dims[3])
    keys = _rows(op, k, heads * q.dims[3]) if order == _IN_ORDER else op.Reshape(k, [0, 0, heads * q.dims[3]])
    if q.dtype == ir.DataType.FLOAT16:
        rows = op.contrib.MultiHeadAttention(queries, keys, values, num_heads=heads, scale=found.scale)
    else:
        rows = op.specops.Attention(queries, keys, values, mask, q_num_heads=heads, kv_num_heads=heads, scale=found.scale)
    return op.Transpose(op.Reshape(rows, [0, 0, heads, v.dims[3]]), perm=_HEADS_FIRST)


def _lowered_by_batch(op: Builder, found: Attention) -> Value | None:
    """Emit the node for quantized queries and keys whose heads are before their tokens: each head is a batch of one head.

    Conditions: the dimensions are known and not 0; those before the tokens are equal; and the mask has all of them or none.
    """
    q, k, v, mask, output = found.query, found.key, found.value, found.mask, found.output
    assert isinstance(q, Value) and isinstance(k, Value) and isinstance(v, Value) and isinstance(output, Value)
    rank = len(found.order)
    if tuple(found.order) != tuple(range(rank)) or q.dtype != ir.DataType.FLOAT:
        return None
    if not has_levels(q) or not has_levels(k):
        return None
    if any(x.dims is None or None in x.dims or 0 in x.dims or len(x.dims) != rank for x in (q, k, v, output)):
        return None
    assert q.dims is not None and k.dims is not None and v.dims is not None
    before = [size for size in q.dims[:-2] if size is not None]
    if not before == k.dims[:-2] == v.dims[:-2]:
        return None
    count = math.prod(before)
    if mask is not None:
        if not isinstance(mask, Value) or mask.dims is None or None in mask.dims:
            return None
        whole = [1] * (rank - len(mask.dims)) + mask.dims
        if whole[:-2] == before:
            mask = op.Reshape(mask, [count, 1, *whole[-2:]])
        elif set(whole[:-2]) == {1}:
            mask = op.Reshape(mask, [1, 1, *whole[-2:]])
        else:
            return None
    q_rows, k_rows, v_rows = (op.Reshape(x, [count, *x.dims[-2:]]) for x in (q, k, v) if x.dims is not None)
    rows = op.specops.Attention(q_rows, k_rows, v_rows, mask, q_num_heads=1, kv_num_heads=1, scale=found.scale)
    return op.Reshape(rows, [*before, q.dims[-2], v.dims[-1]])


def _rows(op: Builder, x: Value, size: int) -> Value:
    """Convert ``[batch, heads, tokens, size of a head]`` to ``[batch, tokens, size]``."""
    if (found := _turned(x)) is None:
        return op.Reshape(op.Transpose(x, perm=_HEADS_FIRST), [0, 0, size])
    value = found.source
    for node, constants in found.then:
        value = op.node(node.op_type, value, *constants, domain=node.domain, **attributes_of(node))
    return op.Reshape(value, [0, 0, size])


@dataclass(frozen=True)
class _Turned:
    """A value with the heads before the tokens.

    Attributes:
        source: the value in which the heads of a token are adjacent.
        then: the elementwise nodes after the transposition, in order, and their constants of one element.
    """

    source: ir.Value
    then: Sequence[tuple[ir.Node, Sequence[ir.Value]]]

    @property
    def is_only_scaled(self) -> bool:
        """Whether the value is multiplied but not quantized after the transposition."""
        return bool(self.then) and all(node.op_type == "Mul" for node, _ in self.then)


def _turned(x: ir.Value) -> _Turned | None:
    """Return the source of a value that is transposed, then perhaps multiplied by a number and quantized with one scale."""
    then: list[tuple[ir.Node, Sequence[ir.Value]]] = []
    while _perm(x) != _HEADS_FIRST:
        node = x.producer()
        if (
            node is None
            or (node.domain, node.op_type) not in (("", "Mul"), (DOMAIN, "FakeQuantize"))
            or node.inputs[0] is None
        ):
            return None
        constants = [value for value in node.inputs[1:] if value is not None]
        if any((array := constant_array(value)) is None or array.size != 1 or array.ndim > 4 for value in constants):
            return None
        then.insert(0, (node, constants))
        x = node.inputs[0]
        if len(x.uses()) != 1 or x.is_graph_output():
            return None  # it would be computed twice
    return _Turned(_transposed(x), then)


def _perm(x: ir.Value) -> tuple[int, ...] | None:
    """Return the permutation of the Transpose that computes the value."""
    node = x.producer()
    if node is None or node.op_type != "Transpose" or node.domain:
        return None
    return tuple(node.attributes.get_ints("perm", ()))


def _transposed(x: ir.Value) -> ir.Value:
    """Return the input of the Transpose that computes the value."""
    node = x.producer()
    assert node is not None and node.inputs[0] is not None
    return node.inputs[0]


def same_batch(*values: Value) -> bool:
    """Return whether the values have the same batch: equal sizes, or the same dimension of one value."""
    return same_dimension(*((value, 0) for value in values))


def same_dimension(*places: tuple[Value, int]) -> bool:
    """Return whether dimensions of values are equal: equal sizes, or the same dimension of one value."""
    sizes = [None if value.shape is None else value.shape[axis] for value, axis in places]
    if all(isinstance(size, int) for size in sizes):
        return len(set(sizes)) == 1
    known: _Known = {}
    return len({_origin(value, axis, known) for value, axis in places}) == 1


_Origin = tuple[ir.Value, int] | str
_Known = dict[tuple[ir.Value, int], _Origin]
_MAX_DEPTH = 32
"""The maximum number of consecutive sums and products whose operands are compared."""

_ELEMENTWISE = {"Add", "Div", "Mul", "Pow", "Sub"}
_LIKE = {"Cast", "Erf", "Gelu", "Identity", "LayerNormalization", "Neg", "Reciprocal", "Relu", "Sigmoid", "Sqrt", "Tanh"}


def _origin(x: ir.Value, axis: int, known: _Known, depth: int = 0) -> _Origin:
    """Return the first value and axis from which a dimension of ``x`` is copied, or the name of the dimension.

    The search ends after `_MAX_DEPTH` nodes that combine several values. The result is then an intermediate value and axis.
    """
    asked = []
    while (x, axis) not in known:
        asked.append((x, axis))
        size = None if x.shape is None or axis >= len(x.shape) else x.shape[axis]
        if isinstance(size, ir.SymbolicDim) and size.value is not None:
            known[x, axis] = size.value
            break
        node = x.producer()
        step = None if node is None or node.domain else _copied_from(node, axis, known, depth)
        if step is None or isinstance(step, str):
            known[x, axis] = step or (x, axis)
            break
        x, axis = step
    found = known[x, axis]
    known.update(dict.fromkeys(asked, found))
    return found


def _copied_from(node: ir.Node, axis: int, known: _Known, depth: int) -> _Origin | None:
    """Return the value and axis from which a dimension of a node's outputs is copied, or the name of the dimension."""
    if node.op_type in _ELEMENTWISE and depth < _MAX_DEPTH and (same := _of_both(node, axis, known, depth)) is not None:
        return same
    source = next((value for value in node.inputs if value is not None and value.const_value is None), None)
    if source is None or source.shape is None:
        return None
    rank = len(source.shape)
    match node.op_type:
        case "Transpose":
            return source, (tuple(node.attributes.get_ints("perm", ())) or tuple(range(rank))[::-1])[axis]
        case "Split":
            return None if node.attributes.get_int("axis", 0) % rank == axis else (source, axis)
        case "Squeeze":
            squeezed = node.inputs[1].const_value if len(node.inputs) > 1 and node.inputs[1] is not None else None
            if squeezed is None:
                return None
            kept = [i for i in range(rank) if i not in {int(out) % rank for out in squeezed.numpy().reshape(-1)}]
            return source, kept[axis]
        case "Reshape":
            if (asked := _requested_dim(node.inputs[1], axis)) is not None:
                return asked
            return (source, axis) if axis < rank and _keeps(node, source, axis) else None
        case name if name in _LIKE:
            return source, axis
        case "ReduceMean":
            axes = constant_list(node.inputs[1]) if len(node.inputs) > 1 else None
            keeps = (
                axes is not None and node.attributes.get_int("keepdims", 1) == 1 and axis not in [one % rank for one in axes]
            )
            return (source, axis) if keeps else None
        case "Slice":
            axes = constant_list(node.inputs[3]) if len(node.inputs) > 3 else None
            return (source, axis) if axes is not None and axis not in [one % rank for one in axes] else None
        case "Concat":
            return None if node.attributes.get_int("axis", 0) % rank == axis else (source, axis)
        case "Add" | "Mul":
            others = [value for value in node.inputs if value is not source]
            return (source, axis) if others and all(_keeps_dimension(other, rank - axis, rank) for other in others) else None
        case "MatMul" if source is node.inputs[0] and axis < rank - 1:
            if axis == rank - 2 and _has_rank(node.inputs[1], rank):  # the rows are those of the first operand
                return source, axis
            return (source, axis) if _keeps_dimension(node.inputs[1], rank - axis, rank) else None
    return None


def _of_both(node: ir.Node, axis: int, known: _Known, depth: int) -> _Origin | None:
    """Return the dimension of the result of two values if it is the same dimension, or 1, in both values."""
    rank = None if node.outputs[0].shape is None else len(node.outputs[0].shape)
    found = set()
    for x in node.inputs:
        if x is None or x.shape is None or rank is None:
            return None
        place = axis - rank + len(x.shape)
        if place >= 0 and x.shape[place] != 1:
            found.add(_origin(x, place, known, depth + 1))
    return found.pop() if len(found) == 1 else None


def _requested_dim(shape: ir.Value | None, axis: int) -> tuple[ir.Value, int] | str | None:
    """Return the dimension that the computed shape of a Reshape has for an axis."""
    elements = shape.elements if isinstance(shape, Value) else None
    element = None if elements is None or axis >= elements.size else elements.reshape(-1)[axis]
    match element.single if isinstance(element, Expression) else None:
        case ("symbol", str(name)):
            return name
        case ("dim", ir.Value() as value, int(of)):
            return value, of
    return None


def _has_rank(value: ir.Value | None, largest: int) -> bool:
    return value is not None and value.shape is not None and len(value.shape) <= largest


def _keeps_dimension(other: ir.Value | None, place: int, rank: int) -> bool:
    """Return whether broadcasting a constant keeps the dimension at ``place`` from the end of an input of ``rank``."""
    if other is None or other.const_value is None:
        return False
    dims = other.const_value.shape.numpy()
    return len(dims) <= rank and (len(dims) < place or dims[-place] == 1)


def _keeps(node: ir.Node, source: ir.Value, axis: int) -> bool:
    """Return whether a Reshape keeps a dimension: the shape has a zero there, or the sizes of the following dimensions are
    equal.
    """
    target = None if node.inputs[1] is None else node.inputs[1].const_value
    if target is None or node.attributes.get_int("allowzero", 0) != 0:
        return False
    shape = [int(size) for size in target.numpy().reshape(-1)]
    if shape[axis] == 0:
        return True
    if axis or shape[0] != -1 or source.shape is None or node.outputs[0].shape is None:
        return False
    before, after = list(source.shape)[1:], list(node.outputs[0].shape)[1:]
    sizes = [size for size in before + after if isinstance(size, int)]
    return len(sizes) == len(before) + len(after) and math.prod(sizes[: len(before)]) == math.prod(sizes[len(before) :]) > 0


@rewrite("Transpose", lambda op, x: op.Transpose(op.Transpose(x, _outputs=["inner"]), _outputs=["outer"]), exclusive=False)
def drop_inverse_transposes(op: Builder, *, x: Value, inner: Value, outer: Value) -> Value | None:
    """Remove two Transposes that cancel."""
    first, second = _perm(inner), _perm(outer)
    if not first or not second or [first[axis] for axis in second] != [*range(len(first))]:
        return None
    return x


@rewrite(
    "Reshape",
    lambda op, x, first, second: op.Reshape(op.Reshape(x, first, _outputs=["inner"]), second, _outputs=["outer"]),
    exclusive=False,
)
def drop_inverse_reshapes(op: Builder, *, x: Value, first: Value, second: Value, inner: Value, outer: Value) -> Value | None:
    """Remove two Reshapes that cancel, such as the split and merge of heads."""
    if x.dims is None or outer.dims is None or len(x.dims) != len(outer.dims):
        return None
    if first.constant is None or second.constant is None:
        return None
    apart, together = first.constant.tolist(), second.constant.tolist()
    for node, sizes in ((inner.producer(), apart), (outer.producer(), together)):
        if node is None or (node.attributes.get_int("allowzero", 0) != 0 and 0 in sizes):
            return None
    for axis, (before, after) in enumerate(zip(x.dims, outer.dims, strict=True)):
        stays = axis < len(apart) and apart[axis] == together[axis] == 0  # the dimension is unchanged
        if not stays and (before is None or before != after):
            return None
    return x


@rewrite(
    "Split",
    lambda op, x: op.Split(op.Transpose(x, _outputs=["transposed"]), num_outputs=3, _outputs=["first", "second", "third"]),
)
def split_packed_projections(
    op: Builder, *, x: Value, transposed: Value, first: Value, second: Value, third: Value
) -> list[Value] | None:
    """Split a packed projection: ``[batch, tokens, 3, heads, size]``, transposed to ``[3, batch, heads, tokens, size]`` and
    split.
    """
    node = first.producer()
    if _perm(transposed) != _FROM_PACKED or node is None or node.attributes.get_int("axis", 0) != 0 or x.dims is None:
        return None
    _, _, projections, heads, numbers = x.dims
    if projections != 3 or heads is None or numbers is None:
        return None
    size = heads * numbers
    rows = op.Split(op.Reshape(x, [0, 0, 3 * size]), [size] * 3, axis=2, outputs=3)
    turn = (op.Transpose(op.Reshape(row, [0, 0, heads, numbers]), perm=_HEADS_FIRST) for row in rows)
    return [op.Unsqueeze(row, [0]) for row in turn]


@rewrite("Squeeze", lambda op, x, unsqueezed, squeezed: op.Squeeze(op.Unsqueeze(x, unsqueezed), squeezed))
def drop_inverse_unsqueeze(op: Builder, *, x: Value, unsqueezed: Value, squeezed: Value) -> Value | None:
    """Remove an Unsqueeze and a Squeeze that cancel."""
    if (
        unsqueezed.constant is None
        or squeezed.constant is None
        or unsqueezed.constant.tolist() != squeezed.constant.tolist()
    ):
        return None
    return x


class SplitProjections(PatternPass):
    """Split packed projections of query, key and value."""

    rewrites = (split_packed_projections,)


class JoinMasks(PatternPass):
    """Join a bias and the masks of windows that are added in sequence, and add those of windows without Reshapes."""

    rewrites = (join_window_masks, merge_window_masks)


class FuseAttention(PatternPass):
    """Fuse softmax(scale * q @ k.T) @ v, with and without a mask."""

    rewrites = (drop_inverse_unsqueeze, drop_inverse_transposes, fuse_attention, fuse_attention_of_finite)


class DropInverseTransposes(PatternPass):
    """Remove Transposes and Reshapes that cancel."""

    rewrites = (drop_inverse_transposes, drop_inverse_reshapes)


FUSE_ATTENTION = (SplitProjections, JoinMasks, FuseAttention, DropInverseTransposes)
"""The passes, in order."""
