"""Arrays into and out of ONNX Runtime, bfloat16 included, and their comparison."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from typing import Any

import ml_dtypes
import numpy as np
import onnxruntime as ort
from onnx import TensorProto


def run_session(session: ort.InferenceSession, feeds: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    """The outputs of a session, whose ``run`` knows no bfloat16."""
    types = [value.type for value in (*session.get_inputs(), *session.get_outputs())]
    if "tensor(bfloat16)" not in types:
        return [np.asarray(output) for output in session.run(None, dict(feeds))]
    values = {name: ort_value(array) for name, array in feeds.items()}
    return [from_ort_value(value) for value in session.run_with_ort_values(None, values)]


def ort_value(array: np.ndarray) -> ort.OrtValue:
    if array.dtype.name != "bfloat16":
        return ort.OrtValue.ortvalue_from_numpy(array)
    return ort.OrtValue.ortvalue_from_numpy_with_onnx_type(array.view(np.uint16), TensorProto.BFLOAT16)


def from_ort_value(value: ort.OrtValue) -> np.ndarray:
    if value.data_type() != "tensor(bfloat16)":
        return value.numpy()
    shape = value.shape()
    count = int(np.prod(shape, dtype=np.int64))
    bits = (ctypes.c_uint16 * count).from_address(value.data_ptr()) if count else np.zeros(0, np.uint16)
    return np.array(bits, np.uint16).reshape(shape).view(ml_dtypes.bfloat16)


def compare(got: np.ndarray, expected: np.ndarray, rtol: float, atol: float, *, values: bool = True) -> None:
    """Shapes and element types must be equal, integers and booleans exactly so, floats within a rounding of their type."""
    assert got.shape == expected.shape
    assert got.dtype == expected.dtype
    if not values:
        return
    if got.dtype.kind in "biuO":
        np.testing.assert_array_equal(got, expected)
        return
    rounding: dict[Any, float] = {"float16": 1e-3, "bfloat16": 8e-3}
    rtol = max(rtol, rounding.get(got.dtype.name, 0.0))
    np.testing.assert_allclose(got.astype(np.float64), expected.astype(np.float64), rtol=rtol, atol=atol)
