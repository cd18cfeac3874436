"""3x3 convolutions of images, for which ONNX Runtime (1.32) needs 36 multiplications per four pixels.

The native kernel of VolumeConv needs 16, because it uses Winograd's minimal filtering, F(2 x 2, 3 x 3). On one thread with
AVX-512, it takes 0.73 of ONNX Runtime's time for images of 56 x 56 pixels with 64 channels, and 0.6 with 128 channels. Whole
networks take 0.7 to 1. With few channels, nothing is saved: ONNX Runtime's other convolutions use a blocked layout of
channels, so images are copied before and after VolumeConv.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from onnx import NodeProto, TensorProto

from onnx_specops.ops._integer_lists import integer_list, is_integer_list
from onnx_specops.optimizing.graph import Graph
from onnx_specops.optimizing.nodes import attributes_of, is_a

_WINDOW = [3, 3]
_FEWEST_CHANNELS = 16
_FEWEST_PIXELS, _MANY_PIXELS = 144, 400
_LEAST_GAIN, _LEAST_GAIN_OF_FEW_PIXELS = 16.0, 32.0
"""The minimum number of products per copied and transformed number."""

_POINTS = 16
_MOST_BYTES = 256 << 20
"""The maximum size of a model's transformed weights. VolumeConv keeps them in memory in addition to the weights."""

_MOST_PADDING = 1 << 20
"""The maximum number of padding pixels. VolumeConv stores the padding, and ONNX Runtime does not."""

_LISTS = ("strides", "dilations", "pads")


def use_volume_conv(graph: Graph) -> None:
    """Replace 3x3 convolutions of images by the domain's VolumeConv.

    Conditions:

    - The images are float32, the weights are constant, and the strides and dilations are 1.
    - The padding is not negative, and has at most `_MOST_PADDING` pixels.
    - A group has at least `_FEWEST_CHANNELS` input channels and `_FEWEST_CHANNELS` output channels, and the result has at
      least `_FEWEST_PIXELS` pixels.
    - The products per copied and transformed number are at least `_LEAST_GAIN`, or `_LEAST_GAIN_OF_FEW_PIXELS` for fewer
      than `_MANY_PIXELS` pixels.
    - The only user of the result is not a BatchNormalization, or a multiplication or addition of a constant. ONNX Runtime
      fuses these into the weights and the bias of a Conv.
    - The transformed weights of the model have at most `_MOST_BYTES` bytes. Convolutions with the most pixels are replaced
      first.

    Relu and LeakyRelu become part of the convolution. A LeakyRelu with a slope of 0 does not, because it gives NaN for
    infinity.
    """
    convolutions = [one for node in graph.nodes if (one := _convolution(graph, node)) is not None]
    free = _MOST_BYTES
    for one in sorted(convolutions, key=lambda one: -one.pixels):
        if one.weight_bytes <= free and one.is_faster:
            free -= one.weight_bytes
            _replace(graph, one)


@dataclass(frozen=True)
class _Convolution:
    """A convolution that VolumeConv supports, the channels of a group, and the pixels of a channel of the result."""

    node: NodeProto
    inputs: int
    outputs: int
    group: int
    pixels: int

    @property
    def weight_bytes(self) -> int:
        """The size of the transformed weights."""
        return 4 * _POINTS * self.inputs * self.outputs * self.group

    @property
    def is_faster(self) -> bool:
        """Whether VolumeConv is faster than ONNX Runtime's kernel."""
        if self.pixels < _FEWEST_PIXELS:
            return False
        gain = self.inputs * self.outputs / (self.inputs + self.outputs)
        return gain >= (_LEAST_GAIN if self.pixels >= _MANY_PIXELS else _LEAST_GAIN_OF_FEW_PIXELS)


def _convolution(graph: Graph, node: NodeProto) -> _Convolution | None:
    """Return a node as a convolution; ``None`` if VolumeConv does not support it, it has too few channels, or another node
    scales its result.
    """
    if not is_a(node, "Conv") or (weights := graph.constant(node, 1)) is None or _is_scaled(graph, node):
        return None
    if weights.data_type != TensorProto.FLOAT or list(weights.dims[2:]) != _WINDOW:
        return None
    stated = attributes_of(node)
    steps = {*stated.get("strides", ()), *stated.get("dilations", ())}
    if not steps <= {1} or stated.get("auto_pad", b"NOTSET") != b"NOTSET":
        return None
    pads = stated.get("pads", [0, 0, 0, 0])
    if len(pads) != 4 or not is_integer_list(pads) or (1 + pads[0] + pads[2]) * (1 + pads[1] + pads[3]) > _MOST_PADDING:
        return None
    group = stated.get("group", 1)
    if group < 1 or weights.dims[0] % group or stated.get("kernel_shape", _WINDOW) != _WINDOW:
        return None  # invalid: ONNX Runtime reports it
    inputs, outputs = weights.dims[1], weights.dims[0] // group
    if min(inputs, outputs) < _FEWEST_CHANNELS:
        return None  # before shapes are inferred
    pixels = math.prod((graph.type_of(node.output[0]).dims or ())[2:])
    return _Convolution(node, inputs, outputs, group, pixels)


def _is_scaled(graph: Graph, node: NodeProto) -> bool:
    """Return whether the only user of the result scales channels or adds to them."""
    user = graph.only_user(node)
    if user is None:
        return False
    if is_a(user, "Add", "Mul"):
        return any(graph.constant(user, index) is not None for index in range(len(user.input)))
    return is_a(user, "BatchNormalization")


def _replace(graph: Graph, convolution: _Convolution) -> None:
    node = convolution.node
    stated, after = attributes_of(node), graph.only_user(node)
    slope = 1.0
    if after is not None and is_a(after, "Relu"):
        slope = 0.0
    elif after is not None and is_a(after, "LeakyRelu"):
        slope = attributes_of(after).get("alpha", 0.01) or slope
    windows = {name: integer_list(stated[name]) for name in _LISTS if name in stated}
    graph.become(node, "VolumeConv", *node.input, **windows, group=convolution.group, slope=slope)
    if slope != 1:
        graph.fuse(node)
