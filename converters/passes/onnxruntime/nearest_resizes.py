"""Nearest-neighbor Resize of 8-bit integers with channels last: ONNX Runtime's kernel (1.32) copies one number at a time.

Gather copies whole pixels and lines. From 20 x 20 to 40 x 40 pixels of 128 channels, Resize takes 174 microseconds, and two
Gathers take 13.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from converters.passes.patterns import PatternPass, rewrite
from converters.passes.resized_elements import nearest_elements, positions_of, scales_of
from onnx_specops.building import Builder, Value

_BYTES = (ir.DataType.UINT8, ir.DataType.INT8)


@rewrite(
    "Resize",
    lambda op, x: op.Resize(op.Transpose(x, _outputs=["moved"]), _allow_other_inputs=True, _outputs=["whole"]),
)
def of_pixels(op: Builder, *, x: Value, moved: Value, whole: Value) -> Value | None:
    """Repeat the pixels of a tensor whose channels are last before it is transposed.

    Conditions: the Transpose moves the channels to the front. Each spatial dimension is multiplied by an integer, and is
    known if that is not 1. The other dimensions stay. The coordinates are asymmetric or half pixels. The nearest pixel of
    each result is the one at its position divided by the integer, rounded down.
    """
    transpose, node = moved.producer(), whole.producer()
    if transpose is None or node is None or x.dtype not in _BYTES or x.dims is None or not _is_plain(node):
        return None
    rank = len(x.dims)
    order = [0, rank - 1, *range(1, rank - 1)]
    if rank < 3 or list(transpose.attributes.get_ints("perm", ())) != order:
        return None
    scales = scales_of(node, moved.dims or [None] * rank, whole.dims or [None] * rank)
    if scales is None or scales[:2] != [1, 1]:
        return None
    result = x
    for axis in reversed(range(1, rank - 1)):
        size, scale = x.dims[axis], scales[axis + 1]
        if scale == 1:
            continue
        if not isinstance(size, int) or scale < 1 or scale != int(scale):
            return None
        elements = np.repeat(np.arange(size, dtype=np.int64), int(scale))
        positions = positions_of(node, size, len(elements), scale)
        if positions is None or (nearest_elements(positions, size, node) != elements).any():
            return None
        result = op.Gather(result, elements, axis=axis)
    return op.Transpose(result, perm=order)


def _is_plain(node: ir.Node) -> bool:
    """Return whether a Resize is a nearest one, of all axes, whose elements at a scale of 1 are those of the input."""
    stated = node.attributes
    if any(name in stated for name in ("axes", "keep_aspect_ratio_policy")):
        return False
    coordinates = stated.get_string("coordinate_transformation_mode", "half_pixel")
    return stated.get_string("mode", "nearest") == "nearest" and coordinates in ("asymmetric", "half_pixel")


class NearestByGather(PatternPass):
    """Resize bytes to the nearest pixels by Gather."""

    rewrites = (of_pixels,)
