"""Greatest and smallest elements, distinct elements, elements other than zero."""

from __future__ import annotations

import numpy as np

from tests.conformance.operations.models import dynamic, layer_case, mixed, static

I8, I32, I64, U8, U64, F16, F32, F64 = (
    np.int8, np.int32, np.int64, np.uint8, np.uint64, np.float16, np.float32, np.float64,
)  # fmt: skip

_TIED = {"oracle": "evaluate", "reason": "the CPU plugin chooses otherwise among equal elements"}


def _distinct(*shape, dtype=F32, seed=0):
    values = np.random.default_rng(seed).permutation(int(np.prod(shape)))
    return (values - (0 if np.dtype(dtype).kind == "u" else len(values) // 2)).astype(dtype).reshape(shape)


def _top_k():
    for version in ("opset1", "opset3", "opset11"):

        def case(name, data, k, axis, mode="max", sort="value", version=version, settings=None, **attributes):
            attributes = {"axis": axis, "mode": mode, "sort": sort, **attributes}
            return layer_case("TopK", version, name, "topk", [data, k], attributes, **(settings or {}))

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
                   settings={"oracle": "cpu", "reason": "Model.evaluate takes the wrong axis when k is not constant"})  # fmt: skip
        for dtype in (I8, U8, I32, I64, F16, F64):
            yield case(np.dtype(dtype).name, dynamic(_distinct(2, 9, dtype=dtype)), np.array(3), 1)
        if version != "opset1":
            yield case("i64-indices", data, np.array(2), 1, index_element_type="i64")
    for sort in ("value", "index"):
        yield case(f"stable-{sort}", dynamic(mixed(4, 12)), np.array(5), 1, "max", sort, stable=True,
                   settings={} if sort == "value" else _TIED)  # fmt: skip
        yield case(f"stable-{sort}-min-i32", dynamic(mixed(4, 12, dtype=I32)), np.array(5), 1, "min", sort, stable=True,
                   settings={} if sort == "value" else _TIED)  # fmt: skip
    huge = np.array([[1, 2**63, 2**64 - 1, 0, 2**63 - 1, 5]], U64)
    yield case("u64", dynamic(huge), np.array(3), 1, settings={"oracle": "expected",
               "reason": "neither oracle has an order of 64-bit unsigned integers",
               "expected": [[huge[:, [2, 1, 4]], np.array([[2, 1, 4]], I32)]]})  # fmt: skip
    yield case("infinities", dynamic(np.array([[1, np.inf, -np.inf, 0, 3]], F32)), np.array(5), 1, "min")


CASES = [*_top_k()]
