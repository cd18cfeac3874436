"""Attention of 8-bit queries and keys, `onnx_specops.QuantizedAttention`.

OpenVINO also multiplies queries and keys in integers. If only a quantization uses the result, the operator returns integers.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from converters.passes.quantized.graph import Arrangement, Quantized, has_levels, is_node, only_quantizers, remove
from converters.passes.quantized.hoisting import quantize_before_moves
from converters.passes.quantized.results import quantization_of_tensor
from onnx_specops.building import constant_value
from onnx_specops.domain import DOMAIN
from onnx_specops.graphs import attributes_of
from onnx_specops.ops.quantized_attention import MAX_SIZE
from onnx_specops.replacing import replace_value


def may_attend(value: ir.Value, node: ir.Node) -> bool:
    """Return whether a node may become a QuantizedAttention of ``value``.

    Conditions: ``value`` is its query or key, and both are results of FakeQuantize with one range for the whole tensor, or
    of the nodes that `ConvertToIntegers` replaced it with, possibly after data movement.
    """
    if not is_node(node, "Attention", DOMAIN) or value not in node.inputs[:2]:
        return False
    return all(has_levels(given) for given in node.inputs[:2])


def attention(work: Arrangement, node: ir.Node) -> None:
    """Convert an Attention of quantized queries and keys.

    Conditions: both have 8 unsigned bits, and one scale and zero point for the whole tensor; the numbers of a head are known
    and few enough for 32-bit sums.
    """
    query, key, value, mask = (*node.inputs, None)[:4]
    found = [work.quantized.get(given) for given in (query, key) if given is not None]
    q, k = (found + [None, None])[:2]
    if q is None or k is None or not _is_byte(q) or not _is_byte(k) or query is None or query.shape is None:
        return
    width, heads = query.shape[-1], node.attributes.get_int("q_num_heads", 1)
    if not isinstance(width, int) or width // heads > MAX_SIZE:
        return
    result = node.outputs[0]
    quantize_before_moves(work, result)
    quantizers = only_quantizers(result)
    scale, zero = np.ones([], np.float32), np.zeros([], np.float32)
    if len(quantizers) == 1 and (given := quantization_of_tensor(quantizers[0])) is not None:
        scale, zero = given
        result = quantizers[0].outputs[0]
    integers = (q.integers, *_numbers(q), k.integers, *_numbers(k))
    quantization = (constant_value(scale), constant_value(zero))
    emitted = work.before(node).specops.QuantizedAttention(*integers, value, *quantization, mask, **attributes_of(node))
    emitted.shape = result.shape
    if result is node.outputs[0]:
        replace_value(result, emitted)
    else:
        work.replace_levels(quantizers[0], emitted)
    remove(node)


def _is_byte(found: Quantized) -> bool:
    return found.affine.is_per_tensor and found.affine.zero_point.dtype == np.uint8


def _numbers(found: Quantized) -> tuple[ir.Value, ir.Value]:
    return constant_value(found.affine.scale), constant_value(found.affine.zero_point)
