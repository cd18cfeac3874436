"""Recognition of weight decompression in any form."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import onnx_ir as ir

from converters.passes.compressed_weights.codes import Codes, codes_of
from converters.passes.dequantization import CAST_TO, dequantization, source, standard, static
from onnx_specops.building import Value
from onnx_specops.widening import HALVES

D = ir.DataType


@dataclass(frozen=True)
class Weights:
    """Matrices ``(codes - zero) * scale``.

    Attributes:
        codes: the stored constant.
        shape: the shape in which it is decompressed.
        zero, scale: broadcast to that shape; ``None`` if there are none.
        matrices: the shape in which it is used, ``[..., rows, columns]``.
        swapped: whether the last two dimensions of the matrices are then swapped.
        cast: the type to which the codes are cast first.
    """

    codes: Codes
    shape: tuple[int, ...]
    zero: ir.Value | None = None
    scale: ir.Value | None = None
    matrices: tuple[int, ...] = ()
    swapped: bool = False
    cast: ir.DataType | None = None


def find_weights(value: ir.Value) -> Weights | None:
    """Return the weights that decompress to ``value``, if nothing else is computed."""
    matrices, swapped = static(value), False
    if matrices is None or len(matrices) < 2:
        return None
    current, casts = value, list[ir.Value]()
    while (node := standard(current)) is not None:
        if node.op_type == "Cast" and current.dtype in CAST_TO and source(node).dtype in CAST_TO:
            casts.append(current)
        elif node.op_type == "Transpose" and _swaps(node, len(matrices)):
            swapped = not swapped
            matrices = (*matrices[:-2], matrices[-1], matrices[-2])
        else:
            break
        current = source(node)
    if node is not None and node.op_type == "Reshape":
        current = source(node)
    shape = static(current)
    if shape is None:
        return None
    found = _decompressed(current, shape, casts)
    return None if found is None else replace(found, matrices=matrices, swapped=swapped)


def _decompressed(current: ir.Value, shape: tuple[int, ...], casts: list[ir.Value]) -> Weights | None:
    """Follow the arithmetic back to the stored constant. ``casts`` are the results of later Casts."""
    arithmetic = dequantization(current, lambda value: codes_of(value) is not None)
    codes = None if arithmetic is None else codes_of(arithmetic.stored)
    if arithmetic is None or codes is None:
        return None
    cast = arithmetic.casts[-1].dtype if arithmetic.casts else None
    casts = [*casts, *arithmetic.casts]
    narrow = casts[-1].dtype if casts else None
    if codes.codebook is not None and narrow in HALVES and not (isinstance(casts[-1], Value) and casts[-1].unrounded):
        assert narrow is not None
        codes = replace(codes, codebook=codes.codebook.astype(narrow.numpy()).astype(np.float32))
    if {codes.tensor.dtype, *(value.dtype for value in casts)} >= {D.FLOAT16, D.BFLOAT16}:
        return None  # each type has numbers that the other rounds
    numeric = codes.codebook is not None or codes.packed != "no" or codes.tensor.dtype in (
        D.UINT8, D.INT8, D.FLOAT16, D.BFLOAT16,
    )  # fmt: skip
    if not numeric or math.prod(codes.shape) != math.prod(shape):
        return None
    return Weights(codes, shape, arithmetic.zero, arithmetic.scale, cast=cast)


def _swaps(node: ir.Node, rank: int) -> bool:
    perm = list(node.attributes.get_ints("perm", ())) or list(range(rank))[::-1]
    return rank >= 2 and perm == [*range(rank - 2), rank - 1, rank - 2]
