"""Parameters, constants and results: the beginning and end of a graph."""

from __future__ import annotations

from functools import partial

import ml_dtypes
import numpy as np

from tests.conformance.operation_models import TYPES as NUMBERS
from tests.conformance.operation_models import decided, dynamic, layer_case, static

F = np.float32
TYPES = {**NUMBERS, "string": np.object_}
_TEXTS = ["", "a", "two words", "Grüße", "漢字", "x" * 100]


def _values(kind: str, *shape: int) -> np.ndarray:
    """Return both ends of the type's range, and values between them."""
    size = int(np.prod(shape))
    dtype = np.dtype(TYPES[kind])
    if kind == "string":
        few = _TEXTS
    elif kind == "boolean":
        few = [True, False]
    elif dtype.kind in "iu":
        few = [np.iinfo(dtype).min, np.iinfo(dtype).max, 0, 1, 100]
    else:
        few = [0.0, -0.0, 1.5, -2.25, float(ml_dtypes.finfo(dtype).max), float("inf"), float("-inf"), float("nan")]
    values = np.empty(len(few), dtype)
    values[:] = few
    return np.resize(values, size).reshape(shape)


def _as_they_are(ops, *nodes):
    return nodes


def _parameters():
    case = partial(layer_case, "Parameter", "opset1")
    for kind in TYPES:
        yield case(_as_they_are, kind, [static(_values(kind, 2, 5))])
        yield case(_as_they_are, f"{kind}-scalar", [static(_values(kind))])
    for kind in ("f32", "i64", "boolean", "string", "bf16"):
        arrays = _values(kind, 2, 5), _values(kind, 1, 1), _values(kind, 0, 3)
        yield case(_as_they_are, f"{kind}-dynamic", [dynamic(*arrays)])
    for kind in ("f32", "i64", "boolean", "string"):
        yield case(_as_they_are, f"{kind}-empty", [static(_values(kind, 0, 2))])
    bounded = dynamic(np.ones((1, 3), F), np.ones((4, 3), F), dims=["1..4", 3])
    yield case(_as_they_are, "bounded-dimensions", [bounded])

    def some(ops, *p):
        return ops.subtract(p[11], p[2]), ops.add(p[10], p[1]), ops.relu(p[0])

    inputs = [static(np.array([i, -(i**2)], F)) for i in range(12)]
    yield case(some, "order-and-one-unused", inputs)
    x = static(_values("i8", 2, 3).astype(np.int32))
    yield case(lambda ops, x: (ops.add(x, x), x, ops.shape_of(x), x), "several-consumers", [x], opset="opset13")


def _constants():
    case = partial(layer_case, "Constant", "opset1")
    bounded = decided("evaluate", "the CPU plugin bounds constants of this type to those of i32 or f32")
    for kind in TYPES:
        settings = bounded if kind in ("i64", "u32", "u64", "f64") else {}
        yield case(_as_they_are, kind, [_values(kind, 2, 5)], **settings)
        yield case(_as_they_are, f"{kind}-scalar", [_values(kind)], **settings)
        yield case(_as_they_are, f"{kind}-large", [_values(kind, 73, 79)], **settings)
        if kind != "string":
            yield case(_as_they_are, f"{kind}-empty", [_values(kind, 2, 0)])
    for kind in ("i8", "i16", "u8", "u32", "i64", "u64", "f16", "bf16", "f64"):
        ones = np.ones((61, 83), TYPES[kind])
        yield case("add", f"{kind}-added", [static(ones), ones])
    ones = np.ones((70, 70), F)
    yield case(_as_they_are, "one-for-several", [ones, ones, ones.reshape(-1)])


def _results():
    def case(name, make, *arrays):
        inputs = [static(array) for i, array in enumerate(arrays)]
        return layer_case("Result", "opset1", make, name, inputs, opset="opset13")

    def three(ops, x):
        return ops.split(x, ops.constant(1), 3)

    a = np.arange(6, dtype=F).reshape(2, 3)
    yield case("of-a-parameter", _as_they_are, a)
    yield case("of-one-value-twice", lambda ops, x: [ops.relu(x)] * 2, a - 2)
    yield case("of-equal-values", lambda ops, x: [ops.relu(x), ops.relu(x), ops.abs(x)], a - 2)
    yield case("of-a-parameter-twice", lambda ops, x: [x, x, ops.exp(x)], a - 2)
    yield case("of-several-outputs", lambda ops, x: three(ops, x).outputs()[::-1], a)
    yield case("of-one-output-of-several", lambda ops, x: [three(ops, x).output(1)], a)

    def mixture(ops, x):
        return ops.constant(F(3)), x, ops.constant(F(3)), ops.shape_of(x)

    yield case("of-constant-and-parameter", mixture, a)
    yield case("crossed-inputs", lambda ops, x, y: [y, x, ops.add(y, x)], a, a[:1] + 10)


CASES = [*_parameters(), *_constants(), *_results()]
