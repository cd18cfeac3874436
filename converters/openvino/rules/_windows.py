"""Windows that slide over the spatial dimensions, for convolutions, poolings and patches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from converters.errors import Malformed
from converters.openvino.rule import AttributeGroup, Departure
from onnx_specops.building import Builder, Value

LARGER_WINDOWS = Departure(
    name="larger windows",
    where="windows that are larger than the padded data, if dimensions are unknown",
    cpu="gives no elements on one thread, and fails on several",
    reference="rejects them",
    follows="runtime",
)

AutoPad = Literal["explicit", "notset", "same_upper", "same_lower", "valid"]

_MAX_INT32 = 2**31 - 1


@dataclass(frozen=True)
class Window:
    """The attributes of a sliding window, with one number for each spatial dimension. `window` checks them."""

    strides: list[int]
    dilations: list[int]
    pads_begin: list[int]
    pads_end: list[int]
    auto_pad: str

    @property
    def rank(self) -> int:
        """The number of spatial dimensions."""
        return len(self.strides)

    @property
    def same(self) -> bool:
        """Whether the padding depends on the size of the data."""
        return self.auto_pad in ("same_upper", "same_lower")

    def extent(self, op: Builder, kernel: Value) -> Value:
        """Return the extent of the window along each dimension: ``(kernel - 1) * dilations + 1``."""
        return op.Add(op.Mul(op.Sub(kernel, 1), self.dilations), 1)

    def padding(self, op: Builder, data: Value, kernel: Value) -> tuple[Value, Value]:
        """Return the padding before and after each spatial dimension of ``data``, for a window of size ``kernel``."""
        if not self.same:
            return op.const(np.array(self.pads_begin)), op.const(np.array(self.pads_end))
        known = kernel.constant
        if known is not None and known.size == self.rank and set(self.strides) == {1}:  # it does not depend on the data
            total = op.const(np.maximum((known - 1) * np.array(self.dilations), 0))
        else:
            size = spatial_shape(op, data, self.rank)
            reach = op.Mul(op.Sub(ceil_divide(op, size, self.strides), 1), self.strides)
            total = op.Max(op.Sub(op.Add(reach, self.extent(op, kernel)), size), op.const([0]))
        half = op.Div(total, 2)
        rest = op.Sub(total, half)
        return (half, rest) if self.auto_pad == "same_upper" else (rest, half)

    def pad(self, op: Builder, data: Value, kernel: Value) -> tuple[Value, list[int]]:
        """Return ``data`` and the remaining padding for the attribute ``pads`` of an ONNX operator.

        Padding that is computed at run time is applied here, with zeros, because an attribute cannot represent it.
        """
        begin, end = self.padding(op, data, kernel)
        check_fits(data, kernel, self, begin, end)
        if begin.constant is not None and end.constant is not None:
            return data, [*begin.constant.tolist(), *end.constant.tolist()]
        return pad_spatial(op, data, begin, end), [0] * (2 * self.rank)


@dataclass(frozen=True, kw_only=True)
class Sliding(AttributeGroup):
    """The attributes of a layer with a window that slides over the spatial dimensions."""

    strides: tuple[int, ...] | None = None
    pads_begin: tuple[int, ...] | None = None
    pads_end: tuple[int, ...] | None = None
    auto_pad: AutoPad = "explicit"

    def window(self) -> Window:
        """Return the window; raise `Malformed` if the attributes are invalid."""
        return window(**vars(self))


@dataclass(frozen=True, kw_only=True)
class MaybeDilated(Sliding):
    """The attributes of a layer with an optionally dilated window."""

    dilations: tuple[int, ...] | None = None


@dataclass(frozen=True, kw_only=True)
class Dilated(Sliding):
    """The attributes of a layer with a dilated window."""

    dilations: tuple[int, ...] | None = None


def window(
    strides: Sequence[int] | None,
    dilations: Sequence[int] | None = None,
    pads_begin: Sequence[int] | None = None,
    pads_end: Sequence[int] | None = None,
    auto_pad: str = "explicit",
) -> Window:
    """Return the attributes of a layer as a `Window`; raise `Malformed` if they are invalid."""
    # In OpenVINO, an omitted attribute is 1.
    rank = next((len(numbers) for numbers in (strides, dilations, pads_begin, pads_end) if numbers), 0)
    strides = strides or [1] * rank
    dilations = list(dilations or [1] * rank)
    explicit = auto_pad in ("explicit", "notset")
    if explicit and (pads_begin is None or pads_end is None):
        raise Malformed("pads_begin or pads_end is missing", "check that the file is intact")
    begin, end = list(pads_begin or [0] * rank), list(pads_end or [0] * rank)
    if not explicit:
        begin, end = [0] * rank, [0] * rank
    if not rank or any(len(numbers) != rank for numbers in (dilations, begin, end)):
        raise Malformed("strides, dilations and pads differ in length", "check that the file is intact")
    if min(*strides, *dilations) < 1 or min(*begin, *end) < 0 or max(*strides, *dilations, *begin, *end) > _MAX_INT32:
        raise Malformed("a stride, dilation or pad is out of range", "check that the file is intact")
    return Window(list(strides), list(dilations), begin, end, auto_pad)


def check_fits(data: Value, kernel: Value, at: Window, begin: Value, end: Value) -> None:
    """Raise `Malformed` if a window does not fit into the padded data, as far as the sizes are known."""
    if data.rank is not None and data.rank != at.rank + 2:
        raise Malformed(f"its input has the rank {data.rank}, but the window has {at.rank} spatial dimensions")
    sizes = kernel.constant
    if sizes is None or data.dims is None or begin.constant is None or end.constant is None:
        return
    if sizes.size != at.rank or (sizes < 1).any():
        raise Malformed(f"its kernel size {sizes.tolist()} does not fit {at.rank} spatial dimensions")
    for k, size in enumerate(data.dims[2:]):
        reach = (int(sizes[k]) - 1) * at.dilations[k] + 1
        if size is not None and size + int(begin.constant[k]) + int(end.constant[k]) < reach:
            raise Malformed(f"its kernel spans {reach} elements and does not fit into dimension {k + 2} of size {size}")


def spatial_shape(op: Builder, data: Value, rank: int) -> Value:
    """Return the sizes of the last ``rank`` dimensions."""
    return op.Shape(data, start=-rank)


def ceil_divide(op: Builder, a: Value, b: Sequence[int]) -> Value:
    """Return ``a / b`` rounded up, for ``a >= 0`` and ``b > 0``."""
    return op.Div(op.Add(a, [x - 1 for x in b]), list(b))


def pad_spatial(op: Builder, data: Value, begin: Value, end: Value, fill: float = 0) -> Value:
    """Pad ``data`` (crop for negative numbers) along its spatial dimensions, which are all except the first two."""
    none = op.const([0, 0])
    return op.Pad(data, op.Concat(none, begin, none, end, axis=0), op.const(fill, data.dtype))
