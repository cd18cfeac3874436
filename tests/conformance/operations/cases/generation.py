"""Tensors generated from numbers: ranges, unit matrices, one-hot codes."""

from __future__ import annotations

import numpy as np

from tests.conformance.operation_models import decided, dynamic, layer_case, static

I8, I32, I64, U8, F16, F32, F64 = np.int8, np.int32, np.int64, np.uint8, np.float16, np.float32, np.float64


def _scalars(dtypes, *runs):
    return [static(*(np.array(run[i], dtype) for run in runs)) for i, dtype in enumerate(dtypes)]


def _range():
    def case(version, name, inputs, attributes=None, **settings):
        return layer_case("Range", version, "Range", name, inputs, attributes, **settings)

    for version, to in (("opset1", lambda _: {}), ("opset4", lambda t: {"output_type": t})):
        for kind, dtype in (("f32", F32), ("f16", F16), ("i32", I32), ("i64", I64), ("i8", I8), ("u8", U8)):
            runs = [(0, 10, 3), (5, 6, 2)] if kind == "u8" else [(0, 10, 3), (10, 0, -3), (-4, 5, 5)]
            yield case(version, kind, _scalars([dtype] * 3, *runs), to(kind))
        yield case(version, "fractions", _scalars([F32] * 3, (0, 1, 0.1), (1, 0, -0.3), (0.1, 100.1, 12.3)), to("f32"))
        yield case(version, "f64", _scalars([F64] * 3, (0, 1, 0.25), (1, 0, -0.3)), to("f64"))
        yield case(version, "constant", [np.array(x, F32) for x in (0, 5, 2)], to("f32"))
        for name, run in (("count", (0, 0.3, 0.1)), ("steps", (1e7, 1e7 + 40, 0.5)), ("long", (1e6, 1001000, 0.2))):
            yield case(version, f"constant-{name}", [np.array(x, F32) for x in run], to("f32"))
        yield case(version, "wrong-way", _scalars([I32] * 3, (5, 1, 1), (1, 5, -2)), to("i32"), **decided("evaluate", "the CPU plugin counts as if the step led from start to stop"))  # fmt: skip
    cast = decided("evaluate", "the CPU plugin rounds after adding up, the specification truncates before")
    for name, kinds, kind, *runs in (
        ("f32-to-i32", [F32] * 3, "i32", (0.9, 5.2, 1.1), (-0.9, 3.7, 1.9), (5.5, 1.2, -1.5)),
        ("mixed-to-i64", [F32, I32, I64], "i64", (0.5, 4, 1), (-1.5, 4, 2)),
        ("f32-to-u8", [F32] * 3, "u8", (0.5, 3.5, 1)),
        ("step-truncated-to-0", [F32] * 3, "i32", (0, 3, 0.5), (1, 0.5, -0.5)),
    ):
        yield case("opset4", name, _scalars(kinds, *runs), {"output_type": kind}, **cast)
    for name, kinds, kind, *runs in (
        ("mixed-to-f32", [I32, F32, F32], "f32", (0, 1.5, 0.5), (2, -1, -0.7)),
        ("f32-to-f16", [F32] * 3, "f16", (0, 1, 0.1), (1, 0, -0.3)),
        ("i32-to-u8", [I32] * 3, "u8", (250, 255, 2), (10, 0, -3)),
        ("i64-to-f32", [I64] * 3, "f32", (0, 10, 3)),
    ):
        yield case("opset4", name, _scalars(kinds, *runs), {"output_type": kind})


def _eye():
    def case(name, inputs, kind, **settings):
        return layer_case("Eye", "opset9", lambda o, r, c, d, *b: o.eye(r, c, d, kind, *b), name, inputs, **settings)

    for k, kind in ((0, "f32"), (1, "i8"), (-1, "u8"), (5, "i64"), (-9, "f16"), (1, "f64"), (1, "i32")):
        yield case(f"{kind}-{k}", [*_scalars([I32] * 2, (2, 4), (3, 2), (0, 2)), np.array(k)], kind)
    yield case("constant", [np.array(3), np.array(4), np.array(1)], "f32")
    yield case("one-element-inputs", [np.array([3]), static(np.array([4], I32)), static(np.array([-2], I32))], "f32")
    yield case("batches", [*_scalars([I64] * 3, (2, 3, 1), (3, 3, -1)), np.array([2, 1])], "f32")
    yield case(
        "batches-at-run-time",
        [*_scalars([I64] * 3, (2, 3, 1), (3, 3, -1)), static(np.array([2, 1]), np.array([0, 3]))],
        "i32",
    )
    only_cpu = decided("cpu", "the reference has no kernel of the type")
    yield case("boolean", _scalars([I32] * 3, (2, 3, 1)), "boolean", **only_cpu)
    yield case("u16", _scalars([I32] * 3, (2, 3, 1)), "u16", **only_cpu)


def _one_hot():
    for version, modes in (
        ("opset1", [{}]),
        ("opset16", [{"negative_indices_mode": m} for m in ("ignore_negative", "normalize")]),
    ):
        for mode in modes:
            suffix = "-" + mode["negative_indices_mode"] if mode else ""

            def case(name, inputs, axis, version=version, mode=mode, suffix=suffix, **settings):
                return layer_case("OneHot", version, "one_hot", name + suffix, inputs, {"axis": axis, **mode}, **settings)

            indices = np.array([[0, 2, 3], [-1, -3, -4]])
            for axis in (0, 1, -1, -3):
                on, off = np.array(5, F32), np.array(-1, F32)
                yield case(f"axis{axis}", [dynamic(indices, indices[:1]), np.array(3), on, off], axis)
            for dtype in (bool, U8, I32, I64, F16, F64):
                on, off = np.array(1, dtype), np.array(0, dtype)
                yield case(np.dtype(dtype).name, [dynamic(indices.astype(I32)), np.array(3, I32), on, off], -1)
            yield case("scalar", [static(np.array(1)), np.array(3), np.array(1.5, F32), np.array(0, F32)], 0)
            yield case("all-at-run-time", [dynamic(indices, indices.T), *(static(np.array(a), np.array(b)) for a, b in
                       ((3, 4), (F32(2), F32(3)), (F32(0), F32(1))))], 1)  # fmt: skip
            yield case("empty", [dynamic(indices[:0]), np.array(3), np.array(1, F32), np.array(0, F32)], -1)


CASES = [*_range(), *_eye(), *_one_hot()]
