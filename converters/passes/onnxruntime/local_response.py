"""LRN: ONNX Runtime (1.31) supports only four dimensions, odd sizes, and positive values of alpha and beta."""

from __future__ import annotations

import onnx_ir as ir

from converters.passes.patterns import PatternPass, rewrite
from onnx_specops.building import Builder, Value, cast_unrounded
from onnx_specops.graphs import attributes_of
from onnx_specops.widening import HALVES


@rewrite("LRN", lambda op, x: op.LRN(x, _outputs=["whole"]))
def of_supported_form(op: Builder, *, x: Value, whole: Value) -> Value | None:
    """Reshape to four dimensions, with all spatial dimensions as one and a 1. Decompose an LRN with an even size, or whose
    alpha or beta is not positive.
    """
    node = whole.producer()
    assert node is not None
    attributes = attributes_of(node)
    alpha, beta, size = attributes.get("alpha", 1e-4), attributes.get("beta", 0.75), attributes["size"]
    if alpha <= 0 or beta <= 0 or size % 2 == 0:
        # float16 would round the attributes.
        wide = cast_unrounded(op, x, ir.DataType.FLOAT) if x.dtype in HALVES else x
        sums = op.Add(op.Mul(_sums(op, op.Mul(wide, wide), size), alpha / size), attributes.get("bias", 1.0))
        return cast_unrounded(op, op.Div(wide, op.Pow(sums, op.const(beta, wide.dtype))), x.dtype)
    if x.rank == 4:
        return None
    shape = op.Shape(x)
    four = op.Reshape(x, op.Concat(op.Slice(shape, [0], [2]), _inner(op, shape), [1], axis=0), allowzero=1)
    return op.Reshape(op.LRN(four, **attributes), shape, allowzero=1)


def _sums(op: Builder, x: Value, size: int) -> Value:
    """Return the sums of ``size`` channels around each channel."""
    shape = op.Shape(x)
    columns = op.Reshape(
        x, op.Concat(op.Slice(shape, [0], [1]), [1], op.Slice(shape, [1], [2]), _inner(op, shape), axis=0), allowzero=1
    )
    pads = [(size - 1) // 2, 0, size // 2, 0]
    means = op.AveragePool(columns, kernel_shape=[size, 1], pads=pads, count_include_pad=1)
    return op.Reshape(op.Mul(means, float(size)), shape, allowzero=1)


def _inner(op: Builder, shape: Value) -> Value:
    """Return the number of elements of a channel."""
    return op.ReduceProd(op.Slice(shape, [2], [2**31]), keepdims=1)


class LRNOfFourDimensions(PatternPass):
    """Convert LRN with a rank other than four, an even size, or an alpha or beta that is not positive."""

    rewrites = (of_supported_form,)
