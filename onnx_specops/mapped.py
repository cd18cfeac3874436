"""Tensors whose bytes lie in a file that is mapped into memory already."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir


class MappedTensor(ir.ExternalTensor):
    """A tensor in a file that the program has opened and mapped itself.

    onnx_ir's own external tensors map the whole file once for each tensor, and refuse files that are symbolic links or have
    several names, as model caches lay them out: they guard against what a model says of files. Here the program says it.

    Args:
        content: the tensor's bytes, as ONNX lays them out: a part of the mapped file.
        path: the file.
        offset: where in it they begin.
        dtype, shape: of the tensor.
    """

    __slots__ = ("content",)

    def __init__(self, content: memoryview, path: Path, offset: int, dtype: ir.DataType, shape: Sequence[int]) -> None:
        super().__init__(
            path.name, offset, len(content), dtype, shape=ir.Shape(shape), name="", base_dir=os.fspath(path.parent)
        )
        self.content = content

    def numpy(self) -> np.ndarray:
        """The elements; a view into the file but for types of less than a byte."""
        shape, dtype = self.shape.numpy(), self.dtype.numpy()
        if self.dtype.bitwidth == 4:
            data = np.frombuffer(self.content, np.uint8)
            codes = np.stack([data & 15, data >> 4], axis=-1).reshape(-1)[: math.prod(shape)]
            if self.dtype == ir.DataType.INT4:  # ml_dtypes extends the sign to the byte
                codes = np.where(codes < 8, codes, codes | 0xF0).astype(np.uint8)
            return codes.view(dtype).reshape(shape)
        return np.frombuffer(self.content, dtype.newbyteorder("<")).reshape(shape)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return self.numpy().__array__(dtype)

    def tobytes(self) -> bytes:
        """A copy of the bytes."""
        return self.content.tobytes()

    def tofile(self, file: Any) -> None:
        """Writes the bytes without a copy of them."""
        file.write(self.content)


def same_bytes(tensor: ir.ExternalTensor, dtype: ir.DataType, shape: Sequence[int]) -> ir.ExternalTensor:
    """The bytes of a tensor in a file, taken as another type or in another shape."""
    if isinstance(tensor, MappedTensor):
        path = Path(tensor.base_dir, tensor.location)
        return MappedTensor(tensor.content, path, tensor.offset or 0, dtype, shape)
    return ir.ExternalTensor(
        tensor.location, tensor.offset, tensor.length, dtype, shape=ir.Shape(shape), name="", base_dir=tensor.base_dir
    )
