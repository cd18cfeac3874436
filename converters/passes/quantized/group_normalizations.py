"""Normalizations of channels and groups of channels after quantized convolutions, by `onnx_specops.QuantizedGroupMoments`.

The mean and the deviation are computed from the integers that the convolution writes, with channels last. The rest is
element-wise, which `FuseElementwise` computes in one pass with the function and the quantization that follow.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from converters.passes.dequantization import static
from converters.passes.elementwise import has_moved
from converters.passes.layouts import channels_first
from converters.passes.quantized.graph import Arrangement, has_levels, is_node, only_user, remove
from onnx_specops.building import constant_value
from onnx_specops.graphs import constant_array
from onnx_specops.replacing import replace_value


def may_normalize_groups(value: ir.Value, node: ir.Node) -> bool:
    """Return whether a node normalizes channels of ``value``, or groups of channels after a Reshape."""
    return is_node(node, "InstanceNormalization") and node.inputs[0] is value and has_levels(value)


@dataclass(frozen=True)
class _Found:
    """A normalization of integers.

    Attributes:
        integers: they have channels in the second dimension.
        shape: their shape.
        groups: the number of groups.
        scale, bias: one number for each channel.
        last: the node whose result is the normalization's, of the same shape.
    """

    integers: ir.Value
    shape: tuple[int, ...]
    groups: int
    scale: np.ndarray
    bias: np.ndarray
    last: ir.Node


def group_normalization(work: Arrangement, node: ir.Node) -> None:
    """Convert an InstanceNormalization of a quantized tensor.

    Conditions: the graph may contain ONNX Runtime's own operators; the tensor has unsigned integers of 8 bits with one
    scale, and a known shape with three to five dimensions that are not 0; its channels were last, perhaps before elementwise
    nodes; scale and bias are constants. Groups of channels are merged by a Reshape before the normalization, and only the
    reverse one uses the result.
    """
    x = node.inputs[0]
    quantized = None if x is None else work.quantized.get(x)
    if not work.contrib or x is None or quantized is None or not quantized.affine.is_per_tensor:
        return
    if quantized.affine.zero_point.dtype != np.uint8 or (found := _found(node, quantized.integers)) is None:
        return
    rank, channels = len(found.shape), found.shape[1]
    op = work.before(node)
    given = (quantized.affine.scale.astype(np.float32).reshape(()), quantized.affine.zero_point.reshape(()))
    moments = op.specops.QuantizedGroupMoments(
        work.channels_last(op, found.integers, rank),
        *map(constant_value, given),
        channels=channels,
        num_groups=found.groups,
        epsilon=node.attributes.get_float("epsilon", 1e-5),
    )
    mean, factor = moments
    if (found.scale != 1).any():
        factor = op.Mul(factor, found.scale)
    mean, factor = (op.Transpose(of, perm=channels_first(rank)) for of in (mean, factor))
    numbers = quantized.affine.dequantize(op, found.integers)
    numbers.shape = ir.Shape(found.shape)
    result = op.Mul(op.Sub(numbers, mean), factor)
    if found.bias.any():
        result = op.Add(result, found.bias.reshape(1, channels, *(1 for _ in found.shape[2:])))
    if replace_value(found.last.outputs[0], result, tolerance=1e-3):
        remove(found.last)
        remove(node)


def _found(node: ir.Node, integers: ir.Value) -> _Found | None:
    scale, bias = (constant_array(value) for value in node.inputs[1:3])
    shape, last = static(integers), node
    if shape is None or len(shape) < 3 or scale is None or bias is None:
        return None
    groups = shape[1]
    before = integers.producer()
    if is_node(before, "Reshape") and before is not None and (source := before.inputs[0]) is not None:
        merged, after = static(source), only_user(node.outputs[0])
        if after is None or not is_node(after, "Reshape") or merged is None or static(after.outputs[0]) != merged:
            return None
        if len(shape) != 3 or len(merged) < 3 or merged[0] != shape[0] or not groups or merged[1] % groups:
            return None
        integers, shape, last = source, merged, after
        scale, bias = (np.repeat(of, merged[1] // groups) for of in (scale, bias))
    if not 3 <= len(shape) <= 5 or 0 in shape or not has_moved(integers, channels_first(len(shape))):
        return None
    return _Found(integers, shape, groups, scale, bias, last)
