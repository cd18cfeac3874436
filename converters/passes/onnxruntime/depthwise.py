"""Depthwise convolutions and average pooling between channels-last tensors.

ONNX Runtime (1.32) converts the tensor to blocks of 16 channels before each convolution and back after it, which takes
longer than a depthwise convolution. `onnx_specops.DepthwiseConv` keeps the channels-last layout. For (1, 56, 56, 256) and
3x3 kernels, it takes half of the time, and element-wise operators after it do not require a Transpose. Average pooling is a
depthwise convolution with equal weights.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import cast

import numpy as np
import onnx_ir as ir
from onnx_ir.passes import PassResult

from converters.passes.layouts import channels_first, channels_last
from converters.passes.quantized.graph import is_node, static_shape
from converters.passes.running import OperatorPass
from converters.passes.simplification.data_movement import permutation
from onnx_specops.building import Builder, Value
from onnx_specops.domain import DOMAIN
from onnx_specops.graphs import all_nodes, attributes_of, constant_array, constant_list
from onnx_specops.ops._integer_lists import integer_list, is_integer_list
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
_MOST_AFTER = 256
"""The maximum number of tensors after a convolution that are followed."""

_MOST_NUMBERS = 1 << 22
"""The maximum number of weights and of pixels of a pool, and the maximum size of its windows and padding in each
dimension.
"""


class DepthwiseChannelsLast(OperatorPass):
    """Compute depthwise convolutions and average pools between Transposes of the channels by the domain's DepthwiseConv.

    Conditions for both: float32, one to three spatial dimensions, two channels or more, known sizes, and `_LEAST_RESULTS`
    results or more. Before the node, the channels are moved from the last to the second dimension. After it, each path moves
    them back. A convolution has one channel for each group and constant weights of finite numbers (padding is not
    multiplied). A pool rounds the number of its windows down, or the rounding has no effect. None of its sizes exceeds
    `_MOST_NUMBERS`.

    The nodes in between are elementwise functions whose other inputs are constants, Pads of spatial dimensions before the
    node, and Reshapes that merge all spatial dimensions or split them again. Before the node, each of these has one
    consumer; the Transpose may have others.
    """

    operators = frozenset(("AveragePool", "Conv"))

    def call(self, model: ir.Model) -> PassResult:
        nodes = [node for node in all_nodes(model.graph) if is_node(node, "Conv") or is_node(node, "AveragePool")]
        root = Builder.of_existing(model.graph) if nodes else None
        count = sum(_replaced(node, root) for node in nodes if root is not None)
        return PassResult(model, modified=count > 0)


@dataclass(frozen=True)
class _Windows:
    """The windows of a convolution or a pool.

    Attributes:
        kernel: their size.
        lists: the strides, dilations and pads that are stated.
        filters: emits the weights, ``[*kernel, channels]``.
        divisor: the divisor of the results, with channels last; ``None`` if it is 1.
    """

    kernel: list[int]
    lists: dict[str, list[int]]
    filters: Callable[[Builder], Value]
    divisor: np.ndarray | None = None


def _replaced(node: ir.Node, root: Builder) -> bool:
    x, whole = node.inputs[0], node.outputs[0]
    sizes = static_shape(whole)
    if x is None or x.dtype != ir.DataType.FLOAT or sizes is None or not 3 <= len(sizes) <= 5 or sizes[1] < 2:
        return False
    stated = attributes_of(node)
    lists = {name: list(stated.get(name, ())) for name in ("strides", "dilations", "pads")}
    if (
        prod(sizes) < _LEAST_RESULTS
        or stated.get("auto_pad", "NOTSET") != "NOTSET"
        or not all(map(is_integer_list, lists.values()))
    ):
        return False
    windows = _of_convolution(node, lists) if node.op_type == "Conv" else _of_pool(node, lists)
    before = None if windows is None else _before(x)
    if windows is None or before is None or not _ends(whole):
        return False
    op = Builder.before_node(node, root)
    result = op.specops.DepthwiseConv(
        before.emit(op),
        windows.filters(op),
        *node.inputs[2:],  # the bias of a convolution
        channels=sizes[1],
        kernel=integer_list(windows.kernel),
        **{name: integer_list(numbers) for name, numbers in windows.lists.items()},
    )
    if windows.divisor is not None:
        result = op.Div(result, op.const(windows.divisor.astype(np.float32)))
    pairs = _emit_after(op, whole, result)
    level = 1.0 if any(old.dtype != ir.DataType.FLOAT for old, _ in pairs) else 0.0
    if not may_replace(pairs, tolerance=1e-4, level=level):
        return False
    for old, new in pairs:
        replace_value(old, new, checked=True)
    return True


def _of_convolution(node: ir.Node, lists: dict[str, list[int]]) -> _Windows | None:
    """Return the windows of a depthwise convolution with constant weights of finite numbers."""
    weights = node.inputs[1]
    shape = None if weights is None else static_shape(weights)
    if weights is None or shape is None or not _is_constant(weights):
        return None
    channels, per_group, *kernel = shape
    if (per_group, node.attributes.get_int("group", 1)) != (1, channels) or 0 in kernel:
        return None

    def filters(op: Builder) -> Value:
        given = op.Reshape(weights, [channels, *kernel])
        return cast(Value, op.Transpose(given, perm=[*range(1, len(kernel) + 1), 0]))

    return _Windows(kernel, lists, filters)


def _of_pool(node: ir.Node, lists: dict[str, list[int]]) -> _Windows | None:
    """Return the windows of an average pool if each contains an element that counts."""
    x, results = node.inputs[0], static_shape(node.outputs[0])
    sizes = None if x is None else static_shape(x)
    kernel = list(node.attributes.get_ints("kernel_shape"))
    if sizes is None or results is None:
        return None
    rank = len(kernel)
    pads = lists["pads"] or [0] * (2 * rank)
    strides, dilations = (lists[name] or [1] * rank for name in ("strides", "dilations"))
    reaches = [(size - 1) * step for size, step in zip(kernel, dilations, strict=True)]
    if max(prod(kernel) * results[1], prod(results[2:]), *pads, *reaches) > _MOST_NUMBERS:
        return None
    counts = np.ones((1,) * rank)
    padding_counts = node.attributes.get_int("count_include_pad", 0) == 1
    for k, (size, count) in enumerate(zip(sizes[2:], results[2:], strict=True)):
        begin, end = pads[k], pads[rank + k]
        if count != (begin + size + end - reaches[k] - 1) // strides[k] + 1:
            return None
        first = np.arange(count) * strides[k] - begin
        low, high = (-begin, size + end) if padding_counts else (0, size)
        outside = np.clip(-((first - low) // dilations[k]), 0, kernel[k])
        until = np.clip((high - 1 - first) // dilations[k] + 1, 0, kernel[k])
        inside = np.maximum(until - outside, 0)
        counts = counts * np.reshape(inside, [count if i == k else 1 for i in range(rank)])
    if not counts.size or counts.min() < 1:
        return None
    # With a factor of 1 / n, no average of integers crosses a half, at which a quantization rounds: k / n is never a half,
    # or the factor is exact.
    same = int(counts.flat[0]) if (counts == counts.flat[0]).all() else 0
    is_factor = same > 0 and (same % 2 == 1 or same & (same - 1) == 0)
    weights = np.full([*kernel, results[1]], 1 / same if is_factor else 1, np.float32)
    divisor = np.array([same]) if same else counts[None, ..., None]
    return _Windows(kernel, lists, lambda op: op.const(weights), None if is_factor else divisor)


def _is_constant(value: ir.Value | None) -> bool:
    """Return whether a value is a constant of finite numbers, or decompressed from such constants."""
    node = None if value is None else value.producer()
    if node is None:
        array = constant_array(value)
        return array is not None and bool(np.isfinite(array).all())
    return not node.domain and node.op_type in _DECOMPRESSING and all(map(_is_constant, node.inputs))


@dataclass(frozen=True)
class _Before:
    """The computation of a node's input.

    Attributes:
        source: the tensor with channels last.
        nodes: the nodes after the channels are moved, in order.
    """

    source: ir.Value
    nodes: Sequence[ir.Node]

    def emit(self, op: Builder) -> Value:
        """Emit the node's input with channels last."""
        value = cast(Value, self.source)
        for node in self.nodes:
            value = _again(op, node, value)
        return value


