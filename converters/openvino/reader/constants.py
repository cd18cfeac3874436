"""Constants of an IR: views of the .bin file, and their decoding."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from converters.openvino.reader.element_types import ElementType

# The quantiles of the normal distribution for the sixteen codes of nf4 (QLoRA, appendix E). OpenVINO decodes the same
# float32 values.
NF4 = np.array(
    [
        -1.0,
        -0.6961928009986877,
        -0.5250730514526367,
        -0.39491748809814453,
        -0.28444138169288635,
        -0.18477343022823334,
        -0.09105003625154495,
        0.0,
        0.07958029955625534,
        0.16093020141124725,
        0.24611230194568634,
        0.33791524171829224,
        0.44070982933044434,
        0.5626170039176941,
        0.7229568362236023,
        1.0,
    ],
    dtype=np.float32,
)


@dataclass(frozen=True, slots=True, eq=False)
class Constant:
    """The value of a Const layer. Several constants may share bytes.

    Args:
        element_type: the type of the elements; packed types have several in a byte.
        shape: the dimensions, all known.
        offset: the offset of the bytes in the .bin file; ``None`` if they are not in it.
        size: the number of bytes, exactly as type and shape require.
        raw: the bytes, a read-only view of the mapped file.
    """

    element_type: ElementType
    shape: tuple[int, ...]
    offset: int | None
    size: int
    raw: memoryview

    @property
    def count(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    def numpy(self) -> np.ndarray:
        """Return the values as a read-only array of `shape` and ``element_type.dtype``.

        For types of whole bytes, this is a view of the file without a copy. Packed types are unpacked to one element per
        byte. nf4 becomes float32, and strings become an object array of bytes.
        """
        array = self._decode().reshape(self.shape)
        array.flags.writeable = False
        return array

    def codes(self) -> np.ndarray:
        """Return the bit patterns of the elements as uint8 in `shape`, for packed and 8-bit types only.

        Raises:
            ValueError: for strings and elements wider than 8 bits.
        """
        if not 0 < self.element_type.bits <= 8:
            raise ValueError(f"{self.element_type} elements have no codes of 8 bits or less")
        codes = _codes(np.frombuffer(self.raw, np.uint8), self.element_type)
        codes = codes[: self.count].reshape(self.shape)
        codes.flags.writeable = False
        return codes

    def _decode(self) -> np.ndarray:
        kind = self.element_type
        dtype = kind.dtype
        if kind is ElementType.STRING:
            return unpack_strings(self.raw)
        assert dtype is not None  # the reader rejects constants of dynamic type
        if kind is ElementType.BOOLEAN:
            data = np.frombuffer(self.raw, np.uint8)
            # Any nonzero byte is true. An array of bool may contain only 0 and 1.
            return data.view(np.bool_) if not data.size or data.max() <= 1 else data != 0
        if not kind.is_packed:
            return np.frombuffer(self.raw, dtype)
        codes = _codes(np.frombuffer(self.raw, np.uint8), kind)[: self.count]
        if kind is ElementType.NF4:
            return NF4[codes]
        if kind is ElementType.I4:
            codes = np.where(codes < 8, codes, codes | 0xF0).astype(np.uint8)  # ml_dtypes sign-extends int4 in a byte
        return codes.view(dtype)


def _codes(data: np.ndarray, kind: ElementType) -> np.ndarray:
    """Unpack the unsigned codes in `data` (uint8), one per byte, including padding at the end."""
    bits = kind.bits
    if bits == 8:
        return data
    if bits == 1:  # the first element is the highest bit
        return np.unpackbits(data)
    if bits in (2, 4):  # the first element is the lowest bits
        shifts = np.arange(0, 8, bits, dtype=np.uint8)
        return ((data[:, None] >> shifts) & ((1 << bits) - 1)).reshape(-1)
    low_bits, high_bits = group_bits(kind)
    groups = data.reshape(-1, 3)
    low = parts(groups[:, :2, None], low_bits).reshape(len(groups), 16 // low_bits)  # also if there are none
    return (low + (parts(groups[:, 2:], high_bits) << low_bits)).astype(np.uint8).reshape(-1)


def group_bits(kind: ElementType) -> tuple[int, int]:
    """Return the low and high bits of each element that are stored together, for types in groups of three bytes: u3 and u6.

    Two bytes contain the low bits, and the third the high bits. The first element has the highest bits in each of them.
    """
    high_bits = 2 if kind is ElementType.U6 else 1
    return kind.bits - high_bits, high_bits


def parts(data: np.ndarray, bits: int) -> np.ndarray:
    """Split bytes (uint8, along a last dimension of 1) into parts of ``bits`` bits, highest first."""
    return data >> np.arange(8 - bits, -1, -bits, dtype=np.uint8) & ((1 << bits) - 1)


def check_strings(raw: memoryview, count: int) -> str | None:
    """Return the problem with the bytes of a string constant of `count` elements, or ``None``.

    The layout is: int32 number of strings, that number + 1 of int32 positions, the text. All numbers are little-endian.
    String i is text[positions[i] : positions[i + 1]].
    """
    if len(raw) < 4:
        return f"{len(raw)} bytes are too few for a string constant"
    stored = int(np.frombuffer(raw[:4], "<i4")[0])
    if stored != count:
        return f"the shape has {count} elements, but the data has {stored} strings"
    text_start = 4 * (count + 2)
    if text_start > len(raw):
        return f"{len(raw)} bytes are too few for {count} strings"
    positions = np.frombuffer(raw[4:text_start], "<i4")
    if positions[0] != 0 or (np.diff(positions.astype(np.int64)) < 0).any() or positions[-1] > len(raw) - text_start:
        return "the positions of the strings are outside the data"
    return None


def unpack_strings(raw: memoryview) -> np.ndarray:
    """Unpack a string constant that `check_strings` accepted into a 1-D object array of bytes."""
    count = int(np.frombuffer(raw[:4], "<i4")[0])
    text_start = 4 * (count + 2)
    positions = np.frombuffer(raw[4:text_start], "<i4").tolist()
    text = bytes(raw[text_start:])
    strings = np.empty(count, object)
    strings[:] = [text[begin:end] for begin, end in pairwise(positions)]
    return strings
