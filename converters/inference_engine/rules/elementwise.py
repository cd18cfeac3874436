"""Elementwise operations of several inputs, and with weights for each channel."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Literal

import numpy as np
import onnx_ir as ir

from converters.errors import Malformed
from converters.inference_engine.rule import layer
from converters.inference_engine.rules._channels import by_channel
from converters.openvino.rule import Context
from onnx_specops.building import Builder, Value

Operation = Literal[
    "", "sum", "mul", "prod", "max", "sub", "div", "min", "squared_diff", "equal", "not_equal", "less", "less_equal",
    "greater", "greater_equal", "logical_not", "logical_and", "logical_or", "logical_xor", "floor_mod", "pow", "mean",
]  # fmt: skip
_NODES = {"": "Add", "sum": "Add", "mul": "Mul", "prod": "Mul", "max": "Max", "sub": "Sub", "div": "Div", "min": "Min"}
_NODES |= {"pow": "Pow"}
_COMPARISONS = {"equal": "Equal", "less": "Less", "less_equal": "LessOrEqual", "greater": "Greater"}
_COMPARISONS["greater_equal"] = "GreaterOrEqual"
_LOGICAL = {"logical_and": "And", "logical_or": "Or", "logical_xor": "Xor"}


@layer("Eltwise", integers=True)
def eltwise_layer(
    op: Builder, *inputs: Value, operation: Operation = "sum", coeff: tuple[float, ...] = (), context: Context
):
    """Eltwise: of two or more inputs, from left to right. True is 1 and false is 0.

    The type of the output in the file is the type of the computation, except in comparisons. Floats are rounded to integers.
    """
    stated = ir.DataType.INT32 if context.output_type() in _INTEGERS else ir.DataType.FLOAT
    compared = operation in _COMPARISONS or operation == "not_equal"
    result = eltwise(op, inputs, None if compared else stated, operation=operation, coeff=coeff)
    return result if result.dtype == stated else op.Cast(result, to=stated)


def eltwise(
    op: Builder,
    inputs: Sequence[Value],
    dtype: ir.DataType | None = None,
    *,
    operation: Operation = "sum",
    coeff: tuple[float, ...] = (),
) -> Value:
    """Compute in ``dtype``, or in the type of the inputs: int32 if all are integers, else float32."""
    if not inputs:
        raise Malformed("it has no inputs")
    if dtype is None:
        dtype = ir.DataType.INT32 if all(x.dtype in _INTEGERS for x in inputs) else ir.DataType.FLOAT
    values = [_typed(op, x, dtype) for x in inputs]
    if coeff:
        if operation not in ("", "sum") or len(coeff) != len(values):
            raise Malformed(f"it has {len(coeff)} coefficients for {len(values)} inputs of the operation {operation!r}")
        values = [x if c == 1 else op.Mul(x, op.const(c, dtype)) for x, c in zip(values, coeff, strict=True)]
    if operation == "logical_not":
        return op.Cast(op.Equal(values[0], op.const(0, dtype)), to=dtype)
    if operation == "mean":
        return op.Div(functools.reduce(op.Add, values), op.const(len(values), dtype))
    return functools.reduce(lambda a, b: _of_two(op, operation, a, b), values)


_INTEGERS = (ir.DataType.INT32, ir.DataType.INT64)


def _typed(op: Builder, x: Value, dtype: ir.DataType) -> Value:
    if x.dtype == dtype:
        return x
    whole = dtype == ir.DataType.INT32 and x.dtype is not None and x.dtype.is_floating_point()
    return op.Cast(op.Round(x) if whole else x, to=dtype)


def _of_two(op: Builder, operation: str, a: Value, b: Value) -> Value:
    if operation in _NODES:
        return op.node(_NODES[operation], a, b)
    if operation in _COMPARISONS:
        return op.Cast(op.node(_COMPARISONS[operation], a, b), to=a.dtype)
    if operation == "not_equal":
        return op.Cast(op.Not(op.Equal(a, b)), to=a.dtype)
    if operation in _LOGICAL:
        truths = [op.Not(op.Equal(x, op.const(0, x.dtype))) for x in (a, b)]
        return op.Cast(op.node(_LOGICAL[operation], *truths), to=a.dtype)
    if operation == "squared_diff":
        difference = op.Sub(a, b)
        return op.Mul(difference, difference)
    if a.dtype in _INTEGERS:
        return op.Mod(a, b, fmod=1)  # integers have the sign of the dividend
    return op.Sub(a, op.Mul(op.Floor(op.Div(a, b)), b))  # floor_mod


def _of_constants(kind: str, operation: Operation) -> None:
    @layer(kind, integers=True)
    def emit(op: Builder, a: Value, b: Value):
        return eltwise(op, [a, b], operation=operation)


# The Inference Engine computes these only for constants.
_of_constants("Add", "sum")
_of_constants("Mul", "mul")
_of_constants("Div", "div")


@layer("PowerFile")
def power_file(op: Builder, x: Value):
    """PowerFile: adds the numbers 1, 0, 0, 0, 1, 0, an identity, to the elements of each affine transformation."""
    flat = op.Reshape(x, [-1])
    places = op.Mod(op.Range(np.int64(0), op.Squeeze(op.Shape(flat), [0]), np.int64(1)), np.int64(6))
    summands = op.Gather(np.array([1, 0, 0, 0, 1, 0], np.float32), places, axis=0)
    return op.Reshape(op.Add(flat, summands), op.Shape(x))


@layer("Power")
def power(op: Builder, x: Value, *, power: float, scale: float, shift: float):
    """Power: ``(x * scale + shift) ** power``. The sum is never -0.0, unless the shift is."""
    if scale == -1:
        x = op.Sub(op.const(shift, ir.DataType.FLOAT), x)
    else:
        x = x if scale == 1 else op.Mul(x, scale)
        x = x if shift == 0 else op.Add(x, shift)
    if power == 1:
        return x
    if power == 0.5:
        return op.Sqrt(x)
    if power < 0 and power % 2 == 1 and scale != -1 and shift == 0 and not np.signbit(shift):
        x = op.Where(op.Equal(x, 0.0), op.const(0.0, ir.DataType.FLOAT), x)  # an added 0 would be removed
    return op.Pow(x, power)


@layer("ScaleShift")
def scale_shift(op: Builder, x: Value, weights: Value, biases: Value | None = None, *, broadcast: int | None = None):
    """ScaleShift: a factor and an addend for each channel, or for all."""
    x = op.Mul(x, by_channel(op, x, weights, "weights", shared=bool(broadcast)))
    return x if biases is None else op.Add(x, by_channel(op, x, biases, "biases", shared=bool(broadcast)))


@layer("Select", integers=True)
def select(op: Builder, condition: Value, then: Value, otherwise: Value):
    """Select: the second input where the condition is not 0, else the third."""
    if then.dtype != otherwise.dtype:
        then, otherwise = (op.Cast(x, to=ir.DataType.FLOAT) for x in (then, otherwise))
    chosen = condition if condition.dtype == ir.DataType.BOOL else op.Not(op.Equal(condition, op.const(0, condition.dtype)))
    return op.Where(chosen, then, otherwise)


@layer("Copy", integers=True)
def copy(op: Builder, x: Value):
    """Copy: identity."""
    return op.Identity(x)