def _before(value: ir.Value) -> _Before | None:
    """Return how the input of a node is computed, if its channels were last before."""
    nodes: list[ir.Node] = []
    while (node := value.producer()) is not None and (sizes := static_shape(value)) is not None:
        rank = len(sizes)
        if is_node(node, "Transpose"):
            source = node.inputs[0]
            moves = source is not None and permutation(value, rank) == channels_first(rank)
            return _Before(source, nodes[::-1]) if moves and source is not None else None
        if value.is_graph_output() or len(value.uses()) != 1:
            return None
        place = 0 if _pads_pixels(node) or _splits_pixels(node, sizes) else _place(node, value)
        source = None if place is None else node.inputs[place]
        if source is None:
            return None
        nodes.append(node)
        value = source
    return None


def _place(node: ir.Node, value: ir.Value) -> int | None:
    """Return the input of a node that computes each element of ``value`` from the same element of this input. All other
    inputs are constants.
    """
    sizes = static_shape(value)
    if node.op_type not in _ELEMENTWISE.get(node.domain, ()) or len(node.outputs) != 1 or sizes is None:
        return None
    arrays = [constant_array(one) for one in node.inputs]
    places = [i for i, one in enumerate(node.inputs) if one is not None and arrays[i] is None]
    source = node.inputs[places[0]] if len(places) == 1 else None
    if source is None or static_shape(source) != sizes:
        return None
    if not all(array is None or array.size <= 1 or _is_alike(node, array, sizes) for array in arrays):
        return None
    return places[0]


