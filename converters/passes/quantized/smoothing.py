"""The factors of SmoothQuant, which come between a normalization or attention and the quantization of its result."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from converters.passes.quantized.affine import is_scale
from converters.passes.quantized.fused import per_channel
from converters.passes.quantized.graph import Arrangement, factor_of, is_node, only_user, remove
from onnx_specops.building import Value, constant_value
from onnx_specops.domain import DOMAIN
from onnx_specops.graphs import attributes_of, constant_array
from onnx_specops.replacing import replace_value

_NORMALIZATIONS = ("LayerNormalization", "RMSNormalization")


def merge_factor(work: Arrangement, node: ir.Node) -> None:
    """Merge a factor for each element of the last dimension into the constants of the normalization before it.

    Conditions: the node is a normalization of the last dimension with constant parameters; only FakeQuantize uses the
    product; between both are only Reshape and Transpose that keep the last dimension; nothing else uses any of these
    results; and the new parameters are 0, or finite and not subnormal.
    """
    if node.domain or node.op_type not in _NORMALIZATIONS or len(node.outputs) != 1:
        return
    parameters = [constant_array(value) for value in node.inputs[1:] if value is not None]
    known = [array for array in parameters if array is not None and array.ndim == 1 and array.dtype == np.float32]
    if not known or len(known) < len(parameters):
        return
    moves = _moves_after(node.outputs[0], known[0].size)
    last = moves[-1].outputs[0] if moves else node.outputs[0]
    product = only_user(last)
    if product is None or last.shape is None or not _is_only_quantized(product.outputs[0]):
        return
    factor = per_channel(last, factor_of(product, last), known[0].size, len(last.shape) - 1)
    if factor is None or not np.isfinite(factor).all():
        return
    with np.errstate(all="ignore"):
        merged = [array * factor for array in known]
    if not all((is_scale(np.abs(new)) | (old == 0)).all() for new, old in zip(merged, known, strict=True)):
        return
    value: Value = work.before(node).node(node.op_type, node.inputs[0], *map(constant_value, merged), **attributes_of(node))
    for before in (node, *moves):
        if before is not node:
            value = work.before(before).node(before.op_type, value, *before.inputs[1:], **attributes_of(before))
        value.shape = before.outputs[0].shape
    # Each result is rounded once less.
    replace_value(product.outputs[0], value, tolerance=1e-6 * float(np.abs(factor).max()))


def merge_factor_of_values(work: Arrangement, node: ir.Node) -> None:
    """Multiply the values of an Attention, instead of its result, by a factor for each element of the last dimension.

    The factor then becomes part of the projection of the values.

    Conditions: each query head has its own values; only FakeQuantize uses the product; between the attention and the factor
    are only moves that keep the last dimension; nothing else uses any of these results; and the factors are finite and not
    subnormal.
    """
    heads = [node.attributes.get_int(name, 1) for name in ("q_num_heads", "kv_num_heads")]
    if not is_node(node, "Attention", DOMAIN) or heads[0] != heads[1]:
        return
    result, values = node.outputs[0], node.inputs[2]
    if values is None or result.shape is None or not isinstance(width := result.shape[-1], int) or values.shape is None:
        return
    moves = _moves_after(result, width)
    last = moves[-1].outputs[0] if moves else result
    product = only_user(last)
    if product is None or last.shape is None or values.shape[-1] != width or not _is_only_quantized(product.outputs[0]):
        return
    factor = per_channel(last, factor_of(product, last), width, len(last.shape) - 1)
    if factor is None or not is_scale(np.abs(factor)).all():
        return
    op = work.before(node)
    scaled = op.Mul(values, constant_value(factor.astype(np.float32)))
    value: Value = op.specops.Attention(*node.inputs[:2], scaled, *node.inputs[3:], **attributes_of(node))
    value.shape = result.shape
    for move in moves:
        value = work.before(move).node(move.op_type, value, *move.inputs[1:], **attributes_of(move))
        value.shape = move.outputs[0].shape
    # Each result is rounded once less.
    if replace_value(product.outputs[0], value, tolerance=1e-6 * float(np.abs(factor).max())):
        for removed in (product, *reversed(moves), node):
            remove(removed)


def _moves_after(value: ir.Value, size: int) -> Sequence[ir.Node]:
    """Return the nodes in order that move the numbers of a value and keep its last dimension."""
    moves: list[ir.Node] = []
    while (node := only_user(value)) is not None and node.inputs[0] is value and not node.domain:
        before, after = value.shape, node.outputs[0].shape
        if before is None or after is None or not len(before) or not len(after):
            break
        if node.op_type == "Transpose":
            keeps = list(node.attributes.get_ints("perm", ()))[-1:] == [len(before) - 1]
        else:
            keeps = node.op_type == "Reshape" and before[-1] == size and after[-1] == size
        if not keeps:
            break
        moves.append(node)
        value = node.outputs[0]
    return moves


def _is_only_quantized(value: ir.Value) -> bool:
    """Return whether FakeQuantize quantizes a value, and nothing else uses it."""
    uses = list(value.uses())
    return (
        bool(uses)
        and not value.is_graph_output()
        and all(is_node(use.node, "FakeQuantize", DOMAIN) and use.idx == 0 for use in uses)
    )
