"""Inputs for the comparison of two computations: shapes and numbers that cover corner cases."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import onnx_ir as ir

from onnx_specops.partial_values import Expression

Numbers = Literal["normal", "zeros", "tiny", "large", "special"]
"""The numbers of a trial: standard normal, zeros, around the smallest float32, around 1e4, or with infinities and NaN."""

_SIZES: Sequence[Sequence[int]] = ((2, 3, 4, 5, 6, 7), (3,), (1,), (4,), (1, 2, 3, 5, 7, 4), (8,), (0,), (16,), (2,))
"""The sizes of unknown dimensions, in turn. The last one repeats."""

_SPECIAL = (0.0, -0.0, 1.0, -1.0, 1e-30, -1e-30, 3e4, -3e4, np.inf, -np.inf, np.nan, 0.5, -2.5, 100.0, -100.0)
_MAX_ELEMENTS = 1 << 26
"""The maximum number of elements of one input. Sizes that exceed it are not tried."""


@dataclass(frozen=True)
class Trial:
    """Inputs of one comparison.

    Attributes:
        arrays: value -> its array.
        numbers: the kind of numbers.
    """

    arrays: Mapping[ir.Value, np.ndarray]
    numbers: Numbers

    @property
    def noise(self) -> float:
        """A few units in the last place of the largest float."""
        floats = [np.abs(array.astype(np.float64)) for array in self.arrays.values() if array.dtype.kind in "fV"]
        greatest = max((float(array[np.isfinite(array)].max(initial=0.0)) for array in floats), default=0.0)
        return 4 * float(np.finfo(np.float32).eps) * greatest

    def __str__(self) -> str:
        shapes = ", ".join(f"{value.name}{list(array.shape)}" for value, array in self.arrays.items())
        return f"{self.numbers} numbers, {shapes}"


@dataclass(frozen=True)
class Sizes:
    """The trials for one choice of sizes. Arrays are created on iteration.

    Attributes:
        shapes: input -> its shape.
        numbers: the kinds of numbers.
        known: the known facts from a run of the whole model.
    """

    shapes: Mapping[ir.Value, tuple[int, ...]]
    numbers: Sequence[Numbers]
    known: Mapping[ir.Value, np.ndarray | tuple[int, ...]]

    def __iter__(self) -> Iterator[Trial]:
        return (_trial(self.shapes, kind, self.known) for kind in self.numbers)

    @property
    def elements(self) -> int:
        """The number of elements of all trials' inputs."""
        return len(self.numbers) * sum(math.prod(shape) for shape in self.shapes.values())


def trials(
    inputs: Sequence[ir.Value], numbers: Sequence[Numbers], observed: Mapping[ir.Value, np.ndarray | tuple[int, ...]]
) -> Iterator[Sizes]:
    """Yield the trials for each choice of sizes. The computation may not support a choice.

    Args:
        inputs: the values for which arrays are made.
        numbers: the kinds of numbers.
        observed: the known facts from a run of the whole model: elements, or only the shape.
    """
    choices: list[Sequence[int]] = [()] if observed else []
    choices += _SIZES
    known = {value: seen for value, seen in observed.items() if value in inputs}
    tried: list[object] = []
    for choice in choices:
        seen = known if choice == () else {}
        shapes = _shapes(inputs, choice, seen)
        if shapes is None or any(math.prod(shape) > _MAX_ELEMENTS for shape in shapes.values()):
            continue
        if (shapes, bool(seen)) not in tried:
            yield Sizes(shapes, numbers, seen)
        tried.append((shapes, bool(seen)))
        if all(value.shape is not None and value.shape.is_static() for value in inputs):
            break  # all choices are equal


def _shapes(
    inputs: Sequence[ir.Value],
    choice: Sequence[int],
    known: Mapping[ir.Value, np.ndarray | tuple[int, ...]],
) -> dict[ir.Value, tuple[int, ...]] | None:
    """Return the shapes of the inputs, with equal dimensions of equal names. Return ``None`` if a rank is unknown."""
    named: dict[str, int] = {}

    def size_of(name: str) -> int:
        return named.setdefault(name, choice[min(len(named), len(choice) - 1)])

    found: dict[ir.Value, tuple[int, ...]] = {}
    for value in inputs:
        seen = known.get(value)
        if seen is not None:
            found[value] = seen if isinstance(seen, tuple) else seen.shape
            continue
        if value.shape is None or not choice:
            return None
        sizes = []
        for axis, dim in enumerate(value.shape):
            if isinstance(dim, int):
                sizes.append(dim)
            elif dim.value is not None:
                sizes.append(Expression.of_name(dim.value).evaluated(size_of))
            else:
                sizes.append(choice[min(axis, len(choice) - 1)])
        found[value] = tuple(sizes)
    return found


def _trial(
    shapes: Mapping[ir.Value, tuple[int, ...]], numbers: Numbers, known: Mapping[ir.Value, np.ndarray | tuple[int, ...]]
) -> Trial:
    rng = np.random.default_rng(len(shapes))
    arrays = {}
    for value, shape in shapes.items():
        seen = known.get(value)
        if isinstance(seen, np.ndarray):
            arrays[value] = seen
            continue
        assert value.dtype is not None
        arrays[value] = _array(rng, value.dtype, shape, numbers)
    return Trial(arrays, numbers)


def _array(rng: np.random.Generator, dtype: ir.DataType, shape: tuple[int, ...], numbers: Numbers) -> np.ndarray:
    if dtype == ir.DataType.BOOL:
        return rng.random(shape) < (0.0 if numbers == "zeros" else 0.6)
    if dtype == ir.DataType.STRING:
        return rng.choice(np.array(["", "a", "b", "ab"], dtype=object), shape)
    if dtype.is_integer():
        info = np.iinfo(dtype.numpy()) if dtype.itemsize >= 1 else None
        if numbers == "zeros" or info is None:
            return np.zeros(shape, dtype.numpy())
        if dtype.itemsize == 1:  # quantized values: all levels
            return rng.integers(info.min, info.max, shape, endpoint=True, dtype=info.dtype)
        return rng.integers(0, 3, shape).astype(dtype.numpy())
    if numbers == "zeros":
        return np.zeros(shape, dtype.numpy())
    array = rng.standard_normal(shape, np.float32 if dtype.itemsize < 8 else np.float64)
    if numbers == "tiny":
        array *= 1e-38 if dtype == ir.DataType.FLOAT else 1e-7
    elif numbers == "large":
        array *= 1e4 if dtype != ir.DataType.FLOAT16 else 100
    elif numbers == "special":
        places = np.arange(array.size).reshape(shape)  # every second number, in an order in which NaN comes early
        array = np.where(places % 2 == 1, np.array(_SPECIAL, array.dtype)[(7 * places + 3) % len(_SPECIAL)], array)
    return array.astype(dtype.numpy(), copy=False)
