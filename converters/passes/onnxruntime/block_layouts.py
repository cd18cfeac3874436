"""Element-wise operators between convolutions of images: ONNX Runtime (1.32) stores channels in blocks, which few operators
support.

ONNX Runtime copies the image before and after Add and Mul with per-channel constants, and before and after a LeakyRelu that
does not directly follow a convolution. 1x1 depthwise convolutions support blocks, and can include LeakyRelu. densenet121
takes 0.85 of the time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import cast

import numpy as np
import onnx_ir as ir

from converters.passes.workaround import Workaround, again
from onnx_specops.building import Builder, Value
from onnx_specops.graphs import constant_array

_BLOCK = 16
_OF_BLOCKS = frozenset(("Add", "AveragePool", "Concat", "Conv", "MaxPool", "Relu", "Sum"))
"""Operators that support blocks."""

_ACTIVATIONS = frozenset(("LeakyRelu", "Relu"))
"""Functions that ONNX Runtime computes in the convolution before them."""


class KeepBlocks(Workaround):
    """Compute Add and Mul of a constant for each channel, and LeakyRelu, by depthwise convolutions of one pixel.

    The numbers are float32 images of known size, whose number of channels is a multiple of `_BLOCK`. (ONNX Runtime does not
    convolve images without pixels.) The preceding operator supports blocks; for LeakyRelu, it is not a convolution. A
    convolution with one group, or a depthwise convolution, follows the node, possibly after an activation. A Mul and the Add
    after it become one convolution if no other node uses the product.
    """

    operators = frozenset(("Add", "LeakyRelu", "Mul"))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        whole = cast(Value, node.outputs[0])
        if whole.dtype != ir.DataType.FLOAT or whole.dims is None or len(whole.dims) != 4 or not all(whole.dims[1:]):
            return None
        channels = whole.dims[1]
        if not channels or channels % _BLOCK or not _is_convolved(whole, channels):
            return None
        ones = np.ones(channels, np.float32)
        if node.op_type == "LeakyRelu":
            x, before = cast(Value, node.inputs[0]), _before(node.inputs[0])
            if before is None or before.op_type not in _OF_BLOCKS - {"Conv"}:
                return None
            return [again(op, node, _scaled(op, x, ones))]
        if (found := _by_channels(node, channels)) is None:
            return None
        x, numbers = found
        before, scale = _before(x), None
        if node.op_type == "Add" and before is not None and before.op_type == "Mul" and len(x.uses()) == 1:
            scale = None if x.is_graph_output() else _by_channels(before, channels)
        if scale is not None:
            x, ones = scale
            before = _before(x)
        if before is None or before.op_type not in _OF_BLOCKS:
            return None
        return [_scaled(op, x, numbers) if node.op_type == "Mul" else _scaled(op, x, ones, numbers)]


def _scaled(op: Builder, x: Value, factors: np.ndarray, *bias: np.ndarray) -> Value:
    scaled: Value = op.Conv(x, factors.reshape(-1, 1, 1, 1), *bias, group=len(factors), kernel_shape=[1, 1])
    return scaled


def _before(value: ir.Value | None) -> ir.Node | None:
    node = None if value is None else value.producer()
    return None if node is None or node.domain else node


def _by_channels(node: ir.Node, channels: int) -> tuple[Value, np.ndarray] | None:
    """Return the input of a node that is an image of its output's channels, and the constant with a number for each."""
    for image, other in (node.inputs, node.inputs[::-1]):
        numbers, dims = constant_array(other), cast(Value, image).dims
        if numbers is None or numbers.shape not in ((channels, 1, 1), (1, channels, 1, 1)):
            continue
        if dims is not None and len(dims) == 4 and dims[1] == channels:
            return cast(Value, image), numbers.reshape(-1)
    return None


def _is_convolved(value: ir.Value, channels: int) -> bool:
    """Return whether a convolution that supports blocks follows, perhaps after an activation."""
    found = [node for node in _after(value) if node.op_type == "Conv" and not node.domain]
    return any(node.attributes.get_int("group", 1) in (1, channels) for node in found)


def _after(value: ir.Value) -> Iterator[ir.Node]:
    for node in value.consumers():
        yield node
        if node.op_type in _ACTIVATIONS and not node.domain:
            yield from node.outputs[0].consumers()
