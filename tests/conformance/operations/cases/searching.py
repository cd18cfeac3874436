"""Searches: sorted sequences, buckets, segments, empty rows of sparse tensors."""

from __future__ import annotations

import numpy as np

from tests.conformance.operation_models import decided, dynamic, layer_case, mixed, static

I8, I32, I64, U8, F16, F32, F64 = np.int8, np.int32, np.int64, np.uint8, np.float16, np.float32, np.float64


def _search_sorted():
    def case(name, *inputs, kind="i64", **settings):
        for right in (False, True):
            attributes = {"right_mode": right, "output_type": kind}
            suffix = "right" if right else "left"
            yield layer_case("SearchSorted", "opset15", "SearchSorted", f"{name}-{suffix}", inputs, attributes, **settings)

    sequence = np.array([[1, 3, 3, 7], [0, 0, 2, 9]])
    values = np.array([[3, 0, 8], [0, 2, 9]])
    for dtype in (F32, F16, I32, I8, U8):
        yield from case(np.dtype(dtype).name, dynamic(sequence.astype(dtype)), dynamic(values.astype(dtype)))
    yield from case("one-sequence", dynamic(sequence[0].astype(F32)), dynamic(values.astype(F32)), kind="i32")
    yield from case("scalar-value", dynamic(sequence[0].astype(F32)), static(np.array(3, F32)))
    yield from case(
        "several",
        dynamic(np.sort(mixed(2, 3, 17)), np.sort(mixed(1, 2, 1))),
        dynamic(mixed(2, 3, 5, seed=1), mixed(1, 2, 9)),
    )
    yield from case("no-values", dynamic(sequence.astype(F32)), dynamic(np.zeros((2, 0), F32)))
    yield from case("empty-sequence", dynamic(np.zeros(0, F32)), dynamic(np.array([1, 2], F32)),
                    **decided("expected", "the CPU plugin reads out of bounds", np.zeros(2, I64)))  # fmt: skip
    yield from case(
        "nan-and-infinity", dynamic(np.array([1, 3, 3, np.inf], F32)), dynamic(np.array([np.nan, np.inf, -np.inf], F32))
    )
    yield from case("constant", np.array([1, 3, 3, 7], F32), dynamic(mixed(3, 3)))


def _bucketize():
    def case(name, data, buckets, kind="i64", **settings):
        for right in (False, True):
            attributes = {"output_type": kind, "with_right_bound": right}
            suffix = "right" if right else "left"
            yield layer_case("Bucketize", "opset3", "Bucketize", f"{name}-{suffix}", [data, buckets], attributes, **settings)

    values = np.array([[3, 50, 10], [-1, 0, 5]])
    for dtype in (F32, F16, I32, I64):
        yield from case(np.dtype(dtype).name, dynamic(values.astype(dtype)), np.array([0, 5, 10], dtype))
    yield from case("i32-boundaries", dynamic((values + 0.5).astype(F32)), np.array([0, 5, 10], I32), "i32")
    yield from case("f32-boundaries", dynamic(values), np.array([0, 5.5, 10], F32), "i32")
    yield from case(
        "run-time",
        dynamic(values.astype(F32), values[:1].astype(F32)),
        dynamic(np.array([0, 5, 10], F32), np.array([3], F32)),
    )
    yield from case("nan", dynamic(np.array([np.nan, np.inf, -np.inf, -0.0], F32)), np.array([0, 5, 10], F32))
    yield from case("no-boundaries", dynamic(values.astype(F32)), dynamic(np.zeros(0, F32)))


def _segment_max():
    def case(name, *inputs, fill="ZERO", **settings):
        return layer_case("SegmentMax", "opset16", "SegmentMax", f"{name}-{fill}", inputs, {"fill_mode": fill}, **settings)

    data = np.array([[-3, 5], [-7, 2], [1, 0], [4, 4], [9, -9]])
    ids = np.array([0, 0, 2, 3, 3])
    for fill in ("ZERO", "LOWEST"):
        for dtype in (F32, I32, I8, U8):
            values = abs(data) if dtype is U8 else data
            yield case(np.dtype(dtype).name, dynamic(values.astype(dtype), dims=[-1, 2]), dynamic(ids), fill=fill)
        for count in (2, 6):
            yield case(
                f"{count}-segments", dynamic(data.astype(F32)), dynamic(ids.astype(I32)), np.array(count, I32), fill=fill
            )
        yield case("count-at-run-time", dynamic(data.astype(F32), data.astype(F32)), dynamic(ids, ids),
                   static(np.array(5), np.array(3)), fill=fill)  # fmt: skip
        yield case("rank-1", dynamic(np.array([1, 2, 3, -4], F32)), dynamic(np.array([1, 1, 1, 3], I32)), fill=fill)
        yield case("rank-3", dynamic(mixed(4, 2, 3)), dynamic(np.array([0, 2, 2, 2])), fill=fill)
        yield case("nan-and-infinity", dynamic(np.array([np.nan, 1, 2, np.nan, -np.inf, np.nan], F32)),
                   dynamic(np.array([0, 0, 1, 1, 2, 3])), fill=fill)  # fmt: skip
    yield case("float16", dynamic(data.astype(F16)), dynamic(ids))
    least = np.array([[-3, 5], [-65504, -65504], [1, 0], [9, 4]], F16)
    yield case("float16", dynamic(data.astype(F16)), dynamic(ids), fill="LOWEST", **decided("expected", "the CPU plugin uses the lowest float32, which float16 cannot represent", least))  # fmt: skip


def _sparse_fill_empty_rows():
    def case(name, indices, shape, dtype=F32, kind=I32, values=None, **settings):
        indices = np.array(indices, kind).reshape(-1, 2)
        values = np.arange(1, len(indices) + 1).astype(dtype) if values is None else values
        inputs = [
            dynamic(values),
            static(np.array(shape, kind)),
            dynamic(indices, dims=[-1, 2]),
            static(np.array(42, dtype)),
        ]
        return layer_case("SparseFillEmptyRows", "opset16", "SparseFillEmptyRows", name, inputs, **settings)

    some = [[0, 1], [0, 3], [2, 0], [3, 1]]
    for dtype in (F32, F16, I32, U8):
        yield case(np.dtype(dtype).name, some, [5, 6], dtype)
    yield case("i64-indices", some, [5, 6], kind=I64)
    yield case("unsorted", [[3, 1], [0, 3], [2, 0], [0, 1]], [5, 6])
    yield case("equal-positions", [[1, 1], [0, 1], [0, 1]], [3, 2])
    yield case("nothing", [], [2, 3])
    yield case("none-empty", [[0, 0], [1, 2]], [2, 3])
    yield case("no-rows", [], [0, 3])
    yield layer_case("SparseFillEmptyRows", "opset16", "SparseFillEmptyRows", "constants", [
        dynamic(np.array([1, 2], F32)), np.array([4, 2]), np.array([[1, 0], [2, 1]]), np.array(-1, F32)])  # fmt: skip


CASES = [*_search_sorted(), *_bucketize(), *_segment_max(), *_sparse_fill_empty_rows()]
