"""SearchSorted, SegmentMax, GatherTree: types, corner cases, errors."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from tests.onnx_specops.ops.case import Case

F, I32, I64 = np.float32, np.int32, np.int64
TYPES = (np.float16, ml_dtypes.bfloat16, np.float64, np.int8, np.int16, I32, I64, np.uint8, np.uint16, np.uint32, np.uint64)


def _type_name(type_):
    return np.dtype(type_).name


# -- SearchSorted --------------------------------------------------------------------------------------------------

SEQUENCES = np.array([[1, 3, 3, 7], [0, 0, 2, 9]])
VALUES = np.array([[3, 0, 8], [0, 2, 9]])
LEFT, RIGHT = np.array([[1, 0, 4], [0, 2, 3]]), np.array([[3, 0, 4], [2, 3, 4]])
BY_HAND = "computed by hand: OpenVINO does not support the type, or reads out of bounds"


def _sorted_layer(sorted_sequence, values, right_mode=0):
    from openvino import opset15

    return opset15.search_sorted(sorted_sequence, values, bool(right_mode))


def _search(name, sequence, values, right_mode=0, **options):
    inputs = {"sorted_sequence": np.asarray(sequence), "values": np.asarray(values)}
    return Case("SearchSorted", name, inputs, {"right_mode": right_mode}, layer=_sorted_layer, **options)


def _search_sorted():
    for right, answer in ((0, LEFT), (1, RIGHT)):
        side = "right" if right else "left"
        yield _search(f"{side}-float32", SEQUENCES.astype(F), VALUES.astype(F), right)
        for type_ in TYPES:
            yield _search(f"{side}-{_type_name(type_)}", SEQUENCES.astype(type_), VALUES.astype(type_), right,
                          expected=answer, reason=BY_HAND)  # fmt: skip
        yield _search(f"{side}-one-sequence", SEQUENCES[0].astype(F), VALUES.astype(F), right)
        yield _search(f"{side}-scalar", SEQUENCES[0].astype(F), np.array(3, F), right)
        yield _search(f"{side}-no-sequence", np.zeros(0, F), np.ones(3, F), right, expected=np.zeros(3, I64), reason=BY_HAND)
        yield _search(f"{side}-no-values", SEQUENCES.astype(F), np.zeros((2, 0), F), right)
        yield _search(f"{side}-nan", np.array([1, 2, np.inf], F), np.array([np.nan, np.inf, -np.inf], F), right)
        long = np.sort(np.random.default_rng(0).integers(0, 50, (3, 2, 100))).astype(F)
        yield _search(f"{side}-long", long, np.random.default_rng(1).integers(-1, 51, (3, 2, 7)).astype(F), right)
    huge = np.array([0, 1, 2**63, 2**64 - 1], np.uint64)
    yield _search("uint64-beyond-int64", huge, huge[::-1].copy(), expected=np.array([3, 2, 1, 0]), reason=BY_HAND)
    yield _search("error-scalar", np.array(1, F), np.ones(3, F), error="sorted_sequence is a scalar")
    yield _search("error-shapes", SEQUENCES.astype(F), np.ones((3, 3), F), error="values has the shape")


# -- SegmentMax ----------------------------------------------------------------------------------------------------

DATA = np.array([[-3, 5], [-7, 2], [1, 0], [4, 4], [9, -9]])
IDS = np.array([0, 0, 2, 3, 3])


def _segment_layer(data, segment_ids, num_segments=None, fill_mode="ZERO"):
    from openvino import opset16

    return opset16.segment_max(data, segment_ids, num_segments, fill_mode)


def _segments(name, data, ids, count=None, fill="ZERO", **options):
    inputs = {"data": np.asarray(data), "segment_ids": np.asarray(ids)}
    if count is not None:
        inputs["num_segments"] = np.asarray(count, inputs["segment_ids"].dtype)
    return Case("SegmentMax", name, inputs, {"fill_mode": fill}, layer=_segment_layer, **options)


def _segment_max():
    yield _segments("float32", DATA.astype(F), IDS)
    yield _segments("lowest", DATA.astype(F), IDS, fill="LOWEST")
    for type_ in TYPES:
        values = abs(DATA) if np.dtype(type_).kind == "u" else DATA
        least = ml_dtypes.finfo(type_).min if np.dtype(type_).kind not in "iu" else np.iinfo(type_).min
        for fill, empty in (("ZERO", 0), ("LOWEST", least)):
            expected = np.array([values[:2].max(0), [0, 0], values[2], values[3:].max(0)]).astype(type_)
            expected[1] = empty
            yield _segments(f"{fill.lower()}-{_type_name(type_)}", values.astype(type_), IDS.astype(I32), fill=fill,
                            expected=expected, reason="by hand: OpenVINO does not support every type")  # fmt: skip
    for count in (2, 6):
        yield _segments(f"{count}-segments", DATA.astype(F), IDS.astype(I32), count)
        yield _segments(f"{count}-segments-vector", DATA.astype(F), IDS, [count], fill="LOWEST", expected=np.array(
            [[-3, 5], *[[np.finfo(F).min] * 2], [1, 0], [9, 4], *[[np.finfo(F).min] * 2] * 2][:count], F),
            reason="OpenVINO only supports a scalar")  # fmt: skip
    yield _segments("last-id", DATA[:2].astype(F), np.array([0, 2**63 - 1]), 1, expected=DATA[:1].astype(F),
                    reason="OpenVINO's ids are of 32 bits at run time")  # fmt: skip
    yield _segments("error-last-id", DATA[:2].astype(F), np.array([0, 2**63 - 1]), error="(segment_ids|output)")
    yield _segments("rank-1", np.array([1, 2, 3], F), np.array([1, 1, 4]))
    yield _segments("rank-3", np.random.default_rng(0).normal(size=(5, 2, 3)).astype(F), IDS)
    yield _segments(
        "empty", np.zeros((0, 2), F), np.zeros(0, I64), expected=np.zeros((0, 2), F), reason="OpenVINO refuses it"
    )
    yield _segments("nan", np.array([np.nan, 1, np.nan, -np.inf], F), np.array([0, 0, 1, 2]), fill="LOWEST")
    yield _segments("error-negative", DATA.astype(F), IDS - 1, error="segment_ids.* = -1 is negative")
    yield _segments("error-descending", DATA.astype(F), IDS[::-1].copy(), error="segment_ids.* = 2 is less than")
    yield _segments("error-length", DATA.astype(F), IDS[:4], error="segment_ids has the shape")
    yield _segments("error-mode", DATA.astype(F), IDS, fill="ONE", error="attribute fill_mode = 'ONE'")
    yield _segments("error-count", DATA.astype(F), IDS, -2, error="num_segments = -2 is negative")


# -- GatherTree ----------------------------------------------------------------------------------------------------

STEPS = np.arange(1, 10).reshape(3, 1, 3)
PARENTS = np.array([[[0, 0, 0]], [[0, 1, 1]], [[2, 1, 2]]])
BEAMS = np.array([[[2, 2, 2]], [[6, 5, 6]], [[7, 8, 9]]])


def _tree_layer(step_ids, parent_ids, max_seq_len, end_token):
    from openvino import opset1

    return opset1.gather_tree(step_ids, parent_ids, max_seq_len, end_token)


def _tree(name, steps, parents, lengths, end, type_=I32, **options):
    given = {"step_ids": steps, "parent_ids": parents, "max_seq_len": lengths, "end_token": end}
    inputs = {key: np.asarray(value).astype(type_) for key, value in given.items()}
    return Case("GatherTree", name, inputs, {}, layer=_tree_layer, **options)


def _gather_tree():
    for type_ in (F, *TYPES):
        yield _tree(_type_name(type_), STEPS, PARENTS, [3], 10, type_, expected=BEAMS.astype(type_),
                    reason="OpenVINO knows float32 and int32 only")  # fmt: skip
    for length in (1, 2, 9):
        yield _tree(f"length-{length}", STEPS, PARENTS, [length], 10)
    yield _tree("no-length", STEPS, PARENTS, [0], 10, expected=np.full((3, 1, 3), 10, I32), reason="OpenVINO leaves it open")
    yield _tree("end-token-within", STEPS, PARENTS, [3], 5)
    random = np.random.default_rng(0)
    yield _tree("batches", random.integers(0, 9, (6, 4, 5)), random.integers(0, 5, (6, 4, 5)), [6, 3, 1, 5], 7)
    yield _tree("unused-parents", STEPS, [[[9, 9, 9]], [[0, 1, 1]], [[-5, 7, 9]]], [2], 10)
    for bad in (3, -1):
        yield _tree(f"error-parent-{bad}", STEPS, np.full_like(PARENTS, bad), [3], 10, error=f".*beam {bad}, out of range")
    yield _tree("error-shapes", STEPS, PARENTS[:2], [3], 10, error="the shapes")


CASES = [*_search_sorted(), *_segment_max(), *_gather_tree()]
