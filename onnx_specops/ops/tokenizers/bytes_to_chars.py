"""BytesToChars and CharsToBytes: the printable characters that represent bytes in GPT-2's byte-level vocabularies."""

from __future__ import annotations

from onnx_specops.domain import operator
from onnx_specops.ops.tokenizers._strings import NO_BODY, ROWS_OF_STRINGS, STRINGS, pack, rows, skips_of, unpack


def _characters() -> list[bytes]:
    """Return the character of every byte: printable ones represent themselves, the others are U+0100 and following."""
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = iter(range(0x100, 0x200))
    return [chr(byte if byte in printable else next(others)).encode() for byte in range(256)]


_CHARACTERS = _characters()
_BYTES = {character: byte for byte, character in enumerate(_CHARACTERS) if len(character) == 2}


@operator(inputs={**STRINGS, "skips": "tensor(bool)"}, outputs=STRINGS, no_body=NO_BODY)
def BytesToChars(begins, ends, symbols, skips=None):
    """Replaces each byte of the strings by a printable character.

    Inputs:
        begins, ends, symbols: strings, of any shape.
        skips: boolean ``[n]``, the strings that are copied unchanged. If omitted, none.

    Outputs: strings, of the shape of ``begins``.

    Source: openvino_tokenizers, BytesToChars; GPT-2, ``bytes_to_unicode``.
    """
    name = "BytesToChars"
    texts = unpack(name, begins, ends, symbols)
    skipped = skips_of(name, skips, len(texts))
    written = [
        text if skip else b"".join([_CHARACTERS[byte] for byte in text]) for text, skip in zip(texts, skipped, strict=True)
    ]
    return pack(name, written, begins.shape)


@BytesToChars.infer_shapes
def _(node):
    return [node.shape(0), node.shape(0), [None]]


@operator(inputs=ROWS_OF_STRINGS, outputs=STRINGS, no_body=NO_BODY)
def CharsToBytes(ragged_begins, ragged_ends, begins, ends, symbols):
    """Replaces the characters of byte-level vocabularies by their bytes, and joins the strings of each row.

    Inputs:
        ragged_begins, ragged_ends, begins, ends, symbols: rows of strings.

    Outputs: strings, of the shape of ``ragged_begins``. ASCII characters are their own bytes. A character without a byte
    is an error.

    Source: openvino_tokenizers, CharsToBytes.
    """
    name = "CharsToBytes"
    texts = unpack(name, begins, ends, symbols)
    places = rows(name, ragged_begins, ragged_ends, len(texts))
    plain = {place: _plain(name, texts[place]) for place in {place for row in places for place in row}}
    return pack(name, [b"".join([plain[place] for place in row]) for row in places], ragged_begins.shape)


@CharsToBytes.infer_shapes
def _(node):
    return [node.shape(0), node.shape(0), [None]]


def _plain(name: str, text: bytes) -> bytes:
    out, at = bytearray(), 0
    while at < len(text):
        size = 1 if text[at] < 0x80 else 2
        byte = text[at] if size == 1 else _BYTES.get(text[at : at + 2])
        if byte is None:
            raise ValueError(f"{name}: {text!r} has no byte at {at}")
        out.append(byte)
        at += size
    return bytes(out)
