"""Elementwise logic of booleans and bits."""

from __future__ import annotations

from functools import partial

import ml_dtypes
import numpy as np

from tests.conformance.operation_models import decided, dynamic, layer_case, replaced, static
from tests.conformance.operations.cases.arithmetic import INTEGERS, NO_PDPD, PDPD, pdpd

F16, BF16, F32, F64, I32, U64 = np.float16, ml_dtypes.bfloat16, np.float32, np.float64, np.int32, np.uint64
NAN, INF = np.nan, np.inf
_NONE = {"auto_broadcast": "NONE"}
_P, _Q = np.array([[True, True], [False, False]]), np.array([[True, False], [True, False]])


def _logic():
    for operation, make, version in (
        ("LogicalAnd", "opset1.logical_and", "opset1"),
        ("LogicalOr", "opset1.logical_or", "opset1"),
        ("LogicalXor", "opset1.logical_xor", "opset2"),
    ):
        case = partial(layer_case, operation, version, make)
        yield case("truth-table", [static(_P), static(_Q)])
        yield case("broadcast", [dynamic(_P[:, :1], _P[:1]), dynamic(_Q[0], _Q[1])])
        yield case("none", [static(_P), static(_Q)], _NONE)
        yield case("scalars", [static(np.array(True)), static(np.array(False))])
        yield case("empty", [dynamic(_P[:0]), dynamic(_Q[:0])])
        inputs = [static(_P), static(_Q[1])]
        yield layer_case(operation, version, f"opset1.{operation}", "pdpd", inputs, pdpd(0), **NO_PDPD)
    case = partial(layer_case, "LogicalNot", "opset1", "logical_not")
    yield case("matrix", [static(_P)])
    yield case("scalar", [static(np.array(True))])
    yield case("dynamic", [dynamic(_P, _P[:1])])
    yield case("empty", [dynamic(_P[:0])])
    yield case("constant", [_P])
    yield case("float32", [static(np.array([0, -0.0, 0.3, NAN], F32))])
    yield case("uint8", [static(np.array([0, 1, 2, 255], np.uint8))])
    for name, inputs, attributes in (
        ("truth-table", [static(_P), static(_Q)], {}),
        ("broadcast", [static(_P[:, :1]), static(_Q[0])], {}),
        ("dynamic", [dynamic(_P), dynamic(_Q[:1])], {}),
        ("none", [static(_P), static(_Q)], _NONE),
    ):
        later = layer_case("Xor", "opset1", "logical_xor", name, inputs, attributes)
        yield replaced(later, 'type="LogicalXor" version="opset2"', 'type="Xor" version="opset1"')


def _bits():
    a, b = np.array([0, 1, -1, 100, -100, 127, -128]), np.array([5, 3, 7, 25, 99, -1, 1])
    x, y = np.arange(6, dtype=I32).reshape(2, 3), np.array([1, 6], I32)
    for operation, make in (("BitwiseAnd", "bitwise_and"), ("BitwiseOr", "bitwise_or"), ("BitwiseXor", "bitwise_xor")):
        case = partial(layer_case, operation, "opset13", make)
        for dtype in INTEGERS:
            yield case(np.dtype(dtype).name, [static(a.astype(dtype)), static(b.astype(dtype))])
        yield case("boolean", [static(_P), static(_Q)])
        yield case("broadcast", [dynamic(a.reshape(7, 1), a.reshape(1, 7)), dynamic(b[:3], b[:1])])
        yield case("none", [static(a), static(b)], _NONE)
        neither = decided("expected", f"{PDPD}, and there is no reference kernel", getattr(np, make)(x, y[:, None]))
        yield layer_case(operation, "opset13", operation, "pdpd", [static(x), static(y)], pdpd(0), **neither)
        yield case("empty", [dynamic(a[:0]), dynamic(b[:1])])
    case = partial(layer_case, "BitwiseNot", "opset13", "bitwise_not")
    for dtype in (*INTEGERS, np.bool_):
        yield case(np.dtype(dtype).name, [static(a.astype(dtype))])
    yield case("dynamic", [dynamic(a.reshape(7, 1), a[:0, None])])
    yield case("scalar", [static(np.array(5, I32))])
    shifts = np.array([0, 1, 2, 3, 7, 6, 1])
    reason = "the CPU plugin shifts u32 and u64 as signed numbers; there is no reference kernel"
    for operation, make in (("BitwiseLeftShift", "bitwise_left_shift"), ("BitwiseRightShift", "bitwise_right_shift")):
        case = partial(layer_case, operation, "opset15", make)
        for dtype in INTEGERS:
            values, by = a.astype(dtype), shifts.astype(dtype)
            signed = "Right" in operation and dtype in (np.uint32, np.uint64)
            settings = decided("expected", reason, values >> by) if signed else {}
            yield case(np.dtype(dtype).name, [static(values), static(by)], **settings)
            if np.dtype(dtype).itemsize <= 4:  # the plugin shifts those of 64 bits as integers of 32 bits
                most = [7, 8, 15, 16, 31, 32, 33, 40, 100, *([-1, -31, -32] if np.iinfo(dtype).min else [])]
                beyond = np.array(most, dtype)
                for name, kind in (("beyond", static), ("constant-beyond", lambda array: array)):
                    yield case(f"{np.dtype(dtype).name}-{name}", [static(np.full(len(most), 77, dtype)), kind(beyond)])
        data = dynamic(np.array([[5], [-9]], I32), np.array([[-(2**31)]], I32))
        yield case("broadcast", [data, dynamic(np.array([1, 30], I32), np.array([31, 0], I32))])
        yield case("constant", [static(np.array([[5], [-9]])), np.array(2)])
        yield case("none", [static(np.array([5, -9])), static(np.array([1, 2]))], _NONE)
        yield layer_case(operation, "opset15", operation, "pdpd", [static(x), static(y)], pdpd(0), **NO_PDPD)


CASES = [*_logic(), *_bits()]
