"""Elementwise comparisons, Select, and classification of floats."""

from __future__ import annotations

from functools import partial

import ml_dtypes
import numpy as np

from tests.conformance.operation_models import decided, dynamic, layer_case, static, statics, unranked
from tests.conformance.operations.cases.arithmetic import INTEGERS, NO_PDPD, broadcasts, pdpd

F16, BF16, F32, F64, I32, U64 = np.float16, ml_dtypes.bfloat16, np.float32, np.float64, np.int32, np.uint64
NAN, INF = np.nan, np.inf
_NONE = {"auto_broadcast": "NONE"}


def _comparison(operation, make):
    case = partial(layer_case, operation, "opset1", make)
    a = np.array([1, 2, 3, -1, 0, -0.0, INF, -INF, INF], F32)
    b = np.array([1, 3, 2, -2, -0.0, 0, INF, INF, 1], F32)
    nans = [np.array([NAN, 1, NAN], F32), np.array([1, NAN, NAN], F32)]
    greater = decided("evaluate", "the CPU plugin treats NaN as greater than a number")
    exact = decided("evaluate", "the CPU plugin compares integers of 32 bits and more in float32 or in 32 bits")
    yield from broadcasts(operation, make)
    yield case("corners", [static(a), static(b)])
    yield case("nan", statics(nans), **(greater if "Greater" in operation else {}))
    yield case("constant", [dynamic(a.reshape(3, 3)), b[:3]])
    yield case("boolean", [static(np.array([[True], [False]])), static(np.array([True, False]))])
    large = [np.array([16777216, 2**31 - 1], I32), np.array([16777217, 2**31 - 2], I32)]
    yield case("int32-large", statics(large), **exact)
    large = [np.array([2**63, 5, 2**64 - 1], U64), np.array([5, 2**63 + 1, 2**64 - 1], U64)]
    yield case("uint64-large", statics(large), **exact)
    for dtype in (*INTEGERS, F16, F64, BF16):
        yield case(np.dtype(dtype).name, [static(np.array([1, 2, 3, 4], dtype)), static(np.array([1, 3, 2, 4], dtype))])


def _comparisons():
    yield from _comparison("Equal", "equal")
    yield from _comparison("NotEqual", "not_equal")
    yield from _comparison("Greater", "greater")
    yield from _comparison("GreaterEqual", "greater_equal")
    yield from _comparison("Less", "less")
    yield from _comparison("LessEqual", "less_equal")


def _selects():
    case = partial(layer_case, "Select", "opset1", "select")
    with_axis = partial(layer_case, "Select", "opset1", "Select")
    c = np.array([[True, False, True], [False, False, True]])
    x, y = np.arange(6, dtype=F32).reshape(2, 3), -np.arange(6, dtype=F32).reshape(2, 3) - 1
    for dtype in (*INTEGERS, F16, F32, F64, BF16, np.bool_):
        yield case(np.dtype(dtype).name, [static(c), static(np.abs(x).astype(dtype)), static(np.abs(y).astype(dtype))])
    yield case("broadcast", [static(c[:, :1]), static(x[0]), static(np.ones((4, 2, 1), F32))])
    yield case("broadcast-dynamic", [dynamic(c, c[:1]), static(F32(1), F32(7)), dynamic(y, y[:, :1])])
    yield case("none", [static(c), static(x), static(y)], _NONE)
    yield case("scalars", [static(np.array(True)), static(F32(1)), static(F32(2))])
    yield case("constant-branches", [static(c), F32(1), F32(NAN)])
    yield with_axis("pdpd-right", [static(c[0]), static(x), static(y[0])], pdpd(-1))
    yield with_axis("pdpd-front", [static(c[:, 0]), static(x), static(y[:, 0])], pdpd(0), **NO_PDPD)
    rank = decided("evaluate", "the CPU plugin does not support a Parameter of dynamic rank")
    yield case("dynamic-rank", [unranked(c, c[0]), unranked(x, F32(1)), unranked(y, y)], **rank)
    yield case("empty", [dynamic(c[:0]), dynamic(x[:0]), dynamic(y[:0])])
    large = [c[0], np.array([2**63 + 1, 1, 2**64 - 1], U64), np.zeros(3, U64)]
    yield case("uint64-large", statics(large), **decided("evaluate", "the CPU plugin computes 64-bit integers in 32 bits"))


def _kinds_of_floats():
    kinds = np.array([NAN, INF, -INF, 0, -1, 3e38, -0.0, 1e-37], F32)
    for operation, make, function in (
        ("IsNaN", "is_nan", np.isnan),
        ("IsInf", "is_inf", np.isinf),
        ("IsFinite", "is_finite", np.isfinite),
    ):
        case = partial(layer_case, operation, "opset10", make)
        yield case("f32", [static(kinds)])
        yield case("dynamic", [dynamic(kinds.reshape(2, 4), kinds[:0].reshape(0, 2))])
        yield case("f16", [static(kinds[:5].astype(F16))])
        yield case("bf16", [static(kinds[:5].astype(BF16))])
        yield case("scalar", [static(kinds[1])])
        clamped = decided("expected", "the CPU plugin turns infinite f64 into the largest f32", function(kinds.astype(F64)))
        yield case("f64", [static(kinds.astype(F64))], **clamped)
    for negative in (False, True):
        for positive in (False, True):
            attributes = {"attributes": {"detect_negative": negative, "detect_positive": positive}}
            name = f"negative-{negative}-positive-{positive}".lower()
            yield layer_case("IsInf", "opset10", "is_inf", name, [static(kinds)], attributes)


CASES = [*_comparisons(), *_selects(), *_kinds_of_floats()]
