"""BPETokenizer: strings to ids by byte-pair encoding."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from onnx_specops.domain import Limits, operator
from onnx_specops.ops.tokenizers._queue import MergeQueue
from onnx_specops.ops.tokenizers._strings import NO_BODY, RAGGED, ROWS_OF_STRINGS, pack_rows, rows, unpack
from onnx_specops.ops.tokenizers._tries import LongestMatch

VOCABULARY = {"vocab_begins": "tensor(int32)", "vocab_ends": "tensor(int32)", "vocab_symbols": "tensor(uint8)"}


@operator(
    inputs={
        **ROWS_OF_STRINGS,
        **VOCABULARY,
        "vocab_ids": "tensor(int32)",
        "merges": "tensor(int32)",
        "byte_ids": "tensor(int32)",
    },
    outputs={**RAGGED, "ids": "tensor(int32)"},
    no_body=NO_BODY,
)
def BPETokenizer(
    ragged_begins,
    ragged_ends,
    begins,
    ends,
    symbols,
    vocab_begins,
    vocab_ends,
    vocab_symbols,
    vocab_ids,
    merges,
    byte_ids=None,
    *,
    unk_token_id: Annotated[int, Limits(-1, 2**31 - 1)] = -1,
    end_suffix: str = "",
):
    """Converts strings to token ids by byte-pair encoding.

    A string is first split, from left to right, into the longest tokens of the vocabulary. Then, as long as adjacent tokens
    can be merged, the pair that is first in ``merges`` is merged. Of several such pairs, the leftmost is merged.

    Inputs:
        ragged_begins, ragged_ends, begins, ends, symbols: rows of strings.
        vocab_begins, vocab_ends, vocab_symbols: ``[tokens]``, the tokens that are not the result of a merge. Empty tokens
            are ignored.
        vocab_ids: their ids, ``[tokens]``.
        merges: ``[merges, 3]``, by priority: the ids of a pair and the id of the merged token. If a pair occurs twice,
            the last entry applies.
        byte_ids: ``[256]``, the ids of bytes with which no token begins, or -1 for bytes without an id. Omit this input if
            no byte has an id.

    Attributes:
        unk_token_id: the id of a byte without an id. -1 skips such bytes.
        end_suffix: a suffix that is appended to every string.

    Outputs:
        ragged_begins, ragged_ends: the begin and end of each row in ``ids``.
        ids: int32.

    Source: openvino_tokenizers, BPETokenizer; Sennrich, Haddow, Birch, "Neural machine translation of rare words with
    subword units" (2016).
    """
    name = "BPETokenizer"
    texts = unpack(name, begins, ends, symbols)
    places = rows(name, ragged_begins, ragged_ends, len(texts))
    model = _model(
        name,
        tuple(unpack(name, vocab_begins, vocab_ends, vocab_symbols, "vocab_")),
        vocab_ids.astype(np.int32).tobytes(),
        _merges(name, merges).tobytes(),
    )
    if byte_ids is not None and byte_ids.size != 256:
        raise ValueError(f"{name}: byte_ids has {byte_ids.size} elements instead of 256")
    fallback = [-1] * 256 if byte_ids is None else byte_ids.reshape(-1).tolist()
    fallback = [unk_token_id if i == -1 else i for i in fallback]
    suffix = end_suffix.encode()
    encode = functools.cache(lambda text: model.encode(text + suffix, fallback))
    ids = [[i for place in row for i in encode(texts[place])] for row in places]
    return pack_rows(name, ids, ragged_begins.shape)


@BPETokenizer.infer_shapes
def _(node):
    return [node.shape(0), node.shape(0), [None]]


def _merges(name: str, merges: np.ndarray) -> np.ndarray:
    if merges.ndim != 2 or merges.shape[1] != 3:
        raise ValueError(f"{name}: merges has the shape {list(merges.shape)}; expected [merges, 3]")
    return merges.astype(np.int32)


@dataclass
class _Model:
    tokens: LongestMatch
    merges: dict[tuple[int, int], tuple[int, int]]

    def encode(self, text: bytes, fallback: list[int]) -> list[int]:
        ids, at = [], 0
        while at < len(text):
            token, length = self.tokens.find(text, at)
            if not length:
                token, length = fallback[text[at]], 1
            if token != -1:
                ids.append(token)
            at += length
        return self._merged(ids)

    def _merged(self, ids: list[int]) -> list[int]:
        count = len(ids)
        before, after = list(range(-1, count - 1)), [*range(1, count), -1][:count]
        alive, queue, head = [True] * count, MergeQueue(), 0 if count else -1

        def push(left: int, right: int, order: int) -> None:
            if (merge := self.merges.get((ids[left], ids[right]))) is not None:
                queue.push((merge[0], order, merge[1], left, right))

        for left in range(count - 1):
            push(left, left + 1, left)
        order = max(0, count - 1)
        ids = list(ids)
        while queue and count >= 2:
            _, _, token, left, right = queue.pop()
            if not (alive[left] and alive[right]):
                continue
            previous, following, merged = before[left], after[right], len(ids)
            ids.append(token)
            before.append(previous)
            after.append(following)
            alive.append(True)
            alive[left] = alive[right] = False
            if previous == -1:
                head = merged
            else:
                after[previous] = merged
            if following != -1:
                before[following] = merged
            count -= 1
            order += 1
            if previous != -1:
                push(previous, merged, order)
            if following != -1:
                push(merged, following, order)
        result = []
        while head != -1:
            result.append(ids[head])
            head = after[head]
        return result


@functools.lru_cache(maxsize=8)
def _model(name: str, tokens: tuple[bytes, ...], ids: bytes, merges: bytes) -> _Model:
    numbers = np.frombuffer(ids, np.int32).tolist()
    if len(numbers) != len(tokens):
        raise ValueError(
            f"{name}: vocab_ids has {len(numbers)} elements instead of one for each of the {len(tokens)} tokens"
        )
    ranked = {}
    for rank, (left, right, merged) in enumerate(np.frombuffer(merges, np.int32).reshape(-1, 3).tolist()):
        ranked[left, right] = rank, merged
    return _Model(LongestMatch(zip(tokens, numbers, strict=True)), ranked)
