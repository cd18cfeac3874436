"""Transposed convolutions as convolutions.

The output pixels at one offset within the stride are a convolution of the input. The convolutions for all offsets are
combined into one convolution, which has the output channels of all offsets. They then become blocks of output pixels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

_MOST_GROWTH = 4
"""The maximum factor by which the weights may grow along each dimension."""


@dataclass(frozen=True)
class TransposedAxis:
    """A spatial dimension of a transposed convolution as a convolution.

    Attributes:
        kernel, stride: those of the transposed convolution.
        taps: the kernel of the convolution.
        pads: its padding at the beginning and the end.
        cut: the superfluous output pixels at the beginning and the end.
    """

    kernel: int
    stride: int
    taps: int
    pads: tuple[int, int]
    cut: tuple[int, int]

    @classmethod
    def of(cls, kernel: int, stride: int, begin: int, end: int, more: int) -> Self | None:
        """Return the dimension for pads and an output padding.

        It is ``None`` if the convolution would have negative pads, or weights that are mostly zeros, because the stride is
        much larger than the kernel.
        """
        taps = -(-kernel // stride)
        first = begin // stride  # the last input pixel of the first output pixel
        pads = taps - 1 - first, (kernel - 1 - end + more) // stride
        cut = begin - first * stride, (pads[1] + 1) * stride + end - kernel - more
        if min(pads) < 0 or taps * stride > _MOST_GROWTH * kernel:
            return None
        return cls(kernel, stride, taps, pads, cut)

    def sources(self) -> np.ndarray:
        """Return the tap of the transposed convolution for each offset and tap of the convolution, if less than `kernel`."""
        return np.arange(self.stride)[:, None] + self.stride * np.arange(self.taps)[::-1]


def convolved(numbers: np.ndarray, axes: Sequence[TransposedAxis]) -> np.ndarray:
    """Return weights ``[C, M, k1, ...]`` as those of a convolution, ``[offsets of all dimensions * M, C, taps, ...]``."""
    for i, axis in enumerate(axes):
        at = 2 + 2 * i  # each finished dimension is two: offsets and taps
        room = [(0, 0)] * numbers.ndim
        room[at] = (0, axis.taps * axis.stride - axis.kernel)
        numbers = np.pad(numbers, room).take(axis.sources(), axis=at)
    rank = len(axes)
    order = [*range(2, 2 + 2 * rank, 2), 1, 0, *range(3, 3 + 2 * rank, 2)]
    moved = numbers.transpose(order)
    return np.ascontiguousarray(moved.reshape(-1, *moved.shape[rank + 1 :]))
