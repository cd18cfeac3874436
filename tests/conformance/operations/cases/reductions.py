"""Reductions."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from tests.conformance.case import Case
from tests.conformance.operation_models import case, decided

INF = np.inf
INTEGERS = (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64)
_REDUCTIONS = {
    "ReduceSum": "opset1.reduce_sum",
    "ReduceMean": "opset1.reduce_mean",
    "ReduceProd": "opset1.reduce_prod",
    "ReduceMax": "opset1.reduce_max",
    "ReduceMin": "opset1.reduce_min",
    "ReduceL1": "opset4.reduce_l1",
    "ReduceL2": "opset4.reduce_l2",
}
_LOGICAL = {"ReduceLogicalAnd": "opset1.reduce_logical_and", "ReduceLogicalOr": "opset1.reduce_logical_or"}
_X = ((np.arange(24, dtype=np.float32).reshape(2, 3, 4) * 7 % 11) - 5) / 4
_B = (np.arange(24).reshape(2, 3, 4) % 5 > 0) ^ (np.arange(2).reshape(2, 1, 1) > 0)
_RANK = "the CPU plugin refuses what has a rank of run time, or no axes"
_AXES = "the CPU plugin wants the axes of logical reductions constant"
_FINITE = "the CPU plugin starts from the largest finite number"
_CASES: list[Case] = []


def _axes(*values, dtype=np.int64):
    return np.array(values, dtype)


for _operation, _make in (_REDUCTIONS | _LOGICAL).items():
    _opset, _x = _make.partition(".")[0], _B if _operation in _LOGICAL else _X

    def _add(name, *runs, constants=(1,), options=None, operation=_operation, opset=_opset, make=_make, **more):
        _CASES.append(case(operation, opset, name, make, *runs, constants=constants, options=options, **more))

    for _name, _a in (
        ("one", _axes(1)), ("negative", _axes(-1, 0)), ("all", _axes(0, 1, 2)), ("scalar", np.array(-2)),
        ("int32", _axes(2, dtype=np.int32)), ("uint8", _axes(1, 2, dtype=np.uint8)), ("unordered", _axes(2, 0)),
    ):  # fmt: skip
        for _keep in (False, True):
            _add(f"{_name}-keep-{_keep}".lower(), [_x, _a], keep_dims=_keep)
    for _keep in (False, True):
        _add(f"empty-axes-keep-{_keep}".lower(), [_x, _axes()], keep_dims=_keep,
             options=None if _keep else decided("evaluate", _RANK))  # fmt: skip
        _add(f"dynamic-keep-{_keep}".lower(), [_x, _axes(1, -1)], [_x[:1, :2], _axes()], [_x[:, :0], _axes()], dynamic=True,
             keep_dims=_keep, options=decided("evaluate", _FINITE) if _operation == "ReduceMin" else None)  # fmt: skip
        _add(f"duplicate-axes-keep-{_keep}".lower(), [_x, _axes(1, -2)], [_x[:, :0], _axes(1, 1)], constants=(),
             dynamic=True, keep_dims=_keep, options=decided("evaluate", _RANK))  # fmt: skip
    _run_time = decided("evaluate", _AXES) if _operation in _LOGICAL else None
    _add("run-time", [_x, _axes(-1)], [_x, _axes(0)], constants=(), keep_dims=True, options=_run_time)
    _add("run-time-some", [_x, _axes(-1, 1)], [_x, _axes(0, 1)], constants=(), keep_dims=False,
         options=decided("evaluate", _RANK))  # fmt: skip
    _add("run-time-any", [_x, _axes(-1)], [_x, _axes(0, 1, 2)], [_x, _axes()], constants=(), keep_dims=False,
         shapes=[[2, 3, 4], [-1]], options=decided("evaluate", _RANK))  # fmt: skip
    _add("run-time-scalar", [_x, np.array(1)], [_x, np.array(-3)], constants=(), keep_dims=False, options=_run_time)
    _add("run-time-int32", [_x, _axes(0, 2, dtype=np.int32)], constants=(), keep_dims=True, options=_run_time)
    _add("dynamic-rank", [_x, _axes(-1)], [_x[0], _axes(-1)], shapes=[None, None], options=decided("evaluate", _RANK))
    _add("dynamic-rank-run-time", [_x, _axes(-1, 0)], [_x[0], _axes(-2)], constants=(), shapes=[None, [-1]], keep_dims=True,
         options=decided("evaluate", _RANK))  # fmt: skip
    _add("scalar-data", [_x[0, 0, 0], _axes()])
    _add("rank-1", [_x[0, 0], _axes(0)])

for _operation, _make in _LOGICAL.items():
    _opset = "opset1"
    _CASES += [
        case(_operation, _opset, "all-equal", _make, [np.array([[True, True], [False, False]]), _axes(1)], constants=[1]),
        case(
            _operation,
            _opset,
            "some-rows",
            _make,
            [_B[0], _axes(1)],
            [np.zeros((0, 4), np.bool_), _axes(1)],
            shapes=[[-1, 4], None],
            constants=[1],
        ),
        case(_operation, _opset, "nothing", _make, [np.zeros((2, 0), np.bool_), _axes(1)], dynamic=True, constants=[1]),
        case(_operation, _opset, "no-rows", _make, [np.zeros((0, 2), np.bool_), _axes(1)], dynamic=True, constants=[1]),
    ]
for _operation, _make in _REDUCTIONS.items():
    _opset = _make.partition(".")[0]
    for _type in (*INTEGERS, np.float16, np.float64, ml_dtypes.bfloat16):
        _values = np.array([[3, 1, 2], [2, 5, 2], [1, 1, 1]])
        if np.dtype(_type).kind == "i":
            _values = _values * np.array([[1, -1, -1], [-1, -1, -1], [1, 1, 1]])
        _name = np.dtype(_type).name
        _CASES.append(case(_operation, _opset, _name, _make, [_values.astype(_type), _axes(1)], constants=[1]))
        _CASES.append(case(_operation, _opset, _name + "-all", _make, [_values.astype(_type), _axes(0, 1)], constants=[1]))
    if _operation != "ReduceMin":
        _CASES.append(case(_operation, _opset, "nothing", _make, [np.zeros((2, 0), np.float32), _axes(1)], dynamic=True,
                           constants=[1]))  # fmt: skip
    _CASES += [
        case(
            _operation, _opset, "nothing-int32", _make, [np.zeros((2, 0), np.int32), _axes(1)], dynamic=True, constants=[1]
        ),
        case(_operation, _opset, "no-rows", _make, [np.zeros((0, 2), np.float32), _axes(1)], dynamic=True, constants=[1]),
    ]


def _is_lowest(x, axes):
    """Whether a row holds nothing but -inf, as masks of attention are asked."""
    from openvino import opset1

    return opset1.equal(opset1.reduce_max(x, axes), opset1.convert(opset1.constant(np.float32(-INF)), "bf16"))


_FEWER = "the CPU plugin reduces integers in float32 or in 32 bits"
_BIG = np.array([[2**30, 2**30 + 7], [16777217, 1]], np.int32)
_CASES += [
    case("ReduceMax", "opset1", "infinities", "opset1.reduce_max",
         [np.array([[-INF, -INF], [-INF, 1], [INF, 1]], np.float32), _axes(1)], constants=[1]),
    case("ReduceMax", "opset1", "infinities-f16", "opset1.reduce_max",
         [np.array([[-INF, -INF], [-INF, 1], [INF, 1]], np.float16), _axes(1)], constants=[1]),
    case("ReduceMax", "opset1", "infinities-bf16-compared", _is_lowest,
         [np.array([[-INF, -INF], [-INF, 1]], ml_dtypes.bfloat16), _axes(1)], constants=[1],
         options=decided("cpu", "the CPU plugin keeps float32 between the layers, the reference kernels round to bf16")),
    case("ReduceMin", "opset1", "infinities", "opset1.reduce_min",
         [np.array([[-INF, INF], [-INF, 1], [INF, 1]], np.float32), _axes(1)], constants=[1]),
    case("ReduceMin", "opset1", "infinities-alone", "opset1.reduce_min", [np.array([[INF, INF]], np.float32), _axes(1)],
         constants=[1], options=decided("evaluate", _FINITE)),
    case("ReduceMin", "opset1", "nothing", "opset1.reduce_min", [np.zeros((2, 0), np.float32), _axes(1)], dynamic=True,
         constants=[1], options=decided("evaluate", _FINITE)),
    case("ReduceMean", "opset1", "truncates", "opset1.reduce_mean", [np.array([[-3, -4], [3, 4]], np.int32), _axes(1)],
         constants=[1]),
]  # fmt: skip
for _operation, _type, _values in (
    ("ReduceSum", np.int32, [[2**30, 7], [16777217, 2]]),
    ("ReduceSum", np.int64, [[2**40, 7], [2**53 + 1, 2]]),
    ("ReduceSum", np.uint64, [[2**63, 7], [2**53 + 1, 2]]),
    ("ReduceProd", np.int64, [[2**20, 2**20 + 1], [2**53 + 1, 1]]),
    ("ReduceMax", np.int32, [[2**30, 2**30 + 7], [16777217, 1]]),
    ("ReduceMax", np.int64, [[2**40 + 1, 2**40], [-(2**62), -(2**62) - 1]]),
    ("ReduceMax", np.uint64, [[2**63 + 1, 5], [2**64 - 1, 2**63]]),
    ("ReduceMin", np.uint64, [[2**63 + 1, 5], [2**64 - 1, 2**63]]),
    ("ReduceMin", np.uint32, [[2**31 + 1, 2**31], [2**32 - 1, 0]]),
    ("ReduceMean", np.int64, [[2**40 + 1, 2**40 + 3], [-7, 2]]),
    ("ReduceMean", np.uint64, [[2**62 + 1, 2**62 + 4], [2**63 + 7, 2]]),
    ("ReduceL1", np.int64, [[2**40, -7], [-(2**53) - 1, 2]]),
):
    _CASES.append(case(_operation, _REDUCTIONS[_operation].partition(".")[0], f"{np.dtype(_type).name}-large",
                       _REDUCTIONS[_operation], [np.array(_values, _type), _axes(1)], constants=[1],
                       options=decided("evaluate", _FEWER)))  # fmt: skip
for _type in (np.int64, np.uint64):
    for _keep in (False, True):
        _runs = [[np.arange(1, 7, dtype=_type).reshape(2, 1, 3), a] for a in (_axes(), _axes(1), _axes(-1, 0))]
        _CASES.append(case("ReduceProd", "opset1", f"{np.dtype(_type).name}-run-time-keep-{_keep}".lower(),
                           "opset1.reduce_prod", *_runs, dynamic=True, keep_dims=_keep,
                           options=decided("evaluate", _RANK)))  # fmt: skip
for _operation in ("ReduceSum", "ReduceL1"):
    for _type, _values in ((np.uint8, [[200, 100, 3], [1, 2, 3]]), (np.int8, [[-100, -100, -3], [100, 20, 30]])):
        _CASES.append(case(_operation, _REDUCTIONS[_operation].partition(".")[0], f"{np.dtype(_type).name}-saturates",
                           _REDUCTIONS[_operation], [np.array(_values, _type), _axes(1)], constants=[1]))  # fmt: skip

CASES = _CASES
