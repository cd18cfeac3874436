"""ByteFallback: the bytes that tokens such as <0x0A> represent."""

from __future__ import annotations

import re

from onnx_specops.domain import operator
from onnx_specops.ops.tokenizers._strings import NO_BODY, STRINGS, pack, unpack

_BYTE = re.compile(rb"<0x([0-9A-F]{2})>")


@operator(inputs=STRINGS, outputs=STRINGS, no_body=NO_BODY)
def ByteFallback(begins, ends, symbols):
    """Replaces each token that represents a byte, such as ``<0x0A>``, by that byte.

    As in OpenVINO, other strings of six bytes between angle brackets become the byte 255.

    Inputs:
        begins, ends, symbols: strings, of any shape.

    Outputs: strings, of the shape of ``begins``.

    Source: openvino_tokenizers, ByteFallback.
    """
    name = "ByteFallback"
    return pack(name, [_byte(text) for text in unpack(name, begins, ends, symbols)], begins.shape)


@ByteFallback.infer_shapes
def _(node):
    return [node.shape(0), node.shape(0), [None]]


def _byte(text: bytes) -> bytes:
    if len(text) != 6 or text.rfind(b"<") != 0 or text.rfind(b">") != 5:
        return text
    match = _BYTE.fullmatch(text)
    return bytes([int(match[1], 16) if match else 255])
