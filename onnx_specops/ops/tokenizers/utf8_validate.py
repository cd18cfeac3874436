"""UTF8Validate: removes or replaces invalid UTF-8 in strings."""

from __future__ import annotations

from typing import Annotated

from onnx_specops.domain import Limits, operator
from onnx_specops.ops.tokenizers._strings import NO_BODY, STRINGS, pack, unpack

_REPLACEMENT = "\ufffd".encode()
_LEAST = (0, 0, 0x80, 0x800, 0x10000)


@operator(inputs=STRINGS, outputs=STRINGS, no_body=NO_BODY)
def UTF8Validate(begins, ends, symbols, *, replace_mode: Annotated[int, Limits(0, 1)] = 0):
    """Removes bytes that are not valid UTF-8, or replaces them by U+FFFD.

    One U+FFFD replaces a truncated sequence. In an overlong sequence, it replaces each byte. Surrogates, and code points
    above U+10FFFF that fit into four bytes, are kept.

    Inputs:
        begins, ends, symbols: strings, of any shape.

    Attributes:
        replace_mode: whether U+FFFD replaces invalid bytes. If not, they are removed.

    Outputs: strings, of the shape of ``begins``.

    Source: openvino_tokenizers, UTF8Validate.
    """
    name = "UTF8Validate"
    replacement = _REPLACEMENT if replace_mode else b""
    texts = unpack(name, begins, ends, symbols)
    return pack(name, [text if text.isascii() else _validated(text, replacement) for text in texts], begins.shape)


@UTF8Validate.infer_shapes
def _(node):
    return [node.shape(0), node.shape(0), [None]]


def _validated(text: bytes, replacement: bytes) -> bytes:
    out, at = bytearray(), 0
    while at < len(text):
        lead = text[at]
        length = 1 if lead < 0x80 else 2 if lead >> 5 == 6 else 3 if lead >> 4 == 14 else 4 if lead >> 3 == 30 else 0
        if length == 0:
            out += replacement
            at += 1
            continue
        end = at + 1
        while end < min(at + length, len(text)) and text[end] >> 6 == 2:
            end += 1
        if end < at + length:
            out += replacement
        elif length > 1 and _code_point(text[at:end]) < _LEAST[length]:
            out += replacement * length
        else:
            out += text[at:end]
        at = end
    return bytes(out)


def _code_point(sequence: bytes) -> int:
    point = sequence[0] & (0xFF >> (len(sequence) + 1))
    for byte in sequence[1:]:
        point = point << 6 | byte & 0x3F
    return point
