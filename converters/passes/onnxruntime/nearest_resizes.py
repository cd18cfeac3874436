"""Nearest-neighbor Resize of 8-bit integers with channels last: ONNX Runtime's kernel (1.32) copies one number at a time.

Gather copies complete pixels and lines. From 20 x 20 to 40 x 40 pixels with 128 channels, Resize takes 174 microseconds, and
two Gathers take 13 microseconds.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from converters.passes.elementwise import has_moved
from converters.passes.layouts import channels_first, channels_last
from converters.passes.patterns import PatternPass, rewrite
from converters.passes.resized_elements import nearest_elements, positions_of, scales_of
from converters.passes.simplification.data_movement import permutation
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
    if not _is_to_front(permutation(moved, x.rank)) or (repeated := _repeated(moved, whole)) is None:
        return None
    return _gathered(op, x, repeated)


@rewrite("Resize", lambda op, moved: op.Resize(moved, _allow_other_inputs=True, _outputs=["whole"]), exclusive=False)
def of_computed_pixels(op: Builder, *, moved: Value, whole: Value) -> Value | None:
    """Repeat pixels that elementwise nodes compute after the channels were moved to the front. ONNX Runtime moves the
    Transpose, too.

    Conditions: as for `of_pixels`.
    """
    rank = moved.rank or 0
    if rank < 3 or not has_moved(moved, channels_first(rank)) or (repeated := _repeated(moved, whole)) is None:
        return None
    return _gathered(op, op.Transpose(moved, perm=channels_last(rank)), repeated)


def _is_to_front(order: list[int] | None) -> bool:
    """Return whether a permutation moves the channels from the last to the second dimension, with pixels between."""
    return order is not None and len(order) > 2 and order == channels_first(len(order))


def _repeated(moved: Value, whole: Value) -> dict[int, np.ndarray] | None:
    """Return the elements along the spatial dimensions of a Resize of bytes; ``None`` if a condition is not met."""
    node, dims = whole.producer(), moved.dims
    if node is None or moved.dtype not in _BYTES or dims is None or not _is_plain(node):
        return None
    scales = scales_of(node, dims, whole.dims or [None] * len(dims))
    if scales is None or scales[:2] != [1, 1]:
        return None
    repeated = {}
    for axis in range(2, len(dims)):
        size, scale = dims[axis], scales[axis]
        if scale == 1:
            continue
        if not isinstance(size, int) or scale < 1 or scale != int(scale):
            return None
        positions = positions_of(node, size, size * int(scale), scale)
        if positions is None:
            return None
        elements = np.repeat(np.arange(size, dtype=np.int64), int(scale))
        if (nearest_elements(positions, size, node) != elements).any():
            return None
        repeated[axis] = elements
    return repeated


def _gathered(op: Builder, x: Value, repeated: dict[int, np.ndarray]) -> Value:
    """Gather elements of a tensor whose channels are last, and move the channels to the front."""
    for axis in sorted(repeated, reverse=True):
        x = op.Gather(x, repeated[axis], axis=axis - 1)
    result: Value = op.Transpose(x, perm=channels_first(x.rank or 0))
    return result


def _is_plain(node: ir.Node) -> bool:
    """Return whether a Resize is a nearest one, of all axes, whose elements at a scale of 1 are those of the input."""
    stated = node.attributes
    if any(name in stated for name in ("axes", "keep_aspect_ratio_policy")):
        return False
    coordinates = stated.get_string("coordinate_transformation_mode", "half_pixel")
    return stated.get_string("mode", "nearest") == "nearest" and coordinates in ("asymmetric", "half_pixel")


class NearestByGather(PatternPass):
    """Resize bytes to the nearest pixels by Gather."""

    rewrites = (of_pixels, of_computed_pixels)
