"""Data movement: reversed, rolled, shuffled, moved between channels, batch and space; or unchanged."""

from __future__ import annotations

from functools import partial

import ml_dtypes
import numpy as np

from tests.conformance.operation_models import decided, dynamic, layer_case, mixed, of_no_bytes, ramp, static, unranked

I32, I64, U8, F16, F64, BF16 = np.int32, np.int64, np.uint8, np.float16, np.float64, ml_dtypes.bfloat16

_SPOILS_MEMORY = decided("cpu", "the reference writes out of bounds if dimensions are dynamic")


def _identity():
    case = partial(layer_case, "Identity", "opset16", "identity")
    array = np.arange(6).reshape(2, 3)
    for dtype in (np.float32, F16, I64, U8, bool, F64, BF16):
        yield case(np.dtype(dtype).name, [static(array.astype(dtype))])
    array = array.astype(BF16)
    yield case("dynamic", [dynamic(array, array[:0])])
    yield case("constant", [array])
    yield case("scalar", [static(np.array(7, I32))])


def _reverse():
    def case(name, data, axes, mode, **settings):
        return layer_case("Reverse", "opset1", "Reverse", name, [data, axes], {"mode": mode}, **settings)

    data = dynamic(ramp(2, 3, 2), ramp(3, 1, 4))
    yield case("index", data, np.array([2, 0]), "index")
    yield case("one-index", data, np.array([1], I32), "index")
    yield case("mask", data, np.array([True, False, True]), "mask")
    yield case("no-axes", dynamic(ramp(2, 3)), of_no_bytes(I64), "index", **decided("expected", "OpenVINO rejects an empty constant", ramp(2, 3)))  # fmt: skip
    yield case("empty-mask", data, np.array([False] * 3), "mask")
    yield case("index-at-run-time", data, static(np.array([0, 1], I32), np.array([2, 0], I32)), "index")
    yield case("mask-at-run-time", data, static(np.array([True, False, False]), np.array([False] * 3)), "mask")
    for dtype in (bool, U8, F16, I64):
        yield case(np.dtype(dtype).name, dynamic(mixed(3, 3, dtype=dtype)), np.array([0]), "index")


def _reverse_sequence():
    def case(name, data, lengths, batch_axis=0, seq_axis=1, **settings):
        attributes = {"batch_axis": batch_axis, "seq_axis": seq_axis}
        return layer_case("ReverseSequence", "opset1", "reverse_sequence", name, [data, lengths], attributes, **settings)

    data = dynamic(ramp(3, 4, 2), ramp(2, 4, 1))
    yield case("default", data, dynamic(np.array([1, 4, 2]), np.array([3, 3])))
    yield case("constant-lengths", static(ramp(3, 4)), np.array([2, 3, 4], I32))
    yield case("float-lengths", dynamic(ramp(3, 4)), dynamic(np.array([2, 3, 1], np.float32)))
    yield case("constant-float-lengths", dynamic(ramp(3, 4)), np.array([2, 3, 1], F16))
    yield case("time-first", dynamic(ramp(4, 3)), dynamic(np.array([2, 3, 4], I32)), 1, 0)
    yield case("other-axes", dynamic(ramp(2, 4, 3)), dynamic(np.array([2, 3, 4], I32)), 2, 1)
    yield case("negative-axes", dynamic(ramp(2, 4, 3)), dynamic(np.array([2, 3], I32)), -3, -1)
    yield case(
        "any-rank", unranked(ramp(2, 4, 3), ramp(2, 1, 4, 2)), dynamic(np.array([3, 2], I32), np.array([4, 1], I32)), 0, 2
    )
    yield case("middle-batch", dynamic(ramp(2, 3, 4, 2)), static(np.array([1, 3, 4])), 1, 2)
    for dtype in (bool, U8, F16, I64):
        yield case(np.dtype(dtype).name, dynamic(mixed(2, 5, dtype=dtype)), np.array([5, 3]))


def _roll():
    def case(name, *inputs, **settings):
        return layer_case("Roll", "opset7", "roll", name, inputs, **settings)

    data = dynamic(ramp(3, 4), ramp(5, 2))
    yield case("one-axis", data, np.array(1), np.array(0))
    yield case("negative", data, np.array([-1], I32), np.array([-1], I32))
    yield case("two-axes", data, np.array([2, -3]), np.array([1, 0]))
    yield case("axis-twice", data, np.array([1, 1]), np.array([0, 0]))
    yield case("one-shift-for-all", dynamic(ramp(3, 4)), np.array(1), np.array([0, 1]), **decided("expected", "OpenVINO's kernels require as many shifts as axes", np.roll(ramp(3, 4), (1, 1), (0, 1))))  # fmt: skip
    yield case("beyond-size", data, np.array([9, -11]), np.array([0, 1]))
    yield case("shift-at-run-time", data, static(np.array([1, 0], I32), np.array([-2, 5], I32)), np.array([0, 1]))
    yield case(
        "all-at-run-time", data, static(np.array([1, 2]), np.array([-1, 3])), static(np.array([0, -1]), np.array([1, 1]))
    )
    yield case("empty", dynamic(ramp(0, 4)), np.array([1, 1]), np.array([0, 1]))
    for dtype in (U8, F16, I64):
        yield case(np.dtype(dtype).name, dynamic(mixed(3, 2, dtype=dtype)), np.array([1]), np.array([0]))


