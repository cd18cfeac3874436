"""Resizing of images."""

from __future__ import annotations

from typing import Literal

import numpy as np
import onnx_ir as ir

from converters.errors import Malformed
from converters.inference_engine.rule import layer
from converters.openvino.rule import Context
from converters.openvino.rules._windows import pad_spatial
from onnx_specops.building import Builder, Value


@layer("Interp")
def interp(
    op: Builder,
    x: Value,
    *,
    pad_beg: int = 0,
    pad_end: int = 0,
    align_corners: bool = True,
    height: int = 0,
    width: int = 0,
    factor: float = 0.0,
    zoom_factor: int = 0,
    shrink_factor: int = 0,
    context: Context,
):
    """Interp: bilinear, to the size in the file. Negative pads crop the edges."""
    sizes = _sizes(op, x, context, height, width, [factor or zoom_factor, shrink_factor])
    if pad_beg or pad_end:
        if pad_beg > 0 or pad_end > 0:
            raise Malformed(
                f"its pads are {pad_beg} and {pad_end}; expected 0 or less, as the Inference Engine reads out of bounds"
            )
        x = pad_spatial(op, x, op.const([pad_beg] * 2), op.const([pad_end] * 2))
    return _resized(op, x, sizes, mode="linear", where="align_corners" if align_corners else "asymmetric")


@layer("Resample")
def resample(
    op: Builder,
    x: Value,
    *,
    type: Literal["caffe.ResampleParameter.NEAREST", "caffe.ResampleParameter.LINEAR"] = "caffe.ResampleParameter.NEAREST",
    antialias: bool = False,
    factor: float = 0.0,
    height: int = 0,
    width: int = 0,
    context: Context,
):
    """Resample: the nearest element, or a mean with weights that decrease with the distance from the center."""
    sizes = _sizes(op, x, context, 0 if factor else height, width, [factor, 0], round_up=True)
    if type == "caffe.ResampleParameter.NEAREST":
        pairs = _pairs(x, sizes)
        if pairs is not None and any(outside % inside and inside % outside for inside, outside in pairs):
            for axis, (inside, outside) in enumerate(pairs, 2):
                x = op.Gather(x, _nearest(inside, outside), axis=axis)
            return x
        return _resized(op, x, sizes, mode="nearest", where="half_pixel", nearest_mode="round_prefer_ceil")
    return _triangles(op, x, sizes, antialias)


def _sizes(
    op: Builder, x: Value, context: Context, height: int, width: int, factors: list[float], *, round_up: bool = False
) -> Value:
    """Return the spatial sizes of the output: those in the file, or else those of the attributes."""
    stated = context.output_dims()
    if stated is not None and len(stated) > 2 and None not in stated[2:]:
        return op.const(np.array(stated[2:], np.int64))
    if height and width:
        return op.const(np.array([height, width], np.int64))
    inside = op.Cast(op.Shape(x, start=2), to=ir.DataType.FLOAT)
    grow, shrink = factors
    if grow:
        inside = op.Mul(inside, float(grow))
    if shrink:
        inside = op.Div(inside, float(shrink))
    if not grow and not shrink:
        raise Malformed("the size of its output is unknown")
    return op.Cast(op.Ceil(inside) if round_up else op.Floor(inside), to=ir.DataType.INT64)


def _resized(op: Builder, x: Value, sizes: Value, *, mode: str, where: str, nearest_mode: str = "") -> Value:
    more = {"nearest_mode": nearest_mode} if nearest_mode else {}
    whole = op.Concat(op.Shape(x, start=0, end=2), sizes, axis=0)
    return op.Resize(x, None, None, whole, mode=mode, coordinate_transformation_mode=where, **more)


def _triangles(op: Builder, x: Value, sizes: Value, antialias: bool) -> Value:
    """Emit a MatMul with a matrix of weights along each axis, divided by the sum of all axes' weights."""
    rank = (x.rank or 4) - 2
    pairs = _pairs(x, sizes)
    if pairs is None:
        raise Malformed("its sizes must be known")
    if all(inside == outside for inside, outside in pairs):
        return x
    antialias = antialias and any(inside > outside for inside, outside in pairs)  # of all axes
    for k, (inside, outside) in enumerate(pairs):
        weights = op.const(_weights(inside, outside, antialias))
        last = rank + 1
        order = [*range(rank + 2)]
        order[2 + k], order[last] = order[last], order[2 + k]
        x = op.Transpose(op.MatMul(op.Transpose(x, perm=order), weights), perm=order)
    return x


def _pairs(x: Value, sizes: Value) -> list[tuple[int, int]] | None:
    """Return the spatial sizes of the input and the output; ``None`` if they are unknown."""
    if x.dims is None or None in x.dims[2:] or sizes.constant is None:
        return None
    return [(inside or 1, int(outside)) for inside, outside in zip(x.dims[2:], sizes.constant, strict=True)]


def _nearest(inside: int, outside: int) -> np.ndarray:
    """Return the index of the element for each result. The rounding to float32 decides between equally near elements."""
    scale = np.float32(inside) / np.float32(outside)
    places = np.arange(outside, dtype=np.float32) * scale + scale / np.float32(2) - np.float32(0.5)
    return np.floor(np.maximum(places, 0).astype(np.float64) + 0.5).astype(np.int64)


def _weights(inside: int, outside: int, antialias: bool) -> np.ndarray:
    """Return the weight of each element in each result, [inside, outside]."""
    scale = np.float32(inside) / np.float32(outside)
    a = np.float32(1) / scale if antialias else np.float32(1)
    reach = 2 if scale < 1 else int(np.ceil(np.float32(2) / a))
    shares = np.zeros((inside, outside), np.float32)
    for o in range(outside):
        center = o * scale + scale / 2 - np.float32(0.5)
        middle = int(np.floor(center + np.float32(0.5))) if center > -0.5 else 0
        for i in range(max(0, middle - reach), min(inside, middle + reach + 1)):
            shares[i, o] = a * max(0.0, 1 - abs(float(a * (center - np.float32(i)))))
        total = shares[:, o].sum()
        if total:
            shares[:, o] /= total
    return shares
