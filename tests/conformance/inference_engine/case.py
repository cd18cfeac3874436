"""Cases: a network of few layers, and its inputs."""

from __future__ import annotations

import functools
import importlib
import pkgutil
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.conformance.inference_engine.model import Net, Port

Range = tuple[float, float]


@dataclass(frozen=True)
class Case:
    """A network to convert and compare.

    Args:
        kind: the tested layer type.
        name: a description.
        make: builds the network.
        feeds: values or ranges of inputs by name; others are random numbers from -1 to 1.
        runs: the number of runs with the same inputs; the last run counts.
        shapes: shapes of inputs, by name, that differ from those in the file.
        tolerance: the maximum difference, relative to the largest element if that is above 1.
    """

    kind: str
    name: str
    make: Callable[[Net], Any]
    version: int = 6
    precision: str = "FP32"
    feeds: Any = None
    tolerance: float = 1e-4
    runs: int = 1
    shapes: Any = None

    @property
    def key(self) -> str:
        return f"{self.kind}/{self.name}"

    def net(self) -> Net:
        net = Net(self.version, self.precision)
        self.make(net)
        return net

    def inputs(self, net: Net) -> dict[str, np.ndarray]:
        rng = np.random.default_rng(zlib.crc32(self.key.encode()))
        values = {}
        for name, (stated, precision) in net.inputs.items():
            dims = (self.shapes or {}).get(name, stated)
            given = (self.feeds or {}).get(name)
            if given is None:
                given = (-1.0, 1.0) if precision == "FP32" else (0, 4)
            if isinstance(given, tuple):
                value = rng.uniform(*given, dims)
            else:
                value = np.asarray(given).reshape(dims)
            values[name] = value.astype({"FP32": np.float32, "FP16": np.float32, "I32": np.int32, "U8": np.uint8}[precision])
        return values


def random(seed: int, *dims: int, low: float = -1.0, high: float = 1.0) -> np.ndarray:
    """Return random numbers for weights."""
    return np.random.default_rng(seed).uniform(low, high, dims).astype(np.float32)


def one(kind: str, name: str, dims: Any, out: Any, data: dict[str, Any] | None = None, **options: Any) -> Case:
    """Return a case of one layer: ``dims`` of its input (or a list for several), ``out`` of its output (or several)."""
    blobs, case = options.pop("blobs", None), {k: options.pop(k) for k in _OF_CASES if k in options}
    shapes = dims if isinstance(dims, list) else [dims]
    outs = out if isinstance(out, list) else [out]

    data_element = options.pop("data_element", "data")

    def make(net: Net) -> None:
        net.data_element = data_element
        ports: list[Port] = []
        for x in shapes:
            if isinstance(x, np.ndarray | np.generic):
                ports.append(net.const(x))
            elif isinstance(x[0], tuple):  # ((2, 3), "I32")
                ports.append(net.input(*x[0], precision=x[1]))
            else:
                ports.append(net.input(*x))
        net.layer(kind, ports, outs, data or {}, blobs=blobs, name="out", **options)

    return Case(kind, name, make, **case)


_OF_CASES = ("version", "precision", "feeds", "tolerance", "shapes")


@functools.cache
def cases() -> dict[str, Case]:
    """Return all cases by key."""
    from tests.conformance.inference_engine import cases as package

    found: dict[str, Case] = {}
    for module in pkgutil.iter_modules(package.__path__):
        for case in importlib.import_module(f"{package.__name__}.{module.name}").CASES:
            if case.key in found:
                raise ValueError(f"two cases are called {case.key}")
            found[case.key] = case
    return found
