"""Quantization that stays in floats: FakeQuantize, FakeConvert."""

from __future__ import annotations

from functools import partial

import ml_dtypes
import numpy as np

from tests.conformance.operation_models import decided, dynamic, layer_case, static, statics, unranked

F16, BF16, F32, F64, U64 = np.float16, ml_dtypes.bfloat16, np.float32, np.float64, np.uint64
NAN, INF = np.nan, np.inf
# -- FakeQuantize -----------------------------------------------------------------------------------------------------


def _f(*values):
    return np.array(values, F32)


def _quantized(x, low, high, levels):
    """Compute the specification's formula for equal input and output limits."""
    level = np.round((x - low) / (high - low) * (levels - 1))
    return np.where(x <= low, low, np.where(x > high, high, level / (levels - 1) * (high - low) + low)).astype(F32)


_quantize = partial(layer_case, "FakeQuantize", "opset1", "fake_quantize")


def _quantizes():
    x = ((np.arange(48).reshape(2, 3, 4, 2) * 7 % 48) / 17 - 1.37).astype(F32)
    one, low, high = _f(1).reshape(()), _f(-1, -0.9, -0.71).reshape(3, 1, 1), _f(1.3, 0.6, 1.1).reshape(3, 1, 1)
    unit, even = (-one, one, -one, one), (_f(-1, -2), _f(1, 2.5), _f(0, 1), _f(2, 3))
    stride = decided("evaluate", "the CPU plugin confuses constant limits of different shapes")
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
    larger = _f(*np.linspace(0.5, 2, 48)).reshape(2, 3, 4, 2)
    for name, data, limits in (
        ("larger-limit", x[:1, :, :1, :1], (-one, one * 2, -one, larger)),
        ("larger-limits", x[:1, :, :1], (-one, larger, -larger, larger[:, :, :1, :1])),
        ("larger-outer", x[:1], (-larger[:, :1, :1], larger[:, :1], -larger[:, :, :1], larger[:, :, :, :1])),
        ("larger-last", x[0, :, :, :1], (one * 0, one, larger[0], one * 2)),
    ):
        yield _quantize(f"{name}-run-time", statics([data, *limits]), {"levels": 16})
    fails = decided("evaluate", "the CPU plugin's transformations fail on this model")
    yield _quantize("many-levels", [static(x), *unit], {"levels": 65536}, **fails)
    yield _quantize("dynamic", [dynamic(x, x[:1, :2]), *unit], {"levels": 16})
    rank = decided("evaluate", "the CPU plugin does not support a Parameter of dynamic rank")
    yield _quantize("dynamic-rank", [unranked(x, x[0]), *unit], {"levels": 16}, **rank)
    yield _quantize("halves", [static(_f(0.5, 1.5, 2.5, 3.5)), one * 0, one * 4, one * 0, one * 4], {"levels": 5})
    arrays = [x, x * 0 - 1, x * 0 + 1, x * 0, x * 0 + 2]
    yield _quantize("none", statics(arrays), {"levels": 16, "auto_broadcast": "NONE"})
    cycle = "both oracles overlook auto_broadcast=pdpd and lay the limits over the elements again and again"
    arrays = [x, *(v.reshape(3) for v in (low, high, low, high))]
    attributes = {"levels": 16, "auto_broadcast": "PDPD", "auto_broadcast.auto_broadcast_axis": 1}
    settings = decided("expected", cycle, _quantized(x, low, high, 16))
    yield layer_case("FakeQuantize", "opset1", "FakeQuantize", "pdpd", statics(arrays), attributes, **settings)
    # No level is finite, but the limit is where a number is above the input's.
    yield _quantize("infinite-output", [static(_f(-2, -1, 0.1, 2)), -one, one, static(-one * INF), one], {"levels": 16})
    far = [static(v) for v in (-one * F32(3e38), one * F32(3e38))]
    yield _quantize("far-output", [static(_f(-2, -1, 0.1, 2)), -one, one, *far], {"levels": 16})
    yield _quantize("far-input", [static(_f(-3.2e38, -1, 0.1, 3.2e38)), *far, -one, one], {"levels": 16})
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


CASES = [*_quantizes(), *_fake_converts()]
