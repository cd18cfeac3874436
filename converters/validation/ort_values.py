"""Conversion of arrays to and from ONNX Runtime, including types that its ``run`` does not accept."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence

import ml_dtypes
import numpy as np
import onnxruntime as ort
from onnx import TensorProto

from converters.validation.low_precision import loaded, stored

# The types that NumPy lacks, by ONNX Runtime's names: the type of ml_dtypes, and ONNX's number.
_LACKING = {
    "tensor(bfloat16)": (np.dtype(ml_dtypes.bfloat16), TensorProto.BFLOAT16),
    "tensor(float8e4m3fn)": (np.dtype(ml_dtypes.float8_e4m3fn), TensorProto.FLOAT8E4M3FN),
    "tensor(float8e5m2)": (np.dtype(ml_dtypes.float8_e5m2), TensorProto.FLOAT8E5M2),
    "tensor(int4)": (np.dtype(ml_dtypes.int4), TensorProto.INT4),
    "tensor(uint4)": (np.dtype(ml_dtypes.uint4), TensorProto.UINT4),
}


def run_session(
    session: ort.InferenceSession, feeds: Mapping[str, np.ndarray], outputs: Sequence[str] | None = None
) -> list[np.ndarray]:
    """Return the outputs of a session as arrays: those named, or all."""
    types = {value.name: value.type for value in (*session.get_inputs(), *session.get_outputs())}
    names = None if outputs is None else list(outputs)
    if not _LACKING.keys() & types.values():
        return [np.asarray(output) for output in session.run(names, {k: np.asarray(a) for k, a in feeds.items()})]
    values = {name: to_value(array, types[name]) for name, array in feeds.items()}
    return [to_array(value) for value in session.run_with_ort_values(names, values)]


def to_value(array: np.ndarray, onnx_type: str) -> ort.OrtValue:
    """Convert the array to a value of ONNX Runtime's type ``onnx_type``, for example ``"tensor(bfloat16)"``."""
    if onnx_type not in _LACKING:
        return ort.OrtValue.ortvalue_from_numpy(np.ascontiguousarray(array).reshape(array.shape))
    dtype, number = _LACKING[onnx_type]
    data = stored(array.astype(dtype))
    value = ort.OrtValue.ortvalue_from_shape_and_type(array.shape, number, "cpu")
    ctypes.memmove(value.data_ptr(), data.ctypes.data, data.nbytes)
    return value


def to_array(value: ort.OrtValue) -> np.ndarray:
    """Convert a value to an array."""
    if value.data_type() not in _LACKING:
        return np.asarray(value.numpy())
    dtype, _ = _LACKING[value.data_type()]
    shape = tuple(value.shape())
    size = stored(np.empty(shape, dtype)).nbytes
    return loaded(ctypes.string_at(value.data_ptr(), size) if size else b"", dtype, shape)
