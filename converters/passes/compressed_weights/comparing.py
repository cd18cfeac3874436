"""Check of recognized weights: decode them and compare the result with the weights that the graph computes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from converters.passes.compressed_weights.blocks import plain
from converters.passes.compressed_weights.codes import Codes, codes_of, unpack, view
from converters.passes.compressed_weights.finding import Weights
from converters.passes.decoding import HALF_ROUNDING, ROUNDING, agree, folded, rows_of
from converters.passes.dequantization import source, standard

_MOVES = ("Cast", "Reshape", "Transpose")


def decodes_to(value: ir.Value, weights: Weights) -> bool:
    """Return whether codes, zero points and scales decode to the numbers that the graph computes for ``value``.

    Run-time values cannot be compared and count as equal.
    """
    shape = weights.shape
    whole, leaf = _before_data_movement(value, weights), _leaf(value, weights)
    scale, zero = (_constant(part, shape) for part in (weights.scale, weights.zero))
    if whole is None or leaf is None or scale is None or zero is None or not isinstance(weights.codes.tensor, _STORED):
        return True
    stored = _Stored(weights.codes, shape)
    original = _Stored(codes_of(leaf) or weights.codes, shape)
    error = HALF_ROUNDING.get(weights.cast, ROUNDING) if weights.cast is not None else ROUNDING
    offset, factor = (part if part.size else np.array(default, np.float32) for part, default in ((zero, 0), (scale, 1)))

    def decode(rows: slice) -> tuple[np.ndarray, np.ndarray]:
        codes = stored(rows)
        of_zero, of_scale = rows_of(offset, rows, shape), rows_of(factor, rows, shape)
        return (codes - of_zero) * of_scale, error * (np.abs(codes) + np.abs(of_zero)) * np.abs(of_scale)

    return agree(whole, shape, decode, {leaf: original}) is not False


_STORED = (ir.Tensor, ir.ExternalTensor)
"""Constants with bytes in memory or a file. Others would have to be computed."""


class _Stored:
    """Rows of the decoded numbers, in the shape in which they are decompressed."""

    def __init__(self, codes: Codes, shape: Sequence[int]) -> None:
        self._codes, self._shape = codes, tuple(shape)
        self._row = int(np.prod(shape[1:], dtype=np.int64))
        tensor = codes.tensor
        if codes.packed == "no":
            self._stored = tensor.numpy().reshape(-1)
        else:
            size = (int(np.prod(shape, dtype=np.int64)) * codes.bits + 7) // 8
            self._stored = view(tensor, ir.DataType.UINT8, (size,)).numpy()

    def __call__(self, rows: slice) -> np.ndarray:
        codes, bits = self._codes, self._codes.bits
        count = min(rows.stop, self._shape[0]) - rows.start
        begin, end = rows.start * self._row, (rows.start + count) * self._row
        if codes.packed == "no":
            numbers = self._stored[begin:end]
            if codes.codebook is not None:
                numbers = codes.codebook[numbers.view(np.uint8)]
        else:
            first = begin * bits // 8
            skipped = begin - first * 8 // bits
            numbers = unpack(self._stored[first : (end * bits + 7) // 8], bits)[skipped : skipped + end - begin]
            if codes.codebook is not None:
                numbers = codes.codebook[numbers]
            elif codes.packed == "int4":
                numbers = np.where(numbers >= 8, numbers.astype(np.int16) - 16, numbers)
        return numbers.astype(np.float32).reshape(count, *self._shape[1:])


def _before_data_movement(value: ir.Value, weights: Weights) -> ir.Value | None:
    """Return the last value of the decompressed shape, before its elements are moved or merged."""
    while (node := standard(value)) is not None and node.op_type in _MOVES and node.op_type != "Reshape":
        value = source(node)
    if node is not None and node.op_type == "Reshape":
        value = source(node)
    return value if value.shape is not None and tuple(value.shape) == weights.shape else None


def _leaf(value: ir.Value, weights: Weights) -> ir.Value | None:
    """Return the value of the codes, on the path of the recognition."""
    while codes_of(value) is None:
        node = standard(value)
        if node is None or node.op_type not in (*_MOVES, "Mul", "Sub"):
            return None
        left, right = node.inputs[0], node.inputs[1] if len(node.inputs) > 1 else None
        taken = right if left in (weights.scale, weights.zero) else left
        if taken is None:
            return None
        value = taken
    return value


def _constant(value: ir.Value | None, shape: Sequence[int]) -> np.ndarray | None:
    """Return stored scales or zero points in float32: empty if there are none, ``None`` if they are computed."""
    if value is None:
        return np.zeros(0, np.float32)
    stored = plain(value) if value.producer() is None or standard(value) is not None else value
    array = folded(stored, slice(None), shape, {})
    return None if array is None else array.astype(np.float32)
