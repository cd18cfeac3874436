"""Reductions, resampling, and layers that search for elements."""

from __future__ import annotations

import numpy as np

from tests.conformance.inference_engine.case import Case, one, random

_D = (1, 6, 4, 5)


def _ints(*values):
    return np.array(values, np.int32)


def _reduce(kind) -> list[Case]:
    low = 0.3 if "Log" in kind else -1.0
    feeds = {"in0": (low, 2.0)}
    return [
        one(kind, "channels", [_D, _ints(1)], (1, 1, 4, 5), {"keep_dims": 1}, feeds=feeds, version=7),
        one(kind, "images", [_D, _ints(2, 3)], (1, 6), {"keep_dims": 0}, feeds=feeds, version=7),
        one(kind, "negative_axis", [(3, 4), _ints(-1)], (3, 1), {"keep_dims": 1}, feeds=feeds, version=7),
        one(kind, "default", [(2, 3, 4), _ints(0, 2)], (1, 3, 1), {}, feeds=feeds, version=7),
    ]


def _resample(name, out, data, dims=(1, 2, 4, 6), **options):
    return one("Resample", name, dims, out, data, **options)


_NEAREST = {"type": "caffe.ResampleParameter.NEAREST", "antialias": 0}
_LINEAR = {"type": "caffe.ResampleParameter.LINEAR", "antialias": 0}
_UNIQUE = {"in0": [3, 1, 3, 2, 1, 5, 3]}


def _topk(name, dims, out, k, data, **options):
    return one(
        "TopK", name, [dims, np.array(k, np.int32)], [out, out], data, version=7, precisions=("FP32", "I32"), **options
    )


