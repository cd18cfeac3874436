"""Choices between two subgraphs for ONNX Runtime (1.31) that a rule must make while it builds the graph.

`converters.passes.onnxruntime` has the workarounds that passes can make. The choices here depend on facts that the nodes do
not contain:

- Convolutions and poolings: the rule computes the padding from sizes at run time, which the second subgraph requires.
- Interpolate: the domain's operator has attributes that Resize lacks.
- DFT: the transforms of real numbers compute half of the spectrum, which requires a matrix other than that of the DFT
  operator.

Other targets use the second subgraphs, too, because more of them support MatMul than DFT. In 174 cases of Interpolate, a
plain Resize instead of the custom operator Interpolate improved no result in tract 0.23, OpenCV 5.0 and OpenVINO 2026.4.
OpenCV failed in four more cases.
"""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

RESIZED = {ir.DataType.FLOAT, ir.DataType.FLOAT16, ir.DataType.BFLOAT16}
"""The types that Resize interpolates."""

RESIZED_TO_NEAREST = RESIZED | {ir.DataType.INT8, ir.DataType.UINT8, ir.DataType.INT32}
"""The types that Resize supports in the mode nearest."""

DFT_BY_PRODUCT = 2048
"""The largest size for which a MatMul with a matrix of waves is better than DFT."""


def computes_padding(dilations: Sequence[int], strides: Sequence[int] = (), kernel: Sequence[int] = ()) -> bool:
    """Return whether ``auto_pad`` gives the padding that ONNX defines: not for dilated kernels.

    ``strides`` and ``kernel`` are those of a pooling, which does not support gaps between its windows.
    """
    return set(dilations) == {1} and all(stride <= size for stride, size in zip(strides, kernel, strict=True))


def accepts_pads(pads: Sequence[int], kernel: Sequence[int]) -> bool:
    """Return whether a pooling accepts pads, before and after each dimension: only those smaller than the kernel."""
    return all(0 <= pad < size for pad, size in zip(pads, [*kernel, *kernel], strict=True))


def interpolates(mode: str, rank: int | None, axes: Sequence[int]) -> bool:
    """Return whether Resize interpolates along these axes of data of a rank."""
    if mode == "cubic":
        return rank == 2 or (rank == 4 and min(axes) >= 2)
    spatial = {2: {0, 1}, 3: {1, 2}, 4: {2, 3}, 5: {2, 3, 4}}.get(rank or 0, set())
    return set(axes) <= spatial or (rank == 4 and set(axes) <= {1, 2})


def is_dft_better(size: int, contiguous: bool) -> bool:
    """Return whether DFT is better than a MatMul with a matrix of waves.

    DFT is slower than the MatMul, and inexact except for powers of two. For these, it is faster if the complex numbers are
    ``contiguous``. There is no DFT of size 0.
    """
    is_power = not size & (size - 1)
    return size > (1 if is_power and contiguous else DFT_BY_PRODUCT // 2 if is_power else DFT_BY_PRODUCT)