def _shuffle():
    def case(name, data, axis, group, **settings):
        attributes = {"axis": axis, "group": group}
        return layer_case("ShuffleChannels", "opset1", "ShuffleChannels", name, [data], attributes, **settings)

    yield case("default-axis", static(ramp(1, 6, 2, 2)), 1, 3)
    yield case("dynamic", dynamic(ramp(1, 6, 2, 2), ramp(2, 4, 1, 3)), 1, 2)
    yield case("negative-axis", dynamic(ramp(2, 3, 4)), -1, 2)
    yield case("first-axis", dynamic(ramp(6, 2)), 0, 3)
    yield case("one-group", dynamic(ramp(1, 4, 2)), 1, 1)
    for dtype in (U8, F16, I32):
        yield case(np.dtype(dtype).name, dynamic(mixed(1, 6, 2, dtype=dtype)), 1, 2)


def _depth():
    def case(operation, name, data, mode, size):
        factory = {"SpaceToDepth": "space_to_depth", "DepthToSpace": "depth_to_space"}[operation]
        attributes = {"mode": mode, "block_size": size}
        settings = {} if name == "static" else _SPOILS_MEMORY
        return layer_case(operation, "opset1", factory, f"{name}-{mode}", [data], attributes, **settings)

    for mode in ("blocks_first", "depth_first"):
        for operation, shapes in (
            ("SpaceToDepth", ([2, 3, 4, 6], [1, 2, 6], [1, 1, 4, 2, 2], [3, 1, 2, 2])),
            ("DepthToSpace", ([2, 8, 2, 3], [1, 4, 3], [1, 8, 1, 2, 2], [1, 4, 3, 1])),
        ):
            yield case(operation, "static", static(ramp(*shapes[0])), mode, 2)
            yield case(operation, "dynamic", dynamic(ramp(*shapes[0]), ramp(*shapes[3])), mode, 2)
            yield case(operation, "rank-3", dynamic(ramp(*shapes[1])), mode, 2)
            yield case(operation, "rank-5", dynamic(ramp(*shapes[2])), mode, 2)
            yield case(operation, "any-rank", unranked(*(ramp(*shape) for shape in shapes)), mode, 2)
            yield case(operation, "size-1", dynamic(ramp(*shapes[0])), mode, 1)
            for dtype in (U8, F16, I32):
                yield case(operation, np.dtype(dtype).name, dynamic(mixed(*shapes[0], dtype=dtype)), mode, 2)


def _batch():
    def case(operation, name, *inputs, **settings):
        factory = {"SpaceToBatch": "space_to_batch", "BatchToSpace": "batch_to_space"}[operation]
        return layer_case(operation, "opset2", factory, name, inputs, **settings)

    for operation, data, other in (
        ("SpaceToBatch", ramp(2, 4, 3, 3), ramp(1, 2, 5, 1)),
        ("BatchToSpace", ramp(12, 2, 3, 2), ramp(6, 1, 2, 3)),
    ):
        block = np.array([1, 2, 3, 1])
        begin, end = np.array([0, 1, 0, 0]), np.array([0, 1, 0, 1]) * (operation == "BatchToSpace")
        if operation == "SpaceToBatch":
            begin, end = np.array([0, 0, 1, 0]), np.array([0, 0, 2, 1])
            other = ramp(1, 2, 3, 4)
        yield case(operation, "static", static(data), block, begin, end)
        yield case(operation, "dynamic", dynamic(data, other), block.astype(I32), begin.astype(I32), end.astype(I32))
        yield case(operation, "at-run-time", dynamic(data, other), *(static(x, y) for x, y in
                   ((block, block), (begin, begin), (end, end))))  # fmt: skip
        small = ramp(2, 4, 4) if operation == "SpaceToBatch" else ramp(8, 2, 2)
        yield case(operation, "rank-3", dynamic(small), np.array([1, 2, 2]), np.array([0, 0, 0]), np.array([0, 0, 0]))
        five = ramp(1, 2, 2, 1, 2) if operation == "SpaceToBatch" else ramp(4, 2, 1, 1, 1)
        yield case(operation, "rank-5", dynamic(five), np.array([1, 1, 2, 1, 2]), np.zeros(5, I64), np.zeros(5, I64))
        square = ramp(2, 3, 3, 4) if operation == "SpaceToBatch" else ramp(8, 3, 2, 3)
        after = np.array([0, 0, 0, int(operation == "BatchToSpace")])
        yield case(operation, "square", dynamic(square), np.array([1, 1, 2, 2]), np.array([0, 0, 1, 0]), after)
        run_time = (static(x, x) for x in (block, begin, end))
        yield case(operation, "any-rank", unranked(data, other), *run_time)
        for dtype in (U8, F16, I32):
            yield case(operation, np.dtype(dtype).name, dynamic(data.astype(dtype)), block, begin, end)
    filled = decided("evaluate", "the CPU plugin fills the padding of several dimensions with data")
    yield case("SpaceToBatch", "padded-twice", static(ramp(1, 3, 2, 1, 1) + 1), np.array([1, 1, 1, 3, 3]), np.zeros(5, I64),
               np.array([0, 0, 0, 2, 2]), **filled)  # fmt: skip


CASES = [*_identity(), *_reverse(), *_reverse_sequence(), *_roll(), *_shuffle(), *_depth(), *_batch()]
