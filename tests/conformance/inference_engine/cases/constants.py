"""Layers that the Inference Engine folds when it loads a file: their inputs are constants or shapes."""

from __future__ import annotations

import numpy as np

from tests.conformance.inference_engine.case import Case, random
from tests.conformance.inference_engine.model import Net

_D = (2, 3)


def _arithmetic(kind, name, a, b, version=6) -> Case:
    def make(net: Net) -> None:
        x = net.input(*_D)
        c = net.layer(kind, [net.const(a), net.const(b)], [np.broadcast(a, b).shape], {})
        net.layer("Eltwise", [x, c], [_D], {"operation": "sum"}, name="out")

    return Case(kind, name, make, version)


def _integers(kind, name, a, b) -> Case:
    """Integers that are the dimensions of a Reshape."""

    def make(net: Net) -> None:
        x = net.input(1, 4, 6)
        shape = np.broadcast(a, b).shape
        c = net.layer(kind, [net.const(a), net.const(b)], [shape], {}, precision="I32", precisions=("I32",))
        dims = tuple({"Add": np.add, "Mul": np.multiply, "Div": np.floor_divide}[kind](a, b))
        net.layer("Reshape", [x, c], [dims], {}, name="out")

    return Case(kind, name, make, 7)


def _shape(name, dims, index, rest, out, version=7) -> Case:
    """A dimension of an input that is used in a Reshape."""

    def make(net: Net) -> None:
        x = net.input(*dims)
        kinds = {"precision": "I32", "precisions": ("I32",)}
        shape = net.layer("Shape", [x], [(len(dims),)], {}, **kinds)
        size = net.layer("Gather", [shape, net.const(np.array([index], np.int32))], [(1,)], {"axis": 0}, **kinds)
        whole = net.layer("Concat", [size, net.const(np.array(rest, np.int32))], [(len(out),)], {"axis": 0}, **kinds)
        net.layer("Reshape", [x, whole], [out], {}, name="out")

    return Case("Shape", name, make, version)


def _pair(*values):
    return np.array(values, np.int32)


CASES = [
    *[_arithmetic(kind, "whole", random(1, *_D), random(2, *_D, low=0.5)) for kind in ("Add", "Mul", "Div")],
    *[_arithmetic(kind, "number", random(1, *_D), random(2, 1, 1, low=0.5), 7) for kind in ("Add", "Mul")],
    *[_arithmetic(kind, "row", random(1, *_D), random(2, 1, 3, low=0.5), 5) for kind in ("Add", "Mul")],
    _arithmetic("Div", "version7", random(3, *_D), random(4, *_D, low=0.5), 7),
    _arithmetic("Div", "negative", random(5, *_D), random(6, *_D, low=-2, high=-0.5), 5),
    _integers("Add", "integers", _pair(1, 10), _pair(3, -4)),
    _integers("Mul", "integers", _pair(2, 3), _pair(2, 2)),
    _integers("Div", "integers", _pair(9, 25), _pair(2, 4)),
    _shape("first", (2, 3, 4), 0, [12], (2, 12)),
    _shape("last", (2, 3, 4), 2, [6], (4, 6)),
    _shape("open", (2, 3, 4), 1, [-1], (3, 8)),
    _shape("version6", (1, 3, 4, 2), 3, [12], (2, 12), 6),
]
