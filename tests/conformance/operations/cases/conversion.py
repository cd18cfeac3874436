"""Conversions between element types, and quantization that stays in floats."""

from __future__ import annotations

from functools import partial

import ml_dtypes
import numpy as np

from tests.conformance.models import decided, dynamic, layer_case, static, statics, unranked

F16, BF16, F32, F64, U64 = np.float16, ml_dtypes.bfloat16, np.float32, np.float64, np.uint64
NAN, INF = np.nan, np.inf
TYPES = {
    "boolean": np.bool_,
    "i8": np.int8,
    "i16": np.int16,
    "i32": np.int32,
    "i64": np.int64,
    "u8": np.uint8,
    "u16": np.uint16,
    "u32": np.uint32,
    "u64": np.uint64,
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f32": np.float32,
    "f64": np.float64,
}

# -- Convert ----------------------------------------------------------------------------------------------------------

_FLOATS = np.array([0, -0.0, 0.5, -0.5, 1.5, -1.75, 2.5, 100.5, 127, -127.5, 1e-7], F64)


def _values(kind):
    if kind in ("f16", "bf16", "f32", "f64"):
        return _FLOATS.astype(TYPES[kind])
    if kind == "boolean":
        return np.array([True, False])
    info = np.iinfo(TYPES[kind])
    candidates = [0, 1, 2, 7, 100, 127, 128, 200, 255, 256, 300, 40000, 2**31 - 1, -1, -7, -128, -129, -300, -40000]
    return np.array([v for v in candidates if info.min <= v <= info.max], TYPES[kind])


def _convert(name, x, to, **settings):
    return layer_case("Convert", "opset1", "convert", name, [x], {"destination_type": to}, **settings)


def _converts():
    bounded = "the reference kernel bounds integers by the range of f16, the CPU plugin rounds them to infinity"
    saturates = "the CPU plugin bounds f64 by the integer type's range, and wraps floats of the other types"
    parted = {("i32", "f16"): decided("cpu", bounded), ("f64", "u8"): decided("evaluate", saturates)}
    for start in TYPES:
        for end in TYPES:
            yield _convert(f"{start}-{end}", static(_values(start)), end, **parted.get((start, end), {}))
    narrow = np.array([128, 200.5, 255.5, 256.5, 300, -129.5, -300, 40000, -40000], F64)
    for start in ("f16", "f32", "bf16", "f64"):
        for end in ("i8", "u8", "i16", "u16", "u32", "u64"):
            x = static(narrow[: 7 if "16" in end else 9].astype(TYPES[start]))
            settings = decided("evaluate", saturates) if start == "f64" else {}
            yield _convert(f"{start}-{end}-wraps", x, end, **settings)
    fewer = decided("evaluate", "the CPU plugin converts 64-bit integers as 32-bit ones")
    for start, end, array in (
        ("i64", "f32", np.array([2**40 + 1, -(2**62)])),
        ("i64", "i32", np.array([2**31, 2**40 + 7, -(2**62) - 3])),
        ("i64", "u8", np.array([2**40 + 7, -1, -257])),
        ("i64", "u64", np.array([-1, 2**62 + 1])),
        ("u64", "i64", np.array([2**64 - 1, 2**63], U64)),
        ("u64", "f64", np.array([2**64 - 1, 2**63], U64)),
        ("u64", "f32", np.array([2**64 - 1, 2**63], U64)),
        ("u32", "i64", np.array([2**32 - 1, 5], np.uint32)),
        ("f32", "i64", np.array([3e9, -5e9, 1e18], F32)),
        ("f32", "u32", np.array([3e9, 4294967040, 7], F32)),
        ("f32", "u64", np.array([3e9, 1e19, 1.8e19, 7], F32)),
        ("f64", "u64", np.array([3e9, 1e19, 2.0**63, 2.0**64 - 2048])),
        ("i64", "boolean", np.array([2**32, 0, -(2**63)])),
        ("f32", "boolean", np.array([1e-40, NAN, 0, -0.0, INF], F32)),
    ):
        yield _convert(f"{start}-{end}-large", static(array), end, **fewer)
    yield _convert("f32-f16-overflow", static(np.array([65504, 65520, -1e9, INF, 1e-8, NAN], F32)), "f16")
    yield _convert("scalar", static(F32(-1.5)), "i32")
    yield _convert("dynamic", dynamic(_FLOATS.reshape(1, 11), _FLOATS[:0].reshape(0, 1)), "i16")
    yield _convert("constant", _values("i32"), "f32")


