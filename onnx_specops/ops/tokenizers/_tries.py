"""Longest match of a vocabulary's tokens in a text."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable


class LongestMatch:
    """Tokens and their ids. The last of equal tokens counts; empty tokens are ignored."""

    def __init__(self, tokens: Iterable[tuple[bytes, int]]) -> None:
        self._ids = {token: number for token, number in tokens if token}
        lengths: dict[int, set[int]] = defaultdict(set)
        for token in self._ids:
            lengths[token[0]].add(len(token))
        self._lengths = {first: sorted(sizes, reverse=True) for first, sizes in lengths.items()}

    def find(self, text: bytes, at: int) -> tuple[int, int]:
        """Return the id and length of the longest token at ``at``; -1 and 0 if there is none."""
        if at >= len(text):
            return -1, 0
        for length in self._lengths.get(text[at], ()):
            number = self._ids.get(text[at : at + length])
            if number is not None and at + length <= len(text):
                return number, length
        return -1, 0
