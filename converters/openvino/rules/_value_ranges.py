"""Bounds of the integers in a value, derived from the nodes that compute it.

Rules use them to omit nodes for impossible cases, such as an index out of range.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx_ir as ir

from onnx_specops.domain import DOMAIN
from onnx_specops.folding import FOLDED_ELEMENTS

Bounds = tuple[int, int]

# The maximum number of nodes to trace back.
_DEPTH = 24

# Operators whose result consists of elements of their first input.
_MOVING = {
    "Identity", "Reshape", "Squeeze", "Unsqueeze", "Transpose", "Expand", "Slice", "Flatten", "Tile", "Gather",
    "GatherElements", "GatherND", "Split", "Compress", "ReverseSequence", "Cast", "ReduceMax", "ReduceMin",
}  # fmt: skip


def bounds(value: ir.Value) -> Bounds:
    """Return the smallest and largest integer that ``value`` may contain. By default these are the limits of its type."""
    return _bounds(value, _DEPTH, {})


def _bounds(value: ir.Value, depth: int, known: dict[ir.Value, Bounds]) -> Bounds:
    if value not in known:
        type_min, type_max = limits = _limits(value.dtype)
        low, high = _found(value, depth, known) or limits
        # If arithmetic may wrap around, only the limits of the type are known.
        known[value] = (low, high) if type_min <= low and high <= type_max else limits
    return known[value]


def _limits(dtype: ir.DataType | None) -> Bounds:
    if dtype == ir.DataType.BOOL:
        return 0, 1
    if dtype is None or not dtype.is_integer():
        return -(2**1100), 2**1100  # beyond the range of all floats
    return (-8, 15) if dtype.itemsize < 1 else (int(np.iinfo(dtype.numpy()).min), int(np.iinfo(dtype.numpy()).max))


def _found(value: ir.Value, depth: int, known: dict[ir.Value, Bounds]) -> Bounds | None:
    """Return the bounds from the value's own node."""
    if value.const_value is not None:
        array = value.const_value.numpy() if 0 < value.const_value.size <= FOLDED_ELEMENTS else np.zeros(0)
        return (int(array.min()), int(array.max())) if array.dtype.kind in "iub" and array.size else None
    node = value.producer()
    if node is None or depth == 0 or node.domain not in ("", DOMAIN):
        return None
    if node.op_type in ("ArgMax", "ArgMin") or (node.op_type == "TopK" and value is node.outputs[1]):
        return _positions(node)
    if node.op_type in _MOVING:
        node_inputs = node.inputs[:1]
    else:
        node_inputs = node.inputs[1:] if node.op_type == "Where" else node.inputs
    function = _FUNCTIONS.get(node.op_type)
    if function is None or any(x is None for x in node_inputs):
        return None
    return function(node, *(_bounds(x, depth - 1, known) for x in node_inputs if x is not None))


def _positions(node: ir.Node) -> Bounds | None:
    """Return the bounds of positions along the node's axis."""
    axis = _integer(node, "axis", -1 if node.op_type == "TopK" else 0)
    size = _dim(node, 0, axis)
    return None if size is None else (0, max(size - 1, 0))


def _dim(node: ir.Node, index: int, axis: int) -> int | None:
    value = node.inputs[index]
    shape = None if value is None else value.shape
    if shape is None or not -len(shape) <= axis < len(shape):
        return None
    size = shape[axis]
    return size if isinstance(size, int) else None


def _integer(node: ir.Node, name: str, default: int) -> int:
    return node.attributes[name].as_int() if name in node.attributes else default


def _union(node: ir.Node, *parts: Bounds) -> Bounds:
    return min(low for low, _ in parts), max(high for _, high in parts)


def _corners(operation: Callable[[int, int], int]) -> Callable[..., Bounds]:
    def apply(node: ir.Node, a: Bounds, b: Bounds) -> Bounds:
        values = [operation(x, y) for x in a for y in b]
        return min(values), max(values)

    return apply


def _mod(node: ir.Node, x: Bounds, divisor: Bounds) -> Bounds | None:
    if divisor[0] <= 0:
        return None
    return (1 - divisor[1] if _integer(node, "fmod", 0) else 0), divisor[1] - 1


def _clip(node: ir.Node, x: Bounds, low: Bounds, *high: Bounds) -> Bounds:
    return _minimum(node, _maximum(node, x, low), *high)


def _minimum(node: ir.Node, *parts: Bounds) -> Bounds:
    return min(low for low, _ in parts), min(high for _, high in parts)


def _maximum(node: ir.Node, *parts: Bounds) -> Bounds:
    return max(low for low, _ in parts), max(high for _, high in parts)


def _bucket(node: ir.Node, *_: Bounds) -> Bounds:
    return 0, _integer(node, "num_buckets", 1) - 1


def _identifier(node: ir.Node, *_: Bounds) -> Bounds | None:
    size, buckets = _dim(node, 1, 0), _integer(node, "num_oov_buckets", 0)
    if size is None:
        return None
    missing = 0 if buckets else _integer(node, "default_value", -1)
    return min(missing, 0), max(missing, size + buckets - 1)


def _class(node: ir.Node, *_: Bounds) -> Bounds | None:
    classes = _dim(node, 0, 1)
    return None if classes is None else (0, max(classes - 1, 0))


_FUNCTIONS: dict[str, Callable[..., Bounds | None]] = {
    **dict.fromkeys(_MOVING, lambda node, x: x),
    "Concat": _union,
    "Where": _union,
    "Mod": _mod,
    "Clip": _clip,
    "Min": _minimum,
    "Max": _maximum,
    "Add": _corners(lambda a, b: a + b),
    "Sub": _corners(lambda a, b: a - b),
    "Mul": _corners(lambda a, b: a * b),
    "StringToHashBucket": _bucket,
    "VocabularyTable": _identifier,
    "Multinomial": _class,
}
