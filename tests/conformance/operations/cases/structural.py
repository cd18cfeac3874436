"""Parameters, constants and results: what a graph begins and ends with."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from tests.conformance.case import Case

F = np.float32
TYPES = {
    "boolean": np.bool_,
    "i8": np.int8,
    "i16": np.int16,
    "i32": np.int32,
    "i64": np.int64,
    "u8": np.uint8,
    "u16": np.uint16,
    "u32": np.uint32,
    "u64": np.uint64,
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f32": np.float32,
    "f64": np.float64,
    "string": np.object_,
}
_TEXTS = ["", "a", "two words", "Grüße", "漢字", "x" * 100]


def _values(kind: str, *shape: int) -> np.ndarray:
    """Both ends of the type's range, and what lies between."""
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


def _type(kind: str):
    import openvino as ov

    return getattr(ov.Type, kind)


def _constant(array: np.ndarray, kind: str):
    import openvino as ov

    if kind == "string":
        return ov.op.Constant(ov.Tensor(array.astype(str)), shared_memory=False)
    tensor = ov.Tensor(_type(kind), ov.Shape(list(array.shape)))
    if array.size:
        tensor.data[...] = array.view(tensor.data.dtype) if kind == "bf16" else array
    return ov.op.Constant(tensor, shared_memory=False)


def _parameters(*given: tuple[str, list], through=None):
    """A Parameter for each type and shape, and the result of ``through``, or the Parameters themselves."""

    def build():
        import openvino as ov
        from openvino import opset13 as ops

        inputs = [ops.parameter(ov.PartialShape(shape), _type(kind), f"p{i}") for i, (kind, shape) in enumerate(given)]
        results = inputs if through is None else through(ops, *inputs)
        return ov.Model([ops.result(r) for r in results], inputs)

    return build


def _constants(*arrays: tuple[str, np.ndarray]):
    """Constants alone, each a result."""

    def build():
        import openvino as ov
        from openvino import opset13 as ops

        return ov.Model([ops.result(_constant(array, kind)) for kind, array in arrays], [])

    return build


def _added(kind: str, array: np.ndarray):
    """A constant of a number's type, added to a Parameter."""

    def build():
        import openvino as ov
        from openvino import opset13 as ops

        x = ops.parameter(list(array.shape), _type(kind), "x")
        return ov.Model([ops.result(ops.add(x, _constant(array, kind)))], [x])

    return build


def _results(emit, *shapes):
    def build():
        import openvino as ov
        from openvino import opset13 as ops

        inputs = [ops.parameter(list(shape), np.float32, f"x{i}") for i, shape in enumerate(shapes)]
        return ov.Model([ops.result(value) for value in emit(ops, *inputs)], inputs)

    return build


def _decided(kind: str):
    if kind not in ("i64", "u32", "u64", "f64"):
        return {}
    return {"oracle": "evaluate", "reason": "the CPU plugin bounds constants of this type to those of i32 or f32"}


A = np.arange(6, dtype=F).reshape(2, 3)
CASES = [
    # -- Parameter
    *(Case("Parameter", "opset1", k, _parameters((k, [2, 5])), [(_values(k, 2, 5),)]) for k in TYPES),
    *(
        Case(
            "Parameter",
            "opset1",
            f"{k}-dynamic",
            _parameters((k, [-1, -1])),
            [(_values(k, 2, 5),), (_values(k, 1, 1),), (_values(k, 0, 3),)],
        )
        for k in ("f32", "i64", "boolean", "string", "bf16")
    ),
    *(Case("Parameter", "opset1", f"{k}-scalar", _parameters((k, [])), [(_values(k),)]) for k in TYPES),
    *(
        Case("Parameter", "opset1", f"{k}-empty", _parameters((k, [0, 2])), [(_values(k, 0, 2),)])
        for k in ("f32", "i64", "boolean", "string")
    ),
    Case(
        "Parameter",
        "opset1",
        "bounded-dimensions",
        _parameters(("f32", ["1..4", 3])),
        [(np.ones((1, 3), F),), (np.ones((4, 3), F),)],
    ),
    Case(
        "Parameter",
        "opset1",
        "order-and-one-unused",
        _parameters(
            *[("f32", [2])] * 12, through=lambda ops, *p: [ops.subtract(p[11], p[2]), ops.add(p[10], p[1]), ops.relu(p[0])]
        ),
        [tuple(np.array([i, -(i**2)], F) for i in range(12))],
    ),
    Case(
        "Parameter",
        "opset1",
        "several-consumers",
        _parameters(("i32", [2, 3]), through=lambda ops, x: [ops.add(x, x), x, ops.shape_of(x), x]),
        [(_values("i8", 2, 3).astype(np.int32),)],
    ),
    # -- Constant
    *(Case("Constant", "opset1", k, _constants((k, _values(k, 2, 5))), [()], **_decided(k)) for k in TYPES),
    *(Case("Constant", "opset1", f"{k}-scalar", _constants((k, _values(k))), [()], **_decided(k)) for k in TYPES),
    *(Case("Constant", "opset1", f"{k}-large", _constants((k, _values(k, 73, 79))), [()], **_decided(k)) for k in TYPES),
    *(Case("Constant", "opset1", f"{k}-empty", _constants((k, _values(k, 2, 0))), [()]) for k in TYPES if k != "string"),
    *(
        Case("Constant", "opset1", f"{k}-added", _added(k, np.ones((61, 83), TYPES[k])), [(np.ones((61, 83), TYPES[k]),)])
        for k in ("i8", "i16", "u8", "u32", "i64", "u64", "f16", "bf16", "f64")
    ),
    Case(
        "Constant",
        "opset1",
        "one-for-several",
        _constants(("f32", np.ones((70, 70), F)), ("f32", np.ones((70, 70), F)), ("f32", np.ones((4900,), F))),
        [()],
    ),
    # -- Result
    Case("Result", "opset1", "of-a-parameter", _results(lambda ops, x: [x], (2, 3)), [(A,)]),
    Case("Result", "opset1", "of-one-value-twice", _results(lambda ops, x: [ops.relu(x)] * 2, (2, 3)), [(A - 2,)]),
    Case(
        "Result",
        "opset1",
        "of-equal-values",
        _results(lambda ops, x: [ops.relu(x), ops.relu(x), ops.abs(x)], (2, 3)),
        [(A - 2,)],
    ),
    Case("Result", "opset1", "of-a-parameter-twice", _results(lambda ops, x: [x, x, ops.exp(x)], (2, 3)), [(A - 2,)]),
    Case(
        "Result",
        "opset1",
        "of-several-outputs",
        _results(lambda ops, x: ops.split(x, ops.constant(1), 3).outputs()[::-1], (2, 3)),
        [(A,)],
    ),
    Case(
        "Result",
        "opset1",
        "of-one-output-of-several",
        _results(lambda ops, x: [ops.split(x, ops.constant(1), 3).output(1)], (2, 3)),
        [(A,)],
    ),
    Case(
        "Result",
        "opset1",
        "of-constant-and-parameter",
        _results(lambda ops, x: [ops.constant(F(3)), x, ops.constant(F(3)), ops.shape_of(x)], (2, 3)),
        [(A,)],
    ),
    Case(
        "Result",
        "opset1",
        "crossed-inputs",
        _results(lambda ops, x, y: [y, x, ops.add(y, x)], (2, 3), (1, 3)),
        [(A, A[:1] + 10)],
    ),
]
