"""Depthwise convolutions between tensors whose channels are last.

ONNX Runtime (1.32) moves the channels to blocks of 16 before each convolution and back after it, which takes longer than a
depthwise convolution. The domain's DepthwiseConv leaves them last. For (1, 56, 56, 256) and windows of 3 x 3, it takes half
of the time, and elementwise operators after it need no Transpose.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import cast

import numpy as np
import onnx_ir as ir
from onnx_ir.passes import InPlacePass, PassResult

from converters.passes.layouts import channels_first, channels_last
from converters.passes.quantized.graph import is_node, static_shape
from converters.passes.simplification.data_movement import permutation
from onnx_specops.building import Builder, Value
from onnx_specops.domain import DOMAIN
from onnx_specops.graphs import all_nodes, attributes_of, constant_array, constant_list
from onnx_specops.ops._integer_lists import integer_list
from onnx_specops.replacing import may_replace, replace_value

# Functions of each element.
_ELEMENTWISE = {
    "": frozenset((
        "Abs", "Add", "Clip", "DequantizeLinear", "Div", "Elu", "Erf", "Exp", "Gelu", "HardSigmoid", "HardSwish",
        "LeakyRelu", "Mish", "Mul", "Neg", "PRelu", "QuantizeLinear", "Relu", "Sigmoid", "Softplus", "Sqrt", "Sub", "Swish",
        "Tanh",
    )),
    DOMAIN: frozenset(("Elementwise", "FakeQuantize")),
}  # fmt: skip
_OF_LEVELS = frozenset(("DequantizeLinear", "QuantizeLinear"))  # with an axis
_DECOMPRESSING = frozenset(("Cast", "DequantizeLinear", "Mul", "Reshape", "Sub"))
_LEAST_RESULTS = 4096


class DepthwiseChannelsLast(InPlacePass):
    """Compute depthwise convolutions between Transposes of the channels by the domain's DepthwiseConv.

    Conditions for the convolution: float32, one to three spatial dimensions, one channel for each group, constant weights of
    finite numbers (padding is not multiplied), known sizes, and `_LEAST_RESULTS` results or more. Before it, the channels
    are moved from the last to the second dimension. After it, each path moves them back.

    In between are only elementwise functions whose other inputs are constants of one element or of one for each channel, Pad
    of spatial dimensions before the convolution, and Reshape of all spatial dimensions to one or from one. Before the
    convolution, each of these nodes has one consumer.
    """

    def call(self, model: ir.Model) -> PassResult:
        convolutions = [node for node in all_nodes(model.graph) if is_node(node, "Conv")]
        root = Builder.of_existing(model.graph) if convolutions else None
        count = sum(_replaced(node, root) for node in convolutions if root is not None)
        return PassResult(model, modified=count > 0)


def _replaced(node: ir.Node, root: Builder) -> bool:
    x, weights, whole = node.inputs[0], node.inputs[1], node.outputs[0]
    if x is None or weights is None or x.dtype != ir.DataType.FLOAT or not _is_constant(weights):
        return False
    shape = static_shape(weights)
    if shape is None or not 3 <= len(shape) <= 5:
        return False
    channels, per_group, *window = shape
    stated = attributes_of(node)
    if (per_group, stated.get("group", 1)) != (1, channels) or channels < 2 or 0 in window:
        return False
    lists = {name: list(stated.get(name, ())) for name in ("strides", "dilations", "pads")}
    if stated.get("auto_pad", "NOTSET") != "NOTSET" or min(lists["pads"], default=0) < 0:
        return False
    sizes = static_shape(whole)
    if sizes is None or prod(sizes) < _LEAST_RESULTS:
        return False
    before = _before(x)
    if before is None or not _ends(whole):
        return False
    op = Builder.before_node(node, root)
    result = op.specops.DepthwiseConv(
        before.emit(op),
        op.Transpose(op.Reshape(cast(Value, weights), [channels, *window]), perm=[*range(1, len(window) + 1), 0]),
        *node.inputs[2:],
        channels=channels,
        kernel=integer_list(window),
        **{name: integer_list(numbers) for name, numbers in lists.items()},
    )
    pairs: list[tuple[ir.Value, Value]] = []
    _emit_after(op, whole, result, pairs)
    level = 1.0 if any(old.dtype != ir.DataType.FLOAT for old, _ in pairs) else 0.0
    if not may_replace(pairs, tolerance=1e-4, level=level):
        return False
    for old, new in pairs:
        replace_value(old, new, checked=True)
    return True


def _is_constant(value: ir.Value | None) -> bool:
    """Return whether a value is a constant of finite numbers, or decompressed from such constants."""
    node = None if value is None else value.producer()
    if node is None:
        array = constant_array(value)
        return array is not None and bool(np.isfinite(array).all())
    return not node.domain and node.op_type in _DECOMPRESSING and all(map(_is_constant, node.inputs))


@dataclass(frozen=True)
class _Before:
    """The computation of a convolution's input.

    Attributes:
        source: the tensor with channels last.
        shape: its dimensions, to which it is reshaped.
        nodes: the nodes after the channels are moved, in order.
    """

    source: ir.Value
    shape: list[int]
    nodes: Sequence[ir.Node]

    def emit(self, op: Builder) -> Value:
        """Emit the convolution's input with channels last."""
        value = cast(Value, self.source)
        if static_shape(value) != self.shape:
            value = op.Reshape(value, self.shape)
        for node in self.nodes:
            value = _again(op, node, value)
        return value


