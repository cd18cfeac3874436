"""Resize after a Transpose: ONNX Runtime (1.32) moves the Transpose past the Resize, although its kernel does not support
the other axes.

ONNX Runtime moves Transposes of images by [0, 2, 3, 1] and [0, 3, 1, 2] if this seems to reduce their number. The linear
kernel for four dimensions supports the last two axes, and the second and third. The cubic kernel supports the last two, and
the second and third if the image grows. For other axes, a run fails. ONNX Runtime also inlines bodies first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import onnx_ir as ir

from converters.passes.layouts import channels_first, channels_last
from converters.passes.simplification.data_movement import permutation
from converters.passes.workaround import Workaround, again
from onnx_specops.building import OPSET, Builder, Value
from onnx_specops.domain import DOMAIN
from onnx_specops.graphs import constant_array, constant_list, dimension, producer_of

_FIRST, _LAST = tuple(channels_first(4)), tuple(channels_last(4))

_PASSED = """
    Abs Acos Acosh Add And Asin Asinh Atan Atanh BitShift Cast CastLike Ceil Celu Clip Concat Cos Cosh DequantizeLinear
    Div Equal Erf Exp Floor Gelu Greater GreaterOrEqual HardSigmoid HardSwish Hardmax Identity IsInf IsNaN LeakyRelu
    Less LessOrEqual Log LogSoftmax Max MaxPool Mean Min Mod Mul Neg Not Or PRelu Pad Pow QuantizeLinear Reciprocal Relu
    Resize Round Selu Shrink Sigmoid Sign Sin Sinh Slice Softmax Softplus Softsign Split Sqrt Sub Sum Tan Tanh
    ThresholdedRelu Tile Where Xor
"""
_SAME_RANK = frozenset(_PASSED.split())
_REDUCTIONS = ("Arg", "Reduce")
_OTHER_RANKS = frozenset(("Reshape", "Squeeze", "Unsqueeze"))
"""The operators past which ONNX Runtime moves a Transpose, in addition to all operators whose names begin with one of
`_REDUCTIONS`.
"""

_LAYOUTS = {"DepthwiseConv": _LAST, "QuantizedConv": _LAST, "YUVtoRGB": _LAST}
"""The last Transpose of bodies; that of others is `_FIRST`, after regions, or there is none."""

_MOST_STATES = 1024

_Order = tuple[int, ...] | None
"""A permutation of an image, or ``None`` if it is unknown."""


class StopMovedTransposes(Workaround):
    """Add a Flatten, which stops a Transpose, and a Reshape before a linear or cubic Resize of four dimensions.

    Neither copies a number. Condition: ONNX Runtime might move a Transpose to the image, also from before other operators
    and as the product of several, so that the kernel does not support the axes.

    Args:
        opset: the opset of the model.
    """

    operators = frozenset(("Resize",))

    def __init__(self, opset: int = OPSET) -> None:
        super().__init__()
        self.opset = opset

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        image = node.inputs[0]
        if not isinstance(image, Value) or image.rank != 4 or not self._is_interpolated(node):
            return None
        possible = _possible_axes(node, image)
        if not any(_is_unsupported(node, axes, order) for axes in possible for order in _orders(image)):
            return None
        shape = image.dims if image.is_static else op.Shape(image)
        # a 0 would copy a dimension below opset 14, whose Reshape has no attribute
        kept = op.Reshape(op.Flatten(image, axis=2), shape, allowzero=1 if self.opset >= 14 else None)
        return [again(op, node, kept, *node.inputs[1:])]

    def _is_interpolated(self, node: ir.Node) -> bool:
        return node.attributes.get_string("mode", "nearest") != "nearest"


class StopMovedTransposesOfBodies(StopMovedTransposes):
    """The same for the domain's Interpolate, whose body may be such a Resize."""

    domain = DOMAIN
    operators = frozenset(("Interpolate",))

    def _is_interpolated(self, node: ir.Node) -> bool:
        return node.attributes.get_string("mode") == "linear_onnx"


