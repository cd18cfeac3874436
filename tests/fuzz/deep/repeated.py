"""Files with one step, repeated: `Step` has the input and output of one shape and type."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from tests.fuzz.deep.net import Net, Port, Shape

Step = Callable[[Net, Port], Port]

DOUBLED, CHAINED = 40, 700
"""The numbers of repetitions. A step that uses its input twice gives 2^40 paths. Recursion exceeds Python's stack."""


@dataclass(frozen=True)
class Family:
    """Steps on values of one kind.

    Attributes:
        start: adds the inputs, and returns the value of the first step and all values that the end needs.
        steps: the steps by name.
        end: adds the consumers of the last step's value, and returns the outputs.
    """

    start: Callable[[Net], tuple[Port, ...]]
    steps: dict[str, Step]
    end: Callable[..., Sequence[Port]]

    def files(self, names: Sequence[str], count: int) -> tuple[bytes, bytes]:
        """Return the .xml and .bin of the given steps, one after another, ``count`` of them."""
        net = Net()
        value, *others = self.start(net)
        for k in range(count):
            value = self.steps[names[k % len(names)]](net, value)
        net.result(*self.end(net, value, *others))
        return net.files()


# -- short forms of frequent layers ----------------------------------------------------------------------------------------


def unary(type: str, version: int | str = 1, **data: object) -> Step:
    return lambda net, x: net.layer(type, x, data=data, version=version)


def binary(net: Net, type: str, a: Port, b: Port | float | int, kind: str = "") -> Port:
    """Add an elementwise layer of two inputs; numbers become constants of the first one's type."""
    if not isinstance(b, Port):
        b = net.const(b, {"f32": np.float32, "i64": np.int64, "f16": np.float16, "boolean": np.bool_}[a.kind])
    return net.layer(type, a, b, data={"auto_broadcast": "numpy"}, shape=_broadcast(a.shape, b.shape), kind=kind or a.kind)


def _broadcast(a: Shape, b: Shape) -> list[int]:
    """Return the shape of an elementwise result; NumPy rejects enormous ones."""
    rank = max(len(a), len(b))
    pairs = zip([1] * (rank - len(a)) + list(a), [1] * (rank - len(b)) + list(b), strict=True)
    return [one if other == 1 else other for one, other in pairs]


def i64(net: Net, *numbers: int) -> Port:
    return net.const(numbers, np.int64)


def number(net: Net, value: int) -> Port:
    return net.const(value, np.int64)


def reshape(net: Net, x: Port, *shape: int) -> Port:
    return net.layer("Reshape", x, i64(net, *shape), data={"special_zero": False}, shape=shape)


def transpose(net: Net, x: Port, *order: int) -> Port:
    return net.layer("Transpose", x, i64(net, *order), shape=[x.shape[k] for k in order])


def convert(net: Net, x: Port, kind: str) -> Port:
    return net.layer("Convert", x, data={"destination_type": kind}, kind=kind)


def matmul(net: Net, a: Port, b: Port, *, transposed: bool = False) -> Port:
    columns = b.shape[-2 if transposed else -1]
    data = {"transpose_a": False, "transpose_b": transposed}
    return net.layer("MatMul", a, b, data=data, shape=(*a.shape[:-1], columns))


def concat(net: Net, axis: int, *parts: Port) -> Port:
    shape = list(parts[0].shape)
    shape[axis] = sum(part.shape[axis] for part in parts)
    return net.layer("Concat", *parts, data={"axis": axis}, shape=shape)


def split(net: Net, x: Port, axis: int, count: int) -> list[Port]:
    shape = list(x.shape)
    shape[axis] //= count
    found: list[Port] = net.layer("Split", x, number(net, axis), data={"num_splits": count}, shapes=[shape] * count)
    return found


def fake_quantize(net: Net, x: Port, low: float = -1.0, high: float = 1.0, levels: int = 256) -> Port:
    bounds = [net.const(bound) for bound in (low, high, low, high)]
    return net.layer("FakeQuantize", x, *bounds, data={"levels": levels, "auto_broadcast": "numpy"})
