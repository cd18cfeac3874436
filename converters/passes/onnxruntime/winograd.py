"""Convolutions of images with windows of 3 x 3: ONNX Runtime (1.32) needs 36 multiplications for four pixels.

VolumeConv needs 16: it uses Winograd's minimal filtering, F(2 x 2, 3 x 3). On one thread with AVX-512, images of 56 x 56
pixels take 0.73 of ONNX Runtime's time with 64 channels, and 0.6 with 128. Whole networks take 0.7 to 1. Few channels save
nothing, because images are copied between the blocks of channels of ONNX Runtime's other convolutions and VolumeConv.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import onnx_ir as ir
from onnx_ir.passes import PassResult

from converters.passes.onnxruntime.direct_convolutions import volume_conv, windows_of
from converters.passes.workaround import Workaround
from onnx_specops.building import Builder, Value
from onnx_specops.graphs import all_nodes, before_cast, is_constant

_WINDOW = [3, 3]
_FEWEST_CHANNELS = 16
_FEWEST_PIXELS, _MANY_PIXELS = 144, 400
_LEAST_GAIN, _LEAST_GAIN_OF_FEW_PIXELS = 16.0, 32.0
"""Of `_gain`."""

_POINTS = 16
_MOST_BYTES = 256 << 20
"""Of the transformed weights of a model, which VolumeConv keeps in memory besides the weights."""


@dataclass(frozen=True)
class _Candidate:
    node: ir.Node
    pixels: int
    bytes: int
    windows: dict[str, list[int]]


class WinogradConvolutions(Workaround):
    """Compute convolutions of images with windows of 3 x 3 by the domain's VolumeConv.

    Conditions:

    - `windows_of` supports the convolution, its weights are constant, and its strides and dilations are 1.
    - A group has at least `_FEWEST_CHANNELS` input channels and as many output channels, and the result has at least
      `_FEWEST_PIXELS` pixels.
    - The `_gain` of the channels is at least `_LEAST_GAIN`, or `_LEAST_GAIN_OF_FEW_PIXELS` for fewer than `_MANY_PIXELS`
      pixels.
    - No BatchNormalization, multiplication or addition of a constant follows as the only user of the result. ONNX Runtime
      computes it by the weights and the bias of a Conv.
    - The transformed weights of the model have at most `_MOST_BYTES`. Convolutions with the most pixels come first.
    """

    operators = frozenset(("Conv",))
    tolerance = 1e-4

    def __init__(self) -> None:
        super().__init__()
        self._windows: dict[ir.Node, dict[str, list[int]]] = {}

    def call(self, model: ir.Model) -> PassResult:
        found = [one for node in all_nodes(model.graph) if (one := _candidate(node)) is not None]
        free = _MOST_BYTES
        for one in sorted(found, key=lambda one: -one.pixels):
            if one.bytes <= free:
                free -= one.bytes
                self._windows[one.node] = one.windows
        return super().call(model)

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        windows = self._windows.get(node)
        return None if windows is None else [volume_conv(op, node, windows)]


def _candidate(node: ir.Node) -> _Candidate | None:
    if (node.domain, node.op_type) != ("", "Conv") or (windows := windows_of(node)) is None:
        return None
    weights, result = node.inputs[1], node.outputs[0]
    assert isinstance(weights, Value) and isinstance(result, Value)
    group = node.attributes.get_int("group", 1)
    # ONNX Runtime computes a Cast of constants when it loads the model.
    if not is_constant(before_cast(weights)) or weights.dims is None or result.dims is None or _is_scaled(result):
        return None
    outputs, inputs, *window = (size or 0 for size in weights.dims)
    pixels = math.prod(size or 0 for size in result.dims[2:])
    if window != _WINDOW or not {*windows["strides"], *windows["dilations"]} <= {1}:
        return None
    if min(inputs, outputs // group) < _FEWEST_CHANNELS or pixels < _FEWEST_PIXELS:
        return None
    if _gain(inputs, outputs // group) < (_LEAST_GAIN if pixels >= _MANY_PIXELS else _LEAST_GAIN_OF_FEW_PIXELS):
        return None
    return _Candidate(node, pixels, 4 * _POINTS * inputs * outputs, windows)


def _is_scaled(result: Value) -> bool:
    """Return whether the only user scales channels or adds to them."""
    users = list(result.uses())
    if len(users) != 1 or result.is_graph_output():
        return False
    user = users[0].node
    if user.domain != "" or user.op_type not in ("Add", "BatchNormalization", "Mul"):
        return False
    return user.op_type == "BatchNormalization" or any(map(is_constant, user.inputs))


def _gain(inputs: int, outputs: int) -> float:
    """Return the number of products per copied and transformed number."""
    return inputs * outputs / (inputs + outputs)
