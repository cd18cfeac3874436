"""Conversions between element types, and quantization that stays in floats."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from tests.conformance.case import Case
from tests.conformance.operation_models import case, decided, node

NAN, INF = np.nan, np.inf
_TYPES = {
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
_CASES: list[Case] = []

# -- Convert ----------------------------------------------------------------------------------------------------------

_FLOATS = np.array([0, -0.0, 0.5, -0.5, 1.5, -1.75, 2.5, 100.5, 127, -127.5, 1e-7], np.float64)
_NARROW = np.array([128, 200.5, 255.5, 256.5, 300, -129.5, -300, 40000, -40000], np.float64)


def _values(kind):
    if kind in ("f16", "bf16", "f32", "f64"):
        return _FLOATS.astype(_TYPES[kind])
    if kind == "boolean":
        return np.array([True, False])
    info = np.iinfo(_TYPES[kind])
    candidates = [0, 1, 2, 7, 100, 127, 128, 200, 255, 256, 300, 40000, 2**31 - 1, -1, -7, -128, -129, -300, -40000]
    return np.array([v for v in candidates if info.min <= v <= info.max], _TYPES[kind])


_F16_RANGE = "the reference kernel bounds integers by the range of f16, the CPU plugin rounds them to infinity"
_SATURATES = "the CPU plugin bounds f64 by the integer type's range, and wraps floats of the other types"
_BITS = "the CPU plugin keeps the numbers of its wider type, the reference kernel those of the type"
_FEWER = "the CPU plugin converts 64-bit integers as 32-bit ones"
for _from in _TYPES:
    for _to in _TYPES:
        _options = None
        if (_from, _to) == ("i32", "f16"):
            _options = decided("cpu", _F16_RANGE)
        if (_from, _to) == ("f64", "u8"):
            _options = decided("evaluate", _SATURATES)
        _CASES.append(case("Convert", "opset1", f"{_from}-{_to}", "opset1.convert", [_values(_from)], destination_type=_to,
                           options=_options))  # fmt: skip
for _from in ("f16", "f32", "bf16", "f64"):
    for _to in ("i8", "u8", "i16", "u16", "u32", "u64"):
        _options = decided("evaluate", _SATURATES) if _from == "f64" else None
        _CASES.append(case("Convert", "opset1", f"{_from}-{_to}-wraps", "opset1.convert",
                           [_NARROW[: 7 if "16" in _to else 9].astype(_TYPES[_from])], destination_type=_to,
                           options=_options))  # fmt: skip


def _of_tanh(to):
    """What was computed in 16 bits, converted."""

    def make(x):
        from openvino import opset1

        return opset1.convert(opset1.tanh(x), to)

    return make


_COMPUTED = np.array([0.3, 1.2, 2.7, 5.3], np.float32)
_KEPT = "the CPU plugin computes f16 in float32 and converts that; bf16 it rounds first"
for _to in ("f32", "f64", "i32"):
    _CASES += [
        case("Convert", "opset1", f"computed-bf16-{_to}", _of_tanh(_to), [_COMPUTED.astype(ml_dtypes.bfloat16)]),
        case("Convert", "opset1", f"computed-f16-{_to}", _of_tanh(_to), [(_COMPUTED + 8).astype(np.float16)],
             options=decided("cpu", _KEPT)),
    ]  # fmt: skip
for _from, _to, _array in (
    ("i64", "f32", np.array([2**40 + 1, -(2**62)])),
    ("i64", "i32", np.array([2**31, 2**40 + 7, -(2**62) - 3])),
    ("i64", "u8", np.array([2**40 + 7, -1, -257])),
    ("i64", "u64", np.array([-1, 2**62 + 1])),
    ("u64", "i64", np.array([2**64 - 1, 2**63], np.uint64)),
    ("u64", "f64", np.array([2**64 - 1, 2**63], np.uint64)),
    ("u64", "f32", np.array([2**64 - 1, 2**63], np.uint64)),
    ("u32", "i64", np.array([2**32 - 1, 5], np.uint32)),
    ("f32", "i64", np.array([3e9, -5e9, 1e18], np.float32)),
    ("f32", "u32", np.array([3e9, 4294967040, 7], np.float32)),
    ("f32", "u64", np.array([3e9, 1e19, 1.8e19, 7], np.float32)),
    ("f64", "u64", np.array([3e9, 1e19, 2.0**63, 2.0**64 - 2048]), ),
    ("i64", "boolean", np.array([2**32, 0, -(2**63)])),
    ("f32", "boolean", np.array([1e-40, NAN, 0, -0.0, INF], np.float32)),
):  # fmt: skip
    _CASES.append(case("Convert", "opset1", f"{_from}-{_to}-large", "opset1.convert", [_array], destination_type=_to,
                       options=decided("evaluate", _FEWER)))  # fmt: skip
_CASES += [
    case("Convert", "opset1", "f32-f16-overflow", "opset1.convert",
         [np.array([65504, 65520, -1e9, INF, 1e-8, NAN], np.float32)], destination_type="f16"),
    case("Convert", "opset1", "scalar", "opset1.convert", [np.array(-1.5, np.float32)], destination_type="i32"),
    case("Convert", "opset1", "dynamic", "opset1.convert", [_FLOATS.reshape(1, 11)], [_FLOATS[:0].reshape(0, 1)],
         dynamic=True, destination_type="i16"),
    case("Convert", "opset1", "constant", "opset1.convert", [_values("i32")], constants=[0], destination_type="f32"),
]  # fmt: skip


def _through(kind):
    """To a type that NumPy lacks, and back."""

    def make(x):
        from openvino import opset1

        return opset1.convert(opset1.convert(x, kind), "f32")

    return make


def _from_constant(kind, values, to):
    """A constant of a type that NumPy lacks, converted; added to an input so that something is computed."""

    def make(x):
        import openvino as ov
        from openvino import opset1

        stored = ov.op.Constant(getattr(ov.Type, kind), ov.Shape([len(values)]), values)
        return opset1.add(x, opset1.convert(stored, to))

    return make


_LOW = np.concatenate([np.arange(0, 4, 0.25), [5, 6, 7, 7.5, 8, 9, 15, 17, 63, 64, 255, -0.3, -1, -2, -9]]).astype(
    np.float32
)
for _kind in ("f8e4m3", "f8e5m2", "f4e2m1", "f8e8m0"):
    _extra = np.array(
        [440, 464, 465, 480, 57344, 61439, 61440, 1e10, 2**-9, 2**-10, 1.5 * 2**-10, INF, -INF, NAN], np.float32
    )
    _CASES.append(case("Convert", "opset1", f"through-{_kind}", _through(_kind), [np.concatenate([_LOW, _extra])]))
_CASES.append(case("Convert", "opset1", "through-nf4", _through("nf4"), [_LOW / 20],
                   options=decided("cpu", "there is no reference kernel for nf4")))  # fmt: skip
for _kind in ("u1", "u2", "u3", "u4", "u6", "i4"):
    for _name, _array in (("floats", _LOW), ("integers", np.array([0, 1, 5, 8, 15, 16, 63, 64, 255, -1, -8, -9], np.int32))):
        _CASES.append(case("Convert", "opset1", f"through-{_kind}-{_name}", _through(_kind), [_array],
                           options=decided("evaluate", _BITS)))  # fmt: skip
for _kind, _stored in (
    ("u1", [0, 1, 1, 0, 1]), ("u2", [0, 1, 2, 3, 1]), ("u4", [0, 1, 7, 8, 15]), ("i4", [0, 1, 7, -8, -1]),
    ("u3", [0, 1, 7, 5, 2]), ("u6", [0, 1, 63, 33, 2]), ("nf4", [0, 1, -1, 0.5, -0.3]), ("u8", [0, 1, 7, 200, 255]),
    ("f8e4m3", [0, 1.5, -448, 0.0625, 2**-9]),
    ("f8e5m2", [0, 1.5, -57344, 0.0625, 2**-16]), ("f4e2m1", [0, 0.5, -6, 3, 1.5]), ("f8e8m0", [1, 2, 0.5, 4, 2**-20]),
):  # fmt: skip
    for _to in ("f32", "f16", "i32"):
        if _to == "i32" and _kind[0] in "fn":
            continue
        _CASES.append(case("Convert", "opset1", f"constant-{_kind}-{_to}", _from_constant(_kind, _stored, _to),
                           [np.arange(5).astype(_TYPES[_to])]))  # fmt: skip

# -- ConvertLike, Identity --------------------------------------------------------------------------------------------

for _name, _x, _like in (
    ("f32-i8", _FLOATS.astype(np.float32), np.zeros(2, np.int8)),
    ("i32-f16", np.array([1, -7, 300], np.int32), np.float16(0)),
    ("i64-boolean", np.array([0, 5, -1]), np.array([[True]])),
    ("u8-bf16", np.array([0, 5, 255], np.uint8), np.zeros((2, 0), ml_dtypes.bfloat16)),
    ("f32-f32", np.array([1.5, -2], np.float32), np.float32(1)),
    ("f64-u8", np.array([1.5, 200]), np.uint8(1)),
):
    _CASES += [
        case("ConvertLike", "opset1", _name, "opset1.convert_like", [_x, np.asarray(_like)], dynamic=_like.size == 0),
        case("ConvertLike", "opset1", _name + "-dynamic", "opset1.convert_like", [_x, np.asarray(_like)], dynamic=True),
    ]
for _type in (np.float32, np.float16, np.int64, np.uint8, np.bool_, np.float64, ml_dtypes.bfloat16):
    _array = np.arange(6).reshape(2, 3).astype(_type)
    _CASES.append(case("Identity", "opset16", np.dtype(_type).name, "opset16.identity", [_array]))
_CASES += [
    case("Identity", "opset16", "dynamic", "opset16.identity", [_array], [_array[:0]], dynamic=True),
    case("Identity", "opset16", "constant", "opset16.identity", [_array], constants=[0]),
    case("Identity", "opset16", "scalar", "opset16.identity", [np.array(7, np.int32)]),
]

# -- ConvertPromoteTypes ----------------------------------------------------------------------------------------------

_UNSAFE = {"promote_unsafe": True}
_PROMOTIONS = [
    ("i8", "f32", {}), ("i32", "u8", {}), ("boolean", "f16", {}), ("i64", "boolean", {}), ("f16", "f32", {}),
    ("f32", "f32", {}), ("u8", "u32", {}), ("u8", "i16", {}), ("i16", "f32", {}), ("f64", "i32", {}),
    ("f16", "i64", _UNSAFE), ("f64", "u64", _UNSAFE), ("i8", "u8", _UNSAFE), ("f16", "bf16", _UNSAFE),
    ("i16", "u32", _UNSAFE), ("i32", "u64", _UNSAFE), ("bf16", "f64", {}), ("i8", "bf16", {}), ("u16", "i32", {}),
    ("u64", "i8", _UNSAFE | {"u64_integer_promotion_target": "i64"}),
    ("u64", "i64", _UNSAFE | {"u64_integer_promotion_target": "f64"}),
]  # fmt: skip
for _a, _b, _attributes in _PROMOTIONS:
    _x, _y = np.array([[0], [1], [100]]).astype(_TYPES[_a]), np.array([2, 1, 0]).astype(_TYPES[_b])
    _CASES += [
        case("ConvertPromoteTypes", "opset14", f"{_a}-{_b}", "opset14.convert_promote_types", [_x, _y], **_attributes),
        case("ConvertPromoteTypes", "opset14", f"{_b}-{_a}-dynamic", "opset14.convert_promote_types", [_y, _x], dynamic=True,
             **_attributes),
    ]  # fmt: skip
for _a, _b, _attributes in (
    ("i64", "u8", _UNSAFE),
    ("f32", "f16", _UNSAFE),
    ("f16", "i8", {}),
    ("u8", "i64", {}),
    ("i8", "i8", {}),
    ("f16", "f32", {}),
):
    _x, _y = np.array(3).astype(_TYPES[_a]), np.array([2, 1, 0]).astype(_TYPES[_b])
    _CASES += [
        case("ConvertPromoteTypes", "opset14", f"scalar-{_a}-{_b}", "opset14.convert_promote_types", [_x, _y],
             pytorch_scalar_promotion=True, **_attributes),
        case("ConvertPromoteTypes", "opset14", f"{_b}-scalar-{_a}", "opset14.convert_promote_types", [_y, _x],
             pytorch_scalar_promotion=True, **_attributes),
    ]  # fmt: skip

# -- FakeQuantize -----------------------------------------------------------------------------------------------------

_X = ((np.arange(48).reshape(2, 3, 4, 2) * 7 % 48) / 17 - 1.37).astype(np.float32)


def _f(*values):
    return np.array(values, np.float32)


_STRIDE = "the CPU plugin takes constant limits of different shapes for each other's"
_EQUAL = "the CPU plugin gives NaN where constant limits are equal"
_INVERTED = "the CPU plugin gives the lower end where constant limits are in the wrong order"


def _quantize(name, x, low, high, start, end, levels, *, both=True, options=None, **more):
    arrays = [x, low, high, start, end]
    _CASES.append(case("FakeQuantize", "opset1", name, "opset1.fake_quantize", arrays, constants=range(1, 5), levels=levels,
                       options=options, **more))  # fmt: skip
    if both:
        _CASES.append(
            case("FakeQuantize", "opset1", name + "-run-time", "opset1.fake_quantize", arrays, levels=levels, **more)
        )


_ONE = _f(1).reshape(())
for _levels in (2, 3, 16, 255, 256):
    _quantize(f"levels-{_levels}", _X, -_ONE, _ONE, -_ONE * 2, _ONE * 3, _levels)
_LO, _HI = _f(-1, -0.9, -0.71).reshape(3, 1, 1), _f(1.3, 0.6, 1.1).reshape(3, 1, 1)
_quantize("channels", _X, _LO, _HI, _LO, _HI, 256)
_quantize("channels-rank-4", _X, _LO[None], _HI[None], _LO[None] * 2, _HI[None] * 3, 31)
_quantize("last", _X, _f(-1, -2), _f(1, 2.5), _f(0, 1), _f(2, 3), 17)
_quantize("mixed", _X, _LO, _ONE * 1.5, _f(0, 1), _f(3), 16, options=decided("evaluate", _STRIDE))
_quantize("binarization", _X, _f(0.1), _f(0.1), _f(-1), _f(1), 2, options=decided("evaluate", _EQUAL))
_quantize("binarization-channels", _X, _LO, _LO, _f(-1), _f(1), 2, options=decided("evaluate", _EQUAL))
_quantize("inverted-input", _X, _ONE, -_ONE, _ONE * 0, _ONE * 15, 16, options=decided("evaluate", _INVERTED))
_quantize("inverted-output", _X, -_ONE, _ONE, _ONE * 15, _ONE * 0, 16)
_quantize("unsigned", np.abs(_X), _ONE * 0, _ONE * 2.55, _ONE * 0, _ONE * 2.55, 256)
_quantize("many-levels", _X, -_ONE, _ONE, -_ONE, _ONE, 65536, both=False,
          options=decided("evaluate", "the CPU plugin's transformations fail on this model"))  # fmt: skip
_quantize("many-levels-f16", *(v.astype(np.float16) for v in (_X, -_ONE, _ONE, -_ONE, _ONE * 2)), 65536)
_quantize("scalar", _X[0, 0, 0, 0], -_ONE, _ONE, -_ONE, _ONE, 16)
_quantize("more-dimensions", _X[0, 0], *(v.reshape(1, 1, 1, -1) for v in (_f(-1, -2), _f(1, 2.5), _f(0, 1), _f(2, 3))), 17)
_quantize("rank-1", _X[0, 0, :, 0], _f(-1), _f(1), _f(-1), _f(1), 16)
_quantize("ends", _f(-1, 1, INF, -INF, 1e30), -_ONE, _ONE, -_ONE, _ONE, 16)
_quantize("f16", _X.astype(np.float16), *(v.astype(np.float16) for v in (-_ONE, _ONE, -_ONE, _ONE)), 16)
_quantize("bf16", _X.astype(ml_dtypes.bfloat16), *(v.astype(ml_dtypes.bfloat16) for v in (-_ONE, _ONE, -_ONE, _ONE)), 16)
_CYCLE = "both oracles overlook auto_broadcast=pdpd and lay the limits over the elements again and again"


def _quantized(x, low, high, levels):
    """The specification's formula, for equal input and output limits."""
    level = np.round((x - low) / (high - low) * (levels - 1))
    return np.where(x <= low, low, np.where(x > high, high, level / (levels - 1) * (high - low) + low)).astype(np.float32)


