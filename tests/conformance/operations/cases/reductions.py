"""Reductions."""

from __future__ import annotations

from functools import partial

import ml_dtypes
import numpy as np

from tests.conformance.operation_models import decided, dynamic, dynamics, layer_case, static, unranked

BF16, F16, F32, F64, I8, I32, I64, U8, U32, U64 = (
    ml_dtypes.bfloat16, np.float16, np.float32, np.float64, np.int8, np.int32, np.int64, np.uint8, np.uint32, np.uint64,
)  # fmt: skip
INF = np.inf
INTEGERS = (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64)
_REDUCTIONS = {
    "ReduceSum": partial(layer_case, "ReduceSum", "opset1", "reduce_sum"),
    "ReduceMean": partial(layer_case, "ReduceMean", "opset1", "reduce_mean"),
    "ReduceProd": partial(layer_case, "ReduceProd", "opset1", "reduce_prod"),
    "ReduceMax": partial(layer_case, "ReduceMax", "opset1", "reduce_max"),
    "ReduceMin": partial(layer_case, "ReduceMin", "opset1", "reduce_min"),
    "ReduceL1": partial(layer_case, "ReduceL1", "opset4", "reduce_l1"),
    "ReduceL2": partial(layer_case, "ReduceL2", "opset4", "reduce_l2"),
}
_LOGICAL = {
    "ReduceLogicalAnd": partial(layer_case, "ReduceLogicalAnd", "opset1", "reduce_logical_and"),
    "ReduceLogicalOr": partial(layer_case, "ReduceLogicalOr", "opset1", "reduce_logical_or"),
}
_X = ((np.arange(24, dtype=F32).reshape(2, 3, 4) * 7 % 11) - 5) / 4
_B = (np.arange(24).reshape(2, 3, 4) % 5 > 0) ^ (np.arange(2).reshape(2, 1, 1) > 0)
_RANK = decided("evaluate", "the CPU plugin rejects a dynamic rank, and no axes")
_FINITE = decided("evaluate", "the CPU plugin starts from the largest finite number")


def _axes(*values, dtype=np.int64):
    return np.array(values, dtype)


def _axes_and_ranks(operation, case):
    """Axes of every kind, constant and at run time, with and without keep_dims."""
    x = _B if operation in _LOGICAL else _X
    finite = _FINITE if operation == "ReduceMin" else {}
    constant = "the CPU plugin requires constant axes of logical reductions"
    run_time = decided("evaluate", constant) if operation in _LOGICAL else {}
    for keep in (False, True):
        attributes, suffix = {"keep_dims": keep}, f"keep-{keep}".lower()
        for name, axes in (
            ("one", _axes(1)), ("negative", _axes(-1, 0)), ("all", _axes(0, 1, 2)), ("scalar", np.array(-2)),
            ("int32", _axes(2, dtype=I32)), ("uint8", _axes(1, 2, dtype=U8)), ("unordered", _axes(2, 0)),
        ):  # fmt: skip
            yield case(f"{name}-{suffix}", [static(x), axes], attributes)
        yield case(f"empty-axes-{suffix}", [static(x), _axes()], attributes, **({} if keep else _RANK))
        yield case(f"dynamic-{suffix}", [dynamic(x, x[:1, :2], x[:, :0]), _axes(1, -1)], attributes, **finite)
        axes = dynamic(_axes(1, -2), _axes(1, 1))
        yield case(f"duplicate-axes-{suffix}", [dynamic(x, x[:, :0]), axes], attributes, **_RANK)
    kept, gone = {"keep_dims": True}, {"keep_dims": False}
    yield case("run-time", [static(x, x), static(_axes(-1), _axes(0))], kept, **run_time)
    yield case("run-time-some", [static(x, x), static(_axes(-1, 1), _axes(0, 1))], gone, **_RANK)
    yield case("run-time-any", [static(x, x, x), dynamic(_axes(-1), _axes(0, 1, 2), _axes())], gone, **_RANK)
    yield case("run-time-scalar", [static(x, x), static(np.array(1), np.array(-3))], gone, **run_time)
    yield case("run-time-int32", [static(x), static(_axes(0, 2, dtype=I32))], kept, **run_time)
    yield case("dynamic-rank", [unranked(x, x[0]), _axes(-1)], **_RANK)
    yield case("dynamic-rank-run-time", [unranked(x, x[0]), dynamic(_axes(-1, 0), _axes(-2))], kept, **_RANK)
    yield case("scalar-data", [static(x[0, 0, 0]), _axes()])
    yield case("rank-1", [static(x[0, 0]), _axes(0)])


