"""The longest token of a vocabulary that a text goes on with."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable


class LongestMatch:
    """Tokens and their ids; of equal tokens the last counts, empty ones count for nothing."""

    def __init__(self, tokens: Iterable[tuple[bytes, int]]) -> None:
        self._ids = {token: number for token, number in tokens if token}
        lengths: dict[int, set[int]] = defaultdict(set)
        for token in self._ids:
            lengths[token[0]].add(len(token))
        self._lengths = {first: sorted(sizes, reverse=True) for first, sizes in lengths.items()}

    def find(self, text: bytes, at: int) -> tuple[int, int]:
        """The id and the length of the longest token at ``at``; -1 and 0 where there is none."""
        if at >= len(text):
            return -1, 0
        for length in self._lengths.get(text[at], ()):
            number = self._ids.get(text[at : at + length])
            if number is not None and at + length <= len(text):
                return number, length
        return -1, 0
