"""OpenVINO's rounding to bfloat16 in constants and most conversions."""

from __future__ import annotations

import ml_dtypes
import numpy as np

_LAST, _HALF = np.uint32(0x10000), np.uint32(0x8000)
"""The bits of a float32 for the last digit of a bfloat16, and for half of it."""


def to_bfloat16(array: np.ndarray) -> np.ndarray:
    """Round to bfloat16: to the nearest with halves away from zero if the last digit is odd, else toward zero.

    The CPU plugin's own conversions of f16 and f32 round to the nearest.
    """
    with np.errstate(all="ignore"):
        floats = np.ascontiguousarray(array, np.float32).reshape(np.shape(array))
    bits = floats.view(np.uint32)
    rounded = (bits + np.where(bits & _LAST, _HALF, np.uint32(0))) >> np.uint32(16)
    return rounded.astype(np.uint16).view(ml_dtypes.bfloat16)
