"""Patterns that a program fuses incorrectly."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from converters.passes.workaround import Workaround
from onnx_specops.building import Builder, Value, constant_value
from onnx_specops.graphs import constant_array, constant_list

_CONVOLUTIONS = frozenset(("Conv", "ConvTranspose"))
_PRODUCTS = frozenset(("MatMul", "Gemm"))


class WholeAddends(Workaround):
    """Expand a constant that is added to a convolution or matrix multiplication, unless it is added along the channels.

    If a constant has one element per channel, MNN (3.6) and OpenCV (5.0.0) add it along the channels, regardless of its
    shape.
    """

    operators = frozenset(("Add",))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        for index, value in enumerate(node.inputs):
            wide = _widened(value, node.inputs[1 - index])
            if wide is not None and value is not None:
                operands = list(node.inputs)
                operands[index] = constant_value(wide, name=f"{value.name}_whole")
                return [op.Add(*operands)]
        return None


def _widened(value: ir.Value | None, other: ir.Value | None) -> np.ndarray | None:
    """Return a constant in the shape of the sum with a product; ``None`` if it may stay.

    The shape lacks the batch, unless the sum has more dimensions than the product.
    """
    producer = None if other is None else other.producer()
    array = None if value is None else constant_array(value)
    if producer is None or producer.domain or array is None or not isinstance(other, Value) or not other.dims:
        return None
    rank = len(other.dims)
    channels = 1 if producer.op_type in _CONVOLUTIONS else rank - 1 if producer.op_type in _PRODUCTS else None
    if channels is None or array.size != other.dims[channels] or array.size == 1:
        return None
    if array.ndim > rank:
        shape = np.broadcast_shapes(array.shape, [dim or 0 for dim in other.dims]) if other.is_static else None
        return None if shape is None else np.array(np.broadcast_to(array, shape))
    dims = [1] * (rank - array.ndim) + list(array.shape)
    if dims[channels] == array.size:
        return None
    varying = range(1, rank) if channels == 1 else range(max(0, rank - 2), rank)
    whole = [other.dims[axis] if axis in varying and dims[axis] == 1 else dims[axis] for axis in range(rank)]
    if any(dim is None for dim in whole):
        return None
    return np.array(np.broadcast_to(array.reshape(dims), [dim or 0 for dim in whole]))


class UnfusedRMSNormalization(Workaround):
    """Convert ReduceMean to ReduceSum in RMS normalizations along axes other than the last, or with weights of another
    shape.

    MNN (3.6) fuses every RMS normalization as if it were along the last axis, with a weight for each element of this axis.
    """

    operators = frozenset(("ReduceMean",))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        x, axes = node.inputs[0], constant_list(node.inputs[1]) if len(node.inputs) > 1 else None
        if not isinstance(x, Value) or x.dims is None or not axes:
            return None
        places = [axis % len(x.dims) for axis in axes]
        sizes = [x.dims[place] for place in places]
        roots = [after for add in _consumers(node, "Add") for after in _consumers(add, "Sqrt")]
        if not roots or any(size is None for size in sizes):
            return None
        if places == [len(x.dims) - 1] and all(_is_scaled(square, sizes[0] or 0) for square in roots):
            return None
        keepdims: int = node.attributes.get_int("keepdims", 1)
        total = op.ReduceSum(x, places, keepdims=keepdims)
        inverse = 1 / np.prod([size or 1 for size in sizes])
        return [op.Mul(total, op.const([inverse] if total.rank else inverse, x.dtype))]


def _is_scaled(square: ir.Node, size: int) -> bool:
    """Return whether a division by a root is followed only by products with ``size`` weights along the last axis."""
    divided = [*_consumers(square, "Div")]
    divided += [after for inverse in _consumers(square, "Reciprocal") for after in _consumers(inverse, "Mul")]
    for product in (after for quotient in divided for after in _consumers(quotient, "Mul")):
        weights = [array for value in product.inputs if value is not None and (array := constant_array(value)) is not None]
        if any(array.size != size or array.shape[-1:] != (size,) for array in weights):
            return False
    return True


def _consumers(node: ir.Node, operator: str) -> list[ir.Node]:
    return [after for after in node.outputs[0].consumers() if not after.domain and after.op_type == operator]
