"""Attention of ONNX 23: a lowering for standard models of opset 23 and later.

Masks that may hide all keys from a query are prepared for it (`prepared_masks.py`). ONNX Runtime's kernel (1.32) requires
masks with all queries and keys, positive scales, and tensors with elements. It is not faster than the operators that it
replaces, so the default target does not use it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import onnx_ir as ir

from converters.passes.attention.canonical import MASKED, Attention, UnsupportedAttention
from converters.passes.attention.encoder import same_batch, same_dimension
from converters.passes.attention.prepared_masks import ABSORBING, largest, prepared
from converters.passes.attention.probing import Probe, ProbeError
from converters.passes.attention.spellings import Constants, product_with_values, read
from converters.passes.patterns import PatternPass, rewrite
from onnx_specops.building import Builder, Value
from onnx_specops.graphs import constant_array

_MAX_ELEMENTS = 1 << 22
"""The maximum size of a constant mask for all queries and keys."""


@rewrite("MatMul", lambda op, scores, v: op.MatMul(op.Softmax(scores, _outputs=["weights"]), v), finite=True)
def to_standard_attention(op: Builder, *, scores: Value, v: Value, weights: Value) -> Value | None:
    """Lower softmax(softcap * tanh(scale * q @ k.T / softcap) + mask) @ v in three or four dimensions."""
    del scores, v
    return _to_standard(op, weights)


def _with_sink(op: Builder, scores: Value, v: Value) -> Value:
    weights = op.Softmax(scores, _outputs=["weights"])
    return op.MatMul(op.Slice(weights, _allow_other_inputs=True), v)


@rewrite("MatMul", _with_sink, finite=True)
def with_sink_to_standard_attention(op: Builder, *, weights: Value, **_: Value) -> Value | None:
    """Lower attention with an additional last column of scores, whose weights are dropped."""
    return _to_standard(op, weights)


def _to_standard(op: Builder, weights: Value) -> Value | None:
    softmax = weights.producer()
    assert softmax is not None
    if product_with_values(softmax, Constants()) is None:
        return None  # the Slice keeps the last column
    try:
        found = read(softmax, Constants(), ranks=(3, 4))
        if not found.is_exclusive:
            return None
        return _lowered(op, found) if len(found.order) == 4 else _of_three_dimensions(op, found)
    except UnsupportedAttention:
        return None


class LowerToStandardAttention(PatternPass):
    """Lower to Attention of ONNX 23 if ONNX Runtime computes the same."""

    rewrites = (to_standard_attention, with_sink_to_standard_attention)


def _lowered(op: Builder, found: Attention) -> Value | None:
    query, key, value, output = found.query, found.key, found.value, found.output
    assert isinstance(query, Value) and isinstance(key, Value) and isinstance(value, Value) and isinstance(output, Value)
    if found.scale <= 0 or not {query.dtype} == {key.dtype} == {value.dtype}:
        return None
    if query.dtype not in (ir.DataType.FLOAT, ir.DataType.FLOAT16):
        return None
    q, k, v = query.dims, key.dims, value.dims
    if q is None or k is None or v is None or not len(q) == len(k) == len(v) == 4 or found.order[0] != 0:
        return None
    shared = _shared(key, value) if found.is_heads_first else (key, value)
    if output.dims is None or len(output.dims) != 4:
        return None  # a factor or a mask has more dimensions
    k = [k[axis] for axis in found.order]
    if q[1] is None or None in (q[3], v[3]) or 0 in (*q, *k, *v):
        return None
    # An unknown number of heads is one or that of the query, because the scores would be invalid otherwise.
    if not (_same_heads(key, value, found.order[1]) if k[1] is None else k[1] == v[1] and k[1] in (1, q[1])):
        return None
    mask, is_causal = _mask(op, found, q[2], k[2]) if found.sink is None else (_mask_with_sink(op, found), False)
    key, value = shared
    if not found.is_heads_first:
        key = op.Transpose(key, perm=list(found.order))
    batch = q[0]
    if not same_batch(query, *shared):
        batch = None if None in (q[0], k[0], v[0]) else max(q[0] or 0, k[0] or 0, v[0] or 0)
        query, key, value = _of_one_batch(op, query, key, value)
    if found.sink is not None:
        key, value = _with_zeros(op, key), _with_zeros(op, value)
    return op.node(
        "Attention",
        query,
        key,
        value,
        mask,
        scale=found.scale,
        softcap=found.softcap or None,
        is_causal=1 if is_causal else None,
        types=[(query.dtype, [batch, q[1], q[2], v[3]])],
        version=23,
    )


def _same_heads(key: Value, value: Value, axis: int) -> bool:
    """Return whether the keys' dimension ``axis`` and the values' heads are equal, although unknown.

    Both are reshaped by the same shape, from equally large tensors.
    """
    (first, first_axis), (second, second_axis) = _before_transposes(key, axis), _before_transposes(value, 1)
    if first_axis != second_axis:
        return False
    nodes = [first.producer(), second.producer()]
    if any(node is None or node.domain or node.op_type != "Reshape" for node in nodes):
        return False
    (x, shape), (y, other) = (node.inputs[:2] for node in nodes if node is not None)
    if shape is not other or not isinstance(x, Value) or not isinstance(y, Value) or x.rank is None or x.rank != y.rank:
        return False
    return all(same_dimension((x, axis), (y, axis)) for axis in range(x.rank))


def _before_transposes(value: ir.Value, axis: int) -> tuple[ir.Value, int]:
    while (node := value.producer()) is not None and node.op_type == "Transpose" and not node.domain:
        perm = node.attributes.get_ints("perm", ())
        if not perm or node.inputs[0] is None:
            break
        value, axis = node.inputs[0], perm[axis]
    return value, axis


def _of_three_dimensions(op: Builder, found: Attention) -> Value | None:
    """Lower attention with batch and heads in one dimension: a batch of one head.

    Queries, keys, values and scores have three dimensions, and the mask has at most three.
    """
    query, key, value, output = found.query, found.key, found.value, found.output
    assert isinstance(query, Value) and isinstance(key, Value) and isinstance(value, Value) and isinstance(output, Value)
    if not query.rank == key.rank == value.rank == output.rank == len(found.scores.shape or ()) == 3:
        return None
    with_heads: dict[str, Any] = {}
    ordered = key if found.order == (0, 1, 2) else op.Transpose(key, perm=list(found.order))
    for name, given in (("query", query), ("key", ordered), ("value", value)):
        with_heads[name] = op.Unsqueeze(given, [1])
    if found.mask is not None:
        mask = found.mask
        assert isinstance(mask, Value)
        if mask.rank is None or mask.rank > 3:
            return None
        if mask.rank == 3:
            with_heads["mask"] = _with_one_head(op, mask)
    for name, given in (("product", found.product), ("output", output)):
        dims = list(given.shape or ())
        with_heads[name] = Value(name=given.name, type=given.type, shape=ir.Shape([dims[0], 1, *dims[1:]]))
    if found.guarded is found.output:
        with_heads["guarded"] = with_heads["output"]
    whole = _lowered(op, replace(found, order=(0, 1, 2, 3), **with_heads))
    return None if whole is None else op.Squeeze(whole, [1])


def _with_one_head(op: Builder, mask: Value) -> Value:
    array = constant_array(mask)
    whole: Value = op.Unsqueeze(mask, [1]) if array is None else op.const(array[:, None])
    return whole


def _of_one_batch(op: Builder, *values: Value) -> list[Value]:
    """Expand query, key and value to the same number of batches."""
    largest = op.Max(*(op.Shape(value, start=0, end=1) for value in values))
    whole = op.Concat(largest, [1, 1, 1], axis=0)
    return [op.Expand(value, whole) for value in values]


def _mask(op: Builder, found: Attention, queries: int | None, keys: int | None) -> tuple[Value | None, bool]:
    """Return the mask with all queries and keys, and whether the attention is causal instead.

    Raises:
        UnsupportedAttention: no mask computes the same.
    """
    if found.mask is None:
        return None, False
    tensor = None if found.mask.is_graph_input() else found.mask.const_value
    if tensor is None or queries is None or keys is None or len(tensor.shape) > 4:
        return prepared(op, found), False
    if found.is_boolean and found.lowest > ABSORBING:
        raise UnsupportedAttention("the effect of its mask depends on the scores")
    array, dims = tensor.numpy(), found.product.shape
    if dims is None or any(size not in (1, of) for size, of in zip(array.shape[-3::-1], [dims[1], dims[0]], strict=False)):
        raise UnsupportedAttention("its mask broadcasts queries")
    if any(size not in (1, of) for size, of in zip(array.shape[:-3:-1], [keys, queries], strict=False)):
        raise UnsupportedAttention("its mask broadcasts queries")
    if not found.is_boolean and not (array < np.inf).all():
        raise UnsupportedAttention("its mask is not a number, or infinite")
    whole = np.broadcast_to(array, (*array.shape[:-2], queries, keys)[-max(array.ndim, 2) :])
    if whole.size > _MAX_ELEMENTS:
        return prepared(op, found), False
    visible = whole if found.is_boolean else whole > MASKED
    if not visible.any(-1).all():
        return prepared(op, found), False
    hidden = ~visible if found.is_boolean else whole <= ABSORBING
    is_plain = (hidden == ~visible).all() and (found.is_boolean or (whole[visible] == 0).all())
    if is_plain and (visible == np.tril(np.ones((queries, keys), bool))).all():
        return None, True
    mask: Value = op.const(np.ascontiguousarray(whole))
    return mask, False


def _mask_with_sink(op: Builder, found: Attention) -> Value:
    """Return the mask with a last column for the sink, which is the score of a key of zeros.

    Raises:
        UnsupportedAttention: no mask computes the same.
    """
    sink = found.sink
    if not isinstance(sink, Value) or sink.dtype != ir.DataType.FLOAT or sink.rank != 4 or largest(sink) >= -ABSORBING:
        raise UnsupportedAttention("its attention sink may be infinite, or is not float32")
    rows = op.Shape(sink, start=0, end=3)
    if found.mask is None:
        assert isinstance(found.key, Value)
        others = op.Expand(0.0, op.Concat(rows, op.Shape(found.key, start=found.order[2], end=found.order[2] + 1), axis=0))
    else:
        others = op.Expand(prepared(op, found), op.Concat(rows, [1], axis=0))
    whole: Value = op.Concat(others, sink, axis=3)
    return whole


def _with_zeros(op: Builder, value: Value) -> Value:
    """Return keys or values with a last one of zeros."""
    assert value.dims is not None and value.dtype is not None
    zero = op.const(np.zeros((1, 1, 1, 1), value.dtype.numpy()))
    sizes = [op.Shape(value, start=0, end=2), [1], op.Shape(value, start=3, end=4)]
    whole: Value = op.Concat(value, op.Expand(zero, op.Concat(*sizes, axis=0)), axis=2)
    return whole


def _shared(key: Value, value: Value) -> tuple[Value, Value]:
    """Return keys and values before their heads are repeated for the groups of query heads."""
    times = [_repeated(x) for x in (key, value)]
    first, second = times
    if first is None or second is None or first[1] != second[1]:
        return key, value
    return first[0], second[0]


def _repeated(value: Value) -> tuple[Value, int] | None:
    """Return the source of repeated heads and the number of repetitions, for Unsqueeze, Expand and Reshape or equal
    computations.
    """
    source: ir.Value | None = value
    for _ in range(4):
        node = None if source is None else source.producer()
        if node is None or node.domain or node.op_type not in ("Reshape", "Expand", "Unsqueeze", "Tile", "Concat", "Mul"):
            return None
        source = node.inputs[0]
        if not isinstance(source, Value) or source.dims is None or value.dims is None or len(source.dims) != 4:
            continue
        heads, groups, size = value.dims[1], source.dims[1], source.dims[3]
        if heads is None or groups is None or size is None or groups == heads or heads % groups:
            continue
        return (source, heads // groups) if _is_repeated(source, value, groups, size, heads // groups) else None
    return None


def _is_repeated(source: Value, value: Value, groups: int, size: int, times: int) -> bool:
    """Return whether ``value`` is ``source`` with each head repeated."""
    for batch, keys in ((2, 3), (1, 5)):
        dims: list[Any] = [batch, groups, keys, size]
        dims = [known if isinstance(known, int) else given for known, given in zip(source.dims or [], dims, strict=True)]
        given = np.random.default_rng(0).standard_normal(dims).astype(np.float32)
        assert source.dtype is not None
        given = given.astype(source.dtype.numpy())
        try:
            got = Probe({source: given}).array(value)
        except ProbeError:
            return False
        if got.shape != (dims[0], groups * times, *dims[2:]) or not np.array_equal(got, np.repeat(given, times, axis=1)):
            return False
    return True
