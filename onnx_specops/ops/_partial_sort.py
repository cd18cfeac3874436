"""The order of elements that compare equal: OpenVINO's CPU plugin leaves it to ``std::partial_sort``, that of GCC's library,
which sorts with a heap. Here is what that gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

T = TypeVar("T")


def partial_sort(elements: list[T], limit: int, before: Callable[[T, T], bool]) -> list[T]:
    """The first ``limit`` of ``elements`` in the order of ``before``, equal ones as ``std::partial_sort`` leaves them."""
    elements = list(elements)
    most = min(max(limit, 0), len(elements))
    if not most:
        return []
    for i in reversed(range(most // 2)):
        _put(elements, i, most, elements[i], before)
    for i in (*range(most, len(elements)), *reversed(range(1, most))):
        if i < most or before(elements[i], elements[0]):
            element, elements[i] = elements[i], elements[0]
            _put(elements, 0, min(i, most), element, before)
    return elements[:most]


def _put(heap: list[T], top: int, size: int, element: T, before: Callable[[T, T], bool]) -> None:
    """Puts ``element`` below the hole at ``top`` of a heap of ``size``: all the way down, then up to its place."""
    hole = top
    while (child := 2 * hole + 2) < size:
        child -= before(heap[child], heap[child - 1])
        heap[hole], hole = heap[child], child
    if (child := 2 * hole + 1) < size:
        heap[hole], hole = heap[child], child
    while hole > top and before(heap[(hole - 1) // 2], element):
        heap[hole], hole = heap[(hole - 1) // 2], (hole - 1) // 2
    heap[hole] = element


def partially_sorted(scores: npt.NDArray[Any], limit: int) -> npt.NDArray[np.int64]:
    """The positions of the ``limit`` highest of ``scores``, best first, equal ones as `partial_sort` has them."""
    order = np.argsort(-scores, kind="stable")
    best = scores[order[: max(limit, 0) + 1]]
    if not (best[:-1] == best[1:]).any() and not np.isnan(scores).any():  # else there is but one order
        return order[: max(limit, 0)]
    values = scores.tolist()
    return np.array(partial_sort(list(range(len(values))), limit, lambda a, b: values[a] > values[b]), np.int64)
