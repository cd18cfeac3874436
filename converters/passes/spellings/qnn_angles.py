"""Angles as multiples of integers, which Qualcomm's HTP cannot represent in float16."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from converters.passes.workaround import KernelWorkaround
from onnx_specops.building import Builder, Value
from onnx_specops.graphs import MOVES, RESHAPES, attributes_of, constant_array, producer_of

_INTEGERS = frozenset((ir.DataType.INT32, ir.DataType.INT64))

_TURN = 1 << 22
"""The number of steps of a full turn. The sum of four products of a digit and half a turn is below 2^31."""

_COARSE = 1 << 11
"""The number of steps of the coarse part of an angle. float16 represents the coarse and the fine part exactly."""

_DIGIT, _DIGITS = 256, 4


class WrappedAngles(KernelWorkaround):
    """Compute angles that are products of integers and constant frequencies as integers, modulo a full turn.

    The time steps of diffusion models and the positions of rotary embeddings are such integers. QNN's HTP (2.7) computes
    the products in float16: those above 10 differ by more than 0.004. Conditions: only Sin and Cos use the angles, and the
    frequencies are float32 constants.
    """

    operators = frozenset(("MatMul", "Mul"))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        product = node.outputs[0]
        left, right = node.inputs
        frequencies, numbers = (left, right) if constant_array(left) is not None else (right, left)
        constant = constant_array(frequencies)
        if constant is None or constant.dtype != np.float32 or not np.isfinite(constant).all():
            return None
        if node.op_type == "MatMul" and not _is_outer(left, right):
            return None
        moves = _moves_of(numbers)
        if moves is None or not _are_angles(product):
            return None
        integers: Value = op.Cast(moves[0].inputs[0], to=ir.DataType.INT32)
        for move in moves[1:]:
            integers = op.node(move.op_type, integers, *move.inputs[1:], **attributes_of(move))
        return [_angle(op, integers, constant.astype(np.float64) / (2 * math.pi))]


def _angle(op: Builder, integers: Value, turns: np.ndarray) -> Value:
    """Return the angle after some steps, between minus and plus half a turn.

    Args:
        op: the builder.
        integers: the numbers of steps.
        turns: the full turns of a step.
    """

    def number(value: int) -> Value:
        result: Value = op.const(value, ir.DataType.INT32)
        return result

    rest, total = integers, None
    for index in range(_DIGITS):
        digit = rest if index == _DIGITS - 1 else op.Mod(rest, number(_DIGIT))
        steps = np.rint(np.mod(turns * float(_DIGIT**index), 1.0) * _TURN).astype(np.int64)
        steps = np.mod(steps + _TURN // 2, _TURN) - _TURN // 2
        part = op.Mul(digit, op.const(steps, ir.DataType.INT32))
        total = part if total is None else op.Add(total, part)
        if index < _DIGITS - 1:
            rest = op.Div(op.Sub(rest, digit), number(_DIGIT))
    wrapped = op.Sub(op.Mod(op.Add(total, number(_TURN // 2)), number(_TURN)), number(_TURN // 2))
    shifted = op.Add(wrapped, number(_COARSE // 2))
    fine = op.Sub(op.Mod(shifted, number(_COARSE)), number(_COARSE // 2))
    coarse = op.Div(op.Sub(wrapped, fine), number(_COARSE))
    parts = [
        op.Mul(op.Cast(part, to=ir.DataType.FLOAT), op.const(2 * math.pi / steps, ir.DataType.FLOAT))
        for part, steps in ((coarse, _TURN // _COARSE), (fine, _TURN))
    ]
    result: Value = op.Add(*parts)
    return result


def _is_outer(left: ir.Value | None, right: ir.Value | None) -> bool:
    """Return whether a matrix product multiplies columns by rows, as Mul does."""
    shapes = [None if value is None or value.shape is None else list(value.shape) for value in (left, right)]
    return all(dims is not None and len(dims) > 1 for dims in shapes) and [
        dims[place] for dims, place in zip(shapes, (-1, -2), strict=True) if dims is not None
    ] == [1, 1]


def _moves_of(value: ir.Value | None) -> list[ir.Node] | None:
    """Return the Cast of integers that a value is computed from and the nodes that reshape its result, or ``None``."""
    moves: list[ir.Node] = []
    while value is not None:
        cast = producer_of(value, "Cast")
        if cast is not None:
            source = cast.inputs[0]
            return [cast, *reversed(moves)] if source is not None and source.dtype in _INTEGERS else None
        node = value.producer()
        if node is None or node.domain or node.op_type not in RESHAPES:
            return None
        moves.append(node)
        value = node.inputs[0]
    return None


def _are_angles(value: ir.Value) -> bool:
    """Return whether only Sin and Cos use a value, directly or after nodes that move its elements."""
    values, seen = [value], {value}
    while values:
        one = values.pop()
        if one.is_graph_output() or not one.uses():
            return False
        for use in one.uses():
            user = use.node
            if user.domain or (use.idx and user.op_type != "Concat"):
                return False
            if user.op_type in ("Cos", "Sin"):
                continue
            if user.op_type not in MOVES or (user.op_type == "Concat" and any(other is not one for other in user.inputs)):
                return False
            values += [output for output in user.outputs if output not in seen]
            seen.update(user.outputs)
    return True
