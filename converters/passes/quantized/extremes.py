"""Maxima and minima of quantized tensors, computed from the integers, because scales are positive."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import onnx_ir as ir

from converters.passes.dequantization import static
from converters.passes.quantized.graph import Arrangement, remove
from onnx_specops.building import Builder, Value
from onnx_specops.graphs import attributes_of, constant_list

REDUCTIONS = frozenset(("ReduceMax", "ReduceMin"))
EXTREMES = frozenset(("Max", "Min"))


def reduced_extreme(work: Arrangement, node: ir.Node) -> None:
    """Convert a ReduceMax or ReduceMin of a quantized tensor.

    Conditions: the integers have 8 bits; the dimensions are known and not 0.
    """
    x = node.inputs[0]
    found = work.find(x)
    shape = None if x is None else static(x)
    if found is None or found.affine.bits != 8 or not shape or not prod(shape):
        return
    op = work.before(node)
    result = _over_the_last(op, node, found.integers, shape)
    if result is None:
        result = op.node(node.op_type, found.integers, *node.inputs[1:], **attributes_of(node))
    result.shape = node.outputs[0].shape
    work.dequantized(op, node.outputs[0], result, found.affine)
    remove(node)


def _over_the_last(op: Builder, node: ir.Node, integers: ir.Value, shape: Sequence[int]) -> Value | None:
    """Reduce the last dimensions as rows of a matrix; ``None`` if other dimensions are reduced.

    ONNX Runtime (1.32) moves a Transpose through a reduction, which then takes 25 times as long, but not through a Flatten.
    """
    axes = constant_list(node.inputs[1]) if len(node.inputs) > 1 else None
    result = static(node.outputs[0])
    if not axes or result is None:
        return None
    rank = len(shape)
    first = rank - len(axes)
    if first < 1 or sorted(axis % rank for axis in axes) != list(range(first, rank)):
        return None
    rows = op.node(node.op_type, op.Flatten(integers, axis=first), [1], keepdims=0)
    reduced: Value = op.Reshape(rows, list(result))
    return reduced


def extreme(work: Arrangement, node: ir.Node) -> None:
    """Convert a Max or Min of quantized tensors.

    Conditions: the tensors have equal scales and zero points, of 8 bits.
    """
    found = [work.find(value) for value in node.inputs]
    parts = [part for part in found if part is not None and part.affine.bits == 8]
    if not parts or len(parts) < len(found) or not all(part.affine.is_equal(parts[0].affine) for part in parts):
        return
    op, affine = work.before(node), parts[0].affine.without_offset()
    # Not every release of ONNX Runtime has these operators for 8 bits. `FuseElementwise` makes this one node.
    greatest = op.node(node.op_type, *(affine.dequantize(op, part.integers) for part in parts))
    greatest.shape = node.outputs[0].shape
    result = affine.quantize(op, greatest)
    result.shape = node.outputs[0].shape
    work.dequantized(op, node.outputs[0], result, parts[0].affine)
    remove(node)
