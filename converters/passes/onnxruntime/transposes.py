"""Transposes of several dimensions: ONNX Runtime's kernel (1.32) is fast only if one range of dimensions moves.

For any other order, it copies block by block. A block consists of the dimensions after the last one that moves, or is one
element, which takes 3.5 ns. If one range moves and blocks have 1, 2, 4 or 8 bytes, an element takes 0.1 to 0.4 ns.
Dimensions of 1 count as dimensions that move. The optimizer merges Transposes, also those before and after a Reshape, but
not those before and after a Flatten. To reverse (4, 256, 144) bytes, one Transpose takes 530 microseconds, and two take 40.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import count
from math import prod

import onnx_ir as ir

from converters.passes.patterns import PatternPass, rewrite
from converters.passes.simplification.data_movement import joined, permutation
from onnx_specops.building import Builder, Value

_LEAST_ELEMENTS, _LEAST_GAIN = 4096, 2.0
_MOST_RANGES = 6  # 720 orders
_UNKNOWN = 64  # the assumed size of an unknown dimension


@rewrite("Transpose", lambda op, x: op.Transpose(x, _outputs=["moved"]), exclusive=False)
def in_steps(op: Builder, *, x: Value, moved: Value) -> Value | None:
    """Transpose in steps that exchange two neighboring ranges of dimensions, without dimensions of 1.

    Conditions: the elements have 1 byte or more and are not strings; at most one dimension is unknown, and the others have
    `_LEAST_ELEMENTS` elements; at most `_MOST_RANGES` ranges of dimensions move; the estimated time is at most
    1 / `_LEAST_GAIN` of the kernel's for the original order.
    """
    order, dims = permutation(moved, x.rank), x.dims
    if order is None or dims is None or x.dtype is None or x.dtype == ir.DataType.STRING or x.dtype.itemsize < 1:
        return None
    sizes = [-1 if size is None else size for size in dims]
    if sizes.count(-1) > 1 or prod(size for size in sizes if size != -1) < _LEAST_ELEMENTS:
        return None
    ranges = _ranges([axis for axis in order if sizes[axis] != 1])
    if not 1 < len(ranges) <= _MOST_RANGES:
        return None

    def elements(axes: Sequence[int]) -> int:
        return prod(_UNKNOWN if sizes[axis] == -1 else sizes[axis] for axis in axes)

    itemsize = int(x.dtype.itemsize)
    rank = {start: place for place, start in enumerate(sorted(group[0] for group in ranges))}
    by_source = sorted(ranges)
    steps, time = _cheapest(tuple(rank[group[0]] for group in ranges), tuple(map(elements, by_source)), itemsize)
    moved_ranges = _ranges(order)
    if time * _LEAST_GAIN > _time_of_kernel(list(map(elements, moved_ranges)), moved_ranges, itemsize):
        return None
    result = x
    for step in steps:
        shape = [_size([sizes[axis] for place in part for axis in by_source[place]]) for part in step.parts]
        before = op.Flatten(result) if result is not x else x
        result = op.Transpose(op.Reshape(before, shape), perm=step.perm)
    return op.Reshape(result, [sizes[axis] for axis in order])


def _size(sizes: Sequence[int]) -> int:
    """Return the size of merged dimensions for Reshape: -1 if one is unknown."""
    return -1 if -1 in sizes else prod(sizes)


class TransposeInSteps(PatternPass):
    """Replace a slow Transpose by two or three fast ones."""

    rewrites = (in_steps,)


class MergeReshapes(PatternPass):
    """Merge the Reshapes of `TransposeInSteps` with those before and after them."""

    rewrites = (joined("Reshape", "Reshape"),)


@dataclass(frozen=True)
class _Step:
    """An exchange of two neighboring ranges.

    Attributes:
        before, first, second, after: the dimensions of each part, by their numbers in the input of the first step.
    """

    before: tuple[int, ...]
    first: tuple[int, ...]
    second: tuple[int, ...]
    after: tuple[int, ...]

    @property
    def parts(self) -> list[tuple[int, ...]]:
        """The parts that are not empty, in the order of the step's input."""
        return [part for part in (self.before, self.first, self.second, self.after) if part]

    @property
    def perm(self) -> list[int]:
        """The permutation of these parts."""
        start, rest = (1, [3]) if self.before else (0, [2])
        return [*range(start), start + 1, start, *(rest if self.after else [])]

    @property
    def result(self) -> tuple[int, ...]:
        """The order of all dimensions after the step."""
        return self.before + self.second + self.first + self.after


def _ranges(order: Sequence[int]) -> list[list[int]]:
    """Return the ranges of dimensions that stay together, in the order of the result.

    Dimensions that are not in ``order`` do not separate ranges.
    """
    place = {axis: number for number, axis in enumerate(sorted(order))}
    ranges: list[list[int]] = []
    for axis in order:
        if ranges and place[ranges[-1][-1]] + 1 == place[axis]:
            ranges[-1].append(axis)
        else:
            ranges.append([axis])
    return ranges


def _exchanges(order: tuple[int, ...]) -> Iterator[_Step]:
    rank = len(order)
    for start in range(rank):
        for middle in range(start + 1, rank):
            for end in range(middle + 1, rank + 1):
                yield _Step(order[:start], order[start:middle], order[middle:end], order[end:])


# Measured for one thread, in nanoseconds.
def _time_of_exchange(elements: int, block: int, itemsize: int) -> float:
    return elements * (0.12 + 0.06 * itemsize if block * itemsize in (1, 2, 4, 8) else 0.02 * itemsize + 9.0 / block)


def _time_of_kernel(sizes: Sequence[int], ranges: Sequence[Sequence[int]], itemsize: int) -> float:
    """Estimate the time of one Transpose to these ranges, whose sizes are given."""
    order, elements = [group[0] for group in ranges], prod(sizes)
    block = sizes[-1] if order[-1] == max(order) else 1
    if any(step.result == tuple(order) for step in _exchanges(tuple(sorted(order)))):
        return _time_of_exchange(elements, block, itemsize)
    return elements * (3.5 if block == 1 else 0.02 * itemsize + 5.2 / block)


@lru_cache(maxsize=256)
def _cheapest(order: tuple[int, ...], sizes: tuple[int, ...], itemsize: int) -> tuple[tuple[_Step, ...], float]:
    """Return the steps to an order of dimensions of the given sizes, and their estimated time in nanoseconds."""
    elements, start = prod(sizes), tuple(range(len(order)))
    number = count()  # decides between equal times
    queue: list[tuple[float, int, tuple[int, ...], tuple[_Step, ...]]] = [(0.0, next(number), start, ())]
    seen: set[tuple[int, ...]] = set()
    while queue:
        time, _, current, steps = heapq.heappop(queue)
        if current == order:
            return steps, time
        if current in seen:
            continue
        seen.add(current)
        for step in _exchanges(current):
            if step.result not in seen:
                block = prod(sizes[place] for place in step.after)
                next_time = time + 3000.0 + _time_of_exchange(elements, block, itemsize)
                heapq.heappush(queue, (next_time, next(number), step.result, (*steps, step)))
    raise AssertionError("exchanges reach every order")
