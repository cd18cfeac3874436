"""Largest and smallest elements, distinct elements, nonzero elements."""

from __future__ import annotations

import numpy as np

from tests.conformance.operation_models import decided, dynamic, layer_case, mixed, static

I8, I32, I64, U8, U64, F16, F32, F64 = (
    np.int8, np.int32, np.int64, np.uint8, np.uint64, np.float16, np.float32, np.float64,
)  # fmt: skip

_TIED = decided("evaluate", "the CPU plugin chooses otherwise among equal elements")


def _distinct(*shape, dtype=F32, seed=0):
    values = np.random.default_rng(seed).permutation(int(np.prod(shape)))
    return (values - (0 if np.dtype(dtype).kind == "u" else len(values) // 2)).astype(dtype).reshape(shape)


def _top_k():
    for version in ("opset1", "opset3", "opset11"):

        def case(name, data, k, axis, mode="max", sort="value", version=version, settings=None, **attributes):
            attributes = {"axis": axis, "mode": mode, "sort": sort, **attributes}
            return layer_case("TopK", version, "topk", name, [data, k], attributes, **(settings or {}))

        data = dynamic(_distinct(3, 4), _distinct(2, 5, seed=1))
        for mode in ("max", "min"):
            for sort in ("value", "index"):
                yield case(f"{mode}-{sort}", data, np.array(2), 1, mode, sort)
                yield case(f"{mode}-{sort}-ties", dynamic(mixed(3, 9)), np.array(4, I32), -1, mode, sort, settings=_TIED)
            yield case(f"{mode}-one-none", data, np.array(1), 0, mode, "none")
        yield case("axis-0", data, np.array(2), 0)
        yield case("middle-axis", dynamic(_distinct(2, 5, 3)), np.array(3, I32), -2)
        yield case("whole", static(_distinct(7)), np.array(7), 0, "min")
        at_run_time = static(np.array(1, I32), np.array(3, I32))
        yield case("k-at-run-time", data, at_run_time, 1, "max", "index",
                   settings=decided("cpu", "the reference uses another k if it is not constant"))  # fmt: skip
        for dtype in (I8, U8, I32, I64, F16, F64):
            yield case(np.dtype(dtype).name, dynamic(_distinct(2, 9, dtype=dtype)), np.array(3), 1)
        yield case("of-none", static(np.zeros((0, 2, 5), F32)), np.array(3), 1)
        if version != "opset1":
            yield case("i64-indices", data, np.array(2), 1, index_element_type="i64")
    for sort in ("value", "index"):
        yield case(f"stable-{sort}", dynamic(mixed(4, 12)), np.array(5), 1, "max", sort, stable=True,
                   settings={} if sort == "value" else _TIED)  # fmt: skip
        yield case(f"stable-{sort}-min-i32", dynamic(mixed(4, 12, dtype=I32)), np.array(5), 1, "min", sort, stable=True,
                   settings={} if sort == "value" else _TIED)  # fmt: skip
    yield case("stable-bool", dynamic(mixed(4, 12, dtype=bool)), np.array(5), 1, "max", stable=True)
    huge = np.array([[1, 2**63, 2**64 - 1, 0, 2**63 - 1, 5]], U64)
    yield case("u64", dynamic(huge), np.array(3), 1, settings=decided("expected", "neither oracle orders 64-bit unsigned integers", huge[:, [2, 1, 4]], np.array([[2, 1, 4]], I32)))  # fmt: skip
    yield case("infinities", dynamic(np.array([[1, np.inf, -np.inf, 0, 3]], F32)), np.array(5), 1, "min")


def _unique():
    def case(name, data, axis=None, sorted=True, settings=None, **attributes):
        inputs = [data] if axis is None else [data, axis]

        def make(o, data, axis=None, **attributes):
            return o.unique(data, axis, **attributes)

        return layer_case("Unique", "opset10", make, name, inputs, {"sorted": sorted, **attributes}, **(settings or {}))

    rows = np.array([[1, 2], [0, 5], [1, 2], [0, 4]], F32)
    for order in (True, False):
        suffix = "sorted" if order else "unsorted"
        for dtype in (F32, F16, F64, I8, I32, I64, U8, U64):
            yield case(f"{np.dtype(dtype).name}-{suffix}", dynamic(np.array([[3, 1, 3], [2, 1, 0]], dtype)), None, order)
        yield case(f"axis-{suffix}", dynamic(rows, rows[:2]), np.array(0), order)
        yield case(f"negative-axis-{suffix}", dynamic(rows.T.copy()), np.array([-1], I32), order)
        yield case(f"axis-i32-{suffix}", dynamic(rows.astype(I32)), np.array(0), order)
        yield case(f"several-{suffix}", dynamic(mixed(3, 4), mixed(2, 7, seed=1)), None, order)
    for name, data, axis in (("none", np.zeros((3, 1, 0), F32), 0), ("none-middle", np.zeros((2, 0, 2), I32), 1)):
        count = data.shape[axis]
        places = [np.zeros(size, I64) for size in (min(count, 1), count)]
        expected = [data.take(places[0], axis), *places, np.array([count] if count else [], I64)]
        equal = decided("expected", "the CPU plugin returns no slice, and the reference rejects them", *expected)
        for kind in (static, dynamic):
            yield case(f"axis-of-{name}-{kind.__name__}", kind(data), np.array(axis), settings=equal)
    yield case("types", dynamic(mixed(9, dtype=I32)), None, True, index_element_type="i32", count_element_type="i32")
    yield case("types-of-counts", dynamic(mixed(9)), None, False, index_element_type="i64", count_element_type="i32")
    yield case("scalar", static(np.array(4, F32)))


def _non_zero():
    def case(name, data, kind="i64", **settings):
        return layer_case("NonZero", "opset3", "NonZero", name, [data], {"output_type": kind}, **settings)

    for dtype in (F32, F16, I8, I32, I64, U8, bool):
        yield case(np.dtype(dtype).name, dynamic(mixed(3, 4, dtype=dtype), mixed(1, 2, dtype=dtype)), "i32")
    yield case("nan-and-minus-zero", dynamic(np.array([[0, np.nan], [-0.0, 3]], F32)))
    yield case("scalar", static(np.array(3, F32)))
    yield case("scalar-zero", static(np.array(0, F32)), **decided("cpu", "the reference forgets the rank"))
    yield case("empty", dynamic(np.zeros((0, 3), I32)))
    yield case("tiny-f64", dynamic(np.array([0, 1e-320, 1e-200])), **decided("evaluate", "the CPU plugin converts to float32, where these are zeros"))  # fmt: skip


CASES = [*_top_k(), *_unique(), *_non_zero()]
