"""VocabDecoder: the tokens of a vocabulary by id."""

from __future__ import annotations

import numpy as np

from onnx_specops.domain import check_size, operator
from onnx_specops.ops.tokenizers._strings import NO_BODY, ROWS_OF_STRINGS, pack, unpack
from onnx_specops.ops.tokenizers.bpe_tokenizer import VOCABULARY


@operator(
    inputs={"ids": "tensor(int32)", **VOCABULARY, "skip_tokens": "tensor(int32)"}, outputs=ROWS_OF_STRINGS, no_body=NO_BODY
)
def VocabDecoder(ids, vocab_begins, vocab_ends, vocab_symbols, skip_tokens=None):
    """Converts ids to their tokens.

    Inputs:
        ids: ``[rows, length]``.
        vocab_begins, vocab_ends, vocab_symbols: the token of every id, ``[vocabulary]``.
        skip_tokens: the ids that become empty strings. Ids outside the vocabulary become empty strings too.

    Outputs: rows of strings, one for each id; a row without ids has one empty string.

    Source: openvino_tokenizers, VocabDecoder.
    """
    name = "VocabDecoder"
    if ids.ndim != 2:
        raise ValueError(f"{name}: ids has the shape {list(ids.shape)}; expected [rows, length]")
    vocabulary = unpack(name, vocab_begins, vocab_ends, vocab_symbols, "vocab_")
    skipped = set() if skip_tokens is None else set(skip_tokens.reshape(-1).tolist())
    count, length = ids.shape[0], max(1, ids.shape[1])
    if ids.shape[1]:
        tokens = [vocabulary[i] if 0 <= i < len(vocabulary) and i not in skipped else b"" for i in ids.reshape(-1).tolist()]
    else:
        tokens = [b""] * count
    check_size(f"{name}: symbols", sum(map(len, tokens)), (ids, vocab_symbols))
    edges = np.arange(count + 1, dtype=np.int32) * length
    return edges[:-1], edges[1:], *pack(name, tokens, (len(tokens),))


@VocabDecoder.infer_shapes
def _(node):
    ids = node.shape(0)
    rows = None if ids is None else [ids[0]]
    return [rows, rows, [None], [None], [None]]
