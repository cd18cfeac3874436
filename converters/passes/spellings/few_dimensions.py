"""Operators of several dimensions with fewer dimensions, for Qualcomm's HTP."""

from __future__ import annotations

import math
from collections.abc import Sequence

import onnx_ir as ir

from converters.passes.workaround import Workaround
from onnx_specops.building import Builder, Value
from onnx_specops.graphs import attributes_of

_MOST = 5
_MOST_OF_SOME = 4
_OF_FOUR = frozenset((
    "And", "Asin", "Atan", "Ceil", "Cos", "Elu", "Equal", "Erf", "Floor", "Greater", "GreaterOrEqual", "HardSwish", "Less",
    "LessOrEqual", "Log", "Max", "Min", "Neg", "Or", "PRelu", "Round", "Sign", "Sin", "Softplus", "Sqrt", "Tanh", "Xor",
))  # fmt: skip
"""Operators of elements that support up to four dimensions."""
_OF_FIVE = frozenset((
    "Abs", "Add", "Cast", "Clip", "Div", "Exp", "Gelu", "LeakyRelu", "Mul", "Not", "Pow", "Reciprocal", "Relu", "Sigmoid",
    "Sub", "Where",
))  # fmt: skip
"""Operators of elements that support up to five dimensions, except for a Cast of booleans."""
_WITH_PARAMETERS = frozenset(("Cast", "Clip"))
"""Operators of one tensor whose other inputs are numbers."""


class MergedElements(Workaround):
    """Merge dimensions before an elementwise operator with more than five of them, or more than four for some operators.

    QNN's HTP (2.7) supports up to five dimensions. For comparisons, logic, Max, Min, PRelu, Cast of booleans and many
    functions, it supports up to four, and for some of these the session fails. The rewrite merges adjacent dimensions that
    each operand has in full or repeats. Conditions: known dimensions, and few enough of them afterwards.
    """

    operators = _OF_FOUR | _OF_FIVE

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        result, x = node.outputs[0], node.inputs[0]
        if not isinstance(result, Value) or not result.is_static or not isinstance(x, Value):
            return None
        is_of_four = node.op_type in _OF_FOUR or (node.op_type == "Cast" and x.dtype == ir.DataType.BOOL)
        most, to = _MOST_OF_SOME if is_of_four else _MOST, [size or 0 for size in result.dims or ()]
        if len(to) <= most or 0 in to:
            return None
        count = 1 if node.op_type in _WITH_PARAMETERS else len(node.inputs)
        operands = [value for value in node.inputs[:count] if isinstance(value, Value) and value.is_static]
        if len(operands) != count:
            return None
        padded = [
            [1] * (len(to) - len(dims)) + dims for dims in ([size or 0 for size in one.dims or ()] for one in operands)
        ]
        groups = _groups(padded, to)
        if len(groups) > most:
            return None
        merged = [
            op.Reshape(value, [math.prod(dims[axis] for axis in group) for group in groups])
            for value, dims in zip(operands, padded, strict=True)
        ]
        found = op.node(node.op_type, *merged, *node.inputs[count:], **attributes_of(node))
        return [op.Reshape(found, to)]


def _groups(operands: Sequence[Sequence[int]], result: Sequence[int]) -> list[list[int]]:
    """Return the adjacent axes that each operand has in full or repeats; axes of 1 belong to any group."""
    groups: list[list[int]] = []
    last: tuple[bool, ...] | None = None
    for axis, size in enumerate(result):
        repeated = tuple(dims[axis] != size for dims in operands)
        if groups and (size == 1 or last is None or repeated == last):
            groups[-1].append(axis)
        else:
            groups.append([axis])
        last = last if size == 1 else repeated
    return groups


class MergedLines(Workaround):
    """Merge the leading dimensions before a LayerNormalization of the last one, or a MatMul by a matrix.

    QNN's HTP (2.7) supports up to four dimensions there. Condition: known dimensions.
    """

    operators = frozenset(("LayerNormalization", "MatMul"))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        x, result = node.inputs[0], node.outputs[0]
        if not isinstance(x, Value) or not isinstance(result, Value) or not x.is_static or not result.is_static:
            return None
        dims, to = [size or 0 for size in x.dims or ()], [size or 0 for size in result.dims or ()]
        if len(dims) <= _MOST_OF_SOME or 0 in dims or len(node.outputs) > 1:
            return None
        attributes = attributes_of(node)
        if node.op_type == "MatMul":
            matrix = node.inputs[1]
            if not isinstance(matrix, Value) or matrix.rank != 2:
                return None
        elif attributes.get("axis", -1) not in (-1, len(dims) - 1):
            return None
        else:
            attributes["axis"] = -1
        lines = op.Reshape(x, [math.prod(dims[:-2]), *dims[-2:]])
        return [op.Reshape(op.node(node.op_type, lines, *node.inputs[1:], **attributes), to)]
