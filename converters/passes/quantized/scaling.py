"""Per-channel scale and shift of a quantized tensor, such as a BatchNormalization, in integers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from converters.passes.added_bias import added_bias, elements
from converters.passes.quantized.affine import Affine
from converters.passes.quantized.fused import ConvAttributes, per_channel
from converters.passes.quantized.fusion import fused
from converters.passes.quantized.graph import Arrangement, Quantized, is_node, only_user
from converters.passes.quantized.weights import Weights
from onnx_specops.building import Builder, Value, constant_value
from onnx_specops.graphs import constant_array


def scaling(work: Arrangement, node: ir.Node) -> None:
    """Convert a Mul of a quantized tensor and a constant for each channel to a depthwise convolution of one pixel.

    The tensor may also be the concatenation of quantized tensors with different scales.

    Conditions: the model may contain ONNX Runtime's own operators, and the result is quantized to 8 bits, perhaps after an
    addition of constants and a function, and not used otherwise.
    """
    x = next((value for value in node.inputs if value is not None and constant_array(value) is None), None)
    if x is None or x.shape is None or not work.contrib or not 3 <= len(x.shape) <= 5 or node.outputs[0].shape is None:
        return
    channels, rank = x.shape[1], len(x.shape)
    other = next((value for value in node.inputs if value is not x), None)
    if not isinstance(channels, int):
        return
    factor = per_channel(x, constant_array(other), channels)
    if factor is None or not np.isfinite(factor).all():
        return
    tail, bias = node.outputs[0], np.zeros(channels)
    while (added := added_bias(tail, 1, channels, broadcast=True)) is not None:
        tail, bias = added[0].outputs[0], bias + elements(added[1], channels)
    shape = (channels, 1, *[1] * (rank - 2))
    signs = np.sign(factor).astype(np.int8).reshape(shape)

    def emit(_: Builder) -> Value:
        return constant_value(signs)

    found = Weights(emit, Affine(np.ones([], np.float32), np.zeros([], np.int8)))
    ones = [1] * (rank - 2)
    stated = ConvAttributes(shape, ones, ones, [0] * 2 * (rank - 2), channels)
    scales = np.where(factor == 0, np.float32(1), np.abs(factor)).astype(np.float64)
    source = work.find(x)
    if source is None and (parts := _parts(work, x)) is not None:
        source, of_parts = _joined(work, x, parts)
        scales = scales * of_parts
    if source is None or source.affine.bits != 8:
        return
    fused(work, node, source, found, scales, bias, tail, stated, only_quantized=True)


def _parts(work: Arrangement, value: ir.Value) -> list[Quantized] | None:
    """Return the 8-bit tensors whose channels a Concat joins, if nothing else uses the result."""
    node = value.producer()
    if node is None or not is_node(node, "Concat") or only_user(value) is None or value.shape is None:
        return None
    if node.attributes.get_int("axis") not in (1, 1 - len(value.shape)):
        return None
    found = [work.find(part) for part in node.inputs if part is not None]
    parts = [part for part in found if part is not None]
    if len(parts) < len(node.inputs) or any(part.affine.zero_point.dtype != np.uint8 for part in parts):
        return None
    is_known = all(part.integers.shape is not None and isinstance(part.integers.shape[1], int) for part in parts)
    return parts if is_known and all(part.affine.is_per_tensor for part in parts) else None


def _joined(work: Arrangement, value: ir.Value, parts: Sequence[Quantized]) -> tuple[Quantized, np.ndarray]:
    """Concatenate integers. Return them with the zero points of the channels, and the scales of the channels."""
    node = value.producer()
    assert node is not None
    integers = work.before(node).Concat(*(part.integers for part in parts), axis=1)
    integers.shape = value.shape
    shapes = [part.integers.shape for part in parts]
    sizes = [size for size in (shape[1] for shape in shapes if shape is not None) if isinstance(size, int)]
    scales, zeros = (
        np.concatenate([np.full(size, number) for size, number in zip(sizes, numbers, strict=True)])
        for numbers in ([part.affine.scale for part in parts], [part.affine.zero_point for part in parts])
    )
    offsets = np.concatenate([np.full(size, part.affine.offset or 0) for size, part in zip(sizes, parts, strict=True)])
    offset = offsets.astype(np.float32) if offsets.any() else None
    return Quantized(integers, Affine(np.ones(len(zeros), np.float32), zeros, 1, offset=offset)), scales
