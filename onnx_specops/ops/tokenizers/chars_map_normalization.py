"""CharsMapNormalization: replaces characters of strings by a map, and normalizes white space."""

from __future__ import annotations

import functools
import struct
from typing import Annotated, Protocol

import numpy as np

from onnx_specops.domain import Limits, check_size, operator
from onnx_specops.ops.tokenizers._strings import NO_BODY, STRINGS, pack, skips_of, unpack

_REPLACEMENT = "\ufffd".encode()
_ESCAPED = "\u2581".encode()
Flag = Annotated[int, Limits(0, 1)]


@operator(
    inputs={**STRINGS, "charsmap": "tensor(uint8)", "skips": "tensor(bool)"},
    outputs=STRINGS,
    no_body=NO_BODY,
)
def CharsMapNormalization(
    begins,
    ends,
    symbols,
    charsmap=None,
    skips=None,
    *,
    add_dummy_prefix: Flag = 0,
    remove_extra_whitespaces: Flag = 1,
    escape_whitespaces: Flag = 0,
    treat_whitespace_as_suffix: Flag = 0,
):
    """Normalizes strings like SentencePiece: from left to right, replaces the longest matching key of a map by its value.

    Text that is not a key is copied. A byte that is not valid UTF-8 becomes U+FFFD. An empty string stays empty.

    Inputs:
        begins, ends, symbols: strings, of any shape.
        charsmap: the map in the format of SentencePiece's models: the size of a double array, its 32-bit units (little
            endian), and the values, each terminated by NUL. If omitted or empty, there are no keys.
        skips: boolean ``[n]``, the strings that are copied unchanged. If omitted, none.

    Attributes:
        add_dummy_prefix: whether a space is prepended to a string that has other characters.
        remove_extra_whitespaces: whether leading, trailing and repeated spaces are removed.
        escape_whitespaces: whether U+2581 replaces each space.
        treat_whitespace_as_suffix: whether the space of ``add_dummy_prefix`` is appended instead.

    Outputs: strings, of the shape of ``begins``.

    Source: openvino_tokenizers, CharsMapNormalization; SentencePiece, ``normalizer.cc``.
    """
    name = "CharsMapNormalization"
    texts = unpack(name, begins, ends, symbols)
    skipped = skips_of(name, skips, len(texts))
    mapping = CharsMap(b"" if charsmap is None else charsmap.tobytes())
    settings = bool(add_dummy_prefix), bool(remove_extra_whitespaces), bool(escape_whitespaces)
    normalized = [
        text if skip else normalize(mapping, text, *settings, bool(treat_whitespace_as_suffix))
        for text, skip in zip(texts, skipped, strict=True)
    ]
    check_size(f"{name}: symbols", sum(map(len, normalized)), (begins, symbols))
    return pack(name, normalized, begins.shape)


@CharsMapNormalization.infer_shapes
def _(node):
    return [node.shape(0), node.shape(0), [None]]


class Prefixes(Protocol):
    """A normalization map: returns the replacement of the beginning of ``text[at:]``, and the length of that beginning."""

    def prefix(self, text: bytes, at: int) -> tuple[bytes, int]: ...


class CharsMap:
    """A character map in SentencePiece's format. Raises ``ValueError`` for an invalid one."""

    def __init__(self, data: bytes) -> None:
        self._units, self._values = _parse(data)

    def prefix(self, text: bytes, at: int) -> tuple[bytes, int]:
        """Return the replacement of the beginning of ``text[at:]``, and the number of bytes of that beginning."""
        units, values = self._units, self._values
        length, value, found = 0, 0, 0
        if units:
            place = (units[0] >> 10) << ((units[0] & 1 << 9) >> 6)
            for end in range(at, len(text)):
                place ^= text[end]
                if place >= len(units) or units[place] & 0x800000FF != text[end]:
                    break
                unit = units[place]
                place ^= (unit >> 10) << ((unit & 1 << 9) >> 6)
                if unit & 1 << 8:
                    if place >= len(units):
                        break
                    length, value, found = end + 1 - at, units[place] & 0x7FFFFFFF, found + 1
                    if found == 32:
                        break
        if length:
            return values[value : values.find(b"\0", value)], length
        size = character_size(text, at)
        return (text[at : at + size], size) if size else (_REPLACEMENT, 1)


@functools.lru_cache(maxsize=8)
def _parse(data: bytes) -> tuple[list[int], bytes]:
    if not data:
        return [], b""
    size = struct.unpack_from("<I", data)[0] if len(data) > 4 else len(data)
    if size >= len(data) - 3 or size % 4:
        raise ValueError("CharsMapNormalization: charsmap: its double array does not fit in it")
    units, values = np.frombuffer(data, "<u4", size // 4, 4).tolist(), data[4 + size :]
    return units, values if values.endswith(b"\0") else values + b"\0"


def character_size(text: bytes, at: int) -> int:
    """Return the number of bytes of the character at ``at``; 0 for invalid UTF-8."""
    lead = text[at]
    size = 1 if lead < 0x80 else 2 if lead >> 5 == 6 else 3 if lead >> 4 == 14 else 4 if lead >> 3 == 30 else 0
    if size < 2:
        return size
    try:
        text[at : at + size].decode()
    except UnicodeDecodeError:
        return 0
    return size if at + size <= len(text) else 0


def normalize(mapping: Prefixes, text: bytes, prefix: bool, squeeze: bool, escape: bool, suffix: bool = False) -> bytes:
    """Normalize a string like `CharsMapNormalization`."""
    at = 0
    if squeeze:
        while at < len(text):
            value, length = mapping.prefix(text, at)
            if value != b" ":
                break
            at += length
    if at == len(text):
        return b""
    blank = _ESCAPED if escape else b" "
    out = bytearray(blank if prefix and not suffix else b"")
    after_blank = squeeze
    while at < len(text):
        value, length = mapping.prefix(text, at)
        if after_blank:
            value = value.lstrip(b" ")
        if value:
            out += value.replace(b" ", _ESCAPED) if escape else value
            after_blank = squeeze and value.endswith(b" ")
        at += length
    if squeeze:
        while out.endswith(blank):
            del out[-len(blank) :]
    return bytes(out) + (blank if prefix and suffix else b"")
