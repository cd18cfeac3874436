"""RegexSplit: splits strings at the matches of a regular expression."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

import numpy as np

from onnx_specops.domain import Limits, operator
from onnx_specops.ops.tokenizers._patterns import Pattern, PatternError, compiled
from onnx_specops.ops.tokenizers._strings import NO_BODY, RAGGED, ROWS_OF_STRINGS, bounds, rows, skips_of, unpack

Behaviour = Literal["remove", "isolate", "contiguous", "mergedwithprevious", "mergedwithnext"]


@operator(
    inputs={**ROWS_OF_STRINGS, "skips": "tensor(bool)"},
    outputs={**RAGGED, "begins": "tensor(int32)", "ends": "tensor(int32)", "skips_out": "tensor(bool)"},
    no_body=NO_BODY,
)
def RegexSplit(
    ragged_begins,
    ragged_ends,
    begins,
    ends,
    symbols,
    skips=None,
    *,
    pattern: str,
    behaviour: Behaviour = "remove",
    invert: Annotated[int, Limits(0, 1)] = 0,
    max_splits: Annotated[int, Limits(-1)] = -1,
):
    """Splits strings at the matches of a regular expression. ``behaviour`` determines the treatment of the matches.

    Inputs:
        ragged_begins, ragged_ends, begins, ends, symbols: rows of strings.
        skips: boolean ``[n]``, the strings that are not split. If omitted, none.

    Attributes:
        pattern: a regular expression of PCRE2, compiled with UTF and UCP. An empty match ends the search. Bytes that are
            not valid UTF-8 match nothing.
        behaviour: ``remove``: matches are dropped. ``isolate``: each match is a piece. ``contiguous``: consecutive
            matches are one piece. ``mergedwithprevious``, ``mergedwithnext``: a match is part of the piece before or
            after it.
        invert: whether matches and the text between them are swapped. It has no effect on ``isolate``.
        max_splits: the index (from 0) of the piece that extends to the end of the string; -1: no limit.

    Outputs:
        ragged_begins, ragged_ends: the begin and end of each row among the pieces. If there are no symbols, there is one row
            without pieces.
        begins, ends: int32 ``[pieces]``, within ``symbols``.
        skips_out: boolean ``[pieces]``, whether a piece is a string that was not split.

    Source: openvino_tokenizers, RegexSplit.
    """
    name = "RegexSplit"
    texts = unpack(name, begins, ends, symbols)
    places = rows(name, ragged_begins, ragged_ends, len(texts))
    skipped = skips_of(name, skips, len(texts))
    if not symbols.size:
        zero = np.zeros(1, np.int32)
        return zero, zero.copy(), begins.reshape(-1), ends.reshape(-1), np.array(skipped, bool)
    if behaviour == "contiguous" and not pattern.endswith("+"):
        pattern = f"({pattern})+"
    try:
        search = compiled(pattern)
    except PatternError as error:
        raise PatternError(f"{name}: {error}") from None
    starts = begins.reshape(-1).tolist()
    counts: list[int] = []
    pieces: list[tuple[int, int]] = []
    flags: list[bool] = []
    for row in places:
        before = len(pieces)
        for place in row:
            start, text = starts[place], texts[place]
            if skipped[place]:
                pieces.append((start, start + len(text)))
                flags.append(True)
            else:
                found = [(start + b, start + e) for b, e in _split(search, text, behaviour, bool(invert), max_splits)]
                pieces += found
                flags += [False] * len(found)
        counts.append(len(pieces) - before)
    edges, spans = bounds(name, counts), np.array(pieces, np.int32).reshape(-1, 2)
    shape = ragged_begins.shape
    return edges[:-1].reshape(shape), edges[1:].reshape(shape), spans[:, 0], spans[:, 1], np.array(flags, bool)


@RegexSplit.infer_shapes
def _(node):
    return [None if node.shape(0) is None else [None], None if node.shape(0) is None else [None], [None], [None], [None]]


def _split(pattern: Pattern, text: bytes, behaviour: str, invert: bool, max_splits: int) -> Iterator[tuple[int, int]]:
    size, count, last, at = len(text), 0, -1, 0

    def pieces() -> Iterator[tuple[int, int, bool]]:
        """Iterate over all parts of the string, with a flag for those that ``behaviour`` applies to."""
        nonlocal at
        for match in pattern.subject(text).matches():
            first, end = match[0]
            if first != at:
                yield at, first, invert
            yield first, end, not invert
            at = end
        if at < size:
            yield at, size, invert
        elif behaviour == "mergedwithnext" and last != size:
            yield last, size, invert

    for first, end, is_delimiter in pieces():
        if behaviour == "remove" and is_delimiter:
            continue
        if behaviour == "mergedwithprevious":
            if not is_delimiter and end != size:
                last = first
                continue
            if is_delimiter:
                first = last
        elif behaviour == "mergedwithnext":
            if is_delimiter:
                last = first
                continue
            if last != -1:
                first = last
        yield max(0, first), size if count == max_splits else min(size, end)
        count += 1