def _logical(case):
    yield case("all-equal", [static(np.array([[True, True], [False, False]])), _axes(1)])
    yield case("some-rows", [dynamic(_B[0], np.zeros((0, 4), bool), dims=[-1, 4]), _axes(1)])
    yield case("nothing", [dynamic(np.zeros((2, 0), bool)), _axes(1)])
    yield case("no-rows", [dynamic(np.zeros((0, 2), bool)), _axes(1)])


def _numbers(operation, case):
    for dtype in (*INTEGERS, F16, F64, BF16):
        values = np.array([[3, 1, 2], [2, 5, 2], [1, 1, 1]])
        if np.dtype(dtype).kind == "i":
            values = values * np.array([[1, -1, -1], [-1, -1, -1], [1, 1, 1]])
        name, x = np.dtype(dtype).name, static(values.astype(dtype))
        yield case(name, [x, _axes(1)])
        yield case(f"{name}-all", [x, _axes(0, 1)])
    finite = _FINITE if operation == "ReduceMin" else {}
    yield case("nothing", [dynamic(np.zeros((2, 0), F32)), _axes(1)], **finite)
    yield case("nothing-int32", [dynamic(np.zeros((2, 0), I32)), _axes(1)])
    yield case("no-rows", [dynamic(np.zeros((0, 2), F32)), _axes(1)])


def _is_lowest(ops, x, axes):
    """Return whether all elements of a row are -inf, as in the handling of attention masks."""
    return ops.equal(ops.reduce_max(x, axes), ops.convert(ops.constant(np.float32(-INF)), "bf16"))


