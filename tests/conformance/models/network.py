"""What a network of the table is: how to build it, and the inputs that it is run with."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tests.conformance.models.comparing import Result, check_ir
from tests.conformance.oracle import Oracle

Dim = int | str
"""A dimension: a number, or a name whose value each of `Network.sizes` tells."""
Size = Mapping[str, int]


@dataclass(frozen=True)
class Input:
    """An input by what it holds: ``draw`` makes an array of a shape from random numbers."""

    dims: tuple[Dim, ...]
    draw: Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]

    def shape(self, size: Size) -> tuple[int, ...]:
        """The shape at a size."""
        return tuple(d if isinstance(d, int) else size[d] for d in self.dims)


@dataclass(frozen=True)
class Network:
    """A row of the table.

    Attributes:
        name: the architecture.
        family: what it is listed under.
        package: the library that its layers come from.
        build: makes the ``openvino.Model``, from the arrays of the first size.
        inputs: the model's inputs by name.
        sizes: what the named dimensions are in each run; a dimension that differs between them is dynamic in the IR.
        amplifies: whether the network amplifies rounding, so that no two runtimes agree within the tolerance: outputs may
            then differ by as much as OpenVINO's own for inputs changed by 1e-6, which is measured each time.
        kept: whether its IR lies in ``files/``.
        note: what else is to be said of it.
    """

    name: str
    family: str
    package: str
    build: Callable[[Mapping[str, np.ndarray]], Any]
    inputs: Mapping[str, Input]
    sizes: Sequence[Size]
    amplifies: bool = False
    kept: bool = False
    note: str = ""

    def runs(self) -> list[dict[str, np.ndarray]]:
        """The arrays of each run, reproducible."""
        generator = np.random.default_rng(0)
        return [{name: i.draw(generator, i.shape(size)) for name, i in self.inputs.items()} for size in self.sizes]

    def partial_shapes(self) -> list[list[int]]:
        """The inputs' shapes in the IR, -1 for a dimension that the sizes do not share."""
        shapes = [[i.shape(size) for size in self.sizes] for i in self.inputs.values()]
        return [[d[0] if len(set(d)) == 1 else -1 for d in zip(*of_input, strict=True)] for of_input in shapes]

    def model(self) -> Any:
        """The ``openvino.Model``, with its inputs' shapes."""
        model = self.build(self.runs()[0])
        if len(model.inputs) != len(self.inputs):
            raise ValueError(f"{self.name} has {len(model.inputs)} inputs where the table lists {len(self.inputs)}")
        model.reshape(dict(enumerate(self.partial_shapes())))
        return model

    def chosen(self, words: Sequence[str]) -> bool:
        """Whether its name or family contains one of ``words``, or there are none."""
        return not words or any(word.lower() in f"{self.name} {self.family}".lower() for word in words)

    def check(self, oracle: Oracle, folder: Path) -> Result:
        """Make it, save it as OpenVINO saves models, convert it and compare."""
        import openvino as ov

        path = folder / "model.xml"
        ov.save_model(self.model(), path)
        return check_ir(path, self.runs(), oracle, amplifies=self.amplifies)


def squares(image: int, second: int | None = None) -> list[Size]:
    """Two square pictures at once, then one, which may have another size."""
    other = second or image
    return [{"b": 2, "h": image, "w": image}, {"b": 1, "h": other, "w": other}]


def floats(*dims: Dim) -> Input:
    """Normally distributed numbers."""
    return Input(dims, lambda generator, shape: generator.standard_normal(shape).astype(np.float32))


def uniform(*dims: Dim) -> Input:
    """Numbers in [0, 1), as of pictures."""
    return Input(dims, lambda generator, shape: generator.random(shape, np.float32))


def ids(below: int, *dims: Dim) -> Input:
    """Integers in [2, below): indices of a vocabulary whose first two entries mean something else."""
    return Input(dims, lambda generator, shape: generator.integers(2, below, shape).astype(np.int64))


def mask(*dims: Dim) -> Input:
    """Ones, and at the end of every row some zeros; of several rows the last has none."""

    def draw(generator: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        lengths = generator.integers(shape[-1] // 2, shape[-1], shape[:-1])
        if lengths.size > 1:
            lengths.reshape(-1)[-1] = shape[-1]
        return (np.arange(shape[-1]) < lengths[..., None]).astype(np.int64)

    return Input(dims, draw)
