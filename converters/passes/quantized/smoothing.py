"""The factors of SmoothQuant, which are between a normalization or attention and the quantization of its result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

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
    if (found := _smoothed(node.outputs[0], known[0].size)) is None or not np.isfinite(factor := found.factor).all():
        return
    with np.errstate(all="ignore"):
        merged = [array * factor for array in known]
    if not all((is_scale(np.abs(new)) | (old == 0)).all() for new, old in zip(merged, known, strict=True)):
        return
    value: Value = work.before(node).node(node.op_type, node.inputs[0], *map(constant_value, merged), **attributes_of(node))
    value.shape = node.outputs[0].shape
    _replace(work, found, value)


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
    if values.shape[-1] != width or (found := _smoothed(result, width)) is None or not is_scale(np.abs(found.factor)).all():
        return
    op = work.before(node)
    scaled = op.Mul(values, constant_value(found.factor))
    value: Value = op.specops.Attention(*node.inputs[:2], scaled, *node.inputs[3:], **attributes_of(node))
    value.shape = result.shape
    if _replace(work, found, value):
        for removed in (found.product, *reversed(found.moves), node):
            remove(removed)


@dataclass(frozen=True)
class _Smoothed:
    """The quantized product of a value and a factor for each element of the last dimension.

    Attributes:
        moves: the nodes before the product, in order, that move the numbers of the value.
        product: the Mul.
        factor: float32, ``[size of the last dimension]``.
    """

    moves: Sequence[ir.Node]
    product: ir.Node
    factor: np.ndarray


def _smoothed(value: ir.Value, size: int) -> _Smoothed | None:
    """Return the product of a value whose last dimension has ``size`` elements, if nothing else uses the value, and only
    FakeQuantize the product.
    """
    moves = _moves_after(value, size)
    last = moves[-1].outputs[0] if moves else value
    product = only_user(last)
    if product is None or last.shape is None or not _is_only_quantized(product.outputs[0]):
        return None
    factor = per_channel(last, factor_of(product, last), size, len(last.shape) - 1)
    return None if factor is None else _Smoothed(moves, product, factor)


def _replace(work: Arrangement, found: _Smoothed, value: Value) -> bool:
    """Replace the product by a value that has the factor, moved. Each result is rounded once less."""
    moved = work.moved(value, found.moves)
    return replace_value(found.product.outputs[0], moved, tolerance=1e-6 * float(np.abs(found.factor).max()))


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
