"""Elementwise: several element-wise operators in one pass over their operands."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from onnx_specops.domain import operator
from onnx_specops.ops._functions import applied, applied_body

MOST_OPERANDS, MOST_INSTRUCTIONS = 10, 32
_OPERANDS = tuple(f"X{i}" for i in range(MOST_OPERANDS))
ARGUMENTS = {
    "add": 2, "sub": 2, "mul": 2, "div": 2, "min": 2, "max": 2, "dequantize": 3, "relu": 1, "clip": 3, "prelu": 2,
    "sigmoid": 1, "hard_sigmoid": 3, "gelu": 1, "gelu_tanh": 1, "elu": 1, "mish": 1,
}  # fmt: skip
"""The number of arguments of each instruction."""


@dataclass(frozen=True)
class Instruction:
    """An instruction of a program.

    Attributes:
        name: its name, a key of `ARGUMENTS`.
        arguments: the numbers of its arguments.
    """

    name: str
    arguments: tuple[int, ...]


@functools.lru_cache(maxsize=1024)
def instructions(program: str) -> Sequence[Instruction]:
    """Parse a program.

    Raises:
        ValueError: it is not a program.
    """
    found: list[Instruction] = []
    for text in program.split(";"):
        name, *numbers = text.split(" ")
        arguments = tuple(
            int(number) if number.isascii() and number.isdigit() and len(number) < 3 else -1 for number in numbers
        )
        known = (*range(MOST_OPERANDS), *range(MOST_OPERANDS, MOST_OPERANDS + len(found)))
        if ARGUMENTS.get(name) != len(arguments) or any(number not in known for number in arguments):
            raise ValueError(f"Elementwise: {text!r} is not an instruction")
        if name == "dequantize" and max(arguments) >= MOST_OPERANDS:
            raise ValueError(f"Elementwise: {text!r} dequantizes a result")
        found.append(Instruction(name, arguments))
    if len(found) > MOST_INSTRUCTIONS:
        raise ValueError(f"Elementwise: the program has {len(found)} instructions, more than {MOST_INSTRUCTIONS}")
    return found


def operands_of(program: Sequence[Instruction]) -> list[int]:
    """Return the numbers of the operands that a program uses."""
    return sorted({number for one in program for number in one.arguments if number < MOST_OPERANDS})


@operator(
    inputs={
        "X0": "T0",
        "zero_point": "T",
        "scale": "tensor(float)",
        **{name: f"T{i}" for i, name in enumerate(_OPERANDS) if i},
    },
    outputs={"Y": "T"},
    types={"T": ("uint8", "float"), **{f"T{i}": ("uint8", "float") for i in range(MOST_OPERANDS)}},
)
def Elementwise(
    X0, zero_point, scale=None, X1=None, X2=None, X3=None, X4=None, X5=None, X6=None, X7=None, X8=None, X9=None, *,
    program: str,
):  # fmt: skip
    """Runs a program of element-wise instructions on its operands, in one pass.

    An instruction is a name and the numbers of its arguments, separated by single spaces, as in ``mul 0 1``. Instructions
    are separated by ``;``. The numbers 0 to 9 are the operands ``X0`` to ``X9``, 10 is the result of the first instruction,
    11 is the result of the second instruction, and so on. The last result is the output. All instructions compute in
    float32:

    - ``add``, ``sub``, ``mul``, ``div``, ``min`` and ``max`` of two arguments;
    - ``dequantize x scale zero_point`` of operands: ``(x - zero_point) * scale``;
    - ``relu x``, ``clip x low high``, ``prelu x slope``, ``sigmoid x``, ``hard_sigmoid x alpha beta``, ``gelu x``,
      ``gelu_tanh x``, ``elu x`` and ``mish x``, as in ``QuantizedConv``. The ``alpha`` of ``elu`` is 1.

    Inputs:
        X0: an operand.
        zero_point: ``[]``, the integer in ``Y`` that represents zero. If its type is float, ``Y`` is not quantized, and the
            value is ignored.
        scale: ``[]``, required if ``Y`` is quantized. The result is multiplied by the float32 number ``1 / scale`` and
            rounded to the nearest integer (ties to even). ``zero_point`` is added, and the sum is clipped to [0, 255].
        X1, X2, X3, X4, X5, X6, X7, X8, X9: more operands. Operands that the program does not use are ignored. The shapes of
            the others are broadcast as in NumPy. The integers and zero points of ``dequantize`` are uint8, and all other
            operands are float.

    Attributes:
        program: the instructions, at most 32.

    Output: the broadcast shape of all operands.

    Source: chains of nodes between integer operators, which OpenVINO computes in one pass.
    """
    found = instructions(program)
    used = operands_of(found)
    given = [x if i in used else None for i, x in enumerate((X0, X1, X2, X3, X4, X5, X6, X7, X8, X9))]
    _check(found, [None if x is None else x.dtype == np.uint8 for x in given])
    if zero_point.dtype == np.uint8 and scale is None:
        raise ValueError("Elementwise: a quantized output needs a scale")
    for name, array in (("zero_point", zero_point), ("scale", scale)):
        if array is not None and array.size != 1:
            raise ValueError(f"Elementwise: {name} has the shape {list(array.shape)} instead of []")
    values = [None if x is None else x.astype(np.float32) for x in given]
    try:
        shape = np.broadcast_shapes(*(x.shape for x in given if x is not None))
    except ValueError as error:
        raise ValueError("Elementwise: the operands have shapes that cannot be broadcast") from error
    with np.errstate(all="ignore"):
        for one in found:
            values.append(_computed(one.name, *(values[number] for number in one.arguments)))
        last = values[-1]
        assert last is not None
        result = np.broadcast_to(last, shape)
        if zero_point.dtype == np.float32:
            return result
        levels = np.rint(result * (np.float32(1) / scale.reshape(()))) + np.float32(zero_point.reshape(()))
        return np.clip(levels, 0, 255).astype(np.uint8)


def _check(found: Sequence[Instruction], is_integer: Sequence[bool | None]) -> None:
    """Check the operands of a program. ``is_integer`` states whether each contains integers; ``None`` for an omitted
    operand.
    """
    for number in operands_of(found):
        if is_integer[number] is None:
            raise ValueError(f"Elementwise: the program uses X{number}, which is missing")
    for one in found:
        expected = (True, False, True) if one.name == "dequantize" else (False,) * len(one.arguments)
        for number, integer in zip(one.arguments, expected, strict=True):
            if number < MOST_OPERANDS and is_integer[number] is not integer:
                raise ValueError(f"Elementwise: X{number} has another type than {one.name!r} expects")


def _computed(name, x, *others):
    match name:
        case "add":
            return x + others[0]
        case "sub":
            return x - others[0]
        case "mul":
            return x * others[0]
        case "div":
            return x / others[0]
        case "min":
            return np.minimum(x, others[0])
        case "max":
            return np.maximum(x, others[0])
        case "dequantize":
            return (x - others[1]) * others[0]
        case "relu":
            return np.maximum(x, np.float32(0))
        case "clip":
            return np.minimum(np.maximum(x, others[0]), others[1])
    slope, alpha, beta = others[0] if name == "prelu" else None, np.float32(1), np.float32(0)
    if name == "hard_sigmoid":
        alpha, beta = others
    return applied(x, slope, name, alpha, beta).astype(np.float32)


@Elementwise.infer_shapes
def _(node):
    found = [node.shape(0 if i == 0 else i + 2) for i in operands_of(instructions(node.attributes["program"]))]
    shapes = [shape for shape in found if shape is not None]
    if len(shapes) < len(found):
        return [None]
    rank = max(map(len, shapes))
    dims: list[int | str | None] = []
    for axis in range(rank):
        along = [shape[axis - rank] for shape in shapes if len(shape) >= rank - axis]
        sizes = {size for size in along if size != 1}
        known = [size for size in sizes if isinstance(size, int)]
        dims.append(known[0] if known else 1 if not sizes else sizes.pop() if len(sizes) == 1 else None)
    return [dims]


@Elementwise.body
def _(op, X0, zero_point, scale, X1, X2, X3, X4, X5, X6, X7, X8, X9, *, program):
    found = instructions(program)
    used = operands_of(found)
    values = [x if i in used else None for i, x in enumerate((X0, X1, X2, X3, X4, X5, X6, X7, X8, X9))]
    _check(found, [None if x is None else x.dtype is not None and x.dtype.name == "UINT8" for x in values])
    for one in found:
        values.append(_emitted(op, one.name, *(values[number] for number in one.arguments)))
    result = values[-1]
    if zero_point.dtype is not None and zero_point.dtype.name == "FLOAT":
        return result
    if scale is None:
        raise ValueError("Elementwise: a quantized output needs a scale")
    return op.QuantizeLinear(result, scale, zero_point)


_BINARY = {"add": "Add", "sub": "Sub", "mul": "Mul", "div": "Div", "min": "Min", "max": "Max"}
_FLOAT = 1  # of onnx.TensorProto


def _emitted(op, name, x, *others):
    if name in _BINARY:
        return op.node(_BINARY[name], x, *others)
    if name == "dequantize":
        scale, zero = others
        if scale.rank == 0 and zero.rank == 0:
            return op.DequantizeLinear(x, scale, zero)
        return op.Mul(op.Sub(op.Cast(x, to=_FLOAT), op.Cast(zero, to=_FLOAT)), scale)
    if name == "relu":
        return op.Relu(x)
    if name == "clip":
        return op.Min(op.Max(x, others[0]), others[1])
    if name == "hard_sigmoid":
        line = op.Add(op.Mul(x, others[0]), others[1])
        return op.Min(op.Max(line, np.float32(0)), np.float32(1))
    return applied_body(op, x, others[0] if others else None, name, 1.0, 0.0)
