"""Quantization of a result before numbers are moved, instead of afterwards: integers are a quarter of the size."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from converters.passes.quantized.affine import Affine, is_scale
from converters.passes.quantized.graph import Arrangement, is_node, one_factor_of, only_quantizers, only_user, remove
from onnx_specops.building import Value
from onnx_specops.graphs import constant_array, constant_list

MOVES = ("Reshape", "Squeeze", "Transpose", "Unsqueeze")
"""The operators before which results are quantized."""


def quantize_before_moves(work: Arrangement, value: ir.Value) -> None:
    """Quantize a value before the nodes of `MOVES` that follow, if only their result is quantized.

    Conditions: each node has one consumer; the quantization has one scale and zero point of 8 bits; other nodes between both
    only multiply by one positive constant, which becomes part of the scale.
    """
    path, factor = _path(value)
    moves = [node for node in path if node.op_type in MOVES]
    quantizers = only_quantizers(path[-1].outputs[0]) if path else []
    if not moves or len(quantizers) != 1:
        return
    quantizer = quantizers[0]
    scale, zero = (constant_array(constant) for constant in quantizer.inputs[1:])
    if scale is None or zero is None or scale.ndim or zero.ndim or zero.dtype.itemsize != 1:
        return
    step = np.asarray(scale / factor)
    if not is_scale(step).all():
        return
    result: Value = Affine(step.astype(np.float32), zero).quantize(work.before(moves[0]), value)
    result.shape = value.shape
    if work.replace_levels(quantizer, work.moved(result, moves)):
        for node in reversed(path):
            remove(node)


def _path(value: ir.Value) -> tuple[Sequence[ir.Node], float]:
    """Return the nodes in order that move numbers or multiply them by a positive constant, and the product of these."""
    path: list[ir.Node] = []
    factor = 1.0
    while (node := only_user(value)) is not None and not node.domain and value.shape is not None:
        if (one := one_factor_of(node, value)) is not None:
            factor *= float(one)
        elif node.op_type not in MOVES or node.inputs[0] is not value:
            break
        path.append(node)
        value = node.outputs[0]
    return path, factor


def split_results(value: ir.Value, axis: int) -> Sequence[tuple[ir.Value, slice]]:
    """Return the parts of a value along ``axis`` if a Split is its only consumer; otherwise the value."""
    size = None if value.shape is None else value.shape[axis]
    whole = [(value, slice(None))]
    node = only_user(value)
    if node is None or not is_node(node, "Split") or not isinstance(size, int) or value.shape is None:
        return whole
    rank = len(value.shape)
    sizes = constant_list(node.inputs[1]) if len(node.inputs) > 1 and node.inputs[1] is not None else None
    if node.attributes.get_int("axis", 0) % rank != axis % rank or sizes is None or sum(sizes) != size:
        return whole
    ends = np.cumsum(sizes).tolist()
    return [(part, slice(end - count, end)) for part, end, count in zip(node.outputs, ends, sizes, strict=True)]