def _computed():
    """What was computed in 16 bits, converted."""
    x = np.array([0.3, 1.2, 2.7, 5.3], F32)
    kept = decided("cpu", "the CPU plugin computes f16 in float32 and converts that; bf16 it rounds first")
    for to in ("f32", "f64", "i32"):
        case = partial(layer_case, "Convert", "opset1", lambda ops, x, to=to: ops.convert(ops.tanh(x), to))
        yield case(f"computed-bf16-{to}", [static(x.astype(BF16))])
        yield case(f"computed-f16-{to}", [static((x + 8).astype(F16))], **kept)


def _through(name, kind, array, **settings):
    """To a type that NumPy lacks, and back."""

    def make(ops, x):
        return ops.convert(ops.convert(x, kind), "f32")

    return layer_case("Convert", "opset1", make, f"through-{name}", [static(array)], **settings)


def _from_constant(kind, values, to):
    """A constant of a type that NumPy lacks, converted; added to an input so that something is computed."""

    def stored():
        import openvino as ov

        return ov.op.Constant(getattr(ov.Type, kind), ov.Shape([len(values)]), values)

    def make(ops, x, constant):
        return ops.add(x, ops.convert(constant, to))

    inputs = [static(np.arange(5).astype(TYPES[to])), stored]
    return layer_case("Convert", "opset1", make, f"constant-{kind}-{to}", inputs)


def _types_that_numpy_lacks():
    low = [*np.arange(0, 4, 0.25), 5, 6, 7, 7.5, 8, 9, 15, 17, 63, 64, 255, -0.3, -1, -2, -9]
    more = [440, 464, 465, 480, 57344, 61439, 61440, 1e10, 2**-9, 2**-10, 1.5 * 2**-10, INF, -INF, NAN]
    for kind in ("f8e4m3", "f8e5m2", "f4e2m1", "f8e8m0"):
        yield _through(kind, kind, np.array(low + more, F32))
    yield _through("nf4", "nf4", np.array(low, F32) / 20, **decided("cpu", "there is no reference kernel for nf4"))
    wider = "the CPU plugin keeps the numbers of its wider type, the reference kernel those of the type"
    integers = np.array([0, 1, 5, 8, 15, 16, 63, 64, 255, -1, -8, -9], np.int32)
    for kind in ("u1", "u2", "u3", "u4", "u6", "i4"):
        for name, array in (("floats", np.array(low, F32)), ("integers", integers)):
            yield _through(f"{kind}-{name}", kind, array, **decided("evaluate", wider))
    for kind, stored in (
        ("u1", [0, 1, 1, 0, 1]), ("u2", [0, 1, 2, 3, 1]), ("u4", [0, 1, 7, 8, 15]), ("i4", [0, 1, 7, -8, -1]),
        ("u3", [0, 1, 7, 5, 2]), ("u6", [0, 1, 63, 33, 2]), ("nf4", [0, 1, -1, 0.5, -0.3]), ("u8", [0, 1, 7, 200, 255]),
        ("f8e4m3", [0, 1.5, -448, 0.0625, 2**-9]), ("f8e5m2", [0, 1.5, -57344, 0.0625, 2**-16]),
        ("f4e2m1", [0, 0.5, -6, 3, 1.5]), ("f8e8m0", [1, 2, 0.5, 4, 2**-20]),
    ):  # fmt: skip
        for to in ("f32", "f16") if kind[0] in "fn" else ("f32", "f16", "i32"):
            yield _from_constant(kind, stored, to)


# -- to another input's type ------------------------------------------------------------------------------------------


def _convert_likes():
    case = partial(layer_case, "ConvertLike", "opset1", "convert_like")
    for name, x, like in (
        ("f32-i8", _FLOATS.astype(F32), np.zeros(2, np.int8)),
        ("i32-f16", np.array([1, -7, 300], np.int32), F16(0)),
        ("i64-boolean", np.array([0, 5, -1]), np.array([[True]])),
        ("u8-bf16", np.array([0, 5, 255], np.uint8), np.zeros((2, 0), BF16)),
        ("f32-f32", np.array([1.5, -2], F32), F32(1)),
        ("f64-u8", np.array([1.5, 200]), np.uint8(1)),
    ):
        parameter = dynamic if like.size == 0 else static
        yield case(name, [parameter(x), parameter(like)])
        yield case(f"{name}-dynamic", [dynamic(x), dynamic(like)])


