"""Padding of quantized tensors: the integers are padded."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from converters.passes.quantized.affine import Affine
from converters.passes.quantized.graph import Arrangement, is_node, remove
from onnx_specops.building import constant_value
from onnx_specops.graphs import attributes_of, constant_array

_COPYING = frozenset(("edge", "reflect", "wrap"))
"""Modes whose padding consists of numbers of the tensor."""


def pads_numbers(node: ir.Node) -> bool:
    """Return whether a node is a Pad by numbers of the tensor or by a constant, so that padded integers may represent it."""
    return is_node(node, "Pad") and (_mode(node) in _COPYING or _fill(node) is not None)


def pad(work: Arrangement, node: ir.Node) -> None:
    """Pad the integers of a quantized tensor of 8 bits.

    Conditions: the padding consists of numbers of the tensor, or an integer represents the constant exactly.
    """
    found = work.find(node.inputs[0])
    if found is None or found.affine.bits != 8 or not pads_numbers(node):
        return
    fill = None
    if _mode(node) not in _COPYING:
        fill = _level(_fill(node), found.affine)
        if fill is None:
            return
    op = work.before(node)
    value = None if fill is None else constant_value(fill)
    padded = op.Pad(found.integers, node.inputs[1], value, *node.inputs[3:], **attributes_of(node))
    padded.shape = node.outputs[0].shape
    work.dequantized(op, node.outputs[0], padded, found.affine)
    remove(node)


def _mode(node: ir.Node) -> str:
    return node.attributes.get_string("mode", "constant")


def _fill(node: ir.Node) -> np.ndarray | None:
    """Return the constant by which a tensor is padded, 0 by default."""
    if len(node.inputs) < 3 or node.inputs[2] is None:
        return np.zeros([], np.float32)
    fill = constant_array(node.inputs[2])
    return fill if fill is not None and fill.size == 1 else None


def _level(fill: np.ndarray | None, affine: Affine) -> np.ndarray | None:
    """Return the integer that represents a constant exactly, if there is one."""
    if fill is None or not affine.is_per_tensor or affine.offset is not None:
        return None
    zero, scale = affine.zero_point.reshape(()), np.float32(affine.scale.reshape(()))
    limits = np.iinfo(zero.dtype)
    with np.errstate(all="ignore"):
        steps = np.rint(np.float64(fill.reshape(())) / np.float64(scale))
        is_exact = bool(np.float32(steps) * scale == np.float32(fill.reshape(())))
    level = steps + float(zero)
    return zero.dtype.type(level) if is_exact and limits.min <= level <= limits.max else None
