"""4-bit elements and 8-bit floats, as OpenVINO and ONNX store them in bytes."""

from __future__ import annotations

import ml_dtypes
import numpy as np

PACKED = (ml_dtypes.int4, ml_dtypes.uint4, ml_dtypes.float4_e2m1fn)
"""NumPy's types of 4 bits. Two elements share a byte, the first in its lower half."""


def stored(array: np.ndarray) -> np.ndarray:
    """Return the bytes of an array."""
    elements = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    if array.dtype not in PACKED:
        return elements
    codes = np.append(elements & 15, np.zeros(elements.size % 2, np.uint8))
    return codes[0::2] | codes[1::2] << 4


def loaded(data: np.ndarray | bytes, dtype: np.dtype, shape: tuple[int, ...]) -> np.ndarray:
    """Return an array of a NumPy type from its bytes, as a copy."""
    elements = np.frombuffer(data, np.uint8)
    if dtype in PACKED:
        count = int(np.prod(shape, dtype=np.int64))
        elements = np.stack([elements & 15, elements >> 4], axis=-1).reshape(-1)[:count]
    return elements.copy().view(dtype).reshape(shape)