def _ends_of_ranges():
    maximum, minimum = _REDUCTIONS["ReduceMax"], _REDUCTIONS["ReduceMin"]
    values = [[-INF, -INF], [-INF, 1], [INF, 1]]
    yield maximum("infinities", [static(np.array(values, F32)), _axes(1)])
    yield maximum("infinities-f16", [static(np.array(values, F16)), _axes(1)])
    kept = "the CPU plugin keeps float32 between the layers, the reference kernels round to bf16"
    inputs = [static(np.array(values[:2], BF16)), _axes(1)]
    yield layer_case("ReduceMax", "opset1", _is_lowest, "infinities-bf16-compared", inputs, **decided("cpu", kept))
    yield minimum("infinities", [static(np.array([[-INF, INF], [-INF, 1], [INF, 1]], F32)), _axes(1)])
    yield minimum("infinities-alone", [static(np.array([[INF, INF]], F32)), _axes(1)], **_FINITE)
    yield _REDUCTIONS["ReduceMean"]("truncates", [static(np.array([[-3, -4], [3, 4]], I32)), _axes(1)])
    fewer = decided("evaluate", "the CPU plugin reduces integers in float32 or in 32 bits")
    for operation, dtype, values in (
        ("ReduceSum", I32, [[2**30, 7], [16777217, 2]]),
        ("ReduceSum", I64, [[2**40, 7], [2**53 + 1, 2]]),
        ("ReduceSum", U64, [[2**63, 7], [2**53 + 1, 2]]),
        ("ReduceProd", I64, [[2**20, 2**20 + 1], [2**53 + 1, 1]]),
        ("ReduceMax", I32, [[2**30, 2**30 + 7], [16777217, 1]]),
        ("ReduceMax", I64, [[2**40 + 1, 2**40], [-(2**62), -(2**62) - 1]]),
        ("ReduceMax", U64, [[2**63 + 1, 5], [2**64 - 1, 2**63]]),
        ("ReduceMin", U64, [[2**63 + 1, 5], [2**64 - 1, 2**63]]),
        ("ReduceMin", U32, [[2**31 + 1, 2**31], [2**32 - 1, 0]]),
        ("ReduceMean", I64, [[2**40 + 1, 2**40 + 3], [-7, 2]]),
        ("ReduceMean", U64, [[2**62 + 1, 2**62 + 4], [2**63 + 7, 2]]),
        ("ReduceMean", I32, [[2**24 + 1, 2**24 + 4], [-7, 2]]),
        ("ReduceL1", I32, [[2**24 + 1, -(2**24) - 4], [-7, 2]]),
        ("ReduceL1", I64, [[2**40, -7], [-(2**53) - 1, 2]]),
    ):
        yield _REDUCTIONS[operation](f"{np.dtype(dtype).name}-large", [static(np.array(values, dtype)), _axes(1)], **fewer)
    for operation in ("ReduceSum", "ReduceMean", "ReduceL1"):
        inputs = [static(np.array([[2**31 - 1, 2**31 - 1, 7], [-(2**31), -(2**31), 5]], I32)), _axes(1)]
        yield _REDUCTIONS[operation]("int32-wraps", inputs, **fewer)
    yield _REDUCTIONS["ReduceProd"]("int32-wraps", [static(np.array([[-(2**16), 3, 2**15], [7, 2**30, 1]], I32)), _axes(1)])
    for dtype in (I64, U64):
        for keep in (False, True):
            runs = [[np.arange(1, 7, dtype=dtype).reshape(2, 1, 3), a] for a in (_axes(), _axes(1), _axes(-1, 0))]
            name = f"{np.dtype(dtype).name}-run-time-keep-{keep}".lower()
            yield _REDUCTIONS["ReduceProd"](name, dynamics(*runs), {"keep_dims": keep}, **_RANK)
    for operation in ("ReduceSum", "ReduceProd"):
        for dtype in (I64, U64, F32):
            yield _REDUCTIONS[operation](f"{np.dtype(dtype).name}-of-none", [static(np.zeros(0, dtype)), _axes(0)])
            nothing = static(np.zeros((2, 1, 0), dtype))
            yield _REDUCTIONS[operation](f"{np.dtype(dtype).name}-to-none", [nothing, _axes(1)])
    for operation in ("ReduceSum", "ReduceL1"):
        for dtype, values in ((U8, [[200, 100, 3], [1, 2, 3]]), (I8, [[-100, -100, -3], [100, 20, 30]])):
            inputs = [static(np.array(values, dtype)), _axes(1)]
            yield _REDUCTIONS[operation](f"{np.dtype(dtype).name}-saturates", inputs)
    for dtype, values in (
        (I8, [[5, 5, 5, 1], [-12, 11, 1, 1], [2, -4, 4, 4], [-3, 3, 14, 1], [100, 100, 100, 2]]),
        (U8, [[5, 5, 10, 1], [16, 16, 1, 1], [15, 17, 1, 1], [31, 32, 33, 1], [0, 99, 9, 9]]),
    ):
        inputs = [static(np.array(values, dtype)), _axes(1)]
        yield _REDUCTIONS["ReduceProd"](f"{np.dtype(dtype).name}-saturates", inputs)
    for dtype in (np.int16, np.uint16):
        inputs = [static(np.array([[300, 300, 7], [181, 181, 1], [2, 3, 4]], dtype)), _axes(1)]
        yield _REDUCTIONS["ReduceProd"](f"{np.dtype(dtype).name}-wraps", inputs)


CASES = [
    *(found for row in (_REDUCTIONS | _LOGICAL).items() for found in _axes_and_ranks(*row)),
    *(found for case in _LOGICAL.values() for found in _logical(case)),
    *(found for row in _REDUCTIONS.items() for found in _numbers(*row)),
    *_ends_of_ranges(),
]
