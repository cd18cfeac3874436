"""Shuffles of channels with different scales, as in ShuffleNet: the integers are shuffled, and the scales with them."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import numpy as np
import onnx_ir as ir

from converters.passes.quantized.graph import Arrangement, Quantized, is_node, only_user, remove
from onnx_specops.building import Builder, Value
from onnx_specops.graphs import attributes_of, constant_array


def shuffle(work: Arrangement, node: ir.Node) -> None:
    """Move the multiplication by the scales of channels after a shuffle of the channels.

    Conditions: the nodes are a Reshape of channels to groups, a Transpose that exchanges the two dimensions, and a Reshape
    back, without other consumers in between. All spatial dimensions are known.
    """
    x = node.inputs[0]
    if x is None or (found := work.channels.get(x)) is None or (steps := work.quantized.get(found[0])) is None:
        return
    affine = found[1]
    turned = only_user(node.outputs[0])
    last = None if turned is None else only_user(turned.outputs[0])
    if turned is None or last is None or not is_node(turned, "Transpose") or not is_node(last, "Reshape"):
        return
    if steps.affine.bits != 8 or not steps.affine.is_per_tensor or affine.is_per_tensor or affine.axis != 1:
        return
    if affine.offset is not None:
        return
    if constant_array(node.inputs[1]) is None or constant_array(last.inputs[1]) is None:
        return
    before, groups, after = (_sizes(value) for value in (x, node.outputs[0], last.outputs[0]))
    if before is None or groups is None or after is None or len(groups) < 3:
        return
    channels, pixels = before[0], prod(before[1:])
    if after[0] != channels or groups[0] * groups[1] != channels or {prod(groups[2:]), prod(after[1:])} != {pixels}:
        return
    if list(turned.attributes.get_ints("perm", [])) != [0, 2, 1, *range(3, len(groups) + 1)]:
        return
    op = work.before(last)
    moved = _again(op, last, _again(op, turned, _again(op, node, steps.integers)))
    value = steps.affine.dequantize(op, moved)
    work.quantized[value] = Quantized(moved, steps.affine)
    scale, zero = (
        np.ascontiguousarray(each.reshape(groups[:2]).T.reshape(-1)) for each in (affine.scale, affine.zero_point)
    )
    shuffled = replace(affine, scale=scale, zero_point=zero, shift=None)
    result = op.Mul(value, shuffled.column(1 + len(after)))
    work.channels[result] = (value, shuffled)
    work.replace(last, result)
    remove(turned)
    remove(node)


def _again(op: Builder, node: ir.Node, x: ir.Value) -> Value:
    """Emit a node for another first input."""
    attributes = attributes_of(node)
    moved: Value = op.node(node.op_type, x, *node.inputs[1:], **attributes)
    moved.shape = node.outputs[0].shape
    return moved


def _sizes(value: ir.Value) -> list[int] | None:
    """Return the dimensions after the first if they are known and not 0."""
    sizes = [] if value.shape is None else [size for size in list(value.shape)[1:] if isinstance(size, int) and size]
    return sizes if value.shape is not None and len(sizes) > 1 and len(sizes) == len(value.shape) - 1 else None
