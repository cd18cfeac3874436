"""The merge queue of byte-pair encoding."""

from __future__ import annotations

Entry = tuple[int, int, int, int, int]
"""Rank and order, smallest first, and other data of the merge."""


class MergeQueue:
    """A binary heap that returns entries of equal rank and order in the order of libstdc++'s ``std::priority_queue``.

    Both neighbors of a merged pair may have the same merge, and the order of these determines the tokens.
    """

    def __init__(self) -> None:
        self._heap: list[Entry] = []

    def __len__(self) -> int:
        return len(self._heap)

    def push(self, entry: Entry) -> None:
        """Add an entry."""
        self._heap.append(entry)
        self._rise(len(self._heap) - 1, entry)

    def pop(self) -> Entry:
        """Remove and return the first entry."""
        heap = self._heap
        first, entry = heap[0], heap.pop()
        if not heap:
            return first
        size, hole, child = len(heap), 0, 0
        while child < (size - 1) // 2:
            child = 2 * (child + 1)
            if heap[child][:2] > heap[child - 1][:2]:
                child -= 1
            heap[hole] = heap[child]
            hole = child
        if size % 2 == 0 and child == (size - 2) // 2:
            child = 2 * child + 1
            heap[hole] = heap[child]
            hole = child
        self._rise(hole, entry)
        return first

    def _rise(self, hole: int, entry: Entry) -> None:
        heap = self._heap
        while hole and heap[(hole - 1) // 2][:2] > entry[:2]:
            heap[hole] = heap[(hole - 1) // 2]
            hole = (hole - 1) // 2
        heap[hole] = entry
