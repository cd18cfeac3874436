"""ConvTranspose with an empty result: ONNX Runtime (1.31) rejects pads that remove the whole result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import onnx_ir as ir

from converters.passes.workaround import KernelWorkaround
from onnx_specops.building import Builder, Value
from onnx_specops.graphs import attributes_of


class EmptyTransposedConvolutions(KernelWorkaround):
    """Replace pads of a ConvTranspose that may remove the whole result by a Pad with negative counts after it."""

    operators = frozenset(("ConvTranspose",))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        attributes = attributes_of(node)
        pads, extra = attributes.pop("pads", None), attributes.pop("output_padding", None)
        if pads is None or "output_shape" in attributes or attributes.get("auto_pad", "NOTSET") != "NOTSET":
            return None
        rank = len(pads) // 2
        begin, end = pads[:rank], [pad - more for pad, more in zip(pads[rank:], extra or [0] * rank, strict=True)]
        x, kernel, *bias = (cast(Value, value) for value in node.inputs)
        cut = [a + b for a, b in zip(begin, end, strict=True)]
        if not any(pads) or _leaves_some(x, kernel, attributes, cut):
            return None
        # The Pad only removes elements: elements that it added would be without the bias.
        whole = op.ConvTranspose(x, kernel, *bias, output_padding=[max(-n, 0) for n in end], **attributes)
        return [op.Pad(whole, [0, 0, *(-n for n in begin), 0, 0, *(min(-n, 0) for n in end)], op.const(0, x.dtype))]


def _leaves_some(x: Value, kernel: Value, attributes: dict[str, object], cut: Sequence[int]) -> bool:
    """Whether the result has more elements along each dimension than ``cut``, as far as the dimensions are known."""
    rank = len(cut)
    sizes = [None] * rank if x.dims is None else x.dims[2:]
    taps = [None] * rank if kernel.dims is None else kernel.dims[2:]
    strides, dilations = (cast(Sequence[int], attributes.get(name, [1] * rank)) for name in ("strides", "dilations"))
    return all(
        tap is not None and ((size or 1) - 1) * stride + (tap - 1) * dilation + 1 > less
        for size, tap, stride, dilation, less in zip(sizes, taps, strides, dilations, cut, strict=True)
    )
