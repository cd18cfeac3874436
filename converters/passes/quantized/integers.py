"""The pass that converts a quantized network to integers."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import onnx_ir as ir
from onnx_ir.passes import InPlacePass, PassResult

from converters.passes.quantized.affine import Affine, affine, quantize_given
from converters.passes.quantized.attention import attention, may_attend
from converters.passes.quantized.channels import quantize_after_split
from converters.passes.quantized.convolutions import convolution
from converters.passes.quantized.extremes import EXTREMES, REDUCTIONS, extreme, reduced_extreme
from converters.passes.quantized.fused import is_signed
from converters.passes.quantized.graph import (
    Arrangement,
    Quantized,
    before_casts,
    is_node,
    only_user,
    remove,
    static_shape,
)
from converters.passes.quantized.group_normalizations import group_normalization, may_normalize_groups
from converters.passes.quantized.joins import quantize_parts
from converters.passes.quantized.matmuls import product
from converters.passes.quantized.normalizations import may_normalize, normalization
from converters.passes.quantized.padding import pad, pads_numbers
from converters.passes.quantized.pooling import average, mean
from converters.passes.quantized.scaling import scaling
from converters.passes.quantized.shuffles import shuffle, shuffle_of
from converters.passes.quantized.smoothing import merge_factor, merge_factor_of_values
from converters.passes.quantized.transposed import transposed_axes, transposed_convolution
from converters.passes.quantized.weights import weights
from onnx_specops.building import OPSET, Builder, Value, constant_value
from onnx_specops.domain import DOMAIN
from onnx_specops.graphs import all_nodes, attributes_of, constant_array
from onnx_specops.naming import Names

D = ir.DataType

_SMALL = 2**16
"""The maximum size of a 16-bit constant that may become float32."""

_MOVES = frozenset(
    (
        "DepthToSpace", "Expand", "Flatten", "Gather", "GatherElements", "GatherND", "Identity", "MaxPool", "Reshape",
        "Resize", "Slice", "Split", "Squeeze", "Transpose", "Unsqueeze",
    )
)  # fmt: skip
"""Operators that only move or select numbers. They apply to integers as to floats."""

_ONLY_MOVES = frozenset(("Identity", "Reshape", "Slice", "Squeeze", "Transpose", "Unsqueeze"))
"""Those of `_MOVES` through which `_is_given` looks for an input of the model."""

_COMPUTES = frozenset(
    ("Add", "AveragePool", "Concat", "Conv", "GlobalAveragePool", "MatMul", "Mul", "ReduceMean", "Resize", "Sub")
)
"""Operators that ONNX Runtime can compute in integers."""

_CHANGES = frozenset(("Add", "AveragePool", "Clip", "Concat", "LeakyRelu", "Mul", "PRelu", "ReduceMean", "Relu"))
"""Operators that can be part of a QuantizedConv or that combine tensors before one."""


class ConvertToIntegers(InPlacePass):
    """Convert FakeQuantize with constant limits to QuantizeLinear and DequantizeLinear, and arrange the nodes between them
    so that ONNX Runtime computes them in integers. Other FakeQuantize nodes stay.

    Args:
        opset: the opset of the model.
        contrib: whether it may contain ONNX Runtime's own operators.
    """

    def __init__(self, opset: int, *, contrib: bool = True) -> None:
        self.opset, self.contrib = opset, contrib

    def call(self, model: ir.Model) -> PassResult:
        if not is_quantized(model):
            return PassResult(model, modified=False)
        _widen_constants(model)
        _share_quantizations(model)
        work = Arrangement(model.graph, self.contrib)
        for node in list(all_nodes(model.graph)):
            merge_factor(work, node)
            merge_factor_of_values(work, node)
        for node in [node for node in all_nodes(model.graph) if is_node(node, "FakeQuantize", DOMAIN)]:
            quantize_after_split(work, node)
        for node in [node for node in all_nodes(model.graph) if is_node(node, "FakeQuantize", DOMAIN)]:
            _quantize(work, node, self.opset)
        if self.contrib:
            for node in [node for node in all_nodes(model.graph) if is_node(node, "Concat")]:
                quantize_parts(work, node)
        for node in list(all_nodes(model.graph)):
            _arrange(work, node)
        model.graph.sort()  # a convolution with an addition is after both of its inputs
        for node in [node for node in all_nodes(model.graph) if is_node(node, "QuantizeLinear")]:
            _decompose(work, node)
        return PassResult(model, modified=True)


def is_quantized(model: ir.Model) -> bool:
    """Return whether `ConvertToIntegers` may apply."""
    return any(is_node(node, "FakeQuantize", DOMAIN) for node in all_nodes(model.graph))


def _widen_constants(model: ir.Model) -> None:
    """Convert 16-bit limits, scales and biases to float32, as OpenVINO uses them."""
    names: Names | None = None
    for node in list(all_nodes(model.graph)):
        if not is_node(node, "Cast") or node.outputs[0].dtype != D.FLOAT or node.outputs[0].is_graph_output():
            continue
        constant = constant_array(node.inputs[0])
        if constant is None or constant.dtype.itemsize != 2 or constant.size > _SMALL or constant.dtype.kind in "iu":
            continue
        wide = constant_value(constant.astype(np.float32), name=f"{node.outputs[0].name}/constant")
        names = names or Names.of(model.graph)
        names.register(model.graph, wide)
        node.outputs[0].replace_all_uses_with(wide)
        remove(node)


def _share_quantizations(model: ir.Model) -> None:
    """Merge equal FakeQuantize nodes of one tensor. Early files have one for each consumer."""
    known: dict[object, ir.Node] = {}
    for node in [node for node in all_nodes(model.graph) if is_node(node, "FakeQuantize", DOMAIN)]:
        limits = [constant_array(limit) for limit in node.inputs[1:]]
        if any(limit is None for limit in limits) or node.outputs[0].is_graph_output():
            continue
        said = tuple((limit.shape, limit.tobytes()) for limit in limits if limit is not None)
        key = (node.graph, node.inputs[0], node.attributes.get_int("levels", 0), said)
        first = known.setdefault(key, node)
        if first is not node:
            node.outputs[0].replace_all_uses_with(first.outputs[0])
            remove(node)


def _quantize(work: Arrangement, node: ir.Node, opset: int) -> None:
    """Convert a FakeQuantize of a computed value to QuantizeLinear and DequantizeLinear."""
    data, *limits = node.inputs
    low, high, start, end = (constant_array(limit) for limit in limits)
    levels = node.attributes.get_int("levels", 0)
    if data is None or constant_array(data) is not None or data.dtype != D.FLOAT or _is_cast_constant(data):
        return
    if not _feeds_integers(node.outputs[0], contrib=work.contrib):
        return
    if low is None or high is None or start is None or end is None or (levels > 256 and opset < 21):
        return
    rank = None if data.shape is None else len(data.shape)
    # Changed numbers depend on the exact limits.
    rounded = np.array_equal(low, start) and np.array_equal(high, end)
    inner = outer = None
    for offsets in (False, True):
        if offsets and not (work.contrib and opset >= OPSET and _feeds_products(node.outputs[0])):
            return
        inner = affine(low, high, levels, rank, rounded=rounded, offsets=offsets)
        outer = inner if rounded else affine(start, end, levels, rank, rounded=False, offsets=offsets)
        if inner is not None and outer is not None:
            break
    if inner is None or outer is None or not inner.shares_axis(outer):
        return
    if not (inner.has_one_zero and outer.has_one_zero):
        if work.contrib and opset >= OPSET and levels == 256 and _feeds_only_depthwise(node.outputs[0], inner, outer):
            _quantize_channels(work, node, data, inner, outer)
        return
    op = work.before(node)
    if work.contrib and inner.is_per_tensor and outer.is_per_tensor and low.size == high.size == 1 and _is_given(data):
        work.dequantized(op, node.outputs[0], quantize_given(op, data, low, high, levels), outer)
        remove(node)
        return
    above: list[ir.Value] = []
    if levels % 2:  # there is an integer below the levels
        if is_node(data.producer(), "Relu") and not low.any():
            above = [data]
        else:
            data = op.Max(data, constant_value(low))
    data = work.shifted(op, data, inner)
    if inner.is_per_tensor and outer.is_per_tensor:
        work.dequantized(op, node.outputs[0], inner.quantize(op, data), outer, through=above)
    elif rank is not None:
        # ONNX Runtime's quantization along an axis takes ten times as long as a division.
        divided = op.Div(data, inner.column(rank))
        found = Quantized(inner.with_unit_scale().quantize(op, divided), outer.with_unit_scale())
        _use_channels(work, op, node, divided, found, inner, outer)
    remove(node)


def _use_channels(
    work: Arrangement, op: Builder, node: ir.Node, divided: Value, found: Quantized, inner: Affine, outer: Affine
) -> None:
    """Replace the result of ``node`` by integers, dequantized with a scale for each channel."""
    steps = found.affine.dequantize(op, found.integers)
    steps.shape = None if node.inputs[0] is None else node.inputs[0].shape
    work.quantized[steps] = found
    result = outer.of_steps(op, steps)
    work.divisions[divided] = inner
    work.channels[result] = (steps, outer)
    node.outputs[0].replace_all_uses_with(result, replace_graph_outputs=True)
    result.name, node.outputs[0].name = node.outputs[0].name, result.name


def _quantize_channels(work: Arrangement, node: ir.Node, data: ir.Value, inner: Affine, outer: Affine) -> None:
    """Quantize channels with different zero points."""
    assert data.shape is not None
    op, rank = work.before(node), len(data.shape)
    divided = op.Div(work.shifted(op, data, inner), inner.column(rank))
    steps = Affine(np.ones_like(inner.scale), inner.zero_point, 1)
    _use_channels(work, op, node, divided, Quantized(steps.quantize(op, divided), steps), inner, outer)
    remove(node)


def _decompose(work: Arrangement, node: ir.Node) -> None:
    """Decompose a QuantizeLinear of `_quantize_channels` that no convolution uses. ONNX Runtime's own takes ten times as
    long.
    """
    x, *constants = node.inputs
    scale, zero = (constant_array(constant) for constant in constants)
    if x is None or x.shape is None or scale is None or zero is None or not scale.ndim or (scale != 1).any():
        return
    if node.attributes.get_int("axis", 1) != 1 or zero.dtype != np.uint8:
        return
    op = work.before(node)
    column = zero.astype(np.float32).reshape(-1, *[1] * (len(x.shape) - 2))
    # As in OpenVINO, the zero point is added before the sum is rounded.
    levels = op.QuantizeLinear(op.Add(x, constant_value(column)), np.float32(1), np.uint8(0))
    work.replace(node, levels)


def _feeds_only_depthwise(value: ir.Value, inner: Affine, outer: Affine) -> bool:
    """Return whether all consumers of a value, perhaps after a shuffle of its channels, are convolutions with quantized
    weights of groups of one channel.
    """
    user = only_user(value)
    if user is not None and (moves := shuffle_of(user)) is not None:
        value = moves.result
    users = list(value.consumers())
    if not users or value.is_graph_output() or value.shape is None or len(value.shape) < 3:
        return False
    if (
        inner.is_per_tensor
        or inner.axis != 1
        or outer.is_per_tensor
        or not np.array_equal(inner.zero_point, outer.zero_point)
    ):
        return False
    count = inner.scale.size
    for user in users:
        shape = None if len(user.inputs) < 2 or user.inputs[1] is None else static_shape(user.inputs[1])
        if not is_node(user, "Conv") or shape is None or shape[1] != 1 or user.inputs[0] is not value:
            return False
        found = weights(user.inputs[1], axis=0)
        if found is None or user.attributes.get_int("group", 1) != count or not is_signed(found):
            return False
    return True


def _arrange(work: Arrangement, node: ir.Node) -> None:
    """Arrange one node, whose inputs are arranged, and the nodes directly after it."""
    if node.graph is None or not node.inputs or (first := node.inputs[0]) is None:
        return
    if is_node(node, "Attention", DOMAIN):
        attention(work, node)
    elif is_node(node, "LayerNormalization"):
        normalization(work, node)
    if node.domain or node.graph is None:
        return
    if node.op_type == "MatMul":
        product(work, node)
    elif node.op_type == "Conv":
        convolution(work, node)
    elif node.op_type == "AveragePool":
        average(work, node)
    elif node.op_type == "ConvTranspose":
        transposed_convolution(work, node)
    elif node.op_type == "InstanceNormalization":
        group_normalization(work, node)
    elif node.op_type == "Mul":
        scaling(work, node)
    elif node.op_type == "Reshape" and first in work.channels:
        shuffle(work, node)
    elif (quantized := work.find(first)) is None:
        return
    elif _moves(node) and quantized.affine.bits == 8:
        op = work.before(node)
        attributes = attributes_of(node)
        moved = op.node(node.op_type, quantized.integers, *node.inputs[1:], outputs=len(node.outputs), **attributes)
        for value, integers in zip(node.outputs, moved if isinstance(moved, tuple) else (moved,), strict=True):
            integers.shape = value.shape
            work.dequantized(op, value, integers, quantized.affine)
        remove(node)
    elif node.op_type == "Pad":
        pad(work, node)
    elif node.op_type in REDUCTIONS:
        reduced_extreme(work, node)
    elif node.op_type in EXTREMES:
        extreme(work, node)
    elif node.op_type == "Concat":
        _join(work, node)
    elif node.op_type == "ReduceMean":
        mean(work, node)


def _moves(node: ir.Node) -> bool:
    """Return whether a node only moves or selects numbers."""
    if node.op_type == "Resize":
        stated = node.attributes
        is_cropped = stated.get_string("coordinate_transformation_mode", "half_pixel") == "tf_crop_and_resize"
        return stated.get_string("mode", "nearest") == "nearest" and not is_cropped
    return node.op_type in _MOVES and (len(node.outputs) == 1 or node.op_type == "Split")


def _join(work: Arrangement, node: ir.Node) -> None:
    """Concatenate integers of tensors with equal scales and zero points."""
    parts = [work.find(value) for value in node.inputs if value is not None]
    found = [part for part in parts if part is not None]
    if len(found) < len(node.inputs) or any(
        part.affine.bits != 8 or not part.affine.is_equal(found[0].affine) for part in found
    ):
        return
    op = work.before(node)
    joined = op.Concat(*(part.integers for part in found), axis=node.attributes.get_int("axis"))
    joined.shape = node.outputs[0].shape
    work.dequantized(op, node.outputs[0], joined, found[0].affine)
    remove(node)


def _feeds_integers(value: ir.Value, *, contrib: bool) -> bool:
    """Return whether a consumer of a value, directly or after data movement, may be computed in integers."""
    pending, seen = [value], {value}
    while pending:
        current = pending.pop()
        for user in current.consumers():
            if may_attend(current, user):
                return True
            if contrib and (may_normalize(current, user) or may_normalize_groups(current, user)):
                return True
            if user.domain:
                continue
            if user.op_type in _COMPUTES or user.op_type in REDUCTIONS or _has_equal_parts(user, seen):
                return True
            if user.op_type == "ConvTranspose" and contrib and transposed_axes(user) is not None:
                return True
            if _moves(user) or pads_numbers(user):
                pending += [output for output in user.outputs if output not in seen]
                seen.update(user.outputs)
    return False


def _has_equal_parts(node: ir.Node, known: Collection[ir.Value]) -> bool:
    """Return whether a node is the maximum or minimum of parts of one quantized tensor."""
    return node.op_type in EXTREMES and len(node.inputs) > 1 and all(value in known for value in node.inputs)


def _feeds_products(value: ir.Value) -> bool:
    """Return whether a consumer of a value may be a QuantizedConv: a Conv, ConvTranspose or MatMul with constant weights, or
    other nodes whose result is quantized, each directly or after data movement.
    """
    pending, seen = [(value, False)], {value}
    while pending:
        current, is_changed = pending.pop()
        for user in current.consumers():
            if is_node(user, "FakeQuantize", DOMAIN) and is_changed:
                return True
            is_constant = user.op_type == "Add" and any(constant_array(given) is not None for given in user.inputs)
            if user.domain or (is_constant and not is_changed):
                continue
            if user.op_type in ("Conv", "MatMul"):
                axis = 0 if user.op_type == "Conv" else -1
                if user.inputs[0] is current and weights(user.inputs[1], axis=axis) is not None:
                    return True
            elif user.op_type == "ConvTranspose":
                if transposed_axes(user) is not None:
                    return True
            elif user.op_type in _CHANGES or _moves(user) or pads_numbers(user):
                is_next = is_changed or user.op_type in _CHANGES
                pending += [(output, is_next) for output in user.outputs if output not in seen]
                seen.update(user.outputs)
    return False


def _is_given(value: ir.Value) -> bool:
    """Return whether a value has the numbers of an input of the model, possibly moved or converted to another type."""
    while (node := value.producer()) is not None:
        if node.domain or node.op_type not in ("Cast", *_ONLY_MOVES) or node.inputs[0] is None:
            return False
        value = node.inputs[0]
    return value.is_graph_input()


def _is_cast_constant(value: ir.Value) -> bool:
    """Return whether a value is a constant after casts."""
    source, types = before_casts(value)
    return bool(types) and constant_array(source) is not None
