"""Shapes and data movement: axes and lengths that are attributes below opset 13, and dimensions of 0."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from onnx_specops.building import Builder, Value, constant_value
from onnx_specops.graphs import constant_array, constant_list
from onnx_specops.lowering.adapters import SAME, LoweringBuilder, NotRepresentableError, below, in_float32, need_rank
from onnx_specops.lowering.reductions import is_among

_END = 2**31 - 1
_MOVES = ("Concat", "Gather", "Identity", "Reshape", "Slice", "Squeeze", "Unsqueeze")
"""Operators that move the elements of a shape."""


@below(15, "Shape")
def shape(op: LoweringBuilder, x: Value, *, start=0, end=None):
    whole = op.old.Shape(x)
    return whole if start == 0 and end is None else op.Slice(whole, [start], [_END if end is None else end], [0])


@below(14, "Reshape")
def reshape(op: LoweringBuilder, x: Value, shape: Value, *, allowzero=0, node):
    """A 0 in the target copies a dimension of the input. Dimensions that must be 0 are handled separately if they differ
    from it.
    """
    plain = op.at(op.opset)
    if not allowzero or _copies(x, shape):
        return plain.Reshape(x, shape)
    stated = node.outputs[0].dims if isinstance(node.outputs[0], Value) else None
    if any(value is not None and _has_no_zero(value) for value in (x.dims, stated, constant_list(shape))):
        return plain.Reshape(x, shape)

    def empty(op: Builder) -> Value:
        return op.Expand(nothing(x.dtype), shape)

    if (dims := constant_list(shape)) is not None and 0 in dims:
        return empty(op)
    if stated is None and (shape.dims or [None])[0] is None:
        return _reshape_and_slice(op, x, shape)
    types = [(x.dtype, stated)]
    has_zero = op.Greater(op.ReduceSum(op.Cast(op.Equal(shape, 0), to=7), keepdims=0), 0)
    return op.if_(has_zero, empty, lambda inner: inner.node("Reshape", x, shape, version=op.opset, types=types))


def _reshape_and_slice(op: Builder, x: Value, shape: Value) -> Value:
    """Reshape to a shape of unknown rank: use 1 for dimensions of 0, then slice. (An If's graphs declare their ranks.)"""
    ones = op.ReduceProd(op.Max(shape, 1), keepdims=1)
    shape = op.Where(op.Equal(shape, -1), op.Div(op.Size(x), ones), shape)
    shape = op.Concat([1], shape, axis=0)  # scalars cannot be sliced
    whole = op.Max(shape, 1)
    size = op.ReduceProd(whole, keepdims=1)
    more = op.Concat(op.Reshape(x, [-1]), op.Expand(nothing(x.dtype), size), axis=0)
    return op.Squeeze(op.Slice(op.Reshape(op.Slice(more, [0], size), whole), op.Mul(shape, 0), shape), [0])


def _has_no_zero(dims: Sequence[int | None]) -> bool:
    return all(dim not in (None, 0) for dim in dims)


def _copies(x: Value, shape: Value) -> bool:
    """Whether each dimension that may be 0 equals the input's dimension at the same position."""
    sources = _dimensions(shape)
    return sources is not None and all(
        (isinstance(source, int) and source != 0) or source == (x, place) for place, source in enumerate(sources)
    )


def _dimensions(value: ir.Value | None, depth: int = 8) -> list[object] | None:
    """Return the source of each element of a shape: a number, a value and its dimension, or ``None``."""
    if value is None or not depth:
        return None
    if (numbers := constant_list(value)) is not None:
        return list(numbers)
    node = value.producer()
    length = None if value.shape is None else (1 if not len(value.shape) else value.shape[0])
    unknown: list[object] | None = [None] * length if isinstance(length, int) else None
    if node is None or node.domain:
        return unknown
    if node.op_type == "Shape":
        source = node.inputs[0]
        if source is None or source.shape is None:
            return unknown
        start, end = node.attributes.get_int("start", 0), node.attributes.get_int("end", _END)
        dims: list[object] = [dim if isinstance(dim, int) else (source, i) for i, dim in enumerate(source.shape)]
        return dims[start:end]
    if node.op_type not in _MOVES:  # others may have operands of other types, such as infinity
        return unknown
    parts = [_dimensions(part, depth - 1) for part in node.inputs[: None if node.op_type == "Concat" else 1]]
    if any(part is None for part in parts):
        return unknown
    if node.op_type == "Concat":
        return [dim for part in parts for dim in part or ()]
    found = parts[0] or []
    if node.op_type in ("Identity", "Squeeze", "Unsqueeze") or (node.op_type == "Reshape" and len(found) == length):
        return found
    chosen = [array for given in node.inputs[1:] if (array := constant_list(given)) is not None]
    if len(chosen) < len(node.inputs) - 1:
        return unknown
    if node.op_type == "Slice" and len(chosen) in (2, 3):
        return found[chosen[0][0] : chosen[1][0]]
    if node.op_type == "Gather" and all(-len(found) <= i < len(found) for i in chosen[0]):
        return [found[i] for i in chosen[0]]
    return unknown


def nothing(dtype: ir.DataType | None) -> Value:
    """Return one arbitrary element of a type."""
    if dtype == ir.DataType.STRING:
        return constant_value(np.array([""], object))
    return constant_value(np.zeros(1, np.float32), dtype)


@below(13, "Squeeze")
def squeeze(op: LoweringBuilder, x: Value, axes: Value | None = None):
    if axes is None:
        return SAME
    if (listed := constant_list(axes)) is not None:
        return op.old.Squeeze(x, axes=listed) if listed else x
    rank = need_rank(x, "Squeeze along run-time axes")
    gone = is_among(op, op.const(list(range(rank))), axes, rank)
    return op.Reshape(x, op.Compress(op.Shape(x), op.Not(gone)), allowzero=1)


@below(13, "Unsqueeze")
def unsqueeze(op: LoweringBuilder, x: Value, axes: Value):
    if (listed := constant_list(axes)) is not None:
        return op.old.Unsqueeze(x, axes=listed) if listed else x
    rank = op.Add(op.Size(op.Shape(x)), op.Size(axes))
    new = is_among(op, op.Range(0, rank, 1), axes, rank)
    # The dimensions of the input in order, skipping the new ones.
    place = op.Sub(op.CumSum(op.Cast(op.Not(new), to=7), 0), 1)
    dims = op.Gather(op.Concat(op.Shape(x), [1], axis=0), op.Max(place, 0))
    return op.Reshape(x, op.Where(new, op.const(1), dims), allowzero=1)


@below(18, "Split")
def split_evenly(op: LoweringBuilder, x: Value, lengths: Value | None = None, *, axis=0, num_outputs=None):
    if num_outputs is None:
        return SAME
    size = op.Shape(x, start=axis, end=axis + 1 or None)
    chunk = op.Div(op.Add(size, num_outputs - 1), num_outputs)
    ends = op.Min(op.Mul(chunk, list(range(1, num_outputs + 1))), size)
    starts = op.Min(op.Mul(chunk, list(range(num_outputs))), size)
    parts = op.Split(x, op.Sub(ends, starts), axis=axis, outputs=num_outputs)
    return parts if num_outputs > 1 else [parts]


@below(13, "Split")
def split(op: LoweringBuilder, x: Value, lengths: Value | None = None, *, axis=0, node):
    count = len(node.outputs)
    if lengths is None or (listed := constant_list(lengths)) is not None:
        parts = op.old.Split(x, split=None if lengths is None else listed, axis=axis, outputs=count)
        return parts if count > 1 else [parts]
    ends = op.CumSum(lengths, 0)
    starts = op.Sub(ends, lengths)
    return [op.Slice(x, *(op.Slice(edges, [i], [i + 1], [0]) for edges in (starts, ends)), [axis]) for i in range(count)]


@below(19, "Pad")
def pad_around(op: LoweringBuilder, x: Value, pads: Value, value: Value | None = None, axes=None, *, mode="constant"):
    """Compute mode "wrap" by gathering with indices."""
    if mode != "wrap":
        return SAME
    if axes is None:
        axes = op.const(list(range(need_rank(x, "Pad with the mode wrap"))))
    if (listed := constant_list(axes)) is None:
        raise NotRepresentableError("Pad with the mode wrap along run-time axes")
    for i, axis in enumerate(listed):
        size = op.Gather(op.Shape(x), axis)
        before, after = (op.Gather(pads, place) for place in (i, len(listed) + i))
        x = op.Gather(x, op.Mod(op.Range(op.Neg(before), op.Add(size, after), 1), size), axis=axis)
    return x


@below(18, "Pad")
def pad_axes(op: LoweringBuilder, x: Value, pads: Value, value: Value | None = None, axes=None, *, mode="constant"):
    if axes is None:
        return SAME
    rank = op.Size(op.Shape(x)) if x.rank is None else op.const(x.rank)
    axes = op.Cast(axes, to=7)
    axes = op.Where(op.Less(axes, 0), op.Add(axes, rank), axes)
    none = op.Expand(op.const([0]), op.Reshape(op.Mul(rank, 2), [1]))
    places = op.Concat(axes, op.Add(axes, rank), axis=0)
    return op.Pad(x, op.ScatterElements(none, places, pads), value, mode=mode)


@below(15, "CastLike")
def cast_like(op: LoweringBuilder, x: Value, like: Value, *, saturate=1):
    if like.dtype is None:
        raise NotRepresentableError("CastLike to an unknown type")
    return op.Cast(x, to=like.dtype)


@below(14, "Trilu")
def trilu(op: LoweringBuilder, x: Value, k: Value | None = None, *, upper=1):
    rows, columns = (op.Range(0, op.Squeeze(op.Shape(x, start=i, end=i + 1 or None), [0]), 1) for i in (-2, -1))
    rows = op.Unsqueeze(rows if k is None else op.Add(rows, k), [1])
    kept = op.GreaterOrEqual(columns, rows) if upper else op.LessOrEqual(columns, rows)
    return op.Where(kept, x, op.Cast(op.const(0), to=x.dtype))


@below(12, "GatherND")
def gather_nd(op: LoweringBuilder, data: Value, indices: Value, *, batch_dims=0):
    """Prepend batch indices to the other indices."""
    if not batch_dims:
        return op.old.GatherND(data, indices)
    rank = need_rank(indices, "GatherND with batch_dims")
    places = op.Concat(op.Shape(indices, end=-1), [1], axis=0)
    batches = []
    for axis in range(batch_dims):
        order = op.Range(0, op.Squeeze(op.Shape(indices, start=axis, end=axis + 1), [0]), 1)
        spread = op.Unsqueeze(order, [i for i in range(rank) if i != axis])
        batches.append(op.Expand(spread, places))
    return op.old.GatherND(data, op.Concat(*batches, indices, axis=-1))


@below(12, "Constant")
def constant(op: LoweringBuilder, *, value=None, sparse_value=None, **numbers):
    if value is not None or sparse_value is not None:
        return SAME
    ((kind, given),) = numbers.items()
    if "string" in kind:
        return constant_value(np.array(given, object))
    return constant_value(np.array(given, np.float32 if "float" in kind else np.int64))


@below(12, "Dropout")
def dropout(op: LoweringBuilder, x: Value, ratio: Value | None = None, training: Value | None = None, *, seed=0, node):
    drops = training is not None and ((state := constant_array(training)) is None or bool(state.reshape(-1)[0]))
    if drops or any(value.uses() for value in node.outputs[1:]):
        raise NotRepresentableError("Dropout in training mode")
    return [x, *node.outputs[1:]]


@below(12, "Einsum")
@in_float32
def einsum(op: LoweringBuilder, *operands: Value, equation: str):
    """Multiply the operands with all letters as dimensions, then sum over the letters that the result lacks."""
    left, _, right = equation.replace(" ", "").partition("->")
    if "." in equation or "->" not in equation:
        raise NotRepresentableError(f"the Einsum {equation!r}")
    letters = right + "".join(dict.fromkeys(c for c in left if c.isalpha() and c not in right))
    product: Value | None = None
    for x, term in zip(operands, left.split(","), strict=True):
        spread = _spread(op, x, term, letters)
        product = spread if product is None else op.Mul(product, spread)
    summed = list(range(len(right), len(letters)))
    return op.ReduceSum(product, summed, keepdims=0) if summed else product


def _spread(op: Builder, x: Value, term: str, letters: str) -> Value:
    """Transpose and unsqueeze an operand to the letters' positions; a repeated letter takes the diagonal."""
    for letter in dict.fromkeys(c for c in term if term.count(c) > 1):
        while term.count(letter) > 1:
            first, second = [i for i, c in enumerate(term) if c == letter][:2]
            sizes = [op.Range(0, op.Squeeze(op.Shape(x, start=i, end=i + 1), [0]), 1) for i in (first, second)]
            others = [[j for j in range(len(term)) if j != i] for i in (first, second)]
            grid = [op.Unsqueeze(s, axes) for s, axes in zip(sizes, others, strict=True)]
            x = op.ReduceSum(op.Where(op.Equal(*grid), x, op.Cast(op.const(0), to=x.dtype)), [second], keepdims=0)
            term = term[:second] + term[second + 1 :]
    order = sorted(range(len(term)), key=lambda i: letters.index(term[i]))
    x = x if order == sorted(order) else op.Transpose(x, perm=order)
    missing = [i for i, letter in enumerate(letters) if letter not in term]
    return op.Unsqueeze(x, missing) if missing else x
