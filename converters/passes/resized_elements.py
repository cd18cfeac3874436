"""The elements that Resize reads."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import onnx_ir as ir

from onnx_specops.graphs import constant_array, constant_list

COORDINATES = frozenset(("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric"))
"""The coordinate modes that depend only on sizes and scales."""

_PARTS = 256
"""If the distance of adjacent positions is a multiple of 1 / 256, it and the positions are exact in float32."""


def scales_of(node: ir.Node, before: Sequence[int | None], after: Sequence[int | None]) -> list[float] | None:
    """Return the scale of each axis of a Resize from one shape to another; ``None`` if it is unknown."""
    given = node.inputs[2] if len(node.inputs) > 2 else None
    axes = list(node.attributes.get_ints("axes", ()) or range(len(before)))
    found = [1.0] * len(before)
    if given is not None and not (given.shape is not None and given.shape == (0,)):
        scales = constant_array(given)
        if scales is None:
            return None
        for axis, scale in zip(axes, scales.tolist(), strict=True):
            found[axis % len(before)] = scale
        return found
    if len(node.inputs) < 4 or constant_list(node.inputs[3]) is None:
        return None
    return [(count or 0) / (size or 1) for size, count in zip(before, after, strict=True)]


MAX_POSITIONS = 1 << 22
"""The largest number of positions that are computed, along one axis."""


def positions_of(node: ir.Node, size: int, count: int, scale: float) -> np.ndarray | None:
    """Return the position in the input of each element of a Resize; ``None`` if the coordinates depend on more than sizes
    and scales, or there are more than `MAX_POSITIONS`.

    They are computed in float32, as runtimes do: a nearest Resize takes another element if a position halfway between two
    of them, or on one, is rounded differently.

    Args:
        node: the Resize.
        size, count: the elements along an axis before and after.
        scale: the scale of the axis.
    """
    if count > MAX_POSITIONS:
        return None
    x, step, half = np.arange(count, dtype=np.float32), np.float32(scale), np.float32(0.5)
    match node.attributes.get_string("coordinate_transformation_mode", "half_pixel"):
        case "half_pixel":
            return (x + half) / step - half
        case "pytorch_half_pixel":
            return (x + half) / step - half if count > 1 else np.zeros_like(x)
        case "asymmetric":
            return x / step
        case "align_corners":
            return x * np.float32(size - 1) / np.float32(count - 1) if count > 1 else np.zeros_like(x)
        case _:
            return None


def nearest_elements(positions: np.ndarray, size: int, node: ir.Node) -> np.ndarray:
    """Return the element of the input that a nearest Resize takes at each position along an axis of ``size`` elements."""
    positions = positions.astype(np.float64)  # half added to the number before one half is 1 in float32
    match node.attributes.get_string("nearest_mode", "round_prefer_floor"):
        case "round_prefer_floor":
            rounded = np.ceil(positions - 0.5)
        case "round_prefer_ceil":
            rounded = np.floor(positions + 0.5)
        case "floor":
            rounded = np.floor(positions)
        case _:
            rounded = np.ceil(positions)
    return np.clip(rounded, 0, size - 1).astype(np.int64)


def has_clear_elements(node: ir.Node, size: int, count: int, scale: float, distance: float) -> bool:
    """Return whether a nearest Resize takes the same elements along an axis with every order and precision of arithmetic.

    Each position is at least ``distance`` away from those where the next element begins, or the positions are exact, and the
    elements are those of exact positions.

    Args:
        node, size, count, scale: see `positions_of`.
        distance: the distance, which depends on the program.
    """
    positions = positions_of(node, size, count, scale)
    if positions is None:
        return False
    wanted = nearest_elements(positions, size, node)
    mode = node.attributes.get_string("coordinate_transformation_mode", "half_pixel")
    if mode == "align_corners":
        step = Fraction(size - 1, max(count - 1, 1))
    else:
        step = Fraction(size, count) if scale == count / size else 1 / Fraction(scale)
    exact = np.arange(count) * float(step)
    if mode == "half_pixel" or (mode == "pytorch_half_pixel" and count > 1):
        exact += (float(step) - 1) / 2
    is_exact = _PARTS % step.denominator == 0
    shifts = (0,) if is_exact else (-distance, distance)
    return all((nearest_elements(exact + shift, size, node) == wanted).all() for shift in shifts)
