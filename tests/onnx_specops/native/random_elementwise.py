"""Random programs of Elementwise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from onnx_specops.ops.elementwise import ARGUMENTS, MOST_OPERANDS, instructions, operands_of
from tests.onnx_specops.native.nodes import Node, element_type

EXACT = ("add", "sub", "mul", "min", "max", "dequantize", "relu", "clip", "prelu", "hard_sigmoid", "div")
"""The instructions whose results agree bit for bit. Those of the others are approximations."""


def shapes(rng: np.random.Generator, count: int) -> list[tuple[int, ...]]:
    """Return shapes that broadcast."""
    sizes = [int(rng.choice((1, 2, 3, 7, 16, 33, 100, 513, 1100))) for _ in range(int(rng.integers(1, 7)))]
    while np.prod(sizes) > 40_000:
        sizes[int(rng.integers(len(sizes)))] = 2
    found = [tuple(sizes)] if rng.random() < 0.7 else []
    while len(found) < count:
        cut = int(rng.integers(0, len(sizes) + 1)) if rng.random() < 0.5 else 0
        found.append(tuple(size if rng.random() < 0.6 else 1 for size in sizes[cut:]))
    return found


def elementwise(rng: np.random.Generator) -> Node:
    """Return a node whose results are finite and agree bit for bit."""
    arrays, attributes = random_program(rng, tuple(name for name in EXACT if name != "div"))
    zero = arrays[1]
    assert zero is not None
    return "Elementwise", arrays, [element_type(zero)], attributes


def random_program(rng: np.random.Generator, names: Sequence[str]) -> tuple[list[np.ndarray | None], dict[str, Any]]:
    """Return the inputs and attributes of a node."""
    lines: list[str] = []
    integers: dict[int, bool] = {}
    for _ in range(int(rng.integers(1, 9))):
        name = str(rng.choice(names))
        arguments = []
        for position in range(ARGUMENTS[name]):
            is_integer = name == "dequantize" and position != 1
            known = [number for number, given in integers.items() if given == is_integer]
            results = [] if name == "dequantize" else list(range(MOST_OPERANDS, MOST_OPERANDS + len(lines)))
            new = [len(integers)] if len(integers) < MOST_OPERANDS else []
            choices = [*known, *results[-2:], *results[-2:], *new] or [0]
            number = int(rng.choice(choices))
            if number in new:
                integers[number] = is_integer
            arguments.append(number)
        if name == "dequantize" and any(integers.get(n) != (i != 1) for i, n in enumerate(arguments)):
            continue
        lines.append(" ".join(map(str, (name, *arguments))))
    if not lines:
        lines, integers = ["relu 0"], {0: False}
    program = ";".join(lines)
    used = operands_of(instructions(program))
    if used != list(range(len(used))) or not used:
        return random_program(rng, names)
    given: list[np.ndarray | None] = [None] * MOST_OPERANDS
    for number, shape in zip(used, shapes(rng, len(used)), strict=True):
        if integers[number]:
            given[number] = rng.integers(0, 256, shape).astype(np.uint8)
        else:
            given[number] = (rng.standard_normal(shape) + 0.1).astype(np.float32)
    zero = np.uint8(rng.integers(0, 256)) if rng.random() < 0.5 else np.float32(0)
    scale = np.float32(rng.uniform(0.01, 0.1)) if zero.dtype == np.uint8 else None
    arrays = [given[0], np.asarray(zero), None if scale is None else np.asarray(scale), *given[1:]]
    return arrays, {"program": program}
