"""QuantizedLayerNormalization: integers and floats on either side, sizes, errors."""

from __future__ import annotations

import numpy as np

from tests.onnx_specops.ops.case import Case

F, U8 = np.float32, np.uint8
NAMES = ("X", "x_scale", "x_zero_point", "scale", "y_scale", "y_zero_point", "bias")


def _layer(x, x_scale, x_zero, scale, y_scale, y_zero, bias=None, *, epsilon=1e-5):
    from openvino import opset13 as ops

    if not x.get_element_type().is_real():
        x = ops.multiply(ops.subtract(ops.convert(x, "f32"), ops.convert(x_zero, "f32")), x_scale)
    result = ops.multiply(ops.mvn(x, ops.constant(np.array([-1])), True, epsilon, "inside_sqrt"), scale)
    result = result if bias is None else ops.add(result, bias)
    if y_zero.get_element_type().is_real():
        return result
    levels = ops.add(ops.round(ops.divide(result, y_scale), "half_to_even"), ops.convert(y_zero, "f32"))
    return ops.convert(ops.clamp(levels, 0.0, 255.0), "u8")


def _case(name, shape, x_type=U8, y_type=U8, bias=True, epsilon=1e-5, changed=None, **options):
    rng = np.random.default_rng(0)
    x = rng.integers(0, 256, shape).astype(U8) if x_type == U8 else rng.standard_normal(shape).astype(F)
    scale, added = (rng.standard_normal(shape[-1:]).astype(F) for _ in range(2))
    arrays = [x, np.array(0.02, F), np.array(100, x_type), scale, np.array(0.02, F), np.array(90, y_type), added]
    inputs = dict(zip(NAMES, arrays if bias else arrays[:-1], strict=False)) | (changed or {})
    constants = [] if "error" in options else ["x_scale", "x_zero_point", "y_scale", "y_zero_point"]
    options = {"rtol": 1e-4, "atol": 1e-5, "near": 0.01, "layer": _layer, "constants": constants, **options}
    return Case("QuantizedLayerNormalization", name, inputs, {"epsilon": epsilon}, **options)


def _cases():
    for name, shape in (("line", (16,)), ("rows", (5, 32)), ("tokens", (2, 7, 33)), ("windows", (2, 3, 4, 20))):
        for of in (U8, F):
            for to in (U8, F):
                yield _case(f"{name}-{np.dtype(of)}-{np.dtype(to)}", shape, of, to)
    yield _case("large-epsilon", (5, 40), epsilon=0.5)
    yield _case("no-bias", (5, 40), bias=False)
    yield _case("equal", (3, 24), changed={"X": np.full((3, 24), 7, U8)})
    large = {"X": np.full((3, 24), 7, U8), "x_scale": np.array(1e25, F)}
    yield _case("equal-large", (3, 24), changed=large, y_type=F)
    mean = (1000 + np.random.default_rng(2).standard_normal((4, 50))).astype(F)
    yield _case("far-from-zero", (4, 50), F, F, changed={"X": mean}, rtol=2e-3, atol=2e-3)
    yield _case("error-scale", (3, 24), changed={"scale": np.ones(23, F)}, error="scale has the shape")
    yield _case("error-bias", (3, 24), changed={"bias": np.ones(23, F)}, error="bias has the shape")
    yield _case("error-y-scale", (3, 24), changed={"y_scale": np.ones(2, F)}, error="y_scale has the shape")


CASES = [*_cases()]
