"""Shuffles of channels with different scales, as in ShuffleNet: the integers are shuffled, and the scales with them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

import numpy as np
import onnx_ir as ir

from converters.passes.quantized.affine import Affine
from converters.passes.quantized.graph import Arrangement, Quantized, is_node, only_user, remove
from onnx_specops.building import Builder, Value
from onnx_specops.graphs import attributes_of, constant_array


@dataclass(frozen=True)
class Shuffle:
    """A shuffle of channels.

    Attributes:
        nodes: the Reshape of the channels to groups, the Transpose that exchanges the two dimensions, and the Reshape back.
        groups: the number of groups, and of channels in each.
    """

    nodes: tuple[ir.Node, ir.Node, ir.Node]
    groups: tuple[int, int]

    @property
    def result(self) -> ir.Value:
        """The shuffled value."""
        return self.nodes[2].outputs[0]

    def of(self, numbers: np.ndarray) -> np.ndarray:
        """Return numbers of the channels in the order of the result."""
        return np.ascontiguousarray(numbers.reshape(self.groups).T.reshape(-1))

    def of_affine(self, affine: Affine) -> Affine:
        """Return the scales, zero points and offsets of the channels, which are the second dimension, in that order."""
        offset = None if affine.offset is None else self.of(affine.offset)
        return replace(affine, scale=self.of(affine.scale), zero_point=self.of(affine.zero_point), shift=None, offset=offset)


def shuffle_of(node: ir.Node) -> Shuffle | None:
    """Return the shuffle that begins with a Reshape.

    Conditions: the dimensions of the Reshapes are constant, and the Transpose exchanges the second and third one. The values
    in between have no other consumers. All spatial dimensions are known.
    """
    x = node.inputs[0] if is_node(node, "Reshape") else None
    turned = None if x is None else only_user(node.outputs[0])
    last = None if turned is None else only_user(turned.outputs[0])
    if x is None or turned is None or last is None or not is_node(turned, "Transpose") or not is_node(last, "Reshape"):
        return None
    if constant_array(node.inputs[1]) is None or constant_array(last.inputs[1]) is None:
        return None
    before, groups, after = (_sizes(value) for value in (x, node.outputs[0], last.outputs[0]))
    if before is None or groups is None or after is None or len(groups) < 3:
        return None
    channels, pixels = before[0], prod(before[1:])
    if after[0] != channels or groups[0] * groups[1] != channels or {prod(groups[2:]), prod(after[1:])} != {pixels}:
        return None
    if list(turned.attributes.get_ints("perm", [])) != [0, 2, 1, *range(3, len(groups) + 1)]:
        return None
    return Shuffle((node, turned, last), (groups[0], groups[1]))


def shuffle(work: Arrangement, node: ir.Node) -> None:
    """Move the multiplication by the scales of channels after a shuffle of the channels, with their zero points."""
    x = node.inputs[0]
    if x is None or (found := work.channels.get(x)) is None or (steps := work.quantized.get(found[0])) is None:
        return
    affine, known = found[1], steps.affine
    if known.bits != 8 or known.scale_along(1) is None or affine.is_per_tensor or affine.axis != 1:
        return
    if (moves := shuffle_of(node)) is None:
        return
    op = work.before(moves.nodes[2])
    moved = steps.integers
    for move in moves.nodes:
        moved = _again(op, move, moved)
    own = known if known.is_per_tensor else moves.of_affine(known)
    value = own.dequantize(op, moved)
    value.shape = moves.result.shape
    work.quantized[value] = Quantized(moved, own)
    shuffled = moves.of_affine(affine)
    result = shuffled.of_steps(op, value)
    work.channels[result] = (value, shuffled)
    work.replace(moves.nodes[2], result)
    remove(moves.nodes[1])
    remove(moves.nodes[0])


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
