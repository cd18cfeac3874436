"""UnigramTokenizer: the ids of the most likely tokens of strings."""

from __future__ import annotations

import functools
from typing import Annotated

import numpy as np

from onnx_specops.domain import Limits, operator
from onnx_specops.ops.tokenizers._strings import NO_BODY, RAGGED, ROWS_OF_STRINGS, pack_rows, rows, unpack
from onnx_specops.ops.tokenizers.bpe_tokenizer import VOCABULARY

_PENALTY = 10.0


@operator(
    inputs={**ROWS_OF_STRINGS, **VOCABULARY, "scores": "tensor(float)"},
    outputs={**RAGGED, "ids": "tensor(int32)"},
    no_body=NO_BODY,
)
def UnigramTokenizer(
    ragged_begins,
    ragged_ends,
    begins,
    ends,
    symbols,
    vocab_begins,
    vocab_ends,
    vocab_symbols,
    scores,
    *,
    unk_token_id: Annotated[int, Limits(-1, 2**31 - 1)],
):
    """Converts strings to ids. Of all sequences of tokens that form the string, the one with the largest sum of scores is
    selected.

    A character that is not a token is unknown. Its score is the lowest score minus 10. A run of unknown characters has one
    id. Sums are computed in float32. Among equal sums, the sequence with the longest last token is selected.

    Inputs:
        ragged_begins, ragged_ends, begins, ends, symbols: rows of strings.
        vocab_begins, vocab_ends, vocab_symbols: the token of every id, ``[vocabulary]``. Among equal tokens, the last
            applies.
        scores: ``[vocabulary]``.

    Attributes:
        unk_token_id: the id of unknown characters.

    Outputs:
        ragged_begins, ragged_ends: the begin and end of each row in ``ids``.
        ids: int32.

    Source: openvino_tokenizers, UnigramTokenizer; Kudo, "Subword regularization" (2018).
    """
    name = "UnigramTokenizer"
    texts = unpack(name, begins, ends, symbols)
    places = rows(name, ragged_begins, ragged_ends, len(texts))
    vocabulary = tuple(unpack(name, vocab_begins, vocab_ends, vocab_symbols, "vocab_"))
    if scores.size != len(vocabulary):
        raise ValueError(
            f"{name}: scores has {scores.size} elements instead of one for each of the {len(vocabulary)} tokens"
        )
    tokens, longest = _tokens(vocabulary)
    unknown = np.float32(float(scores.min(initial=np.finfo(np.float32).max)) - _PENALTY)
    encode = functools.cache(lambda text: _best(text, tokens, longest, scores.reshape(-1), unknown, unk_token_id))
    return pack_rows(name, [[i for place in row for i in encode(texts[place])] for row in places], ragged_begins.shape)


@UnigramTokenizer.infer_shapes
def _(node):
    return [node.shape(0), node.shape(0), [None]]


@functools.lru_cache(maxsize=8)
def _tokens(vocabulary: tuple[bytes, ...]) -> tuple[dict[bytes, int], dict[int, int]]:
    """Return the ids of tokens, and the longest token length for each first byte."""
    tokens = {token: number for number, token in enumerate(vocabulary) if token}
    longest: dict[int, int] = {}
    for token in tokens:
        longest[token[0]] = max(longest.get(token[0], 0), len(token))
    return tokens, longest


def _width(lead: int) -> int:
    """Return the number of bytes of a character from its first byte."""
    return 4 if lead >= 0xF0 else 3 if lead >= 0xE0 else 2 if lead >= 0xC0 else 1


def _best(
    text: bytes, tokens: dict[bytes, int], longest: dict[int, int], scores: np.ndarray, unknown: np.float32, unk_id: int
) -> list[int]:
    size = len(text)
    # The best path to every position: its score, the begin of its last token, and that token.
    sums = [np.float32(0)] * (size + 1)
    begins, ids = [-1] * (size + 1), [unk_id] * (size + 1)

    def reach(place: int, score: np.float32, begin: int, number: int) -> None:
        if begins[place] == -1 or score > sums[place]:
            sums[place], begins[place], ids[place] = score, begin, number

    at = 0
    while at < size:
        width = min(_width(text[at]), size - at)
        found = False
        for length in range(1, min(longest.get(text[at], 0), size - at) + 1):
            if (number := tokens.get(text[at : at + length])) is not None:
                reach(at + length, scores[number] + sums[at], at, number)
                found = found or length == width
        if not found:
            reach(at + width, unknown + sums[at], at, unk_id)
        at += width
    result: list[int] = []
    at, following = size, -1
    while at > 0:
        if not (ids[at] == unk_id and following == unk_id):
            result.append(ids[at])
            following = ids[at]
        at = begins[at]
    return result[::-1]