def _is_alike(node: ir.Node, array: np.ndarray, sizes: Sequence[int]) -> bool:
    """Return whether the dimensions of a constant can be moved like those of the tensor."""
    if node.op_type in _OF_LEVELS:
        return array.shape == (sizes[1],) and node.attributes.get_int("axis", 1) % len(sizes) == 1
    if node.op_type == "FakeQuantize":
        return array.shape == (1, sizes[1], *(1 for _ in sizes[2:]))
    return array.ndim == len(sizes)


def _pads_pixels(node: ir.Node) -> bool:
    """Return whether a node pads spatial dimensions only, by known numbers."""
    if not is_node(node, "Pad") or len(node.inputs) < 2 or any(node.inputs[3:]):
        return False
    pads = constant_list(node.inputs[1])
    rank = len(pads) // 2 if pads else 0
    return pads is not None and rank > 2 and not any((*pads[:2], *pads[rank : rank + 2]))


def _splits_pixels(node: ir.Node, sizes: Sequence[int]) -> bool:
    """Return whether a Reshape makes several spatial dimensions of one."""
    source = node.inputs[0] if is_node(node, "Reshape") else None
    return source is not None and static_shape(source) == [*sizes[:2], prod(sizes[2:])]


def _again(op: Builder, node: ir.Node, value: Value) -> Value:
    """Emit a node for the same tensor with channels last."""
    if node.op_type == "Reshape":
        batch, channels, *pixels = static_shape(node.outputs[0]) or []
        reshaped: Value = op.Reshape(value, [batch, *pixels, channels])
        return reshaped
    place = _place(node, node.outputs[0]) or 0
    inputs, attributes = [*node.inputs], attributes_of(node)
    if node.op_type == "Pad":
        pads = constant_list(inputs[1]) or []
        rank = len(pads) // 2
        inputs[1] = op.const(np.array([0, *pads[2:rank], 0, 0, *pads[rank + 2 :], 0], np.int64))
    elif node.op_type in _OF_LEVELS:
        attributes["axis"] = value.rank - 1 if value.rank else 0
    else:
        inputs = [_last(op, one) for one in inputs]
    inputs[place] = value
    emitted: Value = op.node(node.op_type, *inputs, domain=node.domain, **attributes)
    return emitted


def _last(op: Builder, other: ir.Value | None) -> ir.Value | None:
    """Return a constant with channels last."""
    array = constant_array(other)
    return other if array is None or array.size <= 1 else op.const(np.moveaxis(array, 1, -1))


def _ends(value: ir.Value) -> bool:
    """Return whether each path from a tensor with channels in the second dimension moves them to the last one.

    The paths contain at most `_MOST_AFTER` tensors.
    """
    pending, count = [value], 0
    while pending:
        one, count = pending.pop(), count + 1
        if static_shape(one) is None or one.is_graph_output() or not one.uses() or count > _MOST_AFTER:
            return False
        for use in one.uses():
            if _moves_back(use.node):
                continue
            if not _continues(use.node, use.idx):
                return False
            pending.append(use.node.outputs[0])
    return True


def _moves_back(node: ir.Node) -> bool:
    value = node.inputs[0]
    if not is_node(node, "Transpose") or value is None or value.shape is None:
        return False
    rank = len(value.shape)
    return permutation(node.outputs[0], rank) == channels_last(rank)


def _continues(node: ir.Node, place: int) -> bool:
    """Return whether a node computes the elements of its result from those of its input at ``place``."""
    value, result = node.inputs[place], node.outputs[0]
    assert value is not None
    return _place(node, result) == place or (place == 0 and _merges_pixels(node, value, result))


def _merges_pixels(node: ir.Node, value: ir.Value, result: ir.Value) -> bool:
    """Return whether a Reshape merges all spatial dimensions."""
    sizes = static_shape(value)
    return is_node(node, "Reshape") and sizes is not None and static_shape(result) == [*sizes[:2], prod(sizes[2:])]


def _emit_after(op: Builder, value: ir.Value, moved: Value) -> list[tuple[ir.Value, Value]]:
    """Emit the nodes after a tensor for the same tensor with channels last; return the replacements of the Transposes."""
    pairs: list[tuple[ir.Value, Value]] = []
    pending = [(value, moved)]
    while pending:
        value, moved = pending.pop()
        for user in dict.fromkeys(use.node for use in value.uses()):
            if _moves_back(user):
                pairs.append((user.outputs[0], moved))
            else:
                pending.append((user.outputs[0], _again(op, user, moved)))
    return pairs
