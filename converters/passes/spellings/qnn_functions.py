"""Functions that Qualcomm's HTP lacks, or computes only for numbers within a range."""

from __future__ import annotations

import math
from collections.abc import Sequence

import onnx_ir as ir

from converters.passes.spellings.qnn_limits import LOWEST, MOST_DIMENSIONS
from converters.passes.workaround import Workaround, again
from onnx_specops.building import Builder, Value
from onnx_specops.graphs import constant_array, producer_of

_BOTH = 2

_LOWEST_EXPONENT = -60.0
"""A number whose exponential is 0 in float16."""

_LARGEST_TANGENT = 16384.0
"""A number whose arc tangent is half of pi in float16."""

_FLOATS = (ir.DataType.FLOAT, ir.DataType.FLOAT16)


class BoundedExp(Workaround):
    """Limit the input of Exp to numbers above -60.

    Below -88, QNN's HTP (2.7) returns large and negative numbers instead of 0. An input that is a Clip or Max with a
    constant of at least -60 is not changed.
    """

    operators = frozenset(("Exp",))
    tolerance = 1e-26

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        (x,) = node.inputs
        if not isinstance(x, Value) or x.dtype not in _FLOATS or _is_above(x, _LOWEST_EXPONENT):
            return None
        return [again(op, node, op.Clip(x, op.const(_LOWEST_EXPONENT, x.dtype)))]


class BoundedAtan(Workaround):
    """Limit the input of Atan to numbers between -16,384 and 16,384.

    The results differ by less than the rounding of float16. For magnitudes above 32,768, QNN's HTP (2.7) returns -131,008
    or 131,008.
    """

    operators = frozenset(("Atan",))
    tolerance = 1e-4

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        (x,) = node.inputs
        if not isinstance(x, Value) or x.dtype not in _FLOATS or _is_between(x, _LARGEST_TANGENT):
            return None
        return [again(op, node, op.Clip(x, *(op.const(end, x.dtype) for end in (-_LARGEST_TANGENT, _LARGEST_TANGENT))))]


class ArcTangents(Workaround):
    """Convert Acos and Asin to Atan: the tangent of the angle is the quotient of the sine and the cosine.

    QNN's HTP (2.7) has neither.
    """

    operators = frozenset(("Acos", "Asin"))
    tolerance = 2e-4

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        (x,) = node.inputs
        if not isinstance(x, Value) or x.dtype not in _FLOATS:
            return None
        one = op.const(1.0, x.dtype)
        other = op.Max(op.Sqrt(op.Mul(op.Sub(one, x), op.Add(one, x))), op.const(_LEAST_DIVISOR, x.dtype))
        angle: Value = op.Atan(op.Div(x, other))
        return [angle if node.op_type == "Asin" else op.Sub(op.const(math.pi / 2, x.dtype), angle)]


_LEAST_DIVISOR = 1e-4
"""A number of float16. Divided by it, 1 gives a tangent below `_LARGEST_TANGENT`."""


class ExpandedSoftmax(Workaround):
    """Convert Softmax to Sub, Exp, ReduceSum and Div.

    The relative error of QNN's HTP (2.7) is up to 1.5 %, and that of the single nodes up to 0.5 %. Numbers below -60,000
    count as -60,000, so that the results of a row in which a mask hides all elements are equal, as in float32. Conditions:
    at most four dimensions, a known size of the axis, and floats that are neither dequantized before nor quantized after
    the Softmax.
    """

    operators = frozenset(("Softmax",))
    finite = True
    tolerance = 1e-26

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        (x,) = node.inputs
        if not isinstance(x, Value) or x.dtype not in _FLOATS or not x.dims or len(x.dims) > MOST_DIMENSIONS:
            return None
        axis = node.attributes.get_int("axis", -1) % len(x.dims)
        quantizes = any(user.op_type == "QuantizeLinear" for user in node.outputs[0].consumers())
        if not x.dims[axis] or quantizes or producer_of(x, "DequantizeLinear") is not None:
            return None
        limited = op.Max(x, op.const(LOWEST, x.dtype))
        differences = op.Sub(limited, op.ReduceMax(limited, [axis]))
        powers = op.Exp(op.Clip(differences, op.const(_LOWEST_EXPONENT, x.dtype)))
        return [op.Div(powers, op.ReduceSum(powers, [axis]))]


def _is_above(x: Value, least: float) -> bool:
    """Return whether a value is a Clip or Max with a constant that is at least as large as a number."""
    for name in ("Clip", "Max"):
        node = producer_of(x, name)
        if node is None:
            continue
        constants = map(constant_array, node.inputs[1:2] if name == "Clip" else node.inputs)
        if any(array is not None and bool((array >= least).all()) for array in constants):
            return True
    return False


def _is_between(x: Value, largest: float) -> bool:
    """Return whether a value is a Clip with constants whose magnitude is at most a number."""
    clip = producer_of(x, "Clip")
    bounds = [] if clip is None else [constant_array(value) for value in clip.inputs[1:]]
    return len(bounds) == _BOTH and all(bound is not None and bool((abs(bound) <= largest).all()) for bound in bounds)
