"""The permutations between channels in the second and in the last dimension."""

from __future__ import annotations


def channels_first(rank: int) -> list[int]:
    """Return the permutation that moves the channels from the last to the second dimension."""
    return [0, rank - 1, *range(1, rank - 1)]


def channels_last(rank: int) -> list[int]:
    """Return the permutation that moves the channels from the second to the last dimension."""
    return [0, *range(2, rank), 1]
