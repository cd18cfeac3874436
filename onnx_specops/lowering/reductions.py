"""Reductions: axes are an attribute below opset 18, or below 13 for ReduceSum."""

from __future__ import annotations

from onnx_specops.building import Value
from onnx_specops.graphs import constant_list
from onnx_specops.lowering.adapters import LoweringBuilder, along, below, in_float32

OTHERS = (
    "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd",
    "ReduceSumSquare",
)  # fmt: skip

_LARGEST_RANK = 8  # for tensors of unknown rank


@below(18, *OTHERS)
@below(13, "ReduceSum")
def reduction(op: LoweringBuilder, x: Value, axes: Value | None = None, *, keepdims=1, noop_with_empty_axes=0, node):
    reduce = getattr(op.old, node.op_type)
    listed = [] if axes is None else constant_list(axes)
    if listed == []:
        return _reduce_no_axes(op, x, node.op_type) if noop_with_empty_axes else reduce(x, keepdims=keepdims)
    if listed is not None:
        return reduce(x, axes=listed, keepdims=keepdims)
    assert axes is not None
    # Each dimension becomes two, one of which is 1. The reduced axes of this view are always the same.
    shape = op.Shape(x)
    rank = op.Size(shape)
    reduced = is_among(op, op.Range(0, rank, 1), axes, rank)
    if not noop_with_empty_axes:
        reduced = op.Or(reduced, op.Equal(op.Size(axes), 0))
    kept, taken = op.Where(reduced, op.const(1), shape), op.Where(reduced, shape, op.const(1))
    count = _LARGEST_RANK if x.rank is None else x.rank
    if x.rank is None:
        more = op.Expand(op.const([1]), op.Reshape(op.Sub(count, rank), [1]))
        pairs = [op.Concat(more, dims, axis=0) for dims in (kept, taken)]
    else:
        pairs = [kept, taken]
    wide = op.Reshape(x, op.Reshape(op.Concat(*(op.Unsqueeze(d, [1]) for d in pairs), axis=1), [-1]), allowzero=1)
    if wide.rank is None:
        wide = op.node("Identity", wide, types=[(x.dtype, [None] * 2 * count)])
    result = reduce(wide, axes=list(range(1, 2 * count, 2)), keepdims=0)
    if keepdims:
        return result if x.rank is not None else op.Reshape(result, kept, allowzero=1)
    return op.Reshape(result, op.Compress(shape, op.Not(reduced)), allowzero=1)


def _reduce_no_axes(op: LoweringBuilder, x: Value, operator: str) -> Value:
    """Return the result of reducing along no axis."""
    if operator in ("ReduceL1", "ReduceL2"):
        return op.Abs(x)
    if operator == "ReduceSumSquare":
        return op.Mul(x, x)
    return op.Log(x) if operator == "ReduceLogSum" else x


def is_among(op: LoweringBuilder, every: Value, axes: Value, rank: int | Value) -> Value:
    """Return, for each axis of ``every``, whether it is one of ``axes``, which may be negative."""
    places = op.Where(op.Less(axes, 0), op.Add(axes, rank), axes)
    found = op.Equal(op.Unsqueeze(every, [1]), op.Unsqueeze(places, [0]))
    return op.Greater(op.ReduceSum(op.Cast(found, to=7), [1], keepdims=0), 0)


@below(12, "ArgMax", "ArgMin")
def arg(op: LoweringBuilder, x: Value, *, axis=0, keepdims=1, select_last_index=0, node):
    search = getattr(op.old, node.op_type)
    if not select_last_index:
        return search(x, axis=axis, keepdims=keepdims)
    first = search(op.Slice(x, [-1], [-(2**31)], [axis], [-1]), axis=axis, keepdims=keepdims)
    last = op.Sub(op.Gather(op.Shape(x), axis), 1)
    return op.Sub(last, first)


@below(13, "Softmax", "LogSoftmax", "Hardmax")
def softmax(op: LoweringBuilder, x: Value, *, axis=-1, node):
    """Below 13, all axes from ``axis`` on are flattened, so only the last axis has the same meaning."""
    function = getattr(op.old, node.op_type)
    rank = x.rank or 0
    if x.rank is None and axis != -1 and node.op_type != "Hardmax":
        return _by_exponentials(op, x, axis=axis, logarithm=node.op_type == "LogSoftmax")
    if axis in (-1, rank - 1):
        return function(x, axis=-1)
    order = list(range(rank))
    (place,) = along([axis], rank)
    order[place], order[-1] = order[-1], order[place]
    return op.Transpose(function(op.Transpose(x, perm=order), axis=-1), perm=order)


@in_float32
def _by_exponentials(op: LoweringBuilder, x: Value, *, axis: int, logarithm: bool) -> Value:
    """Compute Softmax or LogSoftmax by their definition."""
    lower = op.Sub(x, op.ReduceMax(x, [axis]))
    total = op.ReduceSum(op.Exp(lower), [axis])
    result: Value = op.Sub(lower, op.Log(total)) if logarithm else op.Div(op.Exp(lower), total)
    return result
