"""Strings as bytes in one buffer, and rows of them: the tensors of tokenizer kernels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from onnx_specops.domain import check_size

STRINGS = {"begins": "tensor(int32)", "ends": "tensor(int32)", "symbols": "tensor(uint8)"}
"""A tensor of strings."""

RAGGED = {"ragged_begins": "tensor(int32)", "ragged_ends": "tensor(int32)"}
"""The elements of a row."""

ROWS_OF_STRINGS = {**RAGGED, **STRINGS}

NO_BODY = "standard ONNX has no operator that reads the bytes of strings"


def check_spans(name: str, what: tuple[str, str], begins: np.ndarray, ends: np.ndarray, size: int) -> None:
    """Raise an error unless every ``begins[i] <= ends[i]`` is within ``[0, size]``.

    Args:
        name: the operator.
        what: the names of the two inputs.
        begins, ends: integers of the same shape.
        size: the number of elements.
    """
    if begins.shape != ends.shape:
        raise ValueError(
            f"{name}: {what[1]} has the shape {list(ends.shape)}; expected that of {what[0]}, {list(begins.shape)}"
        )
    first, last = begins.reshape(-1), ends.reshape(-1)
    for input_name, offsets in ((what[0], first), (what[1], last)):
        if (bad := np.flatnonzero((offsets < 0) | (offsets > size))).size:
            raise IndexError(f"{name}: {input_name}[{bad[0]}] = {offsets[bad[0]]} is out of range [0, {size}]")
    if (bad := np.flatnonzero(first > last)).size:
        at = bad[0]
        raise ValueError(f"{name}: {what[0]}[{at}] = {first[at]} is greater than {what[1]}[{at}] = {last[at]}")


def unpack(name: str, begins: np.ndarray, ends: np.ndarray, symbols: np.ndarray, prefix: str = "") -> list[bytes]:
    """Return the strings that the three tensors represent.

    Args:
        name: the operator, for messages.
        begins, ends: integers of any shape.
        symbols: uint8 ``[n]``.
        prefix: the prefix of the inputs' names.
    """
    if symbols.ndim != 1:
        raise ValueError(f"{name}: {prefix}symbols has the shape {list(symbols.shape)}; expected one dimension")
    check_spans(name, (f"{prefix}begins", f"{prefix}ends"), begins, ends, len(symbols))
    first, last = begins.reshape(-1), ends.reshape(-1)
    check_size(f"{name}: {prefix}symbols", int((last - first).sum(dtype=np.int64)), (begins, ends, symbols))
    text = symbols.tobytes()
    return [text[b:e] for b, e in zip(first.tolist(), last.tolist(), strict=True)]


def skips_of(name: str, skips: np.ndarray | None, count: int) -> list[bool]:
    """Return which of ``count`` strings are unchanged: none if ``skips`` is omitted or empty."""
    if skips is None or not skips.size:
        return [False] * count
    if skips.size != count:
        raise ValueError(f"{name}: skips has {skips.size} elements instead of one for each of the {count} strings")
    return skips.reshape(-1).tolist()


def rows(name: str, ragged_begins: np.ndarray, ragged_ends: np.ndarray, count: int) -> list[range]:
    """Return the indices of every row's elements among ``count``."""
    check_spans(name, ("ragged_begins", "ragged_ends"), ragged_begins, ragged_ends, count)
    first, last = ragged_begins.reshape(-1), ragged_ends.reshape(-1)
    check_size(f"{name}: rows", int((last - first).sum(dtype=np.int64)), (ragged_begins, first, last, np.empty(count)))
    return [range(b, e) for b, e in zip(first.tolist(), last.tolist(), strict=True)]


def bounds(name: str, lengths: Sequence[int]) -> np.ndarray:
    """Return the begin of consecutive elements, and the end of the last one: int32 ``[len(lengths) + 1]``."""
    result = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(np.asarray(lengths, np.int64), out=result[1:])
    if result[-1] > np.iinfo(np.int32).max:
        raise ValueError(f"{name}: more elements than an int32 can count")
    return result.astype(np.int32)


def pack(name: str, texts: Sequence[bytes], shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return consecutive strings in one buffer as begins and ends of ``shape``, and symbols."""
    edges = bounds(name, [len(text) for text in texts])
    return edges[:-1].reshape(shape), edges[1:].reshape(shape), np.frombuffer(b"".join(texts), np.uint8)


def pack_rows(name: str, ids: Sequence[Sequence[int]], shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return rows of ids as begins and ends of ``shape``, and int32 elements."""
    edges = bounds(name, [len(row) for row in ids])
    return edges[:-1].reshape(shape), edges[1:].reshape(shape), np.array([i for row in ids for i in row], np.int32)
