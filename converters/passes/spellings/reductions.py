"""Reductions in the forms that programs compute."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
import onnx_ir as ir

from converters.passes.spellings.reduced_axes import reduced_axes
from converters.passes.workaround import Workaround
from onnx_specops.building import OPSET, Builder, Value
from onnx_specops.graphs import attributes_of

_NORMS = frozenset(("ReduceL1", "ReduceL2", "ReduceSumSquare"))


class PairsOfReducedAxes(Workaround):
    """Reduce at most two axes at once, in descending order, and convert norms to sums.

    OpenCV (5.0.0, 4.14.0) reads the wrong elements for three or more axes, and 4.14.0 ignores norms of axes of size 1. Means
    of integers are not changed, because each additional reduction would round.
    """

    operators = _NORMS | {"ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum"}
    finite = True
    at_once: ClassVar[int] = 2

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        x, name = node.inputs[0], node.op_type
        axes, norm = reduced_axes(node), name in _NORMS
        if axes is None or not isinstance(x, Value) or x.dtype is None:
            return None
        if x.dtype.is_integer() and name in ("ReduceL2", "ReduceMean"):
            return None
        places = sorted(axis % (x.rank or 1) for axis in axes)
        if not norm and len(places) <= self.at_once and places == axes:
            return None
        keepdims: int = node.attributes.get_int("keepdims", 1)
        result = x if not norm else op.Abs(x) if name == "ReduceL1" else op.Mul(x, x)
        while places:
            places, last = places[: -self.at_once], places[-self.at_once :]
            result = _reduced(op, "ReduceSum" if norm else name, result, last, keepdims, _opset_of(node))
        return [op.Sqrt(result) if name == "ReduceL2" else result]


class ExtremesOfSingleAxes(PairsOfReducedAxes):
    """Compute maxima, minima and products along one axis at a time. pnnx (2026) supports a single axis only."""

    operators = frozenset(("ReduceMax", "ReduceMin", "ReduceProd"))
    at_once = 1


def _opset_of(node: ir.Node) -> int:
    """Return the opset of a node's graph."""
    return node.graph.opset_imports.get("", OPSET) if isinstance(node.graph, ir.Graph) else OPSET


def _reduced(op: Builder, name: str, x: Value, axes: list[int], keepdims: int, opset: int) -> Value:
    """Emit a reduction in the form of an opset: axes are an input from opset 13 or 18 on."""
    if opset >= (_SUMS_BY_INPUT if name == "ReduceSum" else _AXES_BY_INPUT):
        result: Value = op.node(name, x, axes, keepdims=keepdims)
    else:
        result = getattr(op.at(opset), name)(x, axes=axes, keepdims=keepdims)
    return result


_SUMS_BY_INPUT, _AXES_BY_INPUT = 13, 18


class ReshapedScalars(Workaround):
    """Convert a reduction to a scalar to a reduction that keeps a dimension of 1, and a Reshape.

    In OpenCV (5.0.0), the scalar has a dimension of 1, and arithmetic with it fails in some graphs.
    """

    operators = _NORMS | {
        "ArgMax", "ArgMin", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd",
        "ReduceSum",
    }  # fmt: skip

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        x, result = node.inputs[0], node.outputs[0]
        if not isinstance(x, Value) or not isinstance(result, Value) or not x.rank or result.rank != 0:
            return None
        attributes = {**attributes_of(node), "keepdims": 1}
        if (
            x.is_static and 0 not in (x.dims or ()) and node.op_type.startswith("Reduce")
        ):  # all axes at once: OpenCV 4 crashes for some pairs of them
            row = op.Reshape(x, [1, math.prod(dim or 0 for dim in x.dims or ())])
            reduced = op.node(node.op_type, row, [1], **{name: attributes[name] for name in attributes if name != "axes"})
        else:
            reduced = op.node(node.op_type, *node.inputs, **attributes)
        return [op.Reshape(reduced, op.const(np.zeros(0, np.int64)))]


class MeansForSums(Workaround):
    """Convert a ReduceSum along one axis that is an input (from opset 13 on) to ReduceMean.

    pnnx (2026) ignores this input. In older opsets and for other reductions, the axes are an attribute. Condition: the
    dimension is not 0, because the mean of no elements is NaN.
    """

    operators = frozenset(("ReduceSum",))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        x, axes, result = node.inputs[0], reduced_axes(node), node.outputs[0]
        if len(node.inputs) < 2 or axes is None or len(axes) != 1 or not isinstance(x, Value) or not x.dims:
            return None
        size, dtype = x.dims[axes[0]], x.dtype
        if not size or dtype is None or not dtype.is_floating_point() or not isinstance(result, Value):
            return None
        mean = op.at(17).ReduceMean(x, axes=axes, keepdims=node.attributes.get_int("keepdims", 1))
        return [op.Mul(mean, op.const([float(size)] if mean.rank else float(size), dtype))]


class ReducedNumbers(Workaround):
    """Reduce booleans and 8-bit integers as int32.

    QNN (2.7), tract (0.23) and TVM (0.27) reject the maximum and minimum of booleans. MNN (3.6) does not write the results
    for 8-bit integers.
    """

    operators = frozenset(("ReduceMax", "ReduceMin"))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        x = node.inputs[0]
        if not isinstance(x, Value) or x.dtype not in (ir.DataType.BOOL, ir.DataType.INT8, ir.DataType.UINT8):
            return None
        numbers = op.Cast(x, to=ir.DataType.INT32)
        attributes = attributes_of(node)
        version = op.at(_AXES_BY_INPUT - 1) if "axes" in attributes else op
        return [op.Cast(getattr(version, node.op_type)(numbers, *node.inputs[1:], **attributes), to=x.dtype)]