_CASES += [
    case("FakeQuantize", "opset1", "dynamic", "opset1.fake_quantize", [_X, -_ONE, _ONE, -_ONE, _ONE],
         [_X[:1, :2], -_ONE, _ONE, -_ONE, _ONE], constants=range(1, 5), dynamic=True, levels=16),
    case("FakeQuantize", "opset1", "dynamic-rank", "opset1.fake_quantize", [_X, -_ONE, _ONE, -_ONE, _ONE],
         [_X[0], -_ONE, _ONE, -_ONE, _ONE], constants=range(1, 5), shapes=[None] * 5, levels=16,
         options=decided("evaluate", "the CPU plugin takes no Parameter of dynamic rank")),
    case("FakeQuantize", "opset1", "halves", "opset1.fake_quantize",
         [_f(0.5, 1.5, 2.5, 3.5), _ONE * 0, _ONE * 4, _ONE * 0, _ONE * 4], constants=range(1, 5), levels=5),
    case("FakeQuantize", "opset1", "none", "opset1.fake_quantize", [_X, _X * 0 - 1, _X * 0 + 1, _X * 0, _X * 0 + 2],
         levels=16, auto_broadcast="NONE"),
    case("FakeQuantize", "opset1", "pdpd", node("FakeQuantize", "opset1", **{
        "levels": 16, "auto_broadcast": "PDPD", "auto_broadcast.auto_broadcast_axis": 1}),
        [_X, *(v.reshape(3) for v in (_LO, _HI, _LO, _HI))],
        options=decided("expected", _CYCLE, _quantized(_X, _LO, _HI, 16))),
    case("FakeQuantize", "opset1", "nan", "opset1.fake_quantize", [_f(NAN, 0.1), -_ONE, _ONE, -_ONE, _ONE],
         constants=range(1, 5), levels=16, options=decided("evaluate", "the CPU plugin turns NaN into the lower end")),
]  # fmt: skip

