"""Bags of embeddings: sums and means of rows of a table."""

from __future__ import annotations

import numpy as np

from tests.conformance.operation_models import decided, dynamic, layer_case, mixed, static

I8, I32, I64, U8, F16, F32, F64 = np.int8, np.int32, np.int64, np.uint8, np.float16, np.float32, np.float64

_TABLE = np.array([[-0.2, -0.6], [-0.1, -0.4], [-1.9, -1.8], [-1.0, 1.5], [0.8, -0.7]], F32)
_WEIGHTS = np.array([0.5, 1, -1, 2], F32)


def _table(dtype):
    return (abs(_TABLE) * 10).astype(dtype) if np.dtype(dtype).kind == "u" else (_TABLE * 10).astype(dtype)


def _offsets():
    for operation, version in (("EmbeddingBagOffsetsSum", "opset3"), ("EmbeddingBagOffsets", "opset15")):
        make = "embedding_bag_offsets_sum" if version == "opset3" else "embedding_bag_offsets"

        def case(name, *inputs, attributes=None, operation=operation, version=version, make=make, **settings):
            return layer_case(operation, version, make, name, inputs, attributes, **settings)

        table, indices = dynamic(_TABLE, _TABLE), dynamic(np.array([0, 2, 3, 4]), np.array([4, 4, 0]))
        offsets = dynamic(np.array([0, 2, 2]), np.array([0, 0]))
        yield case("plain", table, indices, offsets)
        yield case("default-index", table, indices, offsets, np.array(1))
        yield case("no-default-index", table, indices, offsets, np.array(-1))
        yield case("constant-table", _TABLE, dynamic(np.array([0, 2, 3, 4], I32)), dynamic(np.array([0, 3], I32)))
        yield case("first-offset", table, indices, dynamic(np.array([1, 2, 2]), np.array([1, 1])))
        yield case(
            "weights",
            static(_TABLE),
            static(np.array([0, 2, 3, 4])),
            static(np.array([0, 2, 2])),
            np.array(0),
            static(_WEIGHTS),
        )
        yield case("no-bags", table, indices, dynamic(np.zeros(0, I64), np.zeros(0, I64)))
        yield case("rank-3", dynamic(mixed(4, 2, 3)), dynamic(np.array([3, 1, 1])), dynamic(np.array([0, 1])))
        yield case("rank-1", dynamic(mixed(4)), dynamic(np.array([3, 1, 1])), dynamic(np.array([0, 1])),
                   **decided("expected", "the CPU plugin does not support a table of rank 1", np.array([mixed(4)[3], 2 * mixed(4)[1]], F32)))  # fmt: skip
        for dtype in (F16, I32, I8, U8):
            yield case(
                np.dtype(dtype).name,
                dynamic(_table(dtype)),
                dynamic(np.array([0, 2, 3, 4], I32)),
                dynamic(np.array([0, 2, 2], I32)),
            )
    mean = {"reduction": "mean"}
    yield case("mean", table, indices, offsets, attributes=mean)
    yield case(
        "mean-default-index", table, indices, dynamic(np.array([0, 1, 1]), np.array([2, 2])), np.array(3), attributes=mean
    )
    for dtype in (F16, I32, I8, U8):
        inputs = [dynamic(_table(dtype)), dynamic(np.array([0, 2, 3, 4], I32)), dynamic(np.array([0, 1, 1], I32))]
        yield case(f"mean-{np.dtype(dtype).name}", *inputs, attributes=mean)
    halves = dynamic(_table(F16)), dynamic(np.array([0, 2, 3, 4], I32)), dynamic(np.array([0, 1, 1], I32))
    for default in (1, -1):
        yield case(f"mean-f16-default-index-{default}", *halves, np.array(default, I32), attributes=mean)
    yield case("mean-f16-default-index-at-run-time", *halves, static(np.array(1, I32)), attributes=mean)
    big = np.full((2, 3), 60000, F16)
    yield case("mean-f16-large", dynamic(big), dynamic(np.array([0, 1, 1])), dynamic(np.array([0])), attributes=mean)


def _packed():
    for operation, version in (("EmbeddingBagPackedSum", "opset3"), ("EmbeddingBagPacked", "opset15")):
        make = "embedding_bag_packed_sum" if version == "opset3" else "embedding_bag_packed"

        def case(name, *inputs, attributes=None, operation=operation, version=version, make=make, **settings):
            return layer_case(operation, version, make, name, inputs, attributes, **settings)

        indices = dynamic(np.array([[0, 2], [1, 2], [3, 4]]), np.array([[0, 0, 1]]))
        yield case("plain", dynamic(_TABLE, _TABLE), indices)
        yield case("constant-table", _TABLE, dynamic(np.array([[0, 2], [1, 2]], I32)))
        weights = np.array([[0.5, 1], [-1, 2], [0, 3]], F32)
        yield case("weights", static(_TABLE), static(np.array([[0, 2], [1, 2], [3, 4]], I32)), static(weights))
        yield case("no-bags", dynamic(_TABLE), dynamic(np.zeros((0, 2), I64)))
        yield case("rank-3", dynamic(mixed(4, 2, 3)), dynamic(np.array([[3, 1], [1, 0]])))
        for dtype in (F16, I32, I8, U8):
            yield case(np.dtype(dtype).name, dynamic(_table(dtype)), dynamic(np.array([[0, 2], [3, 4]], I32)))
    mean = {"reduction": "mean"}
    yield case("mean", dynamic(_TABLE, _TABLE), indices, attributes=mean)
    for dtype in (F16, I32, U8):
        yield case(
            f"mean-{np.dtype(dtype).name}", dynamic(_table(dtype)), dynamic(np.array([[0, 2, 1]], I32)), attributes=mean
        )


def _segments():
    def case(name, *inputs, **settings):
        return layer_case("EmbeddingSegmentsSum", "opset3", "embedding_segments_sum", name, inputs, **settings)

    table, indices = dynamic(_TABLE, _TABLE), dynamic(np.array([0, 2, 3, 4], I32), np.array([4, 4, 0], I32))
    ids = dynamic(np.array([0, 0, 2, 2], I32), np.array([1, 1, 1], I32))
    count = static(np.array(3, I32), np.array(4, I32))
    yield case("plain", table, indices, ids, count)
    yield case("default-index", table, indices, ids, count, np.array(1, I32))
    zeros = np.zeros((3, 2), F32)
    zeros[0], zeros[2] = _TABLE[0] + _TABLE[2], _TABLE[3] + _TABLE[4]
    yield case("no-default-index", *(dynamic(x.arrays[0]) for x in (table, indices, ids)), np.array(3, I32), np.array(-1, I32),
               **decided("expected", "the CPU plugin crashes", zeros))  # fmt: skip
    yield case("weights", static(_TABLE), static(np.array([0, 2, 3, 4])), static(np.array([0, 0, 2, 2])), np.array(3),
               np.array(0), static(_WEIGHTS))  # fmt: skip
    yield case("ids-beyond", dynamic(_TABLE), dynamic(np.array([0, 2, 3, 4])), dynamic(np.array([-1, 0, 1, 2])), np.array(2))
    yield case("nothing", dynamic(_TABLE), dynamic(np.zeros(0, I32)), dynamic(np.zeros(0, I32)), np.array(2, I32))
    for dtype in (F16, I32, U8):
        yield case(np.dtype(dtype).name, dynamic(_table(dtype)), dynamic(np.array([0, 2, 3], I32)), dynamic(np.array([0, 0, 1], I32)),
                   np.array(3, I32))  # fmt: skip


CASES = [*_offsets(), *_packed(), *_segments()]
