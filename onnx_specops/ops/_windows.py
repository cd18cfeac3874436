"""The windows of convolutions: strides, dilations and padding as attributes, and the numbers of windows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from onnx_specops.assertions import required
from onnx_specops.ops._integer_lists import parse_integers


class Windows:
    """The windows that the attributes of a convolution define.

    Attributes:
        strides, dilations: one number for each spatial dimension.
        pads: the padding at the beginning and the end of each dimension.
        may_be_none: whether the input of windows of one pixel may have no pixels, as in a matrix multiplication without
            rows.
    """

    def __init__(
        self, operator: str, rank: int, strides: str, pads: str, dilations: str, *, may_be_none: bool = False
    ) -> None:
        """Raise ``ValueError`` if an attribute is not such a list, or a stride or dilation is 0."""
        self.operator, self.may_be_none = operator, may_be_none
        self.strides = parse_integers(operator, "strides", strides, rank, 1)
        self.dilations = parse_integers(operator, "dilations", dilations, rank, 1)
        if min(*self.strides, *self.dilations) < 1:
            raise ValueError(f"{operator}: strides and dilations must be at least 1")
        both = parse_integers(operator, "pads", pads, 2 * rank, 0)
        self.pads = list(zip(both[:rank], both[rank:], strict=True))

    @property
    def all_pads(self) -> list[int]:
        """The padding at the beginnings, then at the ends, as ONNX's Conv has it."""
        begins, ends = zip(*self.pads, strict=True)
        return [*begins, *ends]

    def sizes(self, pixels: Sequence[int], kernel: Sequence[int], first_axis: int, w: Sequence[int]) -> list[int]:
        """Return the number of windows in each dimension.

        Args:
            pixels: the spatial dimensions of X.
            kernel: those of W.
            first_axis: the first of X's spatial dimensions, for errors.
            w: the shape of W, for errors.

        Raises:
            ValueError: a window is empty or larger than the padded X.
        """
        sizes = self.known_sizes(pixels, kernel)
        for axis, size in enumerate(sizes):
            if size is None:
                raise ValueError(
                    f"{self.operator}: W has the shape {list(w)}, but X, padded, has {pixels[axis] + sum(self.pads[axis])} "
                    f"pixels along axis {axis + first_axis}"
                )
        return [size or 0 for size in sizes]

    def known_sizes(self, pixels: Sequence[Any], kernel: Sequence[Any]) -> list[int | None]:
        """Return the numbers of windows; ``None`` for those that are unknown or do not fit."""
        sizes: list[int | None] = []
        for size, width, stride, dilation, pad in zip(pixels, kernel, self.strides, self.dilations, self.pads, strict=True):
            known = isinstance(size, int) and isinstance(width, int) and width > 0
            extent = (width - 1) * dilation + 1 if known else 0
            fits = known and size + sum(pad) >= self._fewest(extent)
            sizes.append((size + sum(pad) - extent) // stride + 1 if fits else None)
        return sizes

    def _fewest(self, extent: int) -> int:
        """Return the number of padded pixels that the windows cover."""
        return 0 if extent == 1 and self.may_be_none else extent

    def fewest(self, kernel: Sequence[int]) -> list[int]:
        """Return the number of pixels that the windows cover in each dimension."""
        each = zip(kernel, self.dilations, self.pads, strict=True)
        return [self._fewest((width - 1) * dilation + 1) - sum(pad) for width, dilation, pad in each]

    def slices(self, offsets: Sequence[int], sizes: Sequence[int]) -> list[slice]:
        """Return the slices of the padded pixels at one position of the kernel."""
        each = zip(offsets, self.dilations, self.strides, sizes, strict=True)
        return [slice(at * wide, at * wide + (size - 1) * step + 1, step) for at, wide, step, size in each]

    def fitting(self, op, X, pixels, kernel):
        """Emit X; its computation fails at run time unless the windows fit.

        Args:
            op: the builder of the body.
            X: the convolved tensor.
            pixels, kernel: the spatial dimensions of X and of W, as tensors.
        """
        window = op.Sub(kernel, [1])
        padded = op.Add(pixels, np.array([sum(pad) for pad in self.pads], np.int64))
        few = op.LessOrEqual(padded, op.Mul(window, np.array(self.dilations, np.int64)))
        return op.Reshape(X, required(op, "pixels_of_X", op.Or(few, op.Less(window, [0])), op.Shape(X)), allowzero=1)
