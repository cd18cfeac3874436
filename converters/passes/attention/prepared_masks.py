"""Masks for which Attention of ONNX 23 computes the softmax of the masked scores.

For a query without visible keys, softmax attention returns NaN if the scores are -inf, and the mean of the values if the
mask adds a large negative number. With an attention sink, it returns 0 in both cases. Attention returns 0 for scores of
-inf. ONNX Runtime's kernel for opset 23 and 24 (1.32) also returns 0 for the lowest number.
"""

from __future__ import annotations

import math

import numpy as np
import onnx_ir as ir

from converters.passes.attention.canonical import Attention, UnsupportedAttention
from onnx_specops.building import Builder, Value
from onnx_specops.graphs import dimension

ABSORBING = -1e30
"""The sum of this number and any score equals this number."""

_LOW = -1e38
"""Absorbs every score up to 1e30, and differs from the lowest number."""

_MAX_STEPS = 30
_Known = dict[tuple[ir.Value | None, int], float]
_MOVES = {"Concat", "Expand", "Gather", "Identity", "Reshape", "Slice", "Squeeze", "Tile", "Transpose", "Unsqueeze"}
_LIMITS = {ir.DataType.FLOAT16: 65504.0, ir.DataType.FLOAT: float(np.finfo(np.float32).max)}


def prepared(op: Builder, found: Attention) -> Value:
    """Return the mask of an attention in float32, ``[1 or batch, 1 or heads, queries, keys]``.

    Raises:
        UnsupportedAttention: its type is not supported, its rank is unknown or above 4, or the hidden keys depend on the
            scores.
    """
    mask, query, key = found.mask, found.query, found.key
    assert isinstance(mask, Value) and isinstance(query, Value) and isinstance(key, Value)
    if mask.rank is None or mask.rank > 4 or query.dtype != ir.DataType.FLOAT:
        raise UnsupportedAttention("the rank of its mask is unknown or more than 4, or its queries are not float32")
    wide = mask if mask.rank == 4 else op.Unsqueeze(mask, list(range(4 - mask.rank)))
    _check_dims(wide, query, key, found.order[2])
    same = _of_booleans(op, wide, found) if found.is_boolean else _of_floats(op, wide, found)
    if (dimension(wide, 2), dimension(wide, 3)) == (dimension(query, 2), dimension(key, found.order[2])):
        return same
    rows, columns = (_shape(op, x, axis) for x, axis in ((query, 2), (key, found.order[2])))
    expanded: Value = op.Expand(same, op.Concat([1, 1], rows, columns, axis=0))
    return expanded


def _check_dims(mask: Value, query: Value, key: Value, axis_of_keys: int) -> None:
    """Raise `UnsupportedAttention` if a mask may have larger dimensions than the scores.

    More batches or heads would repeat the query. More queries or keys must be known.
    """
    for axis in (0, 1):
        size, of = dimension(mask, axis), dimension(query, axis)
        if size != 1 and size != of and (isinstance(size, int) or isinstance(of, int)):
            raise UnsupportedAttention("its mask may broadcast the queries")
    for axis, of in ((2, dimension(query, 2)), (3, dimension(key, axis_of_keys))):
        size = dimension(mask, axis)
        if size not in (1, of) and isinstance(size, int) and isinstance(of, int):
            raise UnsupportedAttention("its mask broadcasts queries or keys")


def _of_booleans(op: Builder, mask: Value, found: Attention) -> Value:
    result: Value
    if found.lowest == -math.inf:
        result = op.Where(mask, op.const(0.0), op.const(-math.inf))
        if found.sink is None:
            result = op.Sub(result, op.ReduceMax(result, [-1], keepdims=1))  # NaN for a query without visible keys
        return result
    if found.lowest > ABSORBING:
        raise UnsupportedAttention("the effect of its mask depends on the scores")
    result = op.Where(mask, op.const(0.0), op.const(_LOW))
    return result


def _of_floats(op: Builder, mask: Value, found: Attention) -> Value:
    if mask.dtype != ir.DataType.FLOAT:
        raise UnsupportedAttention("the type of its mask is not float32")
    bound = largest(mask)
    if bound < -_LOW:
        return mask
    low: Value = op.Max(mask, op.const(_LOW))
    if bound < math.inf:
        return low
    infinite = op.const(-math.inf)
    low = op.Where(op.Equal(mask, infinite), infinite, low)
    if found.guarded is not found.output or found.sink is not None:
        return low  # the graph computes 0
    highest = op.ReduceMax(low, [-1], keepdims=1)
    result: Value = op.Where(op.Equal(highest, infinite), op.const(math.nan), low)
    return result


def largest(value: ir.Value | None, steps: int = _MAX_STEPS, known: _Known | None = None) -> float:
    """Return a bound of the absolute values of all elements except NaN; infinity if unknown.

    Args:
        value: the value.
        steps: the maximum depth of the search, in nodes.
        known: results, which this function adds to.
    """
    known = {} if known is None else known
    if (value, steps) not in known:
        known[value, steps] = _largest(value, steps, known)
    return known[value, steps]


def _largest(value: ir.Value | None, steps: int, known: _Known) -> float:
    if value is None or value.dtype is None or steps == 0:
        return math.inf
    if value.dtype == ir.DataType.BOOL:
        return 1
    if value.const_value is not None and not value.is_graph_input():
        array = value.const_value.numpy()
        found = float(np.abs(array.astype(np.float64)).max(initial=0)) if array.dtype.kind in "fiu" else math.inf
    else:
        found = _largest_of_node(value.producer(), value.dtype, steps - 1, known)
    if value.dtype.is_floating_point() and value.dtype != ir.DataType.DOUBLE:
        return found if found <= _LIMITS.get(value.dtype, 0) else math.inf
    return found


def _largest_of_node(node: ir.Node | None, dtype: ir.DataType, steps: int, known: _Known) -> float:
    if node is None or node.domain:
        return math.inf
    inputs = list(node.inputs)
    match node.op_type:
        case "Cast" if inputs[0] is not None and inputs[0].dtype is not None:
            # A cast of NaN gives any integer.
            is_known = dtype.is_floating_point() or not inputs[0].dtype.is_floating_point()
            return largest(inputs[0], steps, known) if is_known else math.inf
        case "Neg" | "Abs":
            return largest(inputs[0], steps, known)
        case "Where":
            return max(largest(x, steps, known) for x in inputs[1:])
        case "Add" | "Sub":
            return sum(largest(x, steps, known) for x in inputs)
        case "Mul":
            first, second = (largest(x, steps, known) for x in inputs)
            return first * second if first and second else math.inf
        case name if name in _MOVES:
            return max(largest(x, steps, known) for x in (inputs if name == "Concat" else inputs[:1]))
    return math.inf


def _shape(op: Builder, x: Value, axis: int) -> Value:
    size: Value = op.Shape(x, start=axis, end=axis + 1)
    return size
