"""QuantizedAttention: zero points, sizes of heads, masks, results as integers and floats, errors."""

from __future__ import annotations

import numpy as np

from tests.onnx_specops.ops import cases_attention
from tests.onnx_specops.ops.case import Case

F, U8 = np.float32, np.uint8
NAMES = ("Q", "q_scale", "q_zero_point", "K", "k_scale", "k_zero_point", "V", "y_scale", "y_zero_point", "attn_mask")


def _layer(q, q_scale, q_zero, k, k_scale, k_zero, v, y_scale, y_zero, mask=None, *, q_num_heads, kv_num_heads, scale=0.0):
    from openvino import opset13 as ops

    def floats(x):
        return ops.convert(x, "f32")

    q, k = (
        ops.multiply(ops.subtract(floats(x), floats(zero)), step)
        for x, step, zero in ((q, q_scale, q_zero), (k, k_scale, k_zero))
    )
    result = cases_attention.layer(q, k, v, mask, q_num_heads=q_num_heads, kv_num_heads=kv_num_heads, scale=scale)
    if y_zero.get_element_type().is_real():
        return result
    levels = ops.add(ops.round(ops.divide(result, y_scale), "half_to_even"), floats(y_zero))
    return ops.convert(ops.clamp(levels, 0.0, 255.0), "u8")


def _case(name, q, k, v, mask=None, heads=2, kv_heads=None, scale=0.0, zeros=(128, 128), result=None, **options):
    rng = np.random.default_rng(0)
    levels = [rng.integers(0, 256, shape).astype(U8) for shape in (q, k)]
    arrays = [levels[0], F(0.02), U8(zeros[0]), levels[1], F(0.015), U8(zeros[1]), rng.standard_normal(v).astype(F)]
    arrays += [F(0.01), F(0) if result is None else U8(result)]
    arrays = [np.asarray(array) for array in arrays] + ([] if mask is None else [mask])
    inputs = dict(zip(NAMES, arrays, strict=False)) | options.pop("changed", {})
    attributes = {"q_num_heads": heads, "kv_num_heads": kv_heads or heads, "scale": scale}
    options = {"rtol": 1e-4, "atol": 1e-5, "near": 0.01, "layer": _layer, **options}
    if "expected" not in options and "error" not in options:
        options |= {"constants": [name for name in NAMES if name.endswith(("scale", "point"))]}
    return Case("QuantizedAttention", name, inputs, attributes, **options)


def _cases():
    rng = np.random.default_rng(1)
    yield _case("plain", (2, 5, 12), (2, 5, 12), (2, 5, 12), heads=3)
    yield _case("sizes", (2, 3, 8), (2, 7, 8), (2, 7, 10), scale=0.3, zeros=(0, 255), result=130)
    yield _case("odd", (1, 14, 14), (1, 37, 14), (1, 37, 6), zeros=(3, 250), result=0)
    yield _case("one-query", (1, 1, 64), (1, 40, 64), (1, 40, 64), zeros=(128, 120))
    yield _case("many", (1, 61, 96), (1, 530, 96), (1, 530, 70), zeros=(120, 128), atol=2e-5)
    yield _case("many-levels", (1, 61, 96), (1, 530, 96), (1, 530, 70), result=120)
    yield _case("shared-keys", (2, 4, 24), (2, 6, 8), (2, 6, 6), heads=6, kv_heads=2, result=255)
    yield _case("shared-keys-mask", (2, 4, 24), (2, 6, 8), (2, 6, 6), rng.standard_normal((4, 6)).astype(F), 6, 2)
    for shape in ((2, 2, 5, 7), (2, 1, 1, 7), (5, 7)):
        name = "-".join(map(str, shape))
        added, kept = rng.standard_normal(shape).astype(F), rng.random(shape) < 0.7
        kept[..., 0] = True
        yield _case(f"added-{name}", (2, 5, 8), (2, 7, 8), (2, 7, 8), added, zeros=(0, 0), result=99)
        yield _case(f"kept-{name}", (2, 5, 8), (2, 7, 8), (2, 7, 8), kept)
    nan, reason = np.full((1, 3, 8), np.nan, F), "OpenVINO's plugin gives zeros where the specification is silent"
    yield _case("none-count", (1, 3, 8), (1, 4, 8), (1, 4, 8), np.zeros((1, 4), bool), expected=nan, reason=reason)
    for result, empty in ((None, np.zeros((2, 3, 8), F)), (7, np.full((2, 3, 8), 7, U8))):
        kind = "floats" if result is None else "levels"
        reason = "OpenVINO's plugin does not write the result, or crashes"
        yield _case(f"no-keys-{kind}", (2, 3, 8), (2, 0, 8), (2, 0, 8), result=result, expected=empty, reason=reason)
        none = np.zeros((0, 3, 8), empty.dtype)
        reason = "OpenVINO's plugin compiles no batch of none"
        yield _case(f"no-rows-{kind}", (0, 3, 8), (0, 4, 8), (0, 4, 8), result=result, expected=none, reason=reason)
    yield _case("error-heads", (1, 3, 8), (1, 4, 8), (1, 4, 8), None, 3, error="Q, K and V have the shapes")
    yield _case("error-keys", (1, 3, 8), (1, 4, 8), (1, 5, 8), error="Q, K and V have the shapes")
    yield _case("error-mask", (1, 3, 8), (1, 4, 8), (1, 4, 8), np.zeros((3, 5), F), error="attn_mask has the shape")
    yield _case("error-shared", (1, 3, 12), (1, 4, 8), (1, 4, 8), None, 3, 2, error="q_num_heads = 3 is not a multiple")
    two = {"k_scale": np.ones(2, F)}
    yield _case("error-scale", (1, 3, 8), (1, 4, 8), (1, 4, 8), changed=two, error="k_scale has the shape")


CASES = [*_cases()]
