"""Convolutions of images with windows of 3 x 3: ONNX Runtime (1.32) needs 36 multiplications for four pixels.

The native kernel of VolumeConv needs 16: it uses Winograd's minimal filtering, F(2 x 2, 3 x 3). On one thread with AVX-512,
images of 56 x 56 pixels take 0.73 of ONNX Runtime's time with 64 channels, and 0.6 with 128. Whole networks take 0.7 to 1.
Few channels save nothing, because images are copied between the blocks of channels of ONNX Runtime's other convolutions and
VolumeConv.

Models keep their Conv, which every runtime supports. A session replaces it when it loads the model.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import onnx
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper

from onnx_specops.domain import DOMAIN, OPSET_VERSION
from onnx_specops.inlining import nested_graphs, without_weights
from onnx_specops.ops._integer_lists import integer_list, is_integer_list

_WINDOW = [3, 3]
_FEWEST_CHANNELS = 16
_FEWEST_PIXELS, _MANY_PIXELS = 144, 400
_LEAST_GAIN, _LEAST_GAIN_OF_FEW_PIXELS = 16.0, 32.0
"""Of `_gain`."""

_POINTS = 16
_MOST_BYTES = 256 << 20
"""Of the transformed weights of a model, which VolumeConv keeps in memory besides the weights."""

_MOST_PADDING = 1 << 20
"""The padding alone, in pixels. VolumeConv stores it, and ONNX Runtime does not."""

_LISTS = ("strides", "dilations", "pads")


def optimize(model: ModelProto) -> ModelProto:
    """Return a copy of ``model`` in which custom operators replace nodes that their native kernels compute faster.

    These are convolutions of images with 3x3 kernels and stride 1, with Relu and LeakyRelu after them. They become
    VolumeConv. `InferenceSession` does this itself when it loads a model with the native kernels. Use the function for
    sessions that you create otherwise, for example in C++ (see `register`). The model does not have to be a converted one.

    To run the copy without the plugin, too, add the bodies of the operators with `add_bodies`.

    Args:
        model: any ONNX model. Its weights may be external.
    """
    copy = ModelProto()
    copy.CopyFrom(model)
    use_volume_conv(copy)
    return copy


def use_volume_conv(model: ModelProto) -> bool:
    """Compute convolutions of images with windows of 3 x 3 by the domain's VolumeConv.

    Conditions:

    - The images are of float32, the weights are constant, and the strides and dilations are 1.
    - The padding is not negative, and has at most `_MOST_PADDING` pixels.
    - A group has at least `_FEWEST_CHANNELS` input channels and as many output channels, and the result has at least
      `_FEWEST_PIXELS` pixels.
    - The `_gain` of the channels is at least `_LEAST_GAIN`, or `_LEAST_GAIN_OF_FEW_PIXELS` for fewer than `_MANY_PIXELS`
      pixels.
    - No BatchNormalization, multiplication or addition of a constant follows as the only user of the result. ONNX Runtime
      computes it by the weights and the bias of a Conv.
    - The transformed weights of the model have at most `_MOST_BYTES`. Convolutions with the most pixels come first.
    - The node is in the outermost graph.

    Relu and LeakyRelu become part of the convolution. A LeakyRelu with a slope of 0 does not, because it gives NaN for
    infinity.

    Args:
        model: the model, which is changed in place. Its weights may be external.

    Returns:
        Whether the model changed.
    """
    if not any(_is(node, "Conv") for node in model.graph.node):
        return False
    try:
        graph = _Graph(model.graph)
        convolutions = [one for node in model.graph.node if (one := graph.convolution(node)) is not None]
    except (TypeError, ValueError):  # attributes of other types: ONNX Runtime reports them
        return False
    if not convolutions:
        return False
    shapes = _shapes(model, [one.node.output[0] for one in convolutions])
    free = _MOST_BYTES
    unused: set[int] = set()
    measured = [(math.prod(shapes.get(one.node.output[0], ())[2:]), one) for one in convolutions]
    for pixels, one in sorted(measured, key=lambda pair: -pair[0]):
        if one.weight_bytes <= free and one.is_faster(pixels):
            free -= one.weight_bytes
            unused |= graph.replace(one)
    for index in sorted(unused, reverse=True):
        del model.graph.node[index]
    if free == _MOST_BYTES:
        return False
    if not any(opset.domain == DOMAIN for opset in model.opset_import):
        model.opset_import.append(helper.make_opsetid(DOMAIN, OPSET_VERSION))
    return True


@dataclass(frozen=True)
class _Convolution:
    """A convolution that VolumeConv supports, and the channels of a group."""

    node: NodeProto
    inputs: int
    outputs: int
    group: int

    @property
    def weight_bytes(self) -> int:
        """The size of the transformed weights."""
        return 4 * _POINTS * self.inputs * self.outputs * self.group

    def is_faster(self, pixels: int) -> bool:
        """Return whether VolumeConv is faster for images of so many pixels."""
        if min(self.inputs, self.outputs) < _FEWEST_CHANNELS or pixels < _FEWEST_PIXELS:
            return False
        products_per_number = self.inputs * self.outputs / (self.inputs + self.outputs)  # copied and transformed numbers
        return products_per_number >= (_LEAST_GAIN if pixels >= _MANY_PIXELS else _LEAST_GAIN_OF_FEW_PIXELS)


class _Graph:
    """The constants of a model's outermost graph, and the users of its values."""

    def __init__(self, graph: GraphProto) -> None:
        inputs = {value.name for value in graph.input}
        self._nodes = list(graph.node)
        self._outputs = {value.name for value in graph.output}
        self._constants = {tensor.name: tensor for tensor in graph.initializer if tensor.name not in inputs}
        self._users: dict[str, list[int]] = {}  # the positions of nodes
        for index, node in enumerate(self._nodes):
            if (constant := self._constant(node)) is not None:
                self._constants |= dict.fromkeys(node.output, constant)
            for name in {*node.input, *(name for nested in nested_graphs(node) for name in _names(nested))}:
                self._users.setdefault(name, []).append(index)

    def _constant(self, node: NodeProto) -> TensorProto | None:
        """Return the constant that a node is: that of a Constant, or of a Cast, which ONNX Runtime computes at loading."""
        if _is(node, "Constant"):
            tensor = _attributes(node).get("value")
            return tensor if isinstance(tensor, TensorProto) else None
        if _is(node, "Cast") and (tensor := self._constants.get(next(iter(node.input), ""))) is not None:
            return TensorProto(data_type=_attributes(node).get("to", TensorProto.UNDEFINED), dims=tensor.dims)
        return None

    def convolution(self, node: NodeProto) -> _Convolution | None:
        """Return a node as a convolution; ``None`` if VolumeConv does not support it, or another node scales its result."""
        if not _is(node, "Conv") or len(node.input) < 2 or not node.output or self._is_scaled(node):
            return None
        stated, weights = _attributes(node), self._constants.get(node.input[1])
        if weights is None or weights.data_type != TensorProto.FLOAT or list(weights.dims[2:]) != _WINDOW:
            return None
        steps = {*stated.get("strides", ()), *stated.get("dilations", ())}
        if not steps <= {1} or stated.get("auto_pad", b"NOTSET") != b"NOTSET":
            return None
        pads = stated.get("pads", [0, 0, 0, 0])
        if len(pads) != 4 or not is_integer_list(pads) or (1 + pads[0] + pads[2]) * (1 + pads[1] + pads[3]) > _MOST_PADDING:
            return None
        group = stated.get("group", 1)
        if group < 1 or weights.dims[0] % group or stated.get("kernel_shape", _WINDOW) != _WINDOW:
            return None  # invalid: ONNX Runtime reports it
        return _Convolution(node, weights.dims[1], weights.dims[0] // group, group)

    def _is_scaled(self, node: NodeProto) -> bool:
        """Return whether the only user of the result scales channels or adds to them."""
        user = self._only_user(node.output[0])
        if user is None or user.domain != "":
            return False
        if user.op_type in ("Add", "Mul"):
            return any(name in self._constants for name in user.input)
        return user.op_type == "BatchNormalization"

    def _only_user(self, name: str) -> NodeProto | None:
        users = self._users.get(name, [])
        return self._nodes[users[0]] if len(users) == 1 and name not in self._outputs else None

    def replace(self, convolution: _Convolution) -> set[int]:
        """Make a convolution a VolumeConv, in place; return the positions of the nodes that are part of it."""
        node = convolution.node
        stated = _attributes(node)
        after = self._only_user(node.output[0])
        slope = 1.0
        if after is not None and _is(after, "Relu"):
            slope = 0.0
        elif after is not None and _is(after, "LeakyRelu"):
            slope = _attributes(after).get("alpha", 0.01) or slope
        attributes = {name: integer_list(stated[name]) for name in _LISTS if name in stated}
        node.domain, node.op_type = DOMAIN, "VolumeConv"
        del node.attribute[:]
        for name, value in (attributes | {"group": convolution.group, "slope": slope}).items():
            node.attribute.append(helper.make_attribute(name, value))
        if after is None or slope == 1:
            return set()
        (position,) = self._users[node.output[0]]
        node.output[0] = after.output[0]
        return {position}


def _is(node: NodeProto, operator: str) -> bool:
    return (node.domain, node.op_type) == ("", operator)


def _attributes(node: NodeProto) -> dict[str, Any]:
    return {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}


def _names(graph: GraphProto) -> Iterator[str]:
    """Iterate over the names that a nested graph may use, those of its own values included."""
    pending = [graph]
    while pending:
        one = pending.pop()
        yield from (value.name for value in one.output)
        for node in one.node:
            yield from node.input
            pending.extend(nested_graphs(node))


def _shapes(model: ModelProto, names: Collection[str]) -> Mapping[str, Sequence[int]]:
    """Return the shapes of values by name, with 0 for unknown dimensions, without those of unknown rank."""
    known = _stated_shapes(model.graph)
    if not all(name in known for name in names):
        try:
            known |= _stated_shapes(onnx.shape_inference.infer_shapes(without_weights(model), data_prop=True).graph)
        except Exception:  # an invalid model: ONNX Runtime reports it
            return {}
    return known


def _stated_shapes(graph: GraphProto) -> dict[str, list[int]]:
    return {
        value.name: [dim.dim_value for dim in value.type.tensor_type.shape.dim]  # 0 for a name
        for value in (*graph.value_info, *graph.output)
        if value.type.tensor_type.HasField("shape")
    }