# -- FakeConvert ------------------------------------------------------------------------------------------------------


def _fake_convert(kind):
    def make(data, scale, shift=None):
        from openvino import opset13

        return opset13.fake_convert(data, scale, shift, kind)

    return make


_Y = np.concatenate(
    [
        _f(-2, -1, -0.5, 0, 0.1, 0.26, 0.75, 300, 440, 500, 1e6, INF, -1e9),
        np.linspace(-20.03, -0.5, 33, dtype=np.float32),
        np.linspace(0.5, 20, 34, dtype=np.float32),
    ]
)
_SUBNORMAL = _f(2**-9, 1.5 * 2**-9, 1.1 * 2**-10, 2**-7 + 2**-10, 0.007, 1e-6)
_FLUSH = "the reference kernel truncates the subnormal numbers of f8e4m3 where the CPU plugin rounds"
for _type in ("f8e4m3", "f8e5m2"):
    for _name, _inputs in (
        ("scale", [_Y, _f(3)]),
        ("scale-scalar", [_Y, _f(0.37).reshape(())]),
        ("scale-shift", [_Y, _f(3), _f(0.37)]),
        ("channels", [_Y.reshape(5, 16, 1), *([_f(*range(1, 6)).reshape(5, 1, 1)] * 2)]),
        ("f16", [_Y[:10].astype(np.float16), np.float16([0.5]), np.float16([0.25])]),
        ("bf16", [_Y[:10].astype(ml_dtypes.bfloat16), _f(0.5).astype(ml_dtypes.bfloat16)]),
        ("scalar", [_Y[5], _f(1).reshape(())]),
    ):
        for _constants in ((), range(1, len(_inputs))):
            _CASES.append(case("FakeConvert", "opset13", f"{_type}-{_name}-{'constant' if _constants else 'run-time'}",
                               _fake_convert(_type), _inputs, constants=_constants))  # fmt: skip
    _CASES += [
        case("FakeConvert", "opset13", f"{_type}-subnormal", _fake_convert(_type), [_SUBNORMAL, _f(1)],
             options=decided("cpu", _FLUSH) if _type == "f8e4m3" else None),
        case("FakeConvert", "opset13", f"{_type}-bfloat16", _fake_convert(_type),
             [value.astype(ml_dtypes.bfloat16) for value in (_f(1.703125, -1.1875, -2.375, 1.84375), _f(0.6953125), _f(0.96875))]),
        case("FakeConvert", "opset13", f"{_type}-dynamic", _fake_convert(_type), [_Y, _f(2)], [_Y[:7], _f(3)], dynamic=True),
    ]  # fmt: skip

CASES = _CASES
