"""Tensors in files that are already mapped into memory."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir


class MappedTensor(ir.ExternalTensor):
    """A tensor in a file that the program opened and mapped itself.

    The external tensors of onnx_ir map the whole file once per tensor. They reject symbolic and hard links, which model
    caches use, because a model could name any file. Here the program names the file.

    Args:
        content: the bytes of the tensor in ONNX's layout, a view into the mapped file.
        path: the file.
        offset: the position of the first byte in the file.
        dtype, shape: the type and shape of the tensor.
    """

    __slots__ = ("content",)

    def __init__(self, content: memoryview, path: Path, offset: int, dtype: ir.DataType, shape: Sequence[int]) -> None:
        super().__init__(
            path.name, offset, len(content), dtype, shape=ir.Shape(shape), name="", base_dir=os.fspath(path.parent)
        )
        self.content = content

    def numpy(self) -> np.ndarray:
        """Return the elements: a view into the file, or a copy for types smaller than a byte."""
        shape, dtype = self.shape.numpy(), self.dtype.numpy()
        if self.dtype.bitwidth == 4:
            data = np.frombuffer(self.content, np.uint8)
            codes = np.stack([data & 15, data >> 4], axis=-1).reshape(-1)[: math.prod(shape)]
            if self.dtype == ir.DataType.INT4:  # ml_dtypes sign-extends to a byte
                codes = np.where(codes < 8, codes, codes | 0xF0).astype(np.uint8)
            return codes.view(dtype).reshape(shape)
        return np.frombuffer(self.content, dtype.newbyteorder("<")).reshape(shape)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return self.numpy().__array__(dtype)

    def tobytes(self) -> bytes:
        """Return a copy of the bytes."""
        return self.content.tobytes()

    def tofile(self, file: Any) -> None:
        """Write the bytes to a file without copying them."""
        file.write(self.content)


def same_bytes(tensor: ir.ExternalTensor, dtype: ir.DataType, shape: Sequence[int]) -> ir.ExternalTensor:
    """Return a tensor with the same bytes in a file and another type or shape."""
    if isinstance(tensor, MappedTensor):
        path = Path(tensor.base_dir, tensor.location)
        return MappedTensor(tensor.content, path, tensor.offset or 0, dtype, shape)
    return ir.ExternalTensor(
        tensor.location, tensor.offset, tensor.length, dtype, shape=ir.Shape(shape), name="", base_dir=tensor.base_dir
    )
