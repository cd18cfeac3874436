"""Windows that slide over the spatial dimensions, with the attribute names of all versions.

The Inference Engine computes the padding at the end from the output's dimensions in the file, regardless of attributes and
rounding.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from converters.errors import Malformed
from converters.openvino.rule import AttributeGroup, Context
from converters.openvino.rules._windows import Dilated
from onnx_specops.building import Value

AutoPad = Literal["explicit", "same_upper", "same_lower", "valid"]


@dataclass(frozen=True, kw_only=True)
class Windows(AttributeGroup):
    """Kernel, strides, pads and dilations: lists from version 3 on, and one number each for x and y in version 2."""

    kernel: tuple[int, ...] = ()
    kernel_x: int | None = None
    kernel_y: int | None = None
    strides: tuple[int, ...] = ()
    stride_x: int | None = None
    stride_y: int | None = None
    pads_begin: tuple[int, ...] = ()
    pad_x: int | None = None
    pad_y: int | None = None
    pads_end: tuple[int, ...] = ()
    pad_r: int | None = None
    pad_b: int | None = None
    dilations: tuple[int, ...] = ()
    dilation_x: int | None = None
    dilation_y: int | None = None
    auto_pad: str | None = None

    def padding(self) -> AutoPad:
        """How the pads are determined. The Inference Engine reads any text as "same", except "valid" in lower case."""
        if self.auto_pad is None:
            return "explicit"
        return self.auto_pad if self.auto_pad in ("same_lower", "valid") else "same_upper"  # type: ignore[return-value]

    def sizes(self) -> list[int]:
        """The sizes of the kernel."""
        if self.kernel:
            return list(self.kernel)
        if self.kernel_x is None or self.kernel_y is None:
            raise Malformed("the attribute 'kernel' is missing", "check that the file is intact")
        return [self.kernel_y, self.kernel_x]

    def sliding(self) -> Dilated:
        """Return the window in the form of the opsets' rules."""
        rank = len(self.sizes())
        if self.kernel:
            strides = list(self.strides) or [1] * rank
            begin = list(self.pads_begin) or [0] * rank
            end = list(self.pads_end) or begin
            dilations = list(self.dilations) or [1] * rank
        else:
            strides = [self.stride_y or 1, self.stride_x or 1]
            begin = [self.pad_y or 0, self.pad_x or 0]
            end = [begin[0] if self.pad_b is None else self.pad_b, begin[1] if self.pad_r is None else self.pad_r]
            dilations = [
                1 if self.dilation_y is None else self.dilation_y,
                1 if self.dilation_x is None else self.dilation_x,
            ]
        if min(self.sizes(), default=0) < 1:
            raise Malformed(f"its kernel is {self.sizes()}; each size must be 1 or more", "check that the file is intact")
        given = {"strides": strides, "pads_begin": begin, "pads_end": end, "dilations": dilations}
        for name, numbers in given.items():
            if len(numbers) != rank:
                raise Malformed(
                    f"its {name} are {numbers} for a kernel of {rank} dimensions", "check that the file is intact"
                )
        sliding = Dilated(
            strides=tuple(strides),
            pads_begin=tuple(begin),
            pads_end=tuple(end),
            dilations=tuple(dilations),
            auto_pad=self.padding(),
        )
        sliding.window()  # raises an error if a number is out of range
        return sliding


def same_padding(sliding: Dilated, kernel: Sequence[int], sizes: Sequence[int | None]) -> tuple[list[int], list[int]] | None:
    """Return the pads of the attributes for data of such sizes; ``None`` if the sizes are unknown."""
    at = sliding.window()
    if not at.same:
        return list(at.pads_begin), list(at.pads_end)
    if None in sizes:
        return None
    begin, end = [], []
    for k, size in enumerate(sizes):
        assert size is not None
        extent = (kernel[k] - 1) * at.dilations[k] + 1
        total = max((-(-size // at.strides[k]) - 1) * at.strides[k] + extent - size, 0)
        half, rest = total // 2, total - total // 2
        begin.append(half if at.auto_pad == "same_upper" else rest)
        end.append(rest if at.auto_pad == "same_upper" else half)
    return begin, end


def stated_sizes(data: Value, context: Context) -> tuple[list[int], list[int]] | None:
    """Return the spatial sizes of the data, and those of the output in the file, if all are known."""
    stated = context.output_dims()
    if data.dims is None or stated is None or len(data.dims) != len(stated) or len(stated) < 3:
        return None
    inside, outside = data.dims[2:], stated[2:]
    known = [size for size in (*inside, *outside) if size is not None]
    half = len(inside)
    return (known[:half], known[half:]) if len(known) == 2 * half else None
