"""WordpieceTokenizer: the ids of the longest subwords of words."""

from __future__ import annotations

import functools
from typing import Annotated

from onnx_specops.domain import Limits, operator
from onnx_specops.ops.tokenizers._strings import NO_BODY, RAGGED, ROWS_OF_STRINGS, pack_rows, rows, unpack
from onnx_specops.ops.tokenizers._tries import LongestMatch
from onnx_specops.ops.tokenizers.bpe_tokenizer import VOCABULARY


@operator(inputs={**ROWS_OF_STRINGS, **VOCABULARY}, outputs={**RAGGED, "ids": "tensor(int32)"}, no_body=NO_BODY)
def WordpieceTokenizer(
    ragged_begins,
    ragged_ends,
    begins,
    ends,
    symbols,
    vocab_begins,
    vocab_ends,
    vocab_symbols,
    *,
    suffix_indicator: str = "##",
    max_bytes_per_word: Annotated[int, Limits(0)] = 100,
    unk_token_id: Annotated[int, Limits(-1, 2**31 - 1)],
):
    """Converts words to ids. At each position in a word, the longest matching token is selected.

    Inputs:
        ragged_begins, ragged_ends, begins, ends, symbols: rows of words.
        vocab_begins, vocab_ends, vocab_symbols: the token of every id, ``[vocabulary]``. Among equal tokens, the last
            applies.

    Attributes:
        suffix_indicator: the prefix of tokens that continue a word.
        max_bytes_per_word: the largest length of a word; a longer word is unknown.
        unk_token_id: the id of a word that cannot be split into tokens.

    Outputs:
        ragged_begins, ragged_ends: the begin and end of each row in ``ids``.
        ids: int32.

    Source: openvino_tokenizers, WordpieceTokenizer.
    """
    name = "WordpieceTokenizer"
    words = unpack(name, begins, ends, symbols)
    places = rows(name, ragged_begins, ragged_ends, len(words))
    vocabulary = tuple(unpack(name, vocab_begins, vocab_ends, vocab_symbols, "vocab_"))
    first, following = _parts(vocabulary, suffix_indicator.encode())

    @functools.cache
    def encode(word: bytes) -> list[int]:
        if len(word) > max_bytes_per_word:
            return [unk_token_id]
        number, at = first.find(word, 0)
        ids = [number]
        while at and at < len(word):
            number, length = following.find(word, at)
            ids.append(number)
            at = at + length if length else 0
        return ids if at else [unk_token_id]

    return pack_rows(name, [[i for place in row for i in encode(words[place])] for row in places], ragged_begins.shape)


@WordpieceTokenizer.infer_shapes
def _(node):
    return [node.shape(0), node.shape(0), [None]]


@functools.lru_cache(maxsize=8)
def _parts(vocabulary: tuple[bytes, ...], indicator: bytes) -> tuple[LongestMatch, LongestMatch]:
    """Return the tokens that begin words, and those that continue them."""
    numbered = [(token, number) for number, token in enumerate(vocabulary)]
    first = LongestMatch((token, number) for token, number in numbered if not token.startswith(indicator))
    return first, LongestMatch(
        (token[len(indicator) :], number) for token, number in numbered if token.startswith(indicator)
    )
