"""Transposed convolutions of volumes: ONNX Runtime (1.32) adds each product to the result separately.

For 16 x 24 x 24 pixels, 32 to 16 channels and 4x4x4 kernels, it takes 57 ms. A convolution whose channels become blocks of
pixels takes 15 ms.
"""

from __future__ import annotations

import math

import numpy as np
import onnx_ir as ir

from converters.passes.patterns import PatternPass, of_weights, rewrite
from converters.passes.transposed_windows import TransposedAxis, convolved
from onnx_specops.building import Builder, Value
from onnx_specops.graphs import before_cast, constant_array
from onnx_specops.ops._integer_lists import integer_list, is_integer_list

_RANK = 3


# Windows are padded with zeros to a multiple of the stride, and 0 times infinity is NaN.
@rewrite("ConvTranspose", of_weights("ConvTranspose"), finite=True, tolerance=1e-4)
def of_a_volume(op: Builder, *, x: Value, weights: Value, whole: Value) -> Value | None:
    """Compute a transposed convolution of float32 along three dimensions, of known size, by VolumeConv."""
    node, numbers = whole.producer(), _stored(weights)
    assert node is not None
    # float16 is for GPUs.
    if x.dtype != ir.DataType.FLOAT or numbers is None or numbers.ndim != _RANK + 2:
        return None
    stated, dims = node.attributes, [size for size in x.dims or () if size]
    if stated.get_string("auto_pad", "NOTSET") != "NOTSET" or "output_shape" in stated or stated.get_int("group", 1) != 1:
        return None
    if set(stated.get_ints("dilations", [1])) != {1} or len(dims) != _RANK + 2:
        return None
    strides, pads = (list(stated.get_ints(name, [k] * n)) for name, k, n in (("strides", 1, 3), ("pads", 0, 6)))
    more = stated.get_ints("output_padding", [0] * _RANK)
    found = [TransposedAxis.of(*one) for one in zip(numbers.shape[2:], strides, pads[:3], pads[3:], more, strict=True)]
    axes = [axis for axis in found if axis is not None]
    if len(axes) < _RANK:
        return None
    blocks, channels = math.prod(strides), numbers.shape[1]
    padded = [axis.pads[side] for side in (0, 1) for axis in axes]
    if not is_integer_list(padded):
        return None
    filters = op.const(convolved(numbers, axes))
    if filters.dtype != ir.DataType.FLOAT:
        filters = op.Cast(filters, to=ir.DataType.FLOAT)
    bias = [op.Tile(value, [blocks]) for value in node.inputs[2:] if value is not None]
    result = op.specops.VolumeConv(x, filters, *bias, pads=integer_list(padded))
    sizes = [size + sum(axis.pads) - axis.taps + 1 for size, axis in zip(dims[2:], axes, strict=True)]
    if blocks > 1:
        apart = op.Reshape(result, [dims[0], *strides, channels, *sizes])
        moved = op.Transpose(apart, perm=[0, 4, 5, 1, 6, 2, 7, 3])
        result = op.Reshape(moved, [dims[0], channels, *(a * b for a, b in zip(sizes, strides, strict=True))])
    if any(any(axis.cut) for axis in axes):
        ends = [size * stride - axis.cut[1] for size, stride, axis in zip(sizes, strides, axes, strict=True)]
        result = op.Slice(result, [axis.cut[0] for axis in axes], ends, [2, 3, 4])
    return result


def _stored(weights: Value) -> np.ndarray | None:
    """Return constant weights in the type in which they are stored."""
    found = constant_array(before_cast(weights))
    return found if found is not None and found.dtype.kind == "f" else None


class TransposedVolumes(PatternPass):
    """Compute transposed convolutions along three dimensions by the domain's VolumeConv.

    Conditions: the numbers are float32 of known shape, the weights are constant, there is one group and no dilation, and
    each dimension is a `TransposedAxis`.
    """

    rewrites = (of_a_volume,)