def _promotions():
    case = partial(layer_case, "ConvertPromoteTypes", "opset14", "convert_promote_types")
    unsafe = {"promote_unsafe": True}
    for a, b, attributes in (
        ("i8", "f32", {}), ("i32", "u8", {}), ("boolean", "f16", {}), ("i64", "boolean", {}), ("f16", "f32", {}),
        ("f32", "f32", {}), ("u8", "u32", {}), ("u8", "i16", {}), ("i16", "f32", {}), ("f64", "i32", {}),
        ("f16", "i64", unsafe), ("f64", "u64", unsafe), ("i8", "u8", unsafe), ("f16", "bf16", unsafe),
        ("i16", "u32", unsafe), ("i32", "u64", unsafe), ("bf16", "f64", {}), ("i8", "bf16", {}), ("u16", "i32", {}),
        ("u64", "i8", unsafe | {"u64_integer_promotion_target": "i64"}),
        ("u64", "i64", unsafe | {"u64_integer_promotion_target": "f64"}),
    ):  # fmt: skip
        x, y = np.array([[0], [1], [100]]).astype(TYPES[a]), np.array([2, 1, 0]).astype(TYPES[b])
        yield case(f"{a}-{b}", [static(x), static(y)], attributes)
        yield case(f"{b}-{a}-dynamic", [dynamic(y), dynamic(x)], attributes)
    for a, b, attributes in (
        ("i64", "u8", unsafe), ("f32", "f16", unsafe), ("f16", "i8", {}), ("u8", "i64", {}), ("i8", "i8", {}),
        ("f16", "f32", {}),
    ):  # fmt: skip
        x, y = static(np.array(3).astype(TYPES[a])), static(np.array([2, 1, 0]).astype(TYPES[b]))
        attributes = {"pytorch_scalar_promotion": True, **attributes}
        yield case(f"scalar-{a}-{b}", [x, y], attributes)
        yield case(f"{b}-scalar-{a}", [y, x], attributes)


# -- FakeQuantize -----------------------------------------------------------------------------------------------------


def _f(*values):
    return np.array(values, F32)


def _quantized(x, low, high, levels):
    """The specification's formula, for equal input and output limits."""
    level = np.round((x - low) / (high - low) * (levels - 1))
    return np.where(x <= low, low, np.where(x > high, high, level / (levels - 1) * (high - low) + low)).astype(F32)


_quantize = partial(layer_case, "FakeQuantize", "opset1", "fake_quantize")


def _quantizes():
    x = ((np.arange(48).reshape(2, 3, 4, 2) * 7 % 48) / 17 - 1.37).astype(F32)
    one, low, high = _f(1).reshape(()), _f(-1, -0.9, -0.71).reshape(3, 1, 1), _f(1.3, 0.6, 1.1).reshape(3, 1, 1)
    unit, even = (-one, one, -one, one), (_f(-1, -2), _f(1, 2.5), _f(0, 1), _f(2, 3))
    stride = decided("evaluate", "the CPU plugin takes constant limits of different shapes for each other's")
    equal = decided("evaluate", "the CPU plugin gives NaN where constant limits are equal")
    inverted = decided("evaluate", "the CPU plugin gives the lower end where constant limits are in the wrong order")
    for name, arrays, levels, settings in (
        *((f"levels-{n}", (x, -one, one, -one * 2, one * 3), n, {}) for n in (2, 3, 16, 255, 256)),
        ("channels", (x, low, high, low, high), 256, {}),
        ("channels-rank-4", (x, low[None], high[None], low[None] * 2, high[None] * 3), 31, {}),
        ("last", (x, *even), 17, {}),
        ("mixed", (x, low, one * 1.5, _f(0, 1), _f(3)), 16, stride),
        ("binarization", (x, _f(0.1), _f(0.1), _f(-1), _f(1)), 2, equal),
        ("binarization-channels", (x, low, low, _f(-1), _f(1)), 2, equal),
        ("inverted-input", (x, one, -one, one * 0, one * 15), 16, inverted),
        ("inverted-output", (x, -one, one, one * 15, one * 0), 16, {}),
        ("unsigned", (np.abs(x), one * 0, one * 2.55, one * 0, one * 2.55), 256, {}),
        ("many-levels-f16", tuple(v.astype(F16) for v in (x, -one, one, -one, one * 2)), 65536, {}),
        ("scalar", (x[0, 0, 0, 0], *unit), 16, {}),
        ("more-dimensions", (x[0, 0], *(v.reshape(1, 1, 1, -1) for v in even)), 17, {}),
        ("rank-1", (x[0, 0, :, 0], _f(-1), _f(1), _f(-1), _f(1)), 16, {}),
        ("ends", (_f(-1, 1, INF, -INF, 1e30), *unit), 16, {}),
        ("f16", tuple(v.astype(F16) for v in (x, *unit)), 16, {}),
        ("bf16", tuple(v.astype(BF16) for v in (x, *unit)), 16, {}),
    ):
        yield _quantize(name, [static(arrays[0]), *arrays[1:]], {"levels": levels}, **settings)
        yield _quantize(f"{name}-run-time", statics(arrays), {"levels": levels})
    fails = decided("evaluate", "the CPU plugin's transformations fail on this model")
    yield _quantize("many-levels", [static(x), *unit], {"levels": 65536}, **fails)
    yield _quantize("dynamic", [dynamic(x, x[:1, :2]), *unit], {"levels": 16})
    rank = decided("evaluate", "the CPU plugin takes no Parameter of dynamic rank")
    yield _quantize("dynamic-rank", [unranked(x, x[0]), *unit], {"levels": 16}, **rank)
    yield _quantize("halves", [static(_f(0.5, 1.5, 2.5, 3.5)), one * 0, one * 4, one * 0, one * 4], {"levels": 5})
    arrays = [x, x * 0 - 1, x * 0 + 1, x * 0, x * 0 + 2]
    yield _quantize("none", statics(arrays), {"levels": 16, "auto_broadcast": "NONE"})
    cycle = "both oracles overlook auto_broadcast=pdpd and lay the limits over the elements again and again"
    arrays = [x, *(v.reshape(3) for v in (low, high, low, high))]
    attributes = {"levels": 16, "auto_broadcast": "PDPD", "auto_broadcast.auto_broadcast_axis": 1}
    settings = decided("expected", cycle, _quantized(x, low, high, 16))
    yield layer_case("FakeQuantize", "opset1", "FakeQuantize", "pdpd", statics(arrays), attributes, **settings)
    nan = decided("evaluate", "the CPU plugin turns NaN into the lower end")
    yield _quantize("nan", [static(_f(NAN, 0.1)), *unit], {"levels": 16}, **nan)


