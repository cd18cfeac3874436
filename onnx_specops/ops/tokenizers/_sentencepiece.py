"""The segmentation of normalized text into pieces by SentencePiece's four model types."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from enum import IntEnum

import numpy as np

from onnx_specops.ops.tokenizers._queue import MergeQueue
from onnx_specops.ops.tokenizers._tries import LongestMatch
from onnx_specops.ops.tokenizers.chars_map_normalization import Prefixes

_SPACE = "\u2581".encode()
_PENALTY = np.float32(10)
# the initial values of SentencePiece's search for minimum and maximum
_LEAST, _MOST = np.finfo(np.float32).max, np.finfo(np.float32).tiny


class PieceType(IntEnum):
    """The types of a SentencePiece model's pieces, numbered as in its file; 0 marks special tokens, which it does
    not have.
    """

    SPECIAL = 0
    NORMAL = 1
    UNKNOWN = 2
    CONTROL = 3
    USER_DEFINED = 4
    UNUSED = 5
    BYTE = 6


RESERVED = (PieceType.UNKNOWN, PieceType.CONTROL, PieceType.BYTE)
"""The types of pieces that do not occur in texts."""

_MERGEABLE = (PieceType.NORMAL, PieceType.USER_DEFINED, PieceType.UNUSED)


class SymbolsKept:
    """A character map that leaves the longest user-defined symbol at each position unchanged."""

    def __init__(self, mapping: Prefixes, symbols: LongestMatch) -> None:
        self._mapping, self._symbols = mapping, symbols

    def prefix(self, text: bytes, at: int) -> tuple[bytes, int]:
        """See `CharsMap.prefix`."""
        _, length = self._symbols.find(text, at)
        return (text[at : at + length], length) if length else self._mapping.prefix(text, at)


class Pieces:
    """The pieces of a model with their lookup tables. Raises ``ValueError`` for models that SentencePiece does not load.

    Args:
        pieces: byte strings; a piece is identified by its position.
        scores: one per piece.
        types: one `PieceType` per piece.
    """

    def __init__(self, pieces: Sequence[bytes], scores: np.ndarray, types: Sequence[int]) -> None:
        self.pieces, self.types, self.scores = pieces, types, scores
        self.special = self._by_text(PieceType.SPECIAL)
        self.mergeable = self._by_text(*_MERGEABLE)
        self.reserved = self._by_text(PieceType.UNKNOWN, PieceType.CONTROL, PieceType.BYTE)
        self.symbols = LongestMatch(self._by_text(PieceType.USER_DEFINED).items())
        unknown = [place for place, kind in enumerate(types) if kind == PieceType.UNKNOWN]
        if len(unknown) != 1:
            raise ValueError(f"types: {len(unknown)} pieces are unknown (2); expected one")
        self.unknown = unknown[0]
        self.bytes = [self.reserved.get(b"<0x%02X>" % byte, -1) for byte in range(256)] if PieceType.BYTE in types else []
        if self.bytes and min(self.bytes) < 0:
            raise ValueError("types: there are bytes (6), but not all 256")

    def _by_text(self, *kinds: PieceType) -> dict[bytes, int]:
        found: dict[bytes, int] = {}
        for place, (piece, kind) in enumerate(zip(self.pieces, self.types, strict=True)):
            if kind in kinds:
                found.setdefault(piece, place)
        return found

    def find(self, text: bytes) -> int:
        """Return the index of a piece, or that of the unknown piece."""
        place = self.reserved.get(text)
        return self.mergeable.get(text, self.unknown) if place is None else place

    def encode(self, text: bytes, model_type: str) -> list[int]:
        """Return the indices of the pieces of a normalized text."""
        places, after_unknown = [], False
        for piece, place in self._cut(text, model_type):
            is_unknown = place == self.unknown
            if is_unknown and self.bytes:
                places += [self.bytes[byte] for byte in piece]
            elif not (is_unknown and after_unknown):
                places.append(place)
            after_unknown = is_unknown
        return places

    def _cut(self, text: bytes, model_type: str) -> list[tuple[bytes, int]]:
        if model_type == "unigram":
            return self._best_segmentation(text)
        cut = {"bpe": self._merged, "word": _words, "char": self._characters}[model_type]
        return [(piece, self.find(piece)) for piece in cut(text)]

    def _characters(self, text: bytes) -> list[bytes]:
        return [text[begin:end] for begin, end, _ in self._units(text)]

    def _units(self, text: bytes) -> Iterator[tuple[int, int, bool]]:
        """Iterate over user-defined symbols and other characters: begin, end, and whether it is a symbol."""
        at = 0
        while at < len(text):
            _, length = self.symbols.find(text, at)
            end = at + length if length else min(at + _width(text[at]), len(text))
            yield at, end, bool(length)
            at = end

    # -- unigram --

    @functools.cached_property
    def _likelihoods(self) -> tuple[list[float], dict[int, int], np.float32]:
        """Return the used scores, the longest piece length for each first byte, and the score of unknown pieces."""
        normal = [score for score, kind in zip(self.scores, self.types, strict=True) if kind == PieceType.NORMAL]
        least, most = min([_LEAST, *normal]), max([_MOST, *normal])
        scores = [
            float(np.float32(len(piece)) * most) - 0.1 if kind == PieceType.USER_DEFINED else float(score)
            for piece, score, kind in zip(self.pieces, self.scores, self.types, strict=True)
        ]
        longest: dict[int, int] = {}
        for piece in self.mergeable:
            longest[piece[0]] = max(longest.get(piece[0], 0), len(piece))
        return scores, longest, np.float32(least - _PENALTY)

    def _best_segmentation(self, text: bytes) -> list[tuple[bytes, int]]:
        scores, longest, penalty = self._likelihoods
        size = len(text)
        sums, begins, places = [np.float32(0)] * (size + 1), [-1] * (size + 1), [-1] * (size + 1)

        # SentencePiece adds and compares in double, but stores float.
        def reach(end: int, total: float, begin: int, place: int) -> None:
            if begins[end] == -1 or total > sums[end]:
                sums[end], begins[end], places[end] = np.float32(total), begin, place

        at = 0
        while at < size:
            width, found = min(_width(text[at]), size - at), False
            for length in range(1, min(longest.get(text[at], 0), size - at) + 1):
                place = self.mergeable.get(text[at : at + length])
                if place is None or self.types[place] == PieceType.UNUSED:
                    continue
                reach(at + length, scores[place] + float(sums[at]), at, place)
                found = found or length == width
            if not found:
                reach(at + width, float(penalty + sums[at]), at, self.unknown)
            at += width
        result, end = [], size
        while end > 0:
            result.append((text[begins[end] : end], places[end]))
            end = begins[end]
        return result[::-1]

    # -- byte pairs --

    @functools.cached_property
    def _ranks(self) -> list[int]:
        return np.unique(-self.scores, return_inverse=True)[1].reshape(-1).tolist()

    def _merged(self, text: bytes) -> list[bytes]:
        units = list(self._units(text))
        begins, ends, kept = [list(column) for column in zip(*units, strict=True)] if units else ([], [], [])
        count = len(units)
        before, after = list(range(-1, count - 1)), [*range(1, count), -1][:count]
        queue, halves = MergeQueue(), dict[bytes, tuple[bytes, bytes]]()

        def push(left: int, right: int) -> None:
            if left == -1 or right == -1 or kept[left] or kept[right]:
                return
            place = self.mergeable.get(text[begins[left] : ends[right]])
            if place is None:
                return
            queue.push((self._ranks[place], left, ends[right] - begins[left], left, right))
            if self.types[place] == PieceType.UNUSED:
                middle = ends[left]
                halves[self.pieces[place]] = text[begins[left] : middle], text[middle : ends[right]]

        for right in range(1, count):
            push(right - 1, right)
        while queue:
            _, _, size, left, right = queue.pop()
            lengths = ends[left] - begins[left], ends[right] - begins[right]
            if not lengths[0] or not lengths[1] or sum(lengths) != size:
                continue
            ends[left], after[left] = ends[right], after[right]
            if after[right] >= 0:
                before[after[right]] = left
            begins[right] = ends[right]
            push(before[left], left)
            push(left, after[left])
        result, at = [], 0 if count else -1
        while at != -1:
            result += self._split_unused(text[begins[at] : ends[at]], halves)
            at = after[at]
        return result

    def _split_unused(self, piece: bytes, halves: dict[bytes, tuple[bytes, bytes]]) -> list[bytes]:
        """Split unused pieces again, which only serve as intermediate results of merges."""
        pending, result = [piece], []
        while pending:
            piece = pending.pop()
            if self.types[self.find(piece)] == PieceType.UNUSED and piece in halves:
                pending += reversed(halves[piece])
            else:
                result.append(piece)
        return result


def _words(text: bytes) -> list[bytes]:
    """Split a text before every U+2581."""
    result, begin, at = [], 0, 0
    while at < len(text):
        if at > begin and text.startswith(_SPACE, at):
            result.append(text[begin:at])
            begin = at
        at += _width(text[at])
    return [*result, text[begin:]] if text else []


def _width(lead: int) -> int:
    """Return the number of bytes of a character from its first byte."""
    return 4 if lead >= 0xF0 else 3 if lead >= 0xE0 else 2 if lead >= 0xC0 else 1
