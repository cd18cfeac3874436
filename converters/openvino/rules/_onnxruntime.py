"""Choices between two forms for ONNX Runtime (1.31) that a rule must make while it builds the graph.

The choice depends on what only the rule knows, such as padding that follows from sizes at run time. What a pass can work
around is in `converters.passes.onnxruntime`; Resize is in `interpolate`, and DFT in `signal`.
"""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

SCATTERED = {
    ir.DataType.FLOAT, ir.DataType.DOUBLE, ir.DataType.INT8, ir.DataType.INT16, ir.DataType.INT32, ir.DataType.INT64,
    ir.DataType.UINT8, ir.DataType.UINT16, ir.DataType.UINT32, ir.DataType.UINT64,
}  # fmt: skip
"""The types that ScatterElements reduces in their own precision."""


def computes_padding(dilations: Sequence[int], strides: Sequence[int] = (), kernel: Sequence[int] = ()) -> bool:
    """Return whether ``auto_pad`` gives the padding that ONNX defines: not for dilated kernels.

    ``strides`` and ``kernel`` are those of a pooling, which does not support gaps between its windows.
    """
    return set(dilations) == {1} and all(stride <= size for stride, size in zip(strides, kernel, strict=True))


def accepts_pads(pads: Sequence[int], kernel: Sequence[int]) -> bool:
    """Return whether a pooling accepts pads, before and after each dimension: only those smaller than the kernel."""
    return all(0 <= pad < size for pad, size in zip(pads, [*kernel, *kernel], strict=True))


def supports_lrn(alpha: float, beta: float) -> bool:
    """Return whether LRN accepts its factors, which ONNX does not restrict."""
    return alpha > 0 and beta > 0
