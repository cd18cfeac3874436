"""Conversion of images between RGB or BGR and the planes of a video frame."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from converters.errors import Malformed
from converters.openvino.rule import Departure, rule
from converters.openvino.rules._shapes import match_shapes
from onnx_specops.building import Builder, Value

# Y, U and V of red, green and blue (ITU-R BT.601, to three digits).
_TO_YUV = np.array([[0.257, 0.504, 0.098], [-0.148, -0.291, 0.439], [0.439, -0.368, -0.071]], np.float32)
_YUV_ZERO = np.array([16, 128, 128], np.float32)

_REJECTED = Departure(where="all inputs", cpu="rejects them", specification="defines it", follows="specification")


@rule("NV12toRGB", since="opset8")
def nv12_to_rgb(op: Builder, y: Value, uv: Value | None = None):
    """NV12toRGB-8: one plane of 3/2 the height, or Y and interleaved UV."""
    return _from_nv12(op, y, uv, bgr=False)


@rule("NV12toBGR", since="opset8")
def nv12_to_bgr(op: Builder, y: Value, uv: Value | None = None):
    """NV12toBGR-8: like NV12toRGB-8, with reversed channels."""
    return _from_nv12(op, y, uv, bgr=True)


@rule("I420toRGB", since="opset8")
def i420_to_rgb(op: Builder, y: Value, u: Value | None = None, v: Value | None = None):
    """I420toRGB-8: one plane of 3/2 the height, or Y, U and V."""
    return _from_i420(op, y, u, v, bgr=False)


@rule("I420toBGR", since="opset8")
def i420_to_bgr(op: Builder, y: Value, u: Value | None = None, v: Value | None = None):
    """I420toBGR-8: like I420toRGB-8, with reversed channels."""
    return _from_i420(op, y, u, v, bgr=True)


@rule("RGBtoNV12", since="opset17", departs=[_REJECTED])
def rgb_to_nv12(op: Builder, image: Value, *, single_plane: bool = True):
    """RGBtoNV12-17: U and V are the mean of four pixels, each first clamped and, for u8, rounded."""
    return _to_nv12(op, image, single_plane, bgr=False)


@rule("BGRtoNV12", since="opset17", departs=[_REJECTED])
def bgr_to_nv12(op: Builder, image: Value, *, single_plane: bool = True):
    """BGRtoNV12-17: like RGBtoNV12-17, with reversed channels."""
    return _to_nv12(op, image, single_plane, bgr=True)


def _from_nv12(op: Builder, y: Value, uv: Value | None, *, bgr: bool) -> Value:
    if uv is None:
        y, chroma = _split_plane(op, y)
        # [N, H / 2, W, 1] to [N, H / 2, W / 2, 2]
        uv = op.Reshape(chroma, op.Concat(op.Shape(chroma, end=2), [-1, 2], axis=0))
    _fit_halves(y, 2, uv=uv)
    return op.specops.YUVtoRGB(y, uv, None, bgr=int(bgr))


def _from_i420(op: Builder, y: Value, u: Value | None, v: Value | None, *, bgr: bool) -> Value:
    if (u is None) != (v is None):
        raise Malformed("it has two inputs; expected one plane, or Y, U and V")
    if u is None or v is None:
        y, chroma = _split_plane(op, y)
        size = op.Shape(y)
        batch, half = op.Slice(size, [0], [1]), op.Div(op.Slice(size, [1], [3]), 2)
        # The U and V planes follow each other: N x 2 planes of a quarter of the size.
        planes = op.Reshape(chroma, op.Concat(batch, [2], half, [1], axis=0))
        u, v = (op.Gather(planes, np.array(k), axis=1) for k in (0, 1))
    _fit_halves(y, 1, u=u, v=v)
    return op.specops.YUVtoRGB(y, u, v, bgr=int(bgr))


def _fit_halves(y: Value, channels: int, **chroma: Value) -> None:
    """Check that chroma planes have half of the rows and half of the columns of ``y``."""
    match_shapes(y=(y, "N _ _ 1"), **{name: (plane, f"N _ _ {channels}") for name, plane in chroma.items()})
    for name, plane in chroma.items():
        sizes = zip((y.dims or [])[1:3], (plane.dims or [])[1:3], strict=False)
        if any(whole is not None and half is not None and whole != 2 * half for whole, half in sizes):
            raise Malformed(f"its input {name!r} of the shape {plane.dims} is not half as high and wide as y, {y.dims}")


def _divisible(image: Value, rows: int, columns: int) -> None:
    """Check that the height and width of an image are multiples."""
    for size, factor in zip((image.dims or [])[1:3], (rows, columns), strict=False):
        if size is not None and size % factor:
            raise Malformed(f"its input has the shape {image.dims}, but {size} is not a multiple of {factor}")


def _split_plane(op: Builder, plane: Value) -> tuple[Value, Value]:
    """Split a plane into Y, the upper two thirds of the rows, and the rest."""
    match_shapes(y=(plane, "_ _ _ 1"))
    _divisible(plane, 3, 2)
    height = op.Div(op.Mul(op.Shape(plane, start=1, end=2), 2), 3)
    return op.Slice(plane, [0], height, [1]), op.Slice(plane, height, [np.int64(2**62)], [1])


def _to_nv12(op: Builder, image: Value, single_plane: bool, *, bgr: bool):
    match_shapes(image=(image, "_ _ _ 3"))
    _divisible(image, 2, 2)
    matrix = _TO_YUV[:, ::-1] if bgr else _TO_YUV
    pixels = op.Add(op.MatMul(op.Cast(image, to=ir.DataType.FLOAT), np.ascontiguousarray(matrix.T)), _YUV_ZERO)
    yuv = _pixels(op, pixels, image)
    y, uv = op.Slice(yuv, [0], [1], [3]), op.Cast(op.Slice(yuv, [1], [3], [3]), to=ir.DataType.FLOAT)
    size = op.Shape(image)
    batch, half = op.Slice(size, [0], [1]), op.Div(op.Slice(size, [1], [3]), 2)
    rows, columns = op.Slice(half, [0], [1]), op.Slice(half, [1], [2])
    blocks = op.Reshape(uv, op.Concat(batch, rows, [2], columns, [2, 2], axis=0))
    means = _pixels(op, op.ReduceMean(blocks, [2, 4], keepdims=0), image)
    if not single_plane:
        return [y, means]
    return op.Concat(y, op.Reshape(means, op.Concat(batch, rows, op.Mul(columns, 2), [1], axis=0)), axis=1)


def _pixels(op: Builder, x: Value, like: Value) -> Value:
    """Clamp to 0 and 255 and convert to the image's type; integers are rounded, ties to even."""
    x = op.Clip(x, np.float32(0), np.float32(255))
    if like.dtype is not None and like.dtype.is_integer():
        x = op.Round(x)
    return op.CastLike(x, like) if like.dtype is None else op.Cast(x, to=like.dtype)
