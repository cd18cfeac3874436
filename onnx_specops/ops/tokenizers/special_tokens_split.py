"""SpecialTokensSplit: splits strings into special tokens and the text between them."""

from __future__ import annotations

import numpy as np

from onnx_specops.domain import operator
from onnx_specops.ops.tokenizers._patterns import PatternError, compiled
from onnx_specops.ops.tokenizers._strings import NO_BODY, RAGGED, ROWS_OF_STRINGS, bounds, rows, skips_of, unpack


@operator(
    inputs={**ROWS_OF_STRINGS, "skips": "tensor(bool)"},
    outputs={**RAGGED, "begins": "tensor(int32)", "ends": "tensor(int32)", "skips_out": "tensor(bool)"},
    no_body=NO_BODY,
)
def SpecialTokensSplit(ragged_begins, ragged_ends, begins, ends, symbols, skips=None, *, pattern: str):
    """Splits strings into special tokens and the text between them.

    Inputs:
        ragged_begins, ragged_ends, begins, ends, symbols: rows of strings.
        skips: boolean ``[n]``, the strings that are not split. If omitted, none.

    Attributes:
        pattern: a regular expression of PCRE2 for a token, compiled with UTF and UCP. If groups participate in the match,
            the token is the text of the last one, and the rest of the match is dropped. An empty match ends the search.

    Outputs:
        ragged_begins, ragged_ends: the begin and end of each row among the pieces.
        begins, ends: int32 ``[pieces]``, within ``symbols``.
        skips_out: boolean ``[pieces]``, whether a piece is a token or a string that was not split.

    Source: openvino_tokenizers, SpecialTokensSplit.
    """
    name = "SpecialTokensSplit"
    texts = unpack(name, begins, ends, symbols)
    places = rows(name, ragged_begins, ragged_ends, len(texts))
    skipped = skips_of(name, skips, len(texts))
    try:
        search = compiled(pattern)
    except PatternError as error:
        raise PatternError(f"{name}: {error}") from None
    starts = begins.reshape(-1).tolist()
    counts: list[int] = []
    pieces: list[tuple[int, int, bool]] = []
    for row in places:
        before = len(pieces)
        for place in row:
            start, text = starts[place], texts[place]
            if skipped[place]:
                pieces.append((start, start + len(text), True))
                continue
            at = 0
            for (first, end), *groups in search.subject(text).matches():
                token = next((g for g in reversed(groups) if first <= g[0] <= end and g[1] <= end), (first, end))
                if token[0] == token[1]:
                    token = (first, end)
                if at < first:
                    pieces.append((start + at, start + first, False))
                pieces.append((start + token[0], start + token[1], True))
                at = end
            if at < len(text):
                pieces.append((start + at, start + len(text), False))
        counts.append(len(pieces) - before)
    edges, spans = bounds(name, counts), np.array([piece[:2] for piece in pieces], np.int32).reshape(-1, 2)
    shape = ragged_begins.shape
    flags = np.array([piece[2] for piece in pieces], bool)
    return edges[:-1].reshape(shape), edges[1:].reshape(shape), spans[:, 0], spans[:, 1], flags


@SpecialTokensSplit.infer_shapes
def _(node):
    return [node.shape(0), node.shape(0), [None], [None], [None]]
