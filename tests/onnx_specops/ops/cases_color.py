"""YUVtoRGB: layouts, types, errors."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from tests.onnx_specops.ops.case import Case

F, U8 = np.float32, np.uint8


def _layer(*planes, bgr=0):
    from openvino import opset8

    layout, order = "nv12" if len(planes) == 2 else "i420", "bgr" if bgr else "rgb"
    return getattr(opset8, f"{layout}_to_{order}")(*planes)


def _case(name, *, bgr=0, type_=U8, together=True, y=(2, 4, 130, 1), half=(2, 2, 65), **options):
    r = np.random.default_rng(5)
    shapes = {"y": y, "u": (*half, 2)} if together else {"y": y, "u": (*half, 1), "v": (*half, 1)}
    inputs = {name: r.integers(0, 256, shape).astype(type_) for name, shape in shapes.items()}
    if "error" not in options:
        options |= {"layer": _layer}
    return Case("YUVtoRGB", name, inputs, {"bgr": bgr}, **options)


def _yuv_to_rgb():
    for bgr in (0, 1):
        yield _case(f"together-{bgr}", bgr=bgr)
        yield _case(f"apart-{bgr}", bgr=bgr, together=False)
    for type_ in (np.float16, ml_dtypes.bfloat16, F, np.float64):
        close = {"rtol": 1e-2, "atol": 1.0} if np.dtype(type_).itemsize == 2 else {"atol": 1e-4}
        yield _case(f"{np.dtype(type_).name}", type_=type_, oracle_type=F, **close)
    yield _case("no-frames", y=(0, 4, 6, 1), half=(0, 2, 3), expected=np.zeros((0, 4, 6, 3), U8), reason="nothing to ask")
    yield _case("error-odd", y=(2, 3, 6, 1), half=(2, 1, 3), error=r"y has the shape \[2, 3, 6, 1\]")
    yield _case("error-chroma", half=(2, 2, 64), error=r"u has the shape \[2, 2, 64, 2\]")
    yield _case("error-batch", together=False, half=(1, 2, 65), error=r"u has the shape \[1, 2, 65, 1\]")


CASES = [*_yuv_to_rgb()]
