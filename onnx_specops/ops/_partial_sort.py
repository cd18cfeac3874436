"""The order of equal elements in ``std::partial_sort``.

OpenVINO's CPU plugin uses ``std::partial_sort`` of GCC's library, a heap sort that is not stable. This module reproduces its
order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

T = TypeVar("T")


def partial_sort(elements: list[T], limit: int, before: Callable[[T, T], bool]) -> list[T]:
    """Return the first ``limit`` of ``elements`` in the order of ``before``, with equal ones ordered like
    ``std::partial_sort``.
    """
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
    """Insert ``element`` below the hole at ``top`` of a heap of ``size``: sift down to a leaf, then up to its position."""
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
    """Return the positions of the ``limit`` highest ``scores``, best first, with equal ones ordered like `partial_sort`."""
    order = np.argsort(-scores, kind="stable")
    best = scores[order[: max(limit, 0) + 1]]
    if not (best[:-1] == best[1:]).any() and not np.isnan(scores).any():  # without equal scores or NaN the order is unique
        return order[: max(limit, 0)]
    values = scores.tolist()
    return np.array(partial_sort(list(range(len(values))), limit, lambda a, b: values[a] > values[b]), np.int64)
