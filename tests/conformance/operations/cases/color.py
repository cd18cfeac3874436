"""Video frames to images and back."""

from __future__ import annotations

from functools import partial

import numpy as np

from tests.conformance.case import Case, IRText
from tests.conformance.operation_models import decided, dynamic, layer_case, statics

F, U8 = np.float32, np.uint8


def _frame(*shape, dtype=F, seed=0):
    return np.random.default_rng(seed).integers(0, 256, shape).astype(dtype)


def _from_planes():
    for layer, make in (
        ("NV12toRGB", "nv12_to_rgb"),
        ("NV12toBGR", "nv12_to_bgr"),
        ("I420toRGB", "i420_to_rgb"),
        ("I420toBGR", "i420_to_bgr"),
    ):
        case = partial(layer_case, layer, "opset8", make)
        chroma = [(2, 2, 3, 2)] if "NV12" in layer else [(2, 2, 3, 1)] * 2
        for dtype in (F, U8, np.float16):
            planes = [_frame(2, 4, 6, 1, dtype=dtype), *(_frame(*s, dtype=dtype, seed=i) for i, s in enumerate(chroma, 1))]
            kind = np.dtype(dtype).name
            # Half a level is rounded up or down depending on float32's last digit.
            yield case(f"plane-{kind}", statics([_frame(2, 6, 4, 1, dtype=dtype)]))
            yield case(f"planes-{kind}", statics(planes))
        yield case("dynamic-plane", [dynamic(_frame(1, 6, 4, 1), _frame(3, 3, 8, 1), dims=[-1, -1, -1, 1])])
        planes = [_frame(2, 4, 6, 1), *(_frame(*s) for s in chroma)]
        yield case("dynamic-planes", [dynamic(plane, dims=[-1, -1, -1, plane.shape[3]]) for plane in planes])


def _to_nv12(layer, dtype, single_plane, dims=(1, 2, 4, 3)):
    kind, precision = {F: ("f32", "FP32"), U8: ("u8", "U8")}[dtype]
    batch, height, width, _ = dims
    outputs = [(batch, height * 3 // 2 if height > 0 else -1, width, 1)]
    if not single_plane:
        outputs = [(batch, height, width, 1), (batch, height // 2 if height > 0 else -1, width // 2 if width > 0 else -1, 2)]

    def port(number, shape):
        return f'<port id="{number}" precision="{precision}">' + "".join(f"<dim>{d}</dim>" for d in shape) + "</port>"

    results = "".join(
        f'<layer id="{2 + i}" name="result{i}" type="Result" version="opset1"><input>{port(0, s)}</input></layer>'
        for i, s in enumerate(outputs)
    )
    edges = '<edge from-layer="0" from-port="0" to-layer="1" to-port="0"/>' + "".join(
        f'<edge from-layer="1" from-port="{1 + i}" to-layer="{2 + i}" to-port="0"/>' for i in range(len(outputs))
    )
    shape = ",".join("?" if d < 0 else str(d) for d in dims)
    xml = (
        '<?xml version="1.0"?><net name="color" version="11"><layers>'
        f'<layer id="0" name="image" type="Parameter" version="opset1"><data shape="{shape}" element_type="{kind}"/>'
        f"<output>{port(0, dims)}</output></layer>"
        f'<layer id="1" name="color" type="{layer}" version="opset17"><data single_plane="{str(single_plane).lower()}"/>'
        f"<input>{port(0, dims)}</input><output>{''.join(port(1 + i, s) for i, s in enumerate(outputs))}</output></layer>"
        f"{results}</layers><edges>{edges}</edges></net>"
    )
    return lambda: IRText(xml)


# One block of grey and one of two reds and two blues, row by row.
_RGB = np.array(
    [[[[10, 20, 30], [10, 20, 30], [255, 0, 0], [0, 0, 255]], [[10, 20, 30], [10, 20, 30], [0, 0, 255], [255, 0, 0]]]]
)
# By the specification's formulas: Y = 0.257 R + 0.504 G + 0.098 B + 16, U = -0.148 R - 0.291 G + 0.439 B + 128, V = 0.439 R
# - 0.368 G - 0.071 B + 128; U and V of a block are the mean of its pixels'.
# (10, 20, 30): 31.59, 133.87, 122.9; (255, 0, 0): 81.535, 90.26, 239.945; (0, 0, 255): 40.99, 239.945, 109.895.
_Y = np.array([[31.59, 31.59, 81.535, 40.99], [31.59, 31.59, 40.99, 81.535]])
_UV = np.array([[133.87, 122.9, 165.1025, 174.92]])
# For bytes each pixel's U and V are rounded first: (90 + 240) / 2 and (240 + 110) / 2.
_Y8 = np.array([[32, 32, 82, 41], [32, 32, 41, 82]])
_UV8 = np.array([[134, 123, 165, 175]])
_REASON = "OpenVINO 2026.4 cannot run it; values by the specification's formulas"


def _to_planes():
    for layer, image in (("RGBtoNV12", _RGB), ("BGRtoNV12", _RGB[..., ::-1])):

        def case(name, dtype, single_plane, *planes, layer=layer, image=image, **dims):
            expected = [plane.astype(dtype) for plane in planes]
            build = _to_nv12(layer, dtype, single_plane, **dims)
            settings = decided("expected", _REASON, *expected)
            return Case(layer, "opset17", name, build, [(image.astype(dtype),)], **settings)

        for dtype, luma, chroma in ((F, _Y, _UV), (U8, _Y8, _UV8)):
            kind, one = np.dtype(dtype).name, np.concatenate([luma, chroma]).reshape(1, 3, 4, 1)
            yield case(f"one-plane-{kind}", dtype, True, one)
            yield case(f"two-planes-{kind}", dtype, False, luma.reshape(1, 2, 4, 1), chroma.reshape(1, 1, 2, 2))
        yield case("dynamic", F, False, _Y.reshape(1, 2, 4, 1), _UV.reshape(1, 1, 2, 2), dims=(-1, -1, -1, 3))


CASES = [*_from_planes(), *_to_planes()]
