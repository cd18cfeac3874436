"""Normalizations whose results are quantized, `onnx_specops.QuantizedLayerNormalization`.

The operator reads integers if its input is quantized, and writes integers, so that no float tensor is stored in between.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from converters.passes.quantized.graph import Arrangement, has_levels, is_node, only_quantizers, only_user, remove
from converters.passes.quantized.hoisting import MOVES, quantize_before_moves
from converters.passes.quantized.results import quantization_of_tensor
from onnx_specops.building import constant_value
from onnx_specops.domain import DOMAIN
from onnx_specops.graphs import constant_array


def may_normalize(value: ir.Value, node: ir.Node) -> bool:
    """Return whether a node may become a QuantizedLayerNormalization of ``value``.

    Conditions: as for `normalization`; ``value`` is quantized with one range; only FakeQuantize, or the QuantizeLinear that
    it becomes, uses the result, perhaps after data movement.
    """
    if not _is_normalization(node) or node.inputs[0] is not value or not has_levels(value):
        return False
    result = node.outputs[0]
    while (user := only_user(result)) is not None and not user.domain and user.op_type in MOVES:
        result = user.outputs[0]
    return is_node(user, "FakeQuantize", DOMAIN) or bool(only_quantizers(result))


def normalization(work: Arrangement, node: ir.Node) -> None:
    """Convert a LayerNormalization whose result is quantized.

    Conditions: it normalizes the last dimension, of known size, by vectors of that size; one QuantizeLinear with 8 unsigned
    bits and one scale uses the result, perhaps after data movement.
    """
    if not work.contrib or not _is_normalization(node):
        return
    x, scale, bias = (*node.inputs, None)[:3]
    quantize_before_moves(work, node.outputs[0])
    quantizers = only_quantizers(node.outputs[0])
    if len(quantizers) != 1 or (stated := quantization_of_tensor(quantizers[0])) is None:
        return
    rows, of_rows = x, (np.ones([], np.float32), np.zeros([], np.float32))
    found = None if x is None else work.quantized.get(x)
    if found is not None and found.affine.is_per_tensor and found.affine.zero_point.dtype == np.uint8:
        rows, of_rows = found.integers, (found.affine.scale, found.affine.zero_point)
    emitted = work.before(node).specops.QuantizedLayerNormalization(
        rows,
        *map(constant_value, of_rows),
        scale,
        *map(constant_value, stated),
        bias,
        epsilon=node.attributes.get_float("epsilon", 1e-5),
    )
    emitted.shape = node.outputs[0].shape
    if work.replace_levels(quantizers[0], emitted):
        remove(node)


def _is_normalization(node: ir.Node) -> bool:
    """Return whether a node normalizes the last dimension of float32, of known size, by vectors of that size."""
    if not is_node(node, "LayerNormalization") or len(node.inputs) < 2 or node.inputs[0] is None:
        return False
    x = node.inputs[0]
    if x.shape is None or not len(x.shape) or x.dtype != ir.DataType.FLOAT:
        return False
    if any(value.uses() or value.is_graph_output() for value in node.outputs[1:]):
        return False
    size, axis = x.shape[-1], node.attributes.get_int("axis", -1)
    if not isinstance(size, int) or axis not in (-1, len(x.shape) - 1):
        return False
    vectors = [value for value in node.inputs[1:] if value is not None]
    return all((array := constant_array(value)) is not None and array.shape == (size,) for value in vectors)
