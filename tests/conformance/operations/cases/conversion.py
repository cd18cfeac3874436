"""Conversions between element types."""

from __future__ import annotations

from functools import partial

import ml_dtypes
import numpy as np

from tests.conformance.operation_models import TYPES, decided, dynamic, layer_case, static

F16, BF16, F32, F64, U64 = np.float16, ml_dtypes.bfloat16, np.float32, np.float64, np.uint64
NAN, INF = np.nan, np.inf
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
    decided_for = {("i32", "f16"): decided("cpu", bounded), ("f64", "u8"): decided("evaluate", saturates)}
    for start in TYPES:
        for end in TYPES:
            yield _convert(f"{start}-{end}", static(_values(start)), end, **decided_for.get((start, end), {}))
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
        ("f64", "u32", np.array([1e10, -1e10, 5.7, -5.7, 2.0**32, NAN, INF, -1e30])),
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
    """Conversion of values computed in 16 bits."""
    x = np.array([0.3, 1.2, 2.7, 5.3], F32)
    kept = decided("cpu", "the CPU plugin computes f16 in float32 and converts that; bf16 it rounds first")
    for to in ("f32", "f64", "i32"):
        case = partial(layer_case, "Convert", "opset1", lambda ops, x, to=to: ops.convert(ops.tanh(x), to))
        yield case(f"computed-bf16-{to}", [static(x.astype(BF16))])
        yield case(f"computed-f16-{to}", [static((x + 8).astype(F16))], **kept)


def _to_bf16():
    """To bf16 and on to f32: the plugin rounds f16 and f32 to nearest, and other types like constants."""
    x = np.concatenate([np.arange(512) * 2 + 1, -np.arange(1, 4096, 37) * 1.001, [0, 1e6, -1e6, 1e-3]]) / 256
    nearest = decided("cpu", "the CPU plugin rounds run-time f16 and f32 to the nearest bf16, the reference kernel does not")

    def back(ops, x):
        return ops.convert(ops.convert(x, "bf16"), "f32")

    def computed(ops, x, *factors):
        value = ops.convert(ops.constant(factors[0]), "bf16")
        for factor in factors[1:]:
            value = ops.multiply(value, ops.convert(ops.constant(factor), "bf16"))
        return ops.multiply(ops.convert(value, "f32"), x)

    case = partial(layer_case, "Convert", "opset1")
    factor = np.linspace(0.5, 1.5, len(x), dtype=F32)
    unrounded = decided("cpu", "the CPU plugin multiplies constants of bf16 in float32")
    for kind in ("f16", "f32", "f64", "i32", "i64", "u16"):
        whole = kind[0] in "iu"
        values = (np.abs(x * 256) % 65536 if whole else x).astype(TYPES[kind])
        yield case(back, f"{kind}-bf16-f32", [static(values)], **(nearest if kind in ("f16", "f32") else {}))
        make = lambda ops, x, v=values: computed(ops, x, v)  # noqa: E731
        yield case(make, f"constant-{kind}-bf16-f32", [static(F32(1))])
        make = lambda ops, x, v=values: computed(ops, x, v, factor[: len(v)])  # noqa: E731
        yield case(make, f"constant-{kind}-bf16-scaled", [static(F32(1))], **unrounded)
    many = np.resize(x, 6000).astype(F16)  # too many to be folded by the rule
    yield case(lambda ops, x: computed(ops, x, many), "constant-many-bf16", [static(F32(1))])
    scaled = lambda ops, x: computed(ops, x, many, many)  # noqa: E731
    yield case(scaled, "constant-many-bf16-scaled", [static(F32(1))], **unrounded)


def _through(name, kind, array, **settings):
    """To a type that NumPy lacks, and back."""

    def make(ops, x):
        return ops.convert(ops.convert(x, kind), "f32")

    return layer_case("Convert", "opset1", make, f"through-{name}", [static(array)], **settings)


def _from_constant(kind, values, to):
    """A converted constant of a type that NumPy lacks, added to an input so that something is computed."""

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


CASES = [*_converts(), *_computed(), *_to_bf16(), *_types_that_numpy_lacks(), *_convert_likes(), *_promotions()]
