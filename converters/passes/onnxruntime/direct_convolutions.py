"""Convolutions that ONNX Runtime (1.32) computes with im2col, or in blocks of channels that are mostly empty.

Its fast kernels support images, groups with a multiple of 16 channels, and depthwise convolutions with a multiple of 4
channels. `onnx_specops.VolumeConv` computes sums directly from the padded input. With AVX-512, it takes these fractions of
ONNX Runtime's time:

- Volumes: 0.1 to 0.5.
- Images with groups of 2, 4, 8 and 24 channels: 0.32, 0.33, 0.37 and 0.57.
- Depthwise convolutions with 90 channels: 0.47 with 3x3 kernels, and 0.22 with 7x7 kernels.
- One-dimensional convolutions with kernels of 3, 6, 8, 9 or more elements and stride 1: 0.65 to 0.9 (Winograd's minimal
  filtering for each three elements). With other kernels and 64 channels: 0.8. With 256 channels or more, these are slower.
- Images of 200 x 200 pixels with 9x9 kernels from 16 to 3 channels: 0.3.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import onnx_ir as ir

from converters.passes.patterns import PatternPass, Rewrite, of_weights, rewrite
from onnx_specops.building import Builder, Value
from onnx_specops.domain import DOMAIN
from onnx_specops.graphs import attributes_of, before_cast, is_constant
from onnx_specops.ops._integer_lists import integer_list, is_integer_list

_MOST_RANK = 3
_BLOCK, _DEPTHWISE_BLOCK = 16, 4
_MOST_LINE_CHANNELS, _FEWEST_POSITIONS = 128, 64
_FEWEST_OUTPUTS, _FEWEST_STEPS = 16, 4
_TAPS, _PRODUCTS, _MOST_PRODUCTS = 3, 4, 1.5
"""The number of elements of a kernel that a transform replaces, its products for two results, and their maximum number per
element."""
_FEW_OUTPUTS, _FEWEST_PIXELS = 4, 1 << 12
_MOST_PADDING = 1 << 20
"""The maximum number of padding pixels. VolumeConv stores the padding, and ONNX Runtime does not."""


@rewrite("Conv", of_weights("Conv"), tolerance=1e-4)
def directly(op: Builder, *, x: Value, weights: Value, whole: Value) -> Value | None:
    """Compute a slow convolution of float32 by the domain's VolumeConv."""
    node, shape = whole.producer(), weights.dims
    assert node is not None
    if shape is None or (lists := windows_of(node)) is None:
        return None
    group, window = node.attributes.get_int("group", 1), [size or 0 for size in shape[2:]]
    if set(window) == {1} and (set(lists["strides"]) <= {1} or len(window) < _MOST_RANK):
        return None  # a matrix product
    pixels = x.dims[2:] if x.dims is not None else [None] * len(window)
    if len(window) < _MOST_RANK and not (
        _is_slow(shape[0], shape[1], group, window, pixels) or _is_minimal(shape[0], weights, group, window, lists, pixels)
    ):
        return None
    return volume_conv(op, node, lists)


