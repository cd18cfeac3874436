"""Networks of the table: how to build them, and their inputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tests.conformance.models.comparing import Result, check_ir
from tests.conformance.oracle import Oracle

Dim = int | str
"""A dimension: a number, or a name whose values are in `Network.sizes`."""
Size = Mapping[str, int]


@dataclass(frozen=True)
class Input:
    """An input: ``draw`` creates an array of a shape from random numbers."""

    dims: tuple[Dim, ...]
    draw: Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]

    def shape(self, size: Size) -> tuple[int, ...]:
        """Return the shape for the given sizes."""
        return tuple(d if isinstance(d, int) else size[d] for d in self.dims)


@dataclass(frozen=True)
class Network:
    """A row of the table.

    Attributes:
        name: the architecture.
        family: its heading in the table.
        package: the library of its layers.
        build: builds the ``openvino.Model`` from the arrays of the first size.
        inputs: the model's inputs by name.
        sizes: the values of the named dimensions in each run; dimensions that differ between runs are dynamic in the IR.
        amplifies: whether the network amplifies rounding, so that no two runtimes agree within the tolerance. Outputs may
            then differ as much as OpenVINO's do after changing inputs by 1e-6, which is measured each time.
        kept: whether its IR is in ``files/``.
        note: a remark.
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
        """Return the arrays of each run, reproducibly."""
        generator = np.random.default_rng(0)
        return [{name: i.draw(generator, i.shape(size)) for name, i in self.inputs.items()} for size in self.sizes]

    def partial_shapes(self) -> list[list[int]]:
        """Return the inputs' shapes in the IR, with -1 for dimensions that differ between the sizes."""
        shapes = [[i.shape(size) for size in self.sizes] for i in self.inputs.values()]
        return [[d[0] if len(set(d)) == 1 else -1 for d in zip(*of_input, strict=True)] for of_input in shapes]

    def model(self) -> Any:
        """Return the ``openvino.Model`` with its inputs' shapes."""
        model = self.build(self.runs()[0])
        if len(model.inputs) != len(self.inputs):
            raise ValueError(f"{self.name} has {len(model.inputs)} inputs where the table lists {len(self.inputs)}")
        model.reshape(dict(enumerate(self.partial_shapes())))
        return model

    def chosen(self, words: Sequence[str]) -> bool:
        """Return whether its name or family contains one of ``words``; true without words."""
        return not words or any(word.lower() in f"{self.name} {self.family}".lower() for word in words)

    def check(self, oracle: Oracle, folder: Path) -> Result:
        """Build it, save it as OpenVINO does, convert it and compare."""
        import openvino as ov

        path = folder / "model.xml"
        ov.save_model(self.model(), path)
        return check_ir(path, self.runs(), oracle, amplifies=self.amplifies)


def squares(image: int, second: int | None = None) -> list[Size]:
    """Return sizes for two square images, then one, possibly of another size."""
    other = second or image
    return [{"b": 2, "h": image, "w": image}, {"b": 1, "h": other, "w": other}]


def floats(*dims: Dim) -> Input:
    """Normally distributed numbers."""
    return Input(dims, lambda generator, shape: generator.standard_normal(shape).astype(np.float32))


def uniform(*dims: Dim) -> Input:
    """Numbers in [0, 1), as in images."""
    return Input(dims, lambda generator, shape: generator.random(shape, np.float32))


def ids(below: int, *dims: Dim) -> Input:
    """Integers in [2, below): indices of a vocabulary whose first two entries are special."""
    return Input(dims, lambda generator, shape: generator.integers(2, below, shape).astype(np.int64))


def mask(*dims: Dim) -> Input:
    """Ones with some zeros at the end of every row, except the last of several rows."""

    def draw(generator: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        lengths = generator.integers(shape[-1] // 2, shape[-1], shape[:-1])
        if lengths.size > 1:
            lengths.reshape(-1)[-1] = shape[-1]
        return (np.arange(shape[-1]) < lengths[..., None]).astype(np.int64)

    return Input(dims, draw)
