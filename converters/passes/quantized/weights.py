"""The integers of quantized constants, as NNCF stores them (int8, Convert, Subtract, Multiply) or under a FakeQuantize."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from converters.passes.decoding import ROUNDING, agree, rows_of
from converters.passes.dequantization import dequantization
from converters.passes.quantized.affine import NEAR, Affine, is_scale
from converters.passes.quantized.graph import before_casts, is_node, static_shape
from onnx_specops.building import Builder, Value, constant_value
from onnx_specops.domain import DOMAIN, find
from onnx_specops.graphs import attributes_of, constant_array

D = ir.DataType

_BYTES = {D.INT8: np.int8, D.UINT8: np.uint8}
_FLOATS = (D.FLOAT, D.FLOAT16, D.BFLOAT16)
_MOVES = ("Reshape", "Transpose")


@dataclass(frozen=True)
class Weights:
    """An 8-bit constant as an operator needs it.

    Attributes:
        emit: emits the integers.
        affine: their scale and zero point, for the whole tensor or along the requested axis.
    """

    emit: Callable[[Builder], Value]
    affine: Affine


def arranged(
    found: Weights, op: Builder, order: Callable[[np.ndarray], np.ndarray], shape: Sequence[int], dtype: ir.DataType
) -> Value:
    """Return the integers of weights in another order, as a constant of a given shape that is computed when it is needed."""
    value: ir.Value | None = found.emit(op)
    moves: list[ir.Node] = []
    while value is not None and (node := value.producer()) is not None:
        moves.insert(0, node)
        value = node.inputs[0]
    stored = None if value is None else value.const_value
    assert stored is not None

    def compute(stored: ir.TensorProtocol = stored) -> ir.TensorProtocol:
        numbers = np.ascontiguousarray(order(_moved(stored.numpy(), moves)).reshape(shape))
        return ir.Tensor(numbers, dtype=dtype)

    name = f"{stored.name}_columns" if stored.name else None
    return constant_value(ir.LazyTensor(compute, dtype=dtype, shape=ir.Shape(shape), name=name), name=name)


def weights(value: ir.Value | None, axis: int) -> Weights | None:
    """Return the integers of an operator's input, with scales along ``axis`` at most; ``None`` if there are none."""
    moves: list[ir.Node] = []
    while value is not None and (node := value.producer()) is not None and node.op_type in _MOVES and not node.domain:
        if node.op_type == "Reshape" and constant_array(node.inputs[1]) is None:
            return None
        moves.append(node)
        value = node.inputs[0]
    found = None if value is None else _decompressed(value) or _quantized(value)
    if found is None:
        return None
    integers, scale, zero = found
    shape = static_shape(integers)
    assert shape is not None
    if np.broadcast_shapes(tuple(shape), scale.shape, zero.shape) != tuple(shape):
        return None  # the constant itself is broadcast
    moves.reverse()
    scale, zero = (_moved(np.broadcast_to(x, shape), moves) for x in (scale, zero))
    if scale.ndim == 0:
        return None
    axis %= scale.ndim
    scales, zeros = _along(scale, axis), _along(zero, axis)
    if scales is None or zeros is None:
        return None

    def emit(op: Builder) -> Value:
        result = integers
        for move in moves:
            if move.op_type == "Transpose":
                result = op.Transpose(result, perm=move.attributes["perm"].value if "perm" in move.attributes else None)
            else:
                result = op.Reshape(
                    result, op.const(constant_array(move.inputs[1])), allowzero=move.attributes.get_int("allowzero", 0)
                )
        return result

    if len(set(scales.tolist())) == 1 and len(set(zeros.tolist())) == 1:
        return Weights(emit, Affine(scales[0], zeros[0]))
    return Weights(emit, Affine(scales, zeros, axis))


def _cast_constant(value: ir.Value | None) -> np.ndarray | None:
    """Return the float32 elements of a constant, also after casts to float types, if several casts preserve them.

    Files of 16 bits convert bytes to float16, which is cast to float32.
    """
    source, types = before_casts(value)
    found = constant_array(source)
    if found is None or any(type_ not in _FLOATS for type_ in types) or (types and types[-1] != D.FLOAT):
        return None
    if len(types) > 1 and not _preserve(types, found):
        return None
    return found.astype(np.float32)


_Found = tuple[Value, np.ndarray, np.ndarray]


def _represent(value: ir.Value, integers: Value, scale: np.ndarray, zero: np.ndarray) -> bool:
    """Return whether the decoded integers are the numbers of the graph. A zero point in the file may deviate by `NEAR`."""
    stored, shape = constant_array(integers), static_shape(value)
    assert stored is not None
    if shape != list(stored.shape):
        return False

    def decode(rows: slice) -> tuple[np.ndarray, np.ndarray]:
        of_rows, offset = rows_of(scale, rows, shape), rows_of(zero, rows, shape).astype(np.float32)
        levels = rows_of(stored, rows, shape).astype(np.float32) - offset
        return levels * of_rows, (NEAR + ROUNDING * (np.abs(levels) + np.abs(offset))) * of_rows

    return bool(agree(value, shape, decode))