def windows_of(node: ir.Node) -> dict[str, list[int]] | None:
    """Return the attributes of a Conv's windows, if VolumeConv supports it: of float32, and with windows of known size."""
    x, weights = node.inputs[0], node.inputs[1]
    shape = weights.dims if isinstance(weights, Value) else None
    # float16 is for GPUs.
    if x is None or x.dtype != ir.DataType.FLOAT or shape is None:
        return None
    if not 3 <= len(shape) <= _MOST_RANK + 2 or None in shape[2:]:
        return None
    stated = node.attributes
    lists = {name: list(stated.get_ints(name, ())) for name in ("strides", "dilations", "pads")}
    if stated.get_string("auto_pad", "NOTSET") != "NOTSET" or not all(map(is_integer_list, lists.values())):
        return None
    pads = lists["pads"]
    if math.prod(1 + begin + end for begin, end in zip(pads, pads[len(pads) // 2 :], strict=False)) > _MOST_PADDING:
        return None
    return lists


def volume_conv(op: Builder, node: ir.Node, windows: dict[str, list[int]]) -> Value:
    """Emit the VolumeConv of a Conv, whose windows are those of `windows_of`."""
    stated = {name: integer_list(numbers) for name, numbers in windows.items()}
    result: Value = op.specops.VolumeConv(*node.inputs, group=node.attributes.get_int("group", 1), **stated)
    return result


def _is_slow(
    outputs: int | None, inputs: int | None, group: int, window: Sequence[int], pixels: Sequence[int | None]
) -> bool:
    """Return whether ONNX Runtime's kernel of an image or a line is slow.

    Args:
        outputs: the number of output channels.
        inputs: the number of input channels of each group.
        group: the number of groups.
        window: the size of the window.
        pixels: the spatial dimensions of the input.
    """
    if outputs is None or inputs is None:
        return False
    is_image, count = len(window) == 2, math.prod(size or 0 for size in pixels)
    if group == 1:
        if is_image:
            return outputs <= _FEW_OUTPUTS and count >= _FEWEST_PIXELS
        return inputs <= _MOST_LINE_CHANNELS and count >= _FEWEST_POSITIONS
    if inputs == 1 and outputs == group and is_image:
        return outputs % _DEPTHWISE_BLOCK != 0
    return not is_image or inputs % _BLOCK != 0 or outputs // group % _BLOCK != 0


def _is_minimal(
    outputs: int | None,
    weights: Value,
    group: int,
    window: Sequence[int],
    lists: dict[str, list[int]],
    pixels: Sequence[int | None],
) -> bool:
    """Return whether VolumeConv computes a convolution along one dimension with fewer multiplications.

    For the arguments, see `_is_slow`.
    """
    # ONNX Runtime folds a Cast of constant weights.
    if len(window) != 1 or group != 1 or set(lists["strides"]) - {1} or not is_constant(before_cast(weights)):
        return False
    taps = window[0]
    if outputs is None or pixels[0] is None or math.ceil(taps / _TAPS) * _PRODUCTS > _MOST_PRODUCTS * taps:
        return False
    dilation = (lists["dilations"] or [1])[0]
    results = pixels[0] + sum(lists["pads"]) - (taps - 1) * dilation
    return outputs >= _FEWEST_OUTPUTS and results >= max(_FEWEST_POSITIONS, _FEWEST_STEPS * dilation)


def _activated(operator: str) -> Rewrite:
    def pattern(op: Builder, x: Value, weights: Value) -> Value:
        inner = op.VolumeConv(x, weights, _allow_other_inputs=True, _domain=DOMAIN, _outputs=["inner"])
        found: Value = getattr(op, operator)(inner, _outputs=["whole"])
        return found

    @rewrite(operator, pattern, tolerance=1e-4)
    def replace(op: Builder, *, x: Value, weights: Value, inner: Value, whole: Value) -> Value | None:
        """Make an activation part of the convolution."""
        node, after = inner.producer(), whole.producer()
        assert node is not None and after is not None
        attributes = attributes_of(node)
        slope = after.attributes.get_float("alpha", 0.01) if operator == "LeakyRelu" else 0.0
        # VolumeConv's slope of 0 is Relu, but a LeakyRelu multiplies infinity by 0.
        if attributes.get("slope", 1.0) != 1 or (operator == "LeakyRelu" and not slope):
            return None
        return op.specops.VolumeConv(*node.inputs, **attributes | {"slope": slope})

    return replace


class DirectConvolutions(PatternPass):
    """Compute convolutions whose kernel in ONNX Runtime is slow by the domain's VolumeConv.

    Conditions: the convolution is float32, with kernels of known size, strides and dilations below a million, and padding
    that is not negative and has at most `_MOST_PADDING` pixels. It is one of the following:

    - a convolution along three dimensions, except one with kernels of one element and strides of 1;
    - a grouped convolution with kernels of several elements, along one dimension, or along two if the number of input or
      output channels of a group is not a multiple of `_BLOCK`. For depthwise convolutions, the total number of channels is
      not a multiple of `_DEPTHWISE_BLOCK`;
    - another convolution with kernels of several elements: along one dimension with at most `_MOST_LINE_CHANNELS` input
      channels and at least `_FEWEST_POSITIONS` positions, or along two with at most `_FEW_OUTPUTS` output channels and at
      least `_FEWEST_PIXELS` pixels;
    - a convolution along one dimension with constant kernels, stride 1, and at least `_FEWEST_OUTPUTS` output channels.
      Transforms of `_TAPS` elements need at most `_MOST_PRODUCTS` products for each element of a kernel and two results, as
      for 3, 6, 8, 9, 11 and 12 elements. The result has at least `_FEWEST_POSITIONS` positions, and at least `_FEWEST_STEPS`
      times the dilation.

    Relu and LeakyRelu become part of the convolution. A LeakyRelu with a slope of 0 does not, because it gives NaN for
    infinity.
    """

    rewrites = (directly, _activated("Relu"), _activated("LeakyRelu"))
