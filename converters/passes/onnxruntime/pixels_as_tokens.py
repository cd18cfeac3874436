"""Transpose of the result of a convolution before the Reshape that converts pixels to tokens.

ONNX Runtime (1.32) convolves blocks of channels. The node that reorders the result can write the channels last if a
Transpose directly follows it. A Transpose after a Reshape is a separate pass, which takes 500 of 1,300 microseconds for 256
x 56 x 56 numbers.
"""

from __future__ import annotations

import onnx_ir as ir

from converters.passes.patterns import PatternPass, rewrite
from onnx_specops.building import Builder, Value
from onnx_specops.graphs import producer_of

_CHANNELS_LAST = [0, 2, 3, 1]


@rewrite(
    "Transpose",
    lambda op, x, target: op.Transpose(op.Reshape(x, target, _outputs=["tokens"]), _outputs=["whole"]),
)
def of_a_convolution(op: Builder, *, x: Value, tokens: Value, whole: Value, target: Value) -> Value | None:
    """Transpose the result of a convolution of images before its lines are joined."""
    node = whole.producer()
    if node is None or list(node.attributes.get_ints("perm", ())) != [0, 2, 1] or producer_of(x, "Conv") is None:
        return None
    if x.dtype != ir.DataType.FLOAT or x.dims is None or tokens.dims is None or len(x.dims) != len(_CHANNELS_LAST):
        return None
    _, channels, height, width = x.dims
    if not channels or not height or not width or tokens.dims[1:] != [channels, height * width]:
        return None
    return op.Reshape(op.Transpose(x, perm=_CHANNELS_LAST), [0, height * width, channels])


class PixelsAsTokens(PatternPass):
    """Transpose the results of convolutions before they are reshaped to tokens."""

    rewrites = (of_a_convolution,)
