"""SentencepieceTokenizer: strings to the ids of a SentencePiece model's pieces."""

from __future__ import annotations

import functools
from typing import Annotated, Literal

import numpy as np

from onnx_specops.domain import Limits, check_size, operator
from onnx_specops.ops.tokenizers._sentencepiece import Pieces, SymbolsKept
from onnx_specops.ops.tokenizers._strings import NO_BODY, RAGGED, ROWS_OF_STRINGS, pack_rows, rows, skips_of, unpack
from onnx_specops.ops.tokenizers.bpe_tokenizer import VOCABULARY
from onnx_specops.ops.tokenizers.chars_map_normalization import CharsMap, Flag, normalize

Id = Annotated[int, Limits(-1, 2**31 - 1)]


@operator(
    inputs={
        **ROWS_OF_STRINGS,
        **VOCABULARY,
        "vocab_ids": "tensor(int32)",
        "scores": "tensor(float)",
        "types": "tensor(uint8)",
        "charsmap": "tensor(uint8)",
        "skips": "tensor(bool)",
    },
    outputs={**RAGGED, "ids": "tensor(int32)"},
    no_body=NO_BODY,
)
def SentencepieceTokenizer(
    ragged_begins,
    ragged_ends,
    begins,
    ends,
    symbols,
    vocab_begins,
    vocab_ends,
    vocab_symbols,
    vocab_ids,
    scores,
    types,
    charsmap=None,
    skips=None,
    *,
    model_type: Literal["unigram", "bpe", "word", "char"] = "unigram",
    add_dummy_prefix: Flag = 1,
    remove_extra_whitespaces: Flag = 1,
    escape_whitespaces: Flag = 1,
    treat_whitespace_as_suffix: Flag = 0,
    add_bos: Flag = 0,
    bos_id: Id = -1,
    add_eos: Flag = 0,
    eos_id: Id = -1,
    reverse: Flag = 0,
):
    """Converts strings to ids with a SentencePiece model. Each string is normalized, then split into pieces of the model.

    Strings are normalized as by CharsMapNormalization, except that the longest user-defined symbol at a position is kept. A
    unigram model selects the pieces with the largest sum of scores. A BPE model merges neighbors, highest score first. A
    word model splits before every U+2581. A character model splits between all characters, but not within user-defined
    symbols. Text that is not a piece is unknown. It becomes the ids of its bytes if the model contains byte pieces, and
    otherwise one id for each run of unknown pieces.

    Inputs:
        ragged_begins, ragged_ends, begins, ends, symbols: rows of strings.
        vocab_begins, vocab_ends, vocab_symbols: the pieces, ``[pieces]``, none of them empty. Among equal pieces, the
            first applies.
        vocab_ids: their ids, ``[pieces]``.
        scores: ``[pieces]``.
        types: ``[pieces]``, as SentencePiece numbers them: 1 normal, 2 unknown (exactly one), 3 control, 4 user-defined,
            5 unused, 6 a byte, such as ``<0x0A>`` (all 256 or no byte). 0 marks special tokens, for strings that skip
            the model.
        charsmap: as in CharsMapNormalization.
        skips: boolean ``[n]``, the strings that are special tokens. If omitted, none. Such a string becomes the id of the
            identical piece of type 0, or no id.

    Attributes:
        model_type: the type of the model.
        add_dummy_prefix, remove_extra_whitespaces, escape_whitespaces, treat_whitespace_as_suffix: as in
            CharsMapNormalization.
        add_bos: whether ``bos_id`` is inserted before the ids of every string that does not skip the model.
        add_eos: whether ``eos_id`` is appended to every row.
        reverse: whether the ids of a row, including ``bos_id`` and ``eos_id``, are reversed.

    Outputs:
        ragged_begins, ragged_ends: the begin and end of each row in ``ids``.
        ids: int32.

    Source: openvino_tokenizers, SentencepieceTokenizer; SentencePiece, ``normalizer.cc``, ``unigram_model.cc``,
    ``bpe_model.cc``, ``word_model.cc``, ``char_model.cc``; Kudo, Richardson, "SentencePiece" (2018).
    """
    name = "SentencepieceTokenizer"
    texts = unpack(name, begins, ends, symbols)
    places = rows(name, ragged_begins, ragged_ends, len(texts))
    skipped = skips_of(name, skips, len(texts))
    vocabulary = tuple(unpack(name, vocab_begins, vocab_ends, vocab_symbols, "vocab_"))
    for what, given in (("vocab_ids", vocab_ids), ("scores", scores), ("types", types)):
        if given.size != len(vocabulary):
            raise ValueError(
                f"{name}: {what} has {given.size} elements instead of one for each of the {len(vocabulary)} pieces"
            )
    pieces, numbers = _pieces(vocabulary, scores.tobytes(), types.tobytes()), vocab_ids.reshape(-1).tolist()
    mapping = SymbolsKept(CharsMap(b"" if charsmap is None else charsmap.tobytes()), pieces.symbols)
    settings = bool(add_dummy_prefix), bool(remove_extra_whitespaces), bool(escape_whitespaces)
    first = [bos_id] if add_bos else []

    @functools.cache
    def encode(text: bytes) -> list[int]:
        normalized = normalize(mapping, text, *settings, bool(treat_whitespace_as_suffix))
        check_size(f"{name}: a normalized string", len(normalized), (begins, symbols))
        return first + [numbers[place] for place in pieces.encode(normalized, model_type)]

    def row_ids(row: range) -> list[int]:
        ids = []
        for place in row:
            if not skipped[place]:
                ids += encode(texts[place])
            elif (special := pieces.special.get(texts[place])) is not None:
                ids.append(numbers[special])
        ids += [eos_id] if add_eos else []
        return ids[::-1] if reverse else ids

    return pack_rows(name, [row_ids(row) for row in places], ragged_begins.shape)


@SentencepieceTokenizer.infer_shapes
def _(node):
    return [node.shape(0), node.shape(0), [None]]


@functools.lru_cache(maxsize=8)
def _pieces(vocabulary: tuple[bytes, ...], scores: bytes, types: bytes) -> Pieces:
    name = "SentencepieceTokenizer"
    numbers = np.frombuffer(scores, np.float32)
    if b"" in vocabulary:
        raise ValueError(f"{name}: vocab_begins: piece {vocabulary.index(b'')} is empty")
    if np.isnan(numbers).any():
        raise ValueError(f"{name}: scores[{np.flatnonzero(np.isnan(numbers))[0]}] is NaN")
    if (bad := [i for i, kind in enumerate(types) if kind > 6]) != []:
        raise ValueError(f"{name}: types[{bad[0]}] = {types[bad[0]]} is greater than 6")
    try:
        return Pieces(vocabulary, numbers, tuple(types))
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None