def _possible_axes(node: ir.Node, image: Value) -> list[set[int]]:
    """Return the sets of axes that a Resize may change, each of which its kernel supports."""
    result, stated = node.outputs[0], node.attributes
    axes = set(range(4))
    if node.domain:
        axes &= {int(axis) for axis in stated.get_string("axes", "").split(",") if axis}
    elif "axes" in stated:
        axes &= {axis % 4 for axis in stated.get_ints("axes", ())}
    elif (scales := constant_array(node.inputs[2]) if len(node.inputs) > 2 else None) is not None and scales.size == 4:
        axes &= {axis for axis in range(4) if scales[axis] != 1}
    for given in node.inputs[2:4]:  # computed sizes or scales that replace those of the image
        source = producer_of(given, "ScatterElements")
        indices = None if source is None else constant_list(source.inputs[1])
        if indices is not None:
            axes &= {axis % 4 for axis in indices}
    if result.shape is not None:
        axes = {axis for axis in axes if dimension(image, axis) != dimension(result, axis)}
    supported = [{2, 3}, {1, 2}]
    return [axes] if any(axes <= some for some in supported) else [axes & some for some in supported]


def _is_unsupported(node: ir.Node, axes: set[int], order: _Order) -> bool:
    """Return whether ONNX Runtime moves a Transpose past a Resize along some axes and then lacks the kernel."""
    if order is None:
        return _is_unsupported(node, axes, _FIRST) or _is_unsupported(node, axes, _LAST)
    if order not in (_FIRST, _LAST):
        return False
    moved = {order[axis] for axis in axes}
    if moved <= {2, 3}:
        return False
    is_linear = node.attributes.get_string("mode", "nearest").startswith("linear")
    return not (moved <= {1, 2} and (is_linear or _grows(node)))


def _grows(node: ir.Node) -> bool:
    """Return whether no dimension becomes smaller, as far as known numbers tell."""
    scales = constant_array(node.inputs[2]) if len(node.inputs) > 2 else None
    if scales is not None and scales.size:
        return bool((scales >= 1).all())
    before, after = (value.dims if isinstance(value, Value) else None for value in (node.inputs[0], node.outputs[0]))
    if before is None or after is None:
        return False
    return all(a is not None and b is not None and a <= b for a, b in zip(before[1:], after[1:], strict=True))


def _orders(image: Value) -> Iterator[_Order]:
    """Iterate over the orders of the Transposes, and of their products, that ONNX Runtime might move to an image."""
    pending: list[tuple[ir.Value | None, _Order]] = [(image, tuple(range(4)))]
    seen: set[tuple[ir.Value, _Order]] = set()
    while pending:
        value, order = pending.pop()
        node = None if value is None else value.producer()
        if value is None or node is None or (value, order) in seen:
            continue
        if len(seen) == _MOST_STATES:
            yield None
            return
        seen.add((value, order))
        if node.domain == DOMAIN:
            if node.op_type == "Elementwise":
                pending += [(given, order) for given in node.inputs if _has_rank_of(given, value)]
            else:
                yield _product(_LAYOUTS.get(node.op_type, _FIRST), order)
        elif node.domain:
            continue
        elif node.op_type == "Transpose":
            moved = _product(permutation(value, len(value.shape or ())), order)
            yield moved
            pending.append((node.inputs[0], moved))
        elif node.op_type in _OTHER_RANKS or node.op_type.startswith(_REDUCTIONS):
            first = node.inputs[0]
            pending.append((first, order if node.op_type not in _OTHER_RANKS and _has_rank_of(first, value) else None))
        elif node.op_type in _SAME_RANK:
            pending += [(given, order) for given in node.inputs if _has_rank_of(given, value)]


def _has_rank_of(given: ir.Value | None, value: ir.Value) -> bool:
    """Return whether a value has, or may have, the rank of another. ONNX Runtime moves no Transpose of fewer dimensions."""
    if given is None or constant_array(given) is not None:
        return False
    return given.shape is None or value.shape is None or len(given.shape) == len(value.shape)


def _product(first: Sequence[int] | None, second: _Order) -> _Order:
    """Return the order of two Transposes of an image, one after the other."""
    if first is None or second is None or len(first) != len(second):
        return None
    return tuple(first[axis] for axis in second)
