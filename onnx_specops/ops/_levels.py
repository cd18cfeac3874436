"""Quantization of results to levels, with one scale and one zero point."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:  # not needed for ``import onnx_specops``
    from onnx_specops.building import Builder, Value


def check_scalar(name: str, given: str, array: np.ndarray) -> None:
    """Raise ``ValueError`` if the input ``given`` of an operator is not one number."""
    if array.size != 1:
        raise ValueError(f"{name}: {given} has the shape {list(array.shape)} instead of []")


def scalar(op: Builder, x: Value) -> Value:
    """Emit the input without dimensions, as DequantizeLinear requires for one number."""
    return x if x.rank == 0 else op.Reshape(x, [])


def levels(result: np.ndarray, y_scale: np.ndarray, y_zero_point: np.ndarray) -> np.ndarray:
    """Return floats quantized to 8 bits, with NaN as 0; the floats themselves if the zero point is a float."""
    if y_zero_point.dtype == np.float32:
        return result
    with np.errstate(all="ignore"):
        near = np.rint(result / y_scale.reshape(())) + y_zero_point.reshape(()).astype(np.float32)
    return np.clip(np.nan_to_num(near, nan=0.0), 0, 255).astype(np.uint8)


def emitted_levels(op: Builder, result: Value, y_scale: Value, y_zero_point: Value) -> Value:
    """Emit the computation of `levels`."""
    if y_zero_point.dtype is not None and y_zero_point.dtype.name == "FLOAT":
        return result
    return op.QuantizeLinear(result, scalar(op, y_scale), scalar(op, y_zero_point))
