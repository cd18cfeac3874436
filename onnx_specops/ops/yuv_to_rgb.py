"""YUVtoRGB: converts the planes of video frames to images."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto as Type

from onnx_specops.domain import FLOATS, operator

# ITU-R BT.601, to three digits.
_LUMA, _RED_V, _GREEN_U, _GREEN_V, _BLUE_U = (np.float32(x) for x in (1.164, 1.596, 0.391, 0.813, 2.018))
_ZERO_Y, _ZERO_UV, _MOST = np.float32(16), np.float32(128), np.float32(255)


@operator(inputs={"y": "T", "u": "T", "v": "T"}, outputs={"image": "T"}, types={"T": ("uint8", *FLOATS)})
def YUVtoRGB(y, u, v=None, *, bgr: int = 0):
    """Converts video frames from YUV with 4:2:0 subsampling (I420, NV12) to RGB.

    Inputs:
        y: ``[N, H, W, 1]``, H and W even.
        u: ``[N, H / 2, W / 2, 1]``; or ``[N, H / 2, W / 2, 2]``, U and V interleaved.
        v: ``[N, H / 2, W / 2, 1]``; omitted if ``u`` contains V.

    Attributes:
        bgr: whether the channels are blue, green and red.

    Output: ``[N, H, W, 3]``, computed in float32 and clipped to [0, 255]. Integers are rounded to nearest, halves to
    even.

    Source: OpenVINO specification, NV12toRGB-8, I420toRGB-8 and the corresponding BGR operations.
    """
    name = "YUVtoRGB"
    if y.ndim != 4 or y.shape[3] != 1 or y.shape[1] % 2 or y.shape[2] % 2:
        raise ValueError(f"{name}: y has the shape {list(y.shape)} instead of [N, H, W, 1] with H and W even")
    half = (y.shape[0], y.shape[1] // 2, y.shape[2] // 2)
    for what, plane in (("u", u), ("v", v)):
        if plane is not None and plane.shape != (*half, 2 if v is None else 1):
            raise ValueError(f"{name}: {what} has the shape {list(plane.shape)} for y of the shape {list(y.shape)}")
    u, v = (u[..., :1], u[..., 1:]) if v is None else (u, v)
    d, e = (plane.astype(np.float32).repeat(2, 1).repeat(2, 2) - _ZERO_UV for plane in (u, v))
    # Term by term, because the results are rounded to bytes and the last digit may matter.
    c = (y.astype(np.float32) - _ZERO_Y) * _LUMA
    channels = [c + e * _RED_V, c - e * _GREEN_V - d * _GREEN_U, c + d * _BLUE_U]
    image = np.clip(np.concatenate(channels[::-1] if bgr else channels, axis=3), np.float32(0), _MOST)
    return (np.rint(image) if y.dtype == np.uint8 else image).astype(y.dtype)


@YUVtoRGB.infer_shapes
def _(node):
    shape = node.shape(0)
    return [None if shape is None or len(shape) != 4 else [*shape[:3], 3]]


@YUVtoRGB.body
def _(op, y, u, v, *, bgr):
    batch, height, width = (op.Shape(y, start=k, end=k + 1) for k in range(3))
    # Compute planes, not pixels, so that each channel is contiguous.
    luma = op.Cast(op.Reshape(y, op.Concat(batch, [1], height, width, axis=0), allowzero=1), to=Type.FLOAT)
    c = op.Mul(op.Sub(luma, _ZERO_Y), _LUMA)
    if v is None:
        u, v = (op.Gather(u, np.array(k), axis=3) for k in (0, 1))
    half = op.Concat(batch, [1], op.Div(height, 2), op.Div(width, 2), axis=0)
    d, e = (op.Sub(op.Cast(op.Reshape(x, half, allowzero=1), to=Type.FLOAT), _ZERO_UV) for x in (u, v))

    def spread(x):
        """Repeat each number in a block of two by two."""
        scales = op.const(np.array([1, 1, 2, 2], np.float32))
        attributes = {"nearest_mode": "floor", "coordinate_transformation_mode": "asymmetric"}
        return op.Resize(x, None, scales, mode="nearest", **attributes)

    red, blue = (op.Add(c, spread(op.Mul(x, factor))) for x, factor in ((e, _RED_V), (d, _BLUE_U)))
    green = op.Sub(op.Sub(c, spread(op.Mul(e, _GREEN_V))), spread(op.Mul(d, _GREEN_U)))
    channels = [op.Clip(x, np.float32(0), _MOST) for x in (red, green, blue)]
    if y.dtype == Type.UINT8:
        channels = [op.Round(x) for x in channels]
    channels = [op.Cast(x, to=y.dtype) for x in (reversed(channels) if bgr else channels)]
    return op.Transpose(op.Concat(*channels, axis=1), perm=[0, 2, 3, 1])
