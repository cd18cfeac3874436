"""Inputs of one number, such as scales and zero points."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:  # which the import of onnx_specops does without
    from onnx_specops.building import Builder, Value


def check_scalar(name: str, given: str, array: np.ndarray) -> None:
    """Raise ``ValueError`` if the input ``given`` of an operator is not one number."""
    if array.size != 1:
        raise ValueError(f"{name}: {given} has the shape {list(array.shape)} instead of []")


def scalar(op: Builder, x: Value) -> Value:
    """Emit the input without dimensions, as DequantizeLinear requires for one number."""
    return x if x.rank == 0 else op.Reshape(x, [])
