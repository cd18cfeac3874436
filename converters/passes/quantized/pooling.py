"""Average pooling of quantized tensors, in integers."""

from __future__ import annotations

import functools
from math import prod

import numpy as np
import onnx_ir as ir

from converters.passes.quantized.affine import Affine
from converters.passes.quantized.fused import ConvAttributes
from converters.passes.quantized.fusion import fused
from converters.passes.quantized.graph import Arrangement, only_quantizers
from converters.passes.quantized.weights import Weights
from onnx_specops.building import Builder, Value, constant_value
from onnx_specops.graphs import attributes_of, constant_array
from onnx_specops.ops.quantized_conv import MAX_PRODUCTS

_LEAST, _BEST, _MOST = 4, 7, 16
"""Sizes of the windows of a mean along each dimension. Each element of a window has a weight in the file."""


def average(work: Arrangement, node: ir.Node, *, only_quantized: bool = True) -> None:
    """Convert an AveragePool of a quantized tensor to a depthwise convolution, whose sums it scales.

    ONNX Runtime's pooling of integers takes 50 times as long.

    Conditions: the model may contain ONNX Runtime's own operators; the padding is explicit, and no window exceeds it; and
    with ``only_quantized``, the result is quantized to 8 bits, perhaps after a function. If windows have different divisors,
    because the padding does not count, the result is only quantized, without a function.
    """
    x, tail = node.inputs[0], node.outputs[0]
    source = work.find(x)
    if x is None or source is None or source.affine.bits != 8 or x.shape is None or not work.contrib:
        return
    stated, channels = node.attributes, x.shape[1] if len(x.shape) > 1 else None
    window, rank = list(stated.get_ints("kernel_shape", ())), len(x.shape)
    pads = list(stated.get_ints("pads", [0] * 2 * len(window)))
    if not 3 <= rank <= 5 or not isinstance(channels, int) or len(window) != rank - 2:
        return
    if stated.get_string("auto_pad", "NOTSET") != "NOTSET" or stated.get_int("ceil_mode", 0) != 0:
        return
    shape, ones = (channels, 1, *window), [1] * len(window)
    strides, dilations = (list(stated.get_ints(name, ones)) for name in ("strides", "dilations"))
    attributes = ConvAttributes(shape, strides, dilations, pads, channels)
    if any(pads) and not stated.get_int("count_include_pad", 0):
        if only_quantizers(tail) and prod(window) <= MAX_PRODUCTS:
            average(work, _counting_padding(work, node, attributes), only_quantized=False)
        return

    def emit(_: Builder) -> Value:
        return constant_value(np.ones(shape, np.int8))

    weights = Weights(emit, Affine(np.ones([], np.float32), np.zeros([], np.int8)))
    scales = np.full(channels, 1 / prod(window))
    fused(work, node, source, weights, scales, np.zeros(channels), tail, attributes, only_quantized=only_quantized)


def _counting_padding(work: Arrangement, node: ir.Node, stated: ConvAttributes) -> ir.Node:
    """Replace a pooling by one whose padding counts, and a division by the share of each window that is not padding. Return
    the pooling.
    """
    x = node.inputs[0]
    assert x is not None and x.shape is not None
    op, rank = work.before(node), len(x.shape)
    attributes = attributes_of(node) | {"count_include_pad": 1}
    averages = op.AveragePool(x, **attributes)
    averages.shape = node.outputs[0].shape
    space = [size for size in list(x.shape)[2:] if isinstance(size, int)]
    if len(space) == rank - 2:
        counts = functools.reduce(np.multiply.outer, (_counts(size, axis, stated) for axis, size in enumerate(space)))
        result = op.Mul(averages, constant_value((prod(stated.shape[1:]) / counts).astype(np.float32)[None, None]))
    else:
        inside = op.Expand(np.ones([1] * rank, np.float32), op.Concat([1, 1], op.Shape(x, start=2), axis=0))
        result = op.Div(averages, op.AveragePool(inside, **attributes))
    work.replace(node, result)
    return averages.producer()


def _counts(size: int, axis: int, stated: ConvAttributes) -> np.ndarray:
    """Return the number of elements of each window along a spatial dimension of a size that are not padding."""
    taps = np.arange(stated.shape[2 + axis]) * stated.dilations[axis]
    before, after = stated.pads[axis], stated.pads[axis + len(stated.strides)]
    starts = np.arange(-before, size + after - taps[-1], stated.strides[axis])
    places = starts[:, None] + taps
    return ((places >= 0) & (places < size)).sum(axis=1)


def mean(work: Arrangement, node: ir.Node) -> None:
    """Convert a ReduceMean over the spatial dimensions of a quantized tensor.

    If the mean is quantized, it becomes GlobalAveragePool, which ONNX Runtime computes in integers. Otherwise it becomes the
    mean of averages of windows, so that the tensor is not dequantized. Conditions of this form: the model may contain ONNX
    Runtime's own operators; the spatial dimensions are known, and windows of at most 16 elements along each divide them.
    A mean of no elements stays a ReduceMean, because ONNX Runtime rejects a GlobalAveragePool of these.
    """
    x, axes = node.inputs[0], None if len(node.inputs) < 2 else constant_array(node.inputs[1])
    if x is None or x.shape is None or axes is None or not node.attributes.get_int("keepdims", 1):
        return
    rank = len(x.shape)
    if rank < 3 or sorted(int(axis) % rank for axis in axes.reshape(-1)) != list(range(2, rank)) or 0 in x.shape[2:]:
        return
    op = work.before(node)
    if only_quantizers(node.outputs[0]) and x in work.quantized:
        work.replace(node, op.GlobalAveragePool(x))
        return
    window = [_divisor(size) for size in x.shape[2:]]
    if (
        not work.contrib
        or rank > 5
        or not isinstance(x.shape[1], int)
        or None in window
        or (source := work.find(x)) is None
        or source.affine.bits != 8
    ):
        return
    averages = op.AveragePool(x, kernel_shape=window, strides=window)
    pool = averages.producer()
    whole = list(x.shape[2:]) == window
    work.replace(node, averages if whole else op.ReduceMean(averages, list(range(2, rank))))
    average(work, pool, only_quantized=False)


def _divisor(size: object) -> int | None:
    """Return a size of windows that divide a dimension; ``None`` if they would be too small or too large."""
    if not isinstance(size, int) or size < 1:
        return None
    sizes = [window for window in range(1, _MOST + 1) if size % window == 0 and (window >= _LEAST or window == size)]
    return min(sizes, key=lambda window: abs(window - _BEST), default=None)