CASES = [
    _resample("nearest_between_two", (1, 2, 21, 27), {**_NEAREST, "factor": 1}, dims=(1, 2, 30, 20)),
    _resample("linear_larger_and_smaller", (1, 2, 3, 13), {**_LINEAR, "antialias": 1, "factor": 1}, dims=(1, 2, 9, 5)),
    one(
        "Gather",
        "integers_in_floats",
        [((6, 4), "I32"), np.array([0, 5, 3, -1, 6], np.int32)],
        (5, 4),
        {"axis": 0},
        version=7,
    ),
    *[
        one(
            "TopK",
            f"unsorted_{mode}",
            [(2, 9), np.array([4], np.int32)],
            [(2, 4), (2, 4)],
            {"axis": 1, "mode": mode, "sort": "none"},
            version=7,
            precisions=("FP32", "I32"),
        )
        for mode in ("max", "min")
    ],
    one("TopK", "version6", [(2, 9), np.array([4], np.int32)], [(2, 4), (2, 4)], {"axis": 1, "sort": "value"}),
    one("OneHot", "one_element", [((1,), "I32")], (4,), {"depth": 4}, version=7),
    one(
        "ReduceMean",
        "integers_in_floats",
        [((2, 3), "I32"), np.array([1], np.int32)],
        (2, 1),
        {"keep_dims": 1},
        version=7,
    ),
    one("ReduceAnd", "integers", [((2, 3), "I32"), np.array([1], np.int32)], (2, 1), {}, version=7, precision="I32"),
    *[
        case
        for kind in ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare", "And", "Or")
        for case in _reduce(f"Reduce{kind}")
    ],
    _resample("nearest", (1, 2, 8, 12), {**_NEAREST, "factor": 2}),
    _resample("nearest_smaller", (1, 2, 2, 3), {**_NEAREST, "factor": 0.5}),
    _resample("nearest_uneven", (1, 2, 6, 9), {**_NEAREST, "factor": 1.5}),
    _resample("nearest_volume", (1, 2, 4, 6, 8), {**_NEAREST, "factor": 2}, dims=(1, 2, 2, 3, 4)),
    _resample("linear", (1, 2, 8, 12), {**_LINEAR, "factor": 2}),
    _resample("linear_smaller", (1, 2, 2, 3), {**_LINEAR, "factor": 0.5}),
    _resample("linear_antialias", (1, 2, 2, 3), {**_LINEAR, "factor": 0.5, "antialias": 1}),
    _resample("linear_uneven", (1, 2, 6, 9), {**_LINEAR, "factor": 1.5}),
    _resample("linear_uneven_antialias", (1, 2, 3, 4), {**_LINEAR, "antialias": 1, "factor": 0.75}),
    _resample("version2", (1, 2, 8, 12), {**_NEAREST, "factor": 2}, version=2, data_element="resample_data"),
    one(
        "Interp",
        "align",
        (1, 2, 4, 6),
        (1, 2, 8, 12),
        {"pad_beg": 0, "pad_end": 0, "align_corners": 1, "height": 8, "width": 12},
    ),
    one(
        "Interp",
        "no_align",
        (1, 2, 4, 6),
        (1, 2, 8, 12),
        {"pad_beg": 0, "pad_end": 0, "align_corners": 0, "height": 8, "width": 12},
    ),
    one(
        "Interp",
        "smaller",
        (1, 2, 9, 7),
        (1, 2, 4, 3),
        {"pad_beg": 0, "pad_end": 0, "align_corners": 1, "height": 4, "width": 3},
    ),
    one(
        "Interp",
        "smaller_no_align",
        (1, 2, 9, 7),
        (1, 2, 4, 3),
        {"pad_beg": 0, "pad_end": 0, "align_corners": 0, "height": 4, "width": 3},
    ),
    one("Interp", "one", (1, 2, 1, 1), (1, 2, 5, 4), {"pad_beg": 0, "pad_end": 0, "height": 5, "width": 4}),
    one(
        "Interp",
        "version2",
        (1, 2, 4, 6),
        (1, 2, 7, 11),
        {"pad_beg": 0, "pad_end": 0, "zoom_factor": 2, "shrink_factor": 1},
        version=2,
        data_element="interp_data",
    ),
    one("Gather", "rows", [(5, 3), ((4,), "I32")], (4, 3), {"axis": 0}, feeds={"in1": [4, 0, 2, 2]}, version=7),
    one("Gather", "constant", [(5, 3), _ints(1, 0)], (5, 2), {"axis": 1}, version=7),
    one(
        "Gather",
        "negative_axis",
        [(2, 5, 3), ((2, 2), "I32")],
        (2, 5, 2, 2),
        {"axis": -1},
        feeds={"in1": [2, 0, 1, 1]},
        version=7,
    ),
    one(
        "Gather",
        "of_a_table",
        [random(3, 6, 4), ((1, 3), "I32")],
        (1, 3, 4),
        {"axis": 0},
        feeds={"in1": [5, 0, 2]},
        version=7,
    ),
    one("Gather", "float_indices", [(5, 3), (3,)], (3, 3), {"axis": 0}, feeds={"in1": [4, 0, 2]}, version=6),
    _topk("greatest", (2, 8), (2, 3), 3, {"axis": 1, "mode": "max", "sort": "value"}),
    _topk("least", (2, 8), (2, 3), 3, {"axis": 1, "mode": "min", "sort": "value"}),
    _topk("by_index", (2, 8), (2, 3), 3, {"axis": -1, "mode": "max", "sort": "index"}),
    _topk("channels", (1, 6, 2, 3), (1, 2, 2, 3), 2, {"axis": 1, "mode": "max", "sort": "value"}),
    _topk("one", (1, 6, 2, 3), (1, 1, 2, 3), 1, {"axis": 1, "mode": "max", "sort": "value"}),
    one("ArgMax", "axis", _D, (1, 1, 4, 5), {"axis": 1, "top_k": 1, "out_max_val": 0}),
    one("ArgMax", "axis_values", _D, (1, 2, 4, 5), {"axis": 1, "top_k": 2, "out_max_val": 1}),
    one("ArgMax", "images", (2, 3, 2, 2), (2, 1, 2, 1), {"top_k": 2, "out_max_val": 0}),
    one("ArgMax", "images_and_values", (2, 3, 2, 2), (2, 2, 2, 1), {"top_k": 2, "out_max_val": 1}),
    one("ArgMax", "last_axis", (1, 2, 3, 6), (1, 2, 3, 2), {"axis": 3, "top_k": 2, "out_max_val": 0}),
    one("OneHot", "last", [((3,), "I32")], (3, 4), {"depth": 4, "axis": -1}, feeds={"in0": [0, 3, 1]}, version=7),
    one(
        "OneHot",
        "values",
        [((2, 2), "I32")],
        (2, 2, 3),
        {"depth": 3, "on_value": 5, "off_value": -1, "axis": -1},
        feeds={"in0": [0, 2, 1, 1]},
        version=7,
    ),
    one("OneHot", "first", [((3,), "I32")], (4, 3), {"depth": 4, "axis": 0}, feeds={"in0": [0, 3, 1]}, version=7),
    one("OneHot", "beyond", [((3,), "I32")], (3, 2), {"depth": 2, "axis": 1}, feeds={"in0": [0, 3, 1]}, version=7),
    one(
        "Unique",
        "sorted",
        (7,),
        [(7,), (7,), (7,)],
        {"sorted": "true", "return_inverse": "true", "return_counts": "true"},
        feeds=_UNIQUE,
    ),
    one(
        "Unique",
        "unsorted",
        (7,),
        [(7,), (7,), (7,)],
        {"sorted": "false", "return_inverse": "true", "return_counts": "true"},
        feeds=_UNIQUE,
    ),
    one(
        "Unique",
        "inverse",
        (7,),
        [(7,), (7,)],
        {"sorted": "true", "return_inverse": "true", "return_counts": "false"},
        feeds=_UNIQUE,
    ),
    one(
        "Unique",
        "elements",
        (7,),
        (7,),
        {"sorted": "true", "return_inverse": "false", "return_counts": "false"},
        feeds=_UNIQUE,
    ),
    one(
        "Bucketize",
        "right",
        [(1, 6), np.array([0.1, 0.5, 0.9], np.float32)],
        (1, 6),
        {"with_right_bound": "true"},
        version=7,
        precisions=("I32",),
        feeds={"in0": [0, 0.1, 0.3, 0.5, 0.9, 2]},
    ),
    one(
        "Bucketize",
        "left",
        [(1, 6), np.array([0.1, 0.5, 0.9], np.float32)],
        (1, 6),
        {"with_right_bound": "false"},
        version=7,
        precisions=("I32",),
        feeds={"in0": [0, 0.1, 0.3, 0.5, 0.9, 2]},
    ),
    one(
        "Bucketize",
        "rows",
        [(2, 3), np.array([0.0], np.float32)],
        (2, 3),
        {"with_right_bound": "true"},
        version=7,
        precisions=("I32",),
    ),
    one(
        "Bucketize",
        "two",
        [(2, 3), np.array([-0.5, 0.5], np.float32)],
        (2, 3),
        {"with_right_bound": "false"},
        version=7,
        precisions=("I32",),
    ),
    one("CTCGreedyDecoder", "merged", [(6, 1, 4), np.ones((6, 1), np.float32)], (1, 6, 1, 1), {"ctc_merge_repeated": 1}),
    one("CTCGreedyDecoder", "all", [(6, 1, 4), np.ones((6, 1), np.float32)], (1, 6, 1, 1), {"ctc_merge_repeated": 0}),
    one(
        "CTCGreedyDecoder",
        "masked",
        [(6, 1, 4), np.array([[1], [1], [1], [1], [0], [0]], np.float32)],
        (1, 6, 1, 1),
        {"ctc_merge_repeated": 1},
    ),
    one(
        "CTCGreedyDecoder",
        "batch",
        [(5, 2, 3), np.array([[0, 0], [1, 1], [1, 1], [1, 1], [1, 1]], np.float32)],
        (2, 5, 1, 1),
        {"ctc_merge_repeated": 1},
    ),
    one(
        "GatherTree",
        "plain",
        [((3, 1, 2), "I32"), ((3, 1, 2), "I32"), ((1,), "I32"), _ints(10)],
        (3, 1, 2),
        {},
        version=7,
        precisions=("I32",),
        feeds={"in0": [1, 2, 3, 4, 5, 6], "in1": [0, 0, 0, 1, 1, 0], "in2": [3]},
    ),
    one(
        "GatherTree",
        "short",
        [((3, 1, 2), "I32"), ((3, 1, 2), "I32"), ((1,), "I32"), _ints(9)],
        (3, 1, 2),
        {},
        version=7,
        precisions=("I32",),
        feeds={"in0": [1, 2, 3, 4, 5, 6], "in1": [0, 0, 0, 1, 1, 0], "in2": [2]},
    ),
    one(
        "GatherTree",
        "floats",
        [(3, 1, 2), (3, 1, 2), (1,), np.array([10], np.float32)],
        (3, 1, 2),
        {},
        version=7,
        feeds={"in0": [1, 2, 3, 4, 5, 6], "in1": [0, 0, 0, 1, 1, 0], "in2": [3]},
    ),
    one(
        "GatherTree",
        "batch",
        [((2, 2, 2), "I32"), ((2, 2, 2), "I32"), ((2,), "I32"), _ints(7)],
        (2, 2, 2),
        {},
        version=7,
        precisions=("I32",),
        feeds={"in0": [1, 2, 3, 4, 5, 6, 1, 2], "in1": [0, 0, 0, 0, 1, 0, 1, 1], "in2": [2, 2]},
    ),
    one("Convert", "integers", [((2, 3), "I32")], (2, 3), {"precision": "FP32"}, version=7),
    one(
        "Convert",
        "floats",
        (2, 3),
        (2, 3),
        {"precision": "I32"},
        version=7,
        precisions=("I32",),
        feeds={"in0": [1.5, -1.5, 2.7, -2.2, 0, 3]},
    ),
    one("Convert", "five_dimensions", [((1, 1, 1, 2, 3), "I32")], (1, 1, 1, 2, 3), {"precision": "FP32"}, version=7),
    one("Convert", "bytes", [((2, 3), "U8")], (2, 3), {"precision": "FP32"}, version=7),
    *[
        one(kind, "plain", [(5, 3), (4,), (4,)], (4, 3), {}, version=7, feeds={"in1": [0, 4, 2, 2], "in2": [0, 0, 1, 2]})
        for kind in ("SparseSegmentSum", "SparseSegmentMean", "SparseSegmentSqrtN")
    ],
    *[
        one(
            kind,
            "negative_segments",
            [(5, 3), (4,), (4,)],
            (4, 3),
            {},
            version=7,
            feeds={"in1": [0, 4, 2, 1], "in2": [-1, -1, 0, 2]},
        )
        for kind in ("SparseSegmentSum", "SparseSegmentMean", "SparseSegmentSqrtN")
    ],
    *[
        one(kind, "gap", [(5, 3), (4,), (4,)], (4, 3), {}, version=7, feeds={"in1": [0, 4, 2, 1], "in2": [0, 0, 2, 2]})
        for kind in ("SparseSegmentSum", "SparseSegmentMean", "SparseSegmentSqrtN")
    ],
    *[
        one(
            kind,
            "one_segment",
            [(5, 3), (4,), (4,)],
            (4, 3),
            {},
            version=7,
            feeds={"in1": [0, 4, 2, 1], "in2": [0, 0, 0, 0]},
        )
        for kind in ("SparseSegmentSum", "SparseSegmentMean", "SparseSegmentSqrtN")
    ],
    *[
        one(kind, "vectors", [(5, 2, 2), (3,), (3,)], (3, 2, 2), {}, version=7, feeds={"in1": [0, 4, 2], "in2": [0, 1, 1]})
        for kind in ("SparseSegmentSum", "SparseSegmentMean", "SparseSegmentSqrtN")
    ],
    *[
        one("SparseToDense", name, inputs, out, {}, version=7, precision="I32", precisions=("I32",), feeds={"in0": places})
        for name, inputs, out, places in (
            ("plain", [((3, 2), "I32"), _ints(3, 4), ((3,), "I32")], (3, 4), [0, 1, 1, 0, 2, 3]),
            ("default", [((3, 2), "I32"), _ints(3, 4), ((3,), "I32"), np.int32(7)], (3, 4), [0, 1, 1, 0, 2, 3]),
            ("row", [((2, 2), "I32"), _ints(2, 5), ((2,), "I32")], (2, 5), [0, 4, 1, 0]),
            ("three", [((2, 3), "I32"), _ints(2, 2, 2), ((2,), "I32")], (2, 2, 2), [0, 1, 1, 1, 0, 0]),
        )
    ],
]
