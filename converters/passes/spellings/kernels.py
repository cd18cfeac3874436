"""Kernels of convolutions: their sizes as attributes, and no dilations."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir
from onnx_ir.passes import InPlacePass, PassResult

from converters.passes.workaround import Workaround, again
from onnx_specops.building import Builder, Value, constant_value
from onnx_specops.graphs import all_nodes, attributes_of, constant_array

_CONVOLUTIONS = frozenset(("Conv", "ConvInteger", "ConvTranspose", "QLinearConv"))


class StateKernels(InPlacePass):
    """Add ``kernel_shape``, which ONNX infers from the weights, to convolutions.

    Without it, MNN (3.6) returns arbitrary numbers for three-dimensional convolutions.
    """

    def call(self, model: ir.Model) -> PassResult:
        count = 0
        for node in all_nodes(model.graph):
            if node.domain or node.op_type not in _CONVOLUTIONS or "kernel_shape" in node.attributes:
                continue
            weights = node.inputs[3 if node.op_type == "QLinearConv" else 1]
            if isinstance(weights, Value) and weights.is_static and weights.dims:
                node.attributes.add(ir.AttrInt64s("kernel_shape", [dim or 0 for dim in weights.dims[2:]]))
                count += 1
        return PassResult(model, modified=count > 0)


class UndilatedConvTranspose(Workaround):
    """Insert zeros into the constant weights of a dilated ConvTranspose. OpenCV (4.14.0) ignores its dilations."""

    operators = frozenset(("ConvTranspose",))
    finite = True

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        dilations = list(node.attributes.get_ints("dilations", ()) or ())
        if all(step == 1 for step in dilations):
            return None
        strides = list(node.attributes.get_ints("strides", ()) or [1] * len(dilations))
        more = list(node.attributes.get_ints("output_padding", ()) or [0] * len(dilations))
        if any(extra >= step for extra, step in zip(more, strides, strict=True)):
            return None  # the dilation allows it
        x, value, *bias = node.inputs
        weights = constant_array(value)
        if value is None or weights is None:
            return None
        sizes = [(size - 1) * step + 1 for size, step in zip(weights.shape[2:], dilations, strict=True)]
        wide = np.zeros([*weights.shape[:2], *sizes], weights.dtype)
        wide[(slice(None), slice(None), *(slice(None, None, step) for step in dilations))] = weights
        constant = constant_value(wide, name=f"{value.name}_dilated")
        return [again(op, node, x, constant, *bias, dilations=None, kernel_shape=sizes)]


class CroppedKernels(Workaround):
    """Remove elements of a grouped Conv's constant kernel that overlap only with padding, along axes with one element.

    OpenCV (4.14.0) reads out of bounds for depthwise kernels of 3x3 elements if the height or width of the image is 1.
    """

    operators = frozenset(("Conv",))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        pads = list(node.attributes.get_ints("pads", ()) or ())
        if not any(pads) or node.attributes.get_int("group", 1) == 1:
            return None
        x, value, *bias = node.inputs
        result, weights = node.outputs[0], constant_array(value)
        if value is None or weights is None or not isinstance(x, Value) or not isinstance(result, Value):
            return None
        if x.dims is None or result.dims is None:
            return None
        half = len(pads) // 2
        dilations = list(node.attributes.get_ints("dilations", ()) or [1] * half)
        cropped = weights
        for axis, (size, results, step) in enumerate(zip(x.dims[2:], result.dims[2:], dilations, strict=True)):
            place, apart = divmod(pads[axis], step)
            if (size, results) == (1, 1) and 1 < cropped.shape[2 + axis] > place and not apart:
                cropped = cropped.take([place], 2 + axis)
                pads[axis] = pads[axis + half] = 0
        if cropped.shape == weights.shape:
            return None
        constant = constant_value(np.ascontiguousarray(cropped), name=f"{value.name}_cropped")
        return [again(op, node, x, constant, *bias, pads=pads, kernel_shape=list(cropped.shape[2:]))]


_BLOCK = 8


class SplitGroups(Workaround):
    """Convert a grouped 1x1 Conv to a Conv per group, unless the numbers of output channels are multiples of 8.

    OpenCV (5.0.0) writes out of bounds for some of these convolutions. Conditions: constant weights, and several channels
    per group.
    """

    operators = frozenset(("Conv",))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        x, group = node.inputs[0], node.attributes.get_int("group", 1)
        weights, bias = constant_array(node.inputs[1]), node.inputs[2] if len(node.inputs) > 2 else None
        offsets = constant_array(bias)
        if weights is None or not isinstance(x, Value) or group == 1 or weights[0, 0].size != 1 or weights.shape[1] == 1:
            return None
        if not len(weights) // group % _BLOCK or (bias is not None and offsets is None):
            return None
        attributes = attributes_of(node) | {"group": 1}
        parts = op.Split(x, [weights.shape[1]] * group, axis=1, outputs=group)
        given = [weights] if offsets is None else [weights, offsets]
        parameters = zip(*(np.split(array, group) for array in given), strict=True)
        convolved = [op.Conv(part, *own, **attributes) for part, own in zip(parts, parameters, strict=True)]
        return [op.Concat(*convolved, axis=1)]


class AddedBiasOfVolumes(Workaround):
    """Add the bias of a three-dimensional ConvTranspose after it. MNN (3.6) ignores it."""

    operators = frozenset(("ConvTranspose",))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        x, weights, *bias = node.inputs
        if not isinstance(x, Value) or x.rank != 5 or not bias or bias[0] is None:
            return None
        return [op.Add(again(op, node, x, weights), op.Reshape(bias[0], [-1, 1, 1, 1]))]
