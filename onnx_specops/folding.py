"""Constant folding of the small integer arithmetic on shapes, axes and indices, while a graph is being built.

Rules and bodies define the general run-time computation once. The parts whose inputs are known while the graph is built are
folded into constants here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

FOLDED_ELEMENTS = 4096
"""The maximum number of elements of a folded result. Larger constants are data rather than shapes."""

Attributes = Mapping[str, Any]


def fold(op_type: str, inputs: Sequence[np.ndarray | None], attributes: Attributes) -> list[np.ndarray] | None:
    """Compute the outputs of a standard ONNX node with known inputs; return ``None`` for operators that are not folded.

    Raises:
        ArithmeticError, IndexError, TypeError, ValueError: the inputs and attributes contradict each other.
    """
    function = _FUNCTIONS.get(op_type)
    if function is None or sum(x.size for x in inputs if x is not None) > FOLDED_ELEMENTS:
        return None
    with np.errstate(all="ignore"):
        outputs = function(attributes, *inputs)
    if outputs is None:
        return None
    if not isinstance(outputs, list):
        outputs = [outputs]
    return outputs if sum(np.size(x) for x in outputs) <= FOLDED_ELEMENTS else None


def _divide(_: Attributes, a: np.ndarray, b: np.ndarray) -> np.ndarray | None:
    if a.dtype.kind not in "iu":
        return a / b
    if (b == 0).any():
        return None
    quotient = a // b
    return (quotient + ((a % b != 0) & ((a < 0) ^ (b < 0)))).astype(a.dtype)  # ONNX truncates towards zero


def _mod(attributes: Attributes, a: np.ndarray, b: np.ndarray) -> np.ndarray | None:
    if (b == 0).any():
        return None
    return np.fmod(a, b) if attributes.get("fmod", 0) else np.mod(a, b)


def _slice(_: Attributes, x, starts, ends, axes=None, steps=None) -> np.ndarray:
    axes = range(len(starts)) if axes is None else axes
    steps = np.ones_like(starts) if steps is None else steps
    index = [slice(None)] * x.ndim
    for axis, start, end, step in zip(axes, starts.tolist(), ends.tolist(), steps.tolist(), strict=True):
        size = x.shape[axis]
        start += size if start < 0 else 0
        end += size if end < 0 else 0
        if step > 0:
            index[axis] = slice(min(max(start, 0), size), min(max(end, 0), size), step)
        else:
            end = min(max(end, -1), size - 1)
            index[axis] = slice(min(max(start, 0), size - 1), None if end < 0 else end, step)
    return x[tuple(index)]


def _reshape(attributes: Attributes, x, shape) -> np.ndarray:
    target = [x.shape[i] if d == 0 and not attributes.get("allowzero", 0) else int(d) for i, d in enumerate(shape)]
    return x.reshape(target)


def _unsqueeze(_: Attributes, x, axes) -> np.ndarray:
    return np.expand_dims(x, tuple(int(a) for a in np.reshape(axes, -1)))


def _squeeze(_: Attributes, x, axes=None) -> np.ndarray:
    return np.squeeze(x, None if axes is None else tuple(int(a) for a in axes))


def _reduce(function: Callable[..., Any]) -> Callable[..., Any]:
    def apply(attributes: Attributes, x, axes=None):
        if axes is None or axes.size == 0:
            if attributes.get("noop_with_empty_axes", 0):
                return x
            chosen = None
        else:
            chosen = tuple(int(a) for a in axes)
        keep = bool(attributes.get("keepdims", 1))
        if x.size == 0 and function in (np.max, np.min):
            return None
        return np.asarray(function(x, axis=chosen, keepdims=keep)).astype(x.dtype)

    return apply


def _cast(attributes: Attributes, x) -> np.ndarray | None:
    if attributes.get("to") is None or x.dtype == object:
        return None
    target = ir.DataType(attributes["to"])
    # Fold only conversions with the same result in all runtimes: no floats outside the integers' range, no sub-byte types.
    if target not in _FOLDED_TYPES:
        return None
    exact = x.dtype.kind in "iub" or target in (ir.DataType.FLOAT, ir.DataType.DOUBLE)
    if not exact and (target not in (ir.DataType.INT32, ir.DataType.INT64) or not (abs(x) < 2**31).all()):
        return None
    return x.astype(target.numpy())


_FOLDED_TYPES = {
    ir.DataType.BOOL, ir.DataType.INT32, ir.DataType.INT64, ir.DataType.UINT8, ir.DataType.FLOAT, ir.DataType.DOUBLE,
}  # fmt: skip


def _constant_of_shape(attributes: Attributes, shape) -> np.ndarray | None:
    if math.prod(int(d) for d in shape) > FOLDED_ELEMENTS:
        return None
    value = attributes.get("value", np.zeros(1, np.float32))
    value = value if isinstance(value, np.ndarray) else value.numpy()
    return np.full([int(d) for d in shape], value[0], value.dtype)


def _range(_: Attributes, start, limit, delta) -> np.ndarray | None:
    # Python integers do not wrap around.
    if delta == 0 or not abs(count := (limit.item() - start.item()) / delta.item()) <= FOLDED_ELEMENTS:
        return None
    if start.dtype.kind != "f":
        return np.arange(start, limit, delta, dtype=start.dtype)
    # NumPy rounds the step to a difference of two elements.
    return start + np.arange(math.ceil(count)).astype(start.dtype) * delta


def _expand(_: Attributes, x, shape) -> np.ndarray | None:
    target = np.broadcast_shapes(x.shape, tuple(int(d) for d in shape))
    return np.broadcast_to(x, target) if math.prod(target) <= FOLDED_ELEMENTS else None


def _split(attributes: Attributes, x, split=None) -> list[np.ndarray]:
    axis = attributes.get("axis", 0)
    if split is None:
        size = -(-x.shape[axis] // attributes["num_outputs"])
        split = [size] * (attributes["num_outputs"] - 1) + [0]
    return np.split(x, np.cumsum(split)[:-1], axis)


def _gather(attributes: Attributes, x, indices) -> np.ndarray | None:
    axis = attributes.get("axis", 0)
    size = x.shape[axis]
    return np.take(x, indices, axis) if ((indices >= -size) & (indices < size)).all() else None


def _scatter_elements(attributes: Attributes, x, indices, updates) -> np.ndarray | None:
    axis, result = attributes.get("axis", 0), x.copy()
    size = x.shape[axis]
    places = np.where(indices < 0, indices + size, indices)
    if attributes.get("reduction", "none") != "none" or not ((places >= 0) & (places < size)).all():
        return None
    for index in np.ndindex(places.shape):  # in order: the last update of an element is kept
        at = list(index)
        at[axis] = places[index]
        result[tuple(at)] = updates[index]
    return result


def _tile(_: Attributes, x, repeats) -> np.ndarray | None:
    return np.tile(x, repeats) if x.size * math.prod(int(r) for r in repeats) <= FOLDED_ELEMENTS else None


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "Identity": lambda _, x: x,
    "Cast": _cast,
    "Add": lambda _, a, b: a + b,
    "Sub": lambda _, a, b: a - b,
    "Mul": lambda _, a, b: a * b,
    "Div": _divide,
    "Mod": _mod,
    "Neg": lambda _, x: -x,
    "Abs": lambda _, x: abs(x),
    "Max": lambda _, *x: np.maximum.reduce(np.broadcast_arrays(*x)),
    "Min": lambda _, *x: np.minimum.reduce(np.broadcast_arrays(*x)),
    "Sign": lambda _, x: np.sign(x),
    "Sqrt": lambda _, x: np.sqrt(x),
    "Floor": lambda _, x: np.floor(x),
    "Ceil": lambda _, x: np.ceil(x),
    "Equal": lambda _, a, b: a == b,
    "Less": lambda _, a, b: a < b,
    "LessOrEqual": lambda _, a, b: a <= b,
    "Greater": lambda _, a, b: a > b,
    "GreaterOrEqual": lambda _, a, b: a >= b,
    "And": lambda _, a, b: a & b,
    "Or": lambda _, a, b: a | b,
    "Xor": lambda _, a, b: a ^ b,
    "Not": lambda _, x: ~x,
    "Where": lambda _, c, a, b: np.where(c, a, b),
    "Gather": _gather,
    "Concat": lambda at, *x: np.concatenate(x, axis=at["axis"]),
    "Slice": _slice,
    "Split": _split,
    "Reshape": _reshape,
    "Unsqueeze": _unsqueeze,
    "Squeeze": _squeeze,
    "Transpose": lambda at, x: np.transpose(x, at.get("perm")),
    "Compress": lambda at, x, condition: np.compress(condition, x, at.get("axis")),
    "Expand": _expand,
    "Tile": _tile,
    "ScatterElements": _scatter_elements,
    "Range": _range,
    "ConstantOfShape": _constant_of_shape,
    "Shape": lambda at, x: np.array(x.shape, np.int64)[at.get("start", 0) : at.get("end")],
    "Size": lambda _, x: np.array(x.size, np.int64),
    "ReduceProd": _reduce(np.prod),
    "ReduceSum": _reduce(np.sum),
    "ReduceMax": _reduce(np.max),
    "ReduceMin": _reduce(np.min),
    "CumSum": lambda at, x, axis: (
        np.cumsum(x, int(axis)).astype(x.dtype) if not at.get("exclusive", 0) and not at.get("reverse", 0) else None
    ),
}
