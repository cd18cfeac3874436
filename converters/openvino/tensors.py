"""Constants of an IR as ONNX tensors: references to the .bin if the bytes are equal in ONNX, decoded otherwise."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx_ir as ir

from converters.openvino.onnx_types import data_type
from converters.openvino.reader.constants import Constant
from converters.openvino.reader.element_types import ElementType
from onnx_specops.folding import FOLDED_ELEMENTS
from onnx_specops.mapped import MappedTensor

# The types with equal bytes in the .bin and in ONNX.
_SAME_BYTES = {t for t in ElementType if t.bits > 0 and not t.is_packed} - {ElementType.BOOLEAN, ElementType.F8E8M0}
_SAME_BYTES |= {ElementType.I4, ElementType.U4}


def constant_tensor(constant: Constant, path: Path | None) -> ir.TensorProtocol:
    """Return a constant in the .bin at ``path``. Small constants are decoded, so that they can be folded."""
    dtype = data_type(constant.element_type)
    if constant.element_type is ElementType.STRING:
        strings = constant.numpy()
        return ir.StringTensor(strings, shape=ir.Shape(constant.shape))
    if constant.count > FOLDED_ELEMENTS and constant.element_type in _SAME_BYTES and path is not None:
        return mapped_tensor(constant, path, dtype, constant.shape)
    return ir.Tensor(decoded(constant), dtype=dtype)


def mapped_tensor(constant: Constant, path: Path, dtype: ir.DataType, shape: tuple[int, ...]) -> MappedTensor:
    """Return the constant's bytes in the .bin at ``path`` as a tensor of any type and shape."""
    return MappedTensor(constant.raw, path, constant.offset or 0, dtype, shape)


def decoded(constant: Constant) -> np.ndarray:
    """Return the constant's values in the NumPy type of its ONNX type."""
    array = constant.numpy()
    target = data_type(constant.element_type).numpy()
    return array if array.dtype == target else array.astype(target)
