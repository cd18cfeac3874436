"""Large constants of types that ONNX lacks. They stay packed as in the IR, and tables map their codes to values.

ONNX Runtime folds the lookups when it loads the model. The codes of one byte are looked up together: a table has a row for
each byte, with all its elements.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx_ir as ir

from converters.openvino.reader.constants import NF4, Constant, group_bits, parts
from converters.openvino.reader.element_types import ElementType
from converters.openvino.tensors import mapped_tensor
from converters.passes.compressed_weights.codes import PACKED, Codes, pack
from onnx_specops.building import Builder, Value, constant_value

PACKED_BYTES = 4096
"""Larger constants stay packed. For types in groups of three bytes, the limit is three times as large."""

# The values of float codes.
_NUMBERS = {
    ElementType.NF4: NF4,
    ElementType.F4E2M1: np.arange(16, dtype=np.uint8).view(ml_dtypes.float4_e2m1fn).astype(np.float32),
    ElementType.F8E8M0: np.arange(256, dtype=np.uint8).view(ml_dtypes.float8_e8m0fnu).astype(np.float32),
}
_BYTES = np.arange(256, dtype=np.uint8)[:, None]


def unpacked(op: Builder, constant: Constant, path: Path, name: str) -> Value | None:
    """Return the constant's values, looked up by codes that are stored as in the IR.

    Args:
        op: the builder of the graph for the lookups.
        constant: the constant.
        path: the .bin that contains it.
        name: the name of the codes in the graph.

    Returns:
        The values in the type of `onnx_types.data_type`; ``None`` for small constants and for types that ONNX has.
    """
    kind = constant.element_type
    grouped = kind in (ElementType.U3, ElementType.U6)
    if constant.size <= PACKED_BYTES * (3 if grouped else 1):  # smaller constants are folded
        return None
    if kind is ElementType.F8E8M0:
        codes = constant_value(mapped_tensor(constant, path, ir.DataType.UINT8, constant.shape), name=name)
        return _looked_up(op, codes, _NUMBERS[kind])
    if not grouped and kind not in (ElementType.U1, ElementType.U2, *_NUMBERS):
        return None
    shape = (constant.size // 3, 3) if grouped else (constant.size,)
    codes = constant_value(mapped_tensor(constant, path, ir.DataType.UINT8, shape), name=name)
    elements = _of_groups(op, codes, kind) if grouped else _looked_up(op, codes, _of_a_byte(kind))
    whole = op.Slice(op.Reshape(elements, [-1]), [0], [constant.count], [0])
    values = op.Reshape(whole, list(constant.shape))
    if grouped:
        values.meta[PACKED] = _wider(constant, name)
    elif kind is not ElementType.U1 and codes.const_value is not None:
        values.meta[PACKED] = Codes(codes.const_value, f"uint{kind.bits}", constant.shape, _NUMBERS.get(kind), name)
    return values


def renumbered(op: Builder, values: Value, numbers: Callable[[np.ndarray], np.ndarray]) -> Value | None:
    """Return the result of `unpacked` with other float32 values for the codes; ``None`` for other values."""
    stored = values.meta.get(PACKED)
    lookup = values.producer()
    while lookup is not None and lookup.op_type != "Gather":
        source = lookup.inputs[0]
        lookup = None if source is None else source.producer()
    if not isinstance(stored, Codes) or stored.codebook is None or lookup is None:
        return None
    table, codes = lookup.inputs
    assert table is not None and table.const_value is not None and isinstance(codes, Value)
    elements = op.Gather(op.const(numbers(table.const_value.numpy())), codes)
    other = op.Reshape(op.Slice(op.Reshape(elements, [-1]), [0], [math.prod(stored.shape)], [0]), list(stored.shape))
    other.meta[PACKED] = replace(stored, codebook=numbers(stored.codebook))
    return other


def _wider(constant: Constant, name: str) -> Codes:
    """Widen u3 to 4 bits and u6 to 8 for operators that use the stored codes."""
    halves = constant.element_type is ElementType.U3
    size = (constant.count + 1) // 2 if halves else constant.count

    def compute() -> ir.TensorProtocol:
        codes = constant.codes().reshape(-1)
        return ir.Tensor(pack(codes, 4) if halves else np.ascontiguousarray(codes))

    lazy = ir.LazyTensor(functools.cache(compute), dtype=ir.DataType.UINT8, shape=ir.Shape([size]), name=name)
    return Codes(lazy, "uint4" if halves else "no", constant.shape, None, name)


def _looked_up(op: Builder, codes: Value, table: np.ndarray) -> Value:
    return op.Gather(op.const(table, ir.DataType.from_numpy(table.dtype)), op.Cast(codes, to=ir.DataType.INT32))


def _of_a_byte(kind: ElementType) -> np.ndarray:
    """Return the elements of each byte. The first element of u1 is the highest bit, that of other types the lowest bits."""
    codes = parts(_BYTES, kind.bits)
    if kind.bits > 1:
        codes = codes[:, ::-1]
    return _NUMBERS[kind][codes] if kind in _NUMBERS else codes


def _of_groups(op: Builder, codes: Value, kind: ElementType) -> Value:
    """Return ``[groups, elements]`` of bytes in groups of three."""
    low_bits, high_bits = group_bits(kind)
    high = parts(_BYTES, high_bits) << low_bits
    count = high.shape[1]
    lows = _looked_up(op, op.Slice(codes, [0], [2], [1]), parts(_BYTES, low_bits))
    highs = _looked_up(op, op.Slice(codes, [2], [3], [1]), high)
    return op.Add(op.Reshape(lows, [-1, count]), op.Reshape(highs, [-1, count]))
