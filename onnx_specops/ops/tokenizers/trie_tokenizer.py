"""TrieTokenizer: strings to the ids of the longest tokens, from left to right."""

from __future__ import annotations

import functools

import numpy as np

from onnx_specops.domain import operator
from onnx_specops.hashing import quoted
from onnx_specops.ops.tokenizers._strings import NO_BODY, RAGGED, ROWS_OF_STRINGS, pack_rows, rows, unpack
from onnx_specops.ops.tokenizers._tries import LongestMatch
from onnx_specops.ops.tokenizers.bpe_tokenizer import VOCABULARY


@operator(
    inputs={**ROWS_OF_STRINGS, **VOCABULARY, "vocab_ids": "tensor(int32)"},
    outputs={**RAGGED, "ids": "tensor(int32)"},
    no_body=NO_BODY,
)
def TrieTokenizer(ragged_begins, ragged_ends, begins, ends, symbols, vocab_begins, vocab_ends, vocab_symbols, vocab_ids):
    """Converts strings to ids. At each position, the longest matching token is selected.

    Inputs:
        ragged_begins, ragged_ends, begins, ends, symbols: rows of strings.
        vocab_begins, vocab_ends, vocab_symbols: the tokens, ``[tokens]``. Among equal tokens, the last applies.
        vocab_ids: their ids, ``[tokens]``.

    Outputs:
        ragged_begins, ragged_ends: the begin and end of each row in ``ids``.
        ids: int32. A position at which no token matches is an error.

    Source: openvino_tokenizers, TrieTokenizer.
    """
    name = "TrieTokenizer"
    texts = unpack(name, begins, ends, symbols)
    places = rows(name, ragged_begins, ragged_ends, len(texts))
    vocabulary = tuple(unpack(name, vocab_begins, vocab_ends, vocab_symbols, "vocab_"))
    if vocab_ids.size != len(vocabulary):
        raise ValueError(
            f"{name}: vocab_ids has {vocab_ids.size} elements instead of one for each of the {len(vocabulary)} tokens"
        )
    tokens = _tokens(vocabulary, vocab_ids.astype(np.int32).tobytes())

    @functools.cache
    def encode(text: bytes) -> list[int]:
        ids, at = [], 0
        while at < len(text):
            number, length = tokens.find(text, at)
            if not length:
                raise ValueError(f"{name}: no token for {quoted(text[at:])}")
            ids.append(number)
            at += length
        return ids

    return pack_rows(name, [[i for place in row for i in encode(texts[place])] for row in places], ragged_begins.shape)


@TrieTokenizer.infer_shapes
def _(node):
    return [node.shape(0), node.shape(0), [None]]


@functools.lru_cache(maxsize=8)
def _tokens(vocabulary: tuple[bytes, ...], ids: bytes) -> LongestMatch:
    return LongestMatch(zip(vocabulary, np.frombuffer(ids, np.int32).tolist(), strict=True))