# -- FakeConvert ------------------------------------------------------------------------------------------------------


def _fake_converts():
    corners = [-2, -1, -0.5, 0, 0.1, 0.26, 0.75, 300, 440, 500, 1e6, INF, -1e9]
    ramps = [np.linspace(-20.03, -0.5, 33, dtype=F32), np.linspace(0.5, 20, 34, dtype=F32)]
    y = np.concatenate([_f(*corners), *ramps])
    subnormal = _f(2**-9, 1.5 * 2**-9, 1.1 * 2**-10, 2**-7 + 2**-10, 0.007, 1e-6)
    flush = "the reference kernel truncates the subnormal numbers of f8e4m3 where the CPU plugin rounds"
    for kind in ("f8e4m3", "f8e5m2"):

        def make(ops, data, scale, shift=None, kind=kind):
            return ops.fake_convert(data, scale, shift, kind)

        case = partial(layer_case, "FakeConvert", "opset13", make)
        for name, arrays in (
            ("scale", [y, _f(3)]),
            ("scale-scalar", [y, _f(0.37).reshape(())]),
            ("scale-shift", [y, _f(3), _f(0.37)]),
            ("channels", [y.reshape(5, 16, 1), *([_f(*range(1, 6)).reshape(5, 1, 1)] * 2)]),
            ("f16", [y[:10].astype(F16), F16([0.5]), F16([0.25])]),
            ("bf16", [y[:10].astype(BF16), _f(0.5).astype(BF16)]),
            ("scalar", [y[5], _f(1).reshape(())]),
        ):
            yield case(f"{kind}-{name}-run-time", statics(arrays))
            yield case(f"{kind}-{name}-constant", [static(arrays[0]), *arrays[1:]])
        settings = decided("cpu", flush) if kind == "f8e4m3" else {}
        yield case(f"{kind}-subnormal", [static(subnormal), static(_f(1))], **settings)
        arrays = [_f(1.703125, -1.1875, -2.375, 1.84375), _f(0.6953125), _f(0.96875)]
        yield case(f"{kind}-bfloat16", statics([array.astype(BF16) for array in arrays]))
        yield case(f"{kind}-dynamic", [dynamic(y, y[:7]), dynamic(_f(2), _f(3))])


CASES = [
    *_converts(), *_computed(), *_types_that_numpy_lacks(), *_convert_likes(), *_promotions(), *_quantizes(),
    *_fake_converts(),
]  # fmt: skip