def _decompressed(value: ir.Value) -> _Found | None:
    """Match an 8-bit constant that constants dequantize."""
    found = dequantization(value, lambda x: x.dtype in _BYTES and constant_array(x) is not None)
    scale = None if found is None or found.scale is None else _cast_constant(found.scale)
    if found is None or scale is None:
        return None
    zero = np.zeros((), np.float32) if found.zero is None else _cast_constant(found.zero)
    integers = found.stored
    if (
        zero is None
        or integers.dtype is None
        or not _preserve([x.dtype for x in reversed(found.before)], constant_array(integers))
    ):
        return None
    type_ = _BYTES[integers.dtype]
    whole = np.rint(zero)
    # Files of the Open Model Zoo have zero points with deviations of 1e-5 levels, which do not matter in float32.
    if (np.abs(zero - whole) > NEAR).any() or not np.array_equal(whole.astype(type_), whole) or not is_scale(scale).all():
        return None
    assert isinstance(integers, Value)
    result = integers, scale, whole.astype(type_)
    return result if _represent(value, *result) else None


def _preserve(types: Sequence[ir.DataType | None], integers: np.ndarray | None) -> bool:
    """Return whether a sequence of Casts to these types preserves the integers."""
    assert integers is not None
    numbers = np.unique(integers)
    cast = numbers
    for type_ in types:
        if type_ is None:
            return False
        cast = cast.astype(type_.numpy())
    return bool((cast.astype(np.float64) == numbers).all())


def _quantized(value: ir.Value) -> _Found | None:
    """Match FakeQuantize of a constant."""
    node = value.producer()
    if node is not None and is_node(node, "Cast") and value.dtype == D.FLOAT:
        node = None if node.inputs[0] is None else node.inputs[0].producer()  # a cast of a 16-bit constant
    if node is None or (node.domain, node.op_type) != (DOMAIN, "FakeQuantize"):
        return None
    data, limits = _cast_constant(node.inputs[0]), [constant_array(limit) for limit in node.inputs[1:]]
    levels = node.attributes.get_int("levels", 0)
    attributes = attributes_of(node)
    if data is None or any(limit is None for limit in limits) or not 2 <= levels <= 256:
        return None
    low, high, start, end = (limit.astype(np.float64) for limit in limits if limit is not None)
    # For a constant, the choice of levels is free. A byte can represent up to 256.
    scale = (end - start) / (levels - 1)
    if not (low < high).all() or not is_scale(scale).all():
        return None
    zero = -start / scale
    if (np.abs(zero - np.rint(zero)) > NEAR).any() or (zero < -0.5).any() or (zero > 255.5).any():
        return None
    # Round as OpenVINO does, where float32 decides halfway between two levels.
    original = find("FakeQuantize").kernel(data, *limits, **attributes)
    zero = np.rint(zero)
    level = original / scale + zero
    if not np.isfinite(level).all() or (np.abs(level - np.rint(level)) > 2 * NEAR).any():
        return None
    level = np.rint(level)
    type_: type[np.int8] | type[np.uint8]
    centered = level - zero
    if (
        centered.size
        and centered.min() >= -128
        and centered.max() <= 127
        and ((zero == levels // 2) | (zero == (levels - 1) // 2)).all()
    ):
        numbers, zero, type_ = centered, np.zeros_like(zero), np.int8
    else:
        numbers, type_ = level, np.uint8
    integers = constant_value(numbers.astype(type_), name=f"{value.name}/levels")
    return integers, scale.astype(np.float32), zero.astype(type_)


def _moved(x: np.ndarray, moves: list[ir.Node]) -> np.ndarray:
    for move in moves:
        if move.op_type == "Transpose":
            x = x.transpose(move.attributes["perm"].value if "perm" in move.attributes else None)
        else:
            x = x.reshape(static_shape(move.outputs[0]))
    return x


def _along(x: np.ndarray, axis: int) -> np.ndarray | None:
    """Return the numbers along an axis if they are equal along all others."""
    # Along the axes of a broadcast, all numbers are the same element.
    x = x[tuple(slice(None) if step or i == axis else slice(1) for i, step in enumerate(x.strides))]
    rows = np.moveaxis(x, axis, 0).reshape(x.shape[axis], -1)
    return np.ascontiguousarray(rows[:, 0]) if rows.size and (rows == rows[:, :1]).all() else None
