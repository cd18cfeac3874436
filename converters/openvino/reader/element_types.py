"""OpenVINO's element types: their names, widths and NumPy counterparts."""

from __future__ import annotations

import re
from enum import Enum

import ml_dtypes
import numpy as np


class ElementType(Enum):
    """An element type by OpenVINO's name (``ElementType("f32")``, ``str(ElementType.F32) == "f32"``).

    ``DYNAMIC`` is a type that is known at run time only.
    """

    BOOLEAN = "boolean"
    U1 = "u1"
    U2 = "u2"
    U3 = "u3"
    U4 = "u4"
    U6 = "u6"
    U8 = "u8"
    U16 = "u16"
    U32 = "u32"
    U64 = "u64"
    I4 = "i4"
    I8 = "i8"
    I16 = "i16"
    I32 = "i32"
    I64 = "i64"
    NF4 = "nf4"
    F4E2M1 = "f4e2m1"
    F8E4M3 = "f8e4m3"
    F8E5M2 = "f8e5m2"
    F8E8M0 = "f8e8m0"
    BF16 = "bf16"
    F16 = "f16"
    F32 = "f32"
    F64 = "f64"
    STRING = "string"
    DYNAMIC = "dynamic"

    def __str__(self) -> str:
        return self.value

    @property
    def bits(self) -> int:
        """The number of bits of an element; 0 for string and dynamic."""
        return _BITS[self]

    @property
    def is_packed(self) -> bool:
        """Whether several elements share a byte."""
        return 0 < _BITS[self] < 8

    @property
    def is_integer(self) -> bool:
        """Whether the values are integers, not booleans."""
        return self.value[0] in "iu"

    @property
    def is_signed(self) -> bool:
        """Whether the type represents negative numbers."""
        return self.value[0] == "i" or (self.is_floating and self is not ElementType.F8E8M0)

    @property
    def is_floating(self) -> bool:
        """Whether the values are floating-point numbers, including nf4 and 8-bit and 4-bit floats."""
        return self.value[0] == "f" or self in (ElementType.BF16, ElementType.NF4)

    @property
    def dtype(self) -> np.dtype | None:
        """The NumPy type of an array of decoded values, from ml_dtypes if NumPy has none.

        u1, u3 and u6 decode to uint8, nf4 to float32, string to object (bytes). ``None`` for dynamic.
        """
        return _DTYPES.get(self)

    @classmethod
    def from_name(cls, name: str) -> ElementType | None:
        """Return the type that an attribute such as ``element_type`` or a port's ``precision`` names.

        Both of OpenVINO's spellings are valid: "f32" and "FP32", "boolean" and "BOOL", "u1" and "BIN". Other texts return
        ``None``.
        """
        return _BY_NAME.get(name)

    def byte_size(self, elements: int) -> int:
        """Return the number of bytes in which OpenVINO stores elements; 0 for string and dynamic."""
        if self is ElementType.U3:
            return -(-elements // 8) * 3
        if self is ElementType.U6:
            return -(-elements // 4) * 3
        return (elements * _BITS[self] + 7) // 8


_T = ElementType

# The first number in a name is the width: "f8e4m3" has 8 bits.
_BITS = {t: int(match[0]) if (match := re.search(r"\d+", t.value)) else 0 for t in _T} | {_T.BOOLEAN: 8}

_DTYPES: dict[ElementType, np.dtype] = {
    _T.BOOLEAN: np.dtype(np.bool_),
    _T.U1: np.dtype(np.uint8),
    _T.U2: np.dtype(ml_dtypes.uint2),
    _T.U3: np.dtype(np.uint8),
    _T.U4: np.dtype(ml_dtypes.uint4),
    _T.U6: np.dtype(np.uint8),
    _T.I4: np.dtype(ml_dtypes.int4),
    _T.NF4: np.dtype(np.float32),
    _T.F4E2M1: np.dtype(ml_dtypes.float4_e2m1fn),
    _T.F8E4M3: np.dtype(ml_dtypes.float8_e4m3fn),
    _T.F8E5M2: np.dtype(ml_dtypes.float8_e5m2),
    _T.F8E8M0: np.dtype(ml_dtypes.float8_e8m0fnu),
    _T.BF16: np.dtype(ml_dtypes.bfloat16),
    _T.STRING: np.dtype(object),
} | {
    t: np.dtype(f"<{t.value[0]}{t.bits // 8}") for t in _T if t.value[0] in "iuf" and t.value[1:] in ("8", "16", "32", "64")
}

# Ports use an older spelling: the name in capitals, with these exceptions.
_PORT_NAMES = {
    _T.BOOLEAN: "BOOL",
    _T.U1: "BIN",
    _T.F16: "FP16",
    _T.F32: "FP32",
    _T.F64: "FP64",
    _T.DYNAMIC: "UNSPECIFIED",
}
_BY_NAME = {t.value: t for t in _T}
_BY_NAME |= {t.value.upper(): t for t in _T}
_BY_NAME |= {name: t for t, name in _PORT_NAMES.items()}
_BY_NAME |= {"undefined": _T.DYNAMIC, "bin": _T.U1}
