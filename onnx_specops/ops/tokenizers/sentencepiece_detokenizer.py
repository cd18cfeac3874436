"""SentencepieceDetokenizer: strings from the ids of a SentencePiece model's pieces."""

from __future__ import annotations

import numpy as np

from onnx_specops.domain import check_size, operator
from onnx_specops.ops.tokenizers._sentencepiece import PieceType
from onnx_specops.ops.tokenizers._strings import NO_BODY, STRINGS, pack, unpack
from onnx_specops.ops.tokenizers.bpe_tokenizer import VOCABULARY
from onnx_specops.ops.tokenizers.chars_map_normalization import Flag, character_size

_SPACE = "\u2581".encode()
_REPLACEMENT = "\ufffd".encode()


@operator(
    inputs={"ids": "tensor(int32)", **VOCABULARY, "types": "tensor(uint8)"},
    outputs=STRINGS,
    no_body=NO_BODY,
)
def SentencepieceDetokenizer(
    ids,
    vocab_begins,
    vocab_ends,
    vocab_symbols,
    types,
    *,
    unk_surface: str = " \u2047 ",
    add_dummy_prefix: Flag = 1,
    remove_extra_whitespaces: Flag = 1,
):
    """Converts rows of ids to text. The text is the concatenation of the pieces, with spaces instead of U+2581.

    Consecutive byte pieces are decoded as UTF-8. A byte that is not valid UTF-8 becomes U+FFFD.

    Inputs:
        ids: ``[rows, length]``. Ids outside the vocabulary are skipped; negative ids are an error.
        vocab_begins, vocab_ends, vocab_symbols: the piece of every id, ``[pieces]``.
        types: ``[pieces]``, as in SentencepieceTokenizer: control pieces (3) have no text, the unknown piece (2) has
            ``unk_surface``, and byte pieces (6) are written as ``<0x0A>``.

    Attributes:
        unk_surface: the text of the unknown piece.
        add_dummy_prefix, remove_extra_whitespaces: if either is set, the leading U+2581 of a row is removed. With
            ``remove_extra_whitespaces``, the leading U+2581 of every piece is removed until there is text.

    Outputs: strings, ``[rows]``.

    Source: openvino_tokenizers, SentencepieceDetokenizer; SentencePiece, ``sentencepiece_processor.cc``, ``Decode``.
    """
    name = "SentencepieceDetokenizer"
    if ids.ndim != 2:
        raise ValueError(f"{name}: ids has the shape {list(ids.shape)}; expected [rows, length]")
    pieces = unpack(name, vocab_begins, vocab_ends, vocab_symbols, "vocab_")
    if types.size != len(pieces):
        raise ValueError(f"{name}: types has {types.size} elements instead of one for each of the {len(pieces)} pieces")
    if (bad := np.flatnonzero(ids.reshape(-1) < 0)).size:
        raise IndexError(f"{name}: ids[{bad[0]}] = {ids.reshape(-1)[bad[0]]} is less than 0")
    kinds = types.reshape(-1).tolist()
    for place, kind in enumerate(kinds):
        if kind == PieceType.BYTE and byte_of(pieces[place]) is None:
            raise ValueError(f"{name}: types[{place}] = 6, but that piece is not a byte")
    flags = bool(add_dummy_prefix), bool(remove_extra_whitespaces)
    texts = [
        _decode([i for i in row if i < len(pieces)], pieces, kinds, unk_surface.encode(), *flags) for row in ids.tolist()
    ]
    check_size(f"{name}: symbols", sum(map(len, texts)), (ids, vocab_symbols))
    return pack(name, texts, (ids.shape[0],))


@SentencepieceDetokenizer.infer_shapes
def _(node):
    ids = node.shape(0)
    rows = None if ids is None else [ids[0]]
    return [rows, rows, [None]]


def byte_of(piece: bytes) -> int | None:
    """Return the byte that a piece such as ``<0x0A>`` represents."""
    if len(piece) == 6 and piece[:3] == b"<0x" and piece[5:] == b">" and set(piece[3:5]) <= set(b"0123456789ABCDEF"):
        return int(piece[3:5], 16)
    return None


def _decode(row: list[int], pieces: list[bytes], kinds: list[int], unknown: bytes, prefix: bool, squeeze: bool) -> bytes:
    out, pending = bytearray(), bytearray()
    at_begin, prefix_seen = True, False
    for place in row:
        kind, piece = kinds[place], pieces[place]
        if kind == PieceType.BYTE:
            pending.append(int(piece[3:5], 16))
            continue
        out += _valid(bytes(pending))
        pending.clear()
        at_begin = at_begin and not (prefix_seen or out)
        prefix_seen = False
        if kind == PieceType.UNKNOWN:
            out += unknown
        elif kind != PieceType.CONTROL:
            if at_begin and (prefix or squeeze) and piece.startswith(_SPACE):
                piece, prefix_seen = piece[len(_SPACE) :], not squeeze
            out += piece.replace(_SPACE, b" ")
    return bytes(out + _valid(bytes(pending)))


def _valid(data: bytes) -> bytes:
    """Decode bytes as UTF-8, with U+FFFD for each invalid byte."""
    out, at = bytearray(), 0
    while at < len(data):
        size = character_size(data, at)
        out += data[at : at + size] if size else _REPLACEMENT
        at += size or 1
    return bytes(out)