def _before(value: ir.Value) -> _Before | None:
    """Return how the input of a convolution is computed, if its channels were last before."""
    nodes: list[ir.Node] = []
    while (node := value.producer()) is not None and (sizes := static_shape(value)) is not None:
        rank = len(sizes)
        source = node.inputs[0] if node.inputs else None
        if source is None or value.is_graph_output() or len(value.uses()) != 1:
            return None
        if is_node(node, "Transpose"):
            moves = permutation(value, rank) == channels_first(rank)
            return _Before(source, [sizes[0], *sizes[2:], sizes[1]], nodes[::-1]) if moves else None
        if is_node(node, "Reshape"):
            line = source.producer()
            if (
                static_shape(source) != [*sizes[:2], prod(sizes[2:])]
                or line is None
                or line.op_type != "Transpose"
                or line.domain
            ):
                return None
            tokens, moves = line.inputs[0], permutation(source, 3) == channels_first(3)
            return _Before(tokens, [sizes[0], *sizes[2:], sizes[1]], nodes[::-1]) if moves and tokens is not None else None
        if not _is_elementwise(node, value) and not _pads_pixels(node):
            return None
        nodes.append(node)
        value = source
    return None


def _is_elementwise(node: ir.Node, value: ir.Value) -> bool:
    """Return whether a node computes each element of ``value`` from the same element of its first input, and its channel."""
    if node.op_type not in _ELEMENTWISE.get(node.domain, ()) or len(node.outputs) != 1:
        return False
    first, *others = node.inputs
    sizes = static_shape(value)
    if first is None or sizes is None or static_shape(first) != sizes:
        return False
    arrays = [constant_array(other) for other in others if other is not None]
    return all(array is not None and (array.size == 1 or _is_of_channels(node, array, sizes)) for array in arrays)


def _is_of_channels(node: ir.Node, array: np.ndarray, sizes: Sequence[int]) -> bool:
    """Return whether a constant has one element for each channel, which are in the second dimension."""
    if node.op_type in _OF_LEVELS:
        return array.shape == (sizes[1],) and node.attributes.get_int("axis", 1) % len(sizes) == 1
    return array.shape == (1, sizes[1], *(1 for _ in sizes[2:]))


def _pads_pixels(node: ir.Node) -> bool:
    """Return whether a node pads spatial dimensions only, by known numbers."""
    if not is_node(node, "Pad") or len(node.inputs) < 2 or any(node.inputs[3:]):
        return False
    pads = constant_list(node.inputs[1])
    rank = len(pads) // 2 if pads else 0
    return pads is not None and rank > 2 and not any((*pads[:2], *pads[rank : rank + 2]))


def _again(op: Builder, node: ir.Node, value: Value) -> Value:
    """Emit a node for the same tensor with channels last."""
    others, attributes = list(node.inputs[1:]), attributes_of(node)
    if node.op_type == "Pad":
        pads = constant_list(others[0]) or []
        rank = len(pads) // 2
        others[0] = op.const(np.array([0, *pads[2:rank], 0, 0, *pads[rank + 2 :], 0], np.int64))
    elif node.op_type in _OF_LEVELS:
        attributes["axis"] = value.rank - 1 if value.rank else 0
    else:
        others = [_last(op, other) for other in others]
    emitted: Value = op.node(node.op_type, value, *others, domain=node.domain, **attributes)
    return emitted


def _last(op: Builder, other: ir.Value | None) -> ir.Value | None:
    """Return a constant of one element, or of one for each channel, whose channels are last."""
    array = constant_array(other)
    return other if array is None or array.size == 1 else op.const(np.moveaxis(array, 1, -1))


def _ends(value: ir.Value) -> bool:
    """Return whether each path from a tensor with channels in the second dimension moves them to the last one."""
    sizes = static_shape(value)
    if sizes is None or value.is_graph_output() or not value.uses():
        return False
    return all(use.idx == 0 and (_moves_back(use.node) or _continues(use.node)) for use in value.uses())


def _moves_back(node: ir.Node) -> bool:
    value = node.inputs[0]
    if not is_node(node, "Transpose") or value is None or value.shape is None:
        return False
    rank = len(value.shape)
    return permutation(node.outputs[0], rank) == channels_last(rank)


def _continues(node: ir.Node) -> bool:
    value, result = node.inputs[0], node.outputs[0]
    assert value is not None
    return (_is_elementwise(node, result) or _merges_pixels(node, value, result)) and _ends(result)


def _merges_pixels(node: ir.Node, value: ir.Value, result: ir.Value) -> bool:
    """Return whether a Reshape merges all spatial dimensions."""
    sizes = static_shape(value)
    return is_node(node, "Reshape") and sizes is not None and static_shape(result) == [*sizes[:2], prod(sizes[2:])]


def _emit_after(op: Builder, value: ir.Value, moved: Value, pairs: list[tuple[ir.Value, Value]]) -> None:
    """Emit what follows a tensor for the same tensor with channels last; add what replaces the Transposes to ``pairs``."""
    for user in dict.fromkeys(use.node for use in value.uses()):
        result = user.outputs[0]
        if _moves_back(user):
            pairs.append((result, moved))
        elif user.op_type == "Reshape":
            batch, channels, pixels = static_shape(result) or []
            _emit_after(op, result, op.Reshape(moved, [batch, pixels, channels]), pairs)
        else:
            _emit_after(op, result, _again(op, user, moved), pairs)
