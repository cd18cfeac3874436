"""QuantizedLayerNormalization: the normalization of rows of floats or 8-bit integers, with a quantized result."""

from __future__ import annotations

import numpy as np

from onnx_specops.domain import operator
from onnx_specops.ops._levels import check_scalar, emitted_levels, levels, scalar


@operator(
    inputs={
        "X": "TX",
        "x_scale": "tensor(float)",
        "x_zero_point": "TX",
        "scale": "tensor(float)",
        "y_scale": "tensor(float)",
        "y_zero_point": "T",
        "bias": "tensor(float)",
    },
    outputs={"Y": "T"},
    types={"TX": ("uint8", "float"), "T": ("uint8", "float")},
)
def QuantizedLayerNormalization(X, x_scale, x_zero_point, scale, y_scale, y_zero_point, bias=None, *, epsilon: float):
    """Computes ``(x - mean(x)) / sqrt(variance(x) + epsilon) * scale + bias`` over the last dimension, as ONNX's
    LayerNormalization does, from integers to integers: ``x = x_scale * (X - x_zero_point)``.

    Inputs:
        X: ``[..., N]``, integers or floats.
        x_scale, x_zero_point: ``[]``, the scale of the integers, and the integer that represents zero. If ``X`` is floats,
            they are ignored.
        scale: ``[N]``.
        y_scale: ``[]``, the scale of the result.
        y_zero_point: ``[]``, the integer in ``Y`` that represents zero: the result is divided by ``y_scale``, rounded to the
            nearest integer (ties to even), added to ``y_zero_point``, and clipped to [0, 255]. If its type is float, ``Y``
            is not quantized, and the values of ``y_scale`` and ``y_zero_point`` are ignored.
        bias: ``[N]``. 0 if omitted.

    Attributes:
        epsilon: the number that is added to the variance.

    Output: ``[..., N]``, of the type of ``y_zero_point``.

    Source: ONNX, LayerNormalization-17; OpenVINO specification, MVN-6 and FakeQuantize-1.
    """
    name = "QuantizedLayerNormalization"
    if not X.ndim:
        raise ValueError(f"{name}: X has no dimensions")
    for given, array in (("scale", scale), ("bias", bias)):
        if array is not None and array.shape != X.shape[-1:]:
            raise ValueError(f"{name}: {given} has the shape {list(array.shape)} instead of {list(X.shape[-1:])}")
    for given, array, is_used in (
        ("x_scale", x_scale, X.dtype == np.uint8),
        ("x_zero_point", x_zero_point, X.dtype == np.uint8),
        ("y_scale", y_scale, y_zero_point.dtype == np.uint8),
        ("y_zero_point", y_zero_point, y_zero_point.dtype == np.uint8),
    ):
        if is_used:
            check_scalar(name, given, array)
    x = X
    if X.dtype == np.uint8:
        x = (X.astype(np.float32) - x_zero_point.reshape(()).astype(np.float32)) * x_scale.reshape(())
    if not x.size:
        return np.zeros(X.shape, y_zero_point.dtype)
    with np.errstate(all="ignore"):
        apart = x - x.mean(axis=-1, keepdims=True)
        variance = (apart * apart).mean(axis=-1, keepdims=True)
        result = apart / np.sqrt(variance + np.float32(epsilon)) * scale
        if bias is not None:
            result = result + bias
    return levels(result, y_scale, y_zero_point)


@QuantizedLayerNormalization.infer_shapes
def _(node):
    return [node.shape(0)]


@QuantizedLayerNormalization.body
def _(op, X, x_scale, x_zero_point, scale, y_scale, y_zero_point, bias, *, epsilon):
    x = X
    if X.dtype is not None and X.dtype.name == "UINT8":
        x = op.DequantizeLinear(X, scalar(op, x_scale), scalar(op, x_zero_point))
    given = (scale,) if bias is None else (scale, bias)
    result = op.LayerNormalization(x, *given, axis=-1, epsilon=epsilon)
    return emitted_levels(op, result, y_scale, y_zero_point)
