"""The columns of quantized convolutions: the output channels, each with separate weights and parameters."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx_ir as ir

from onnx_specops.domain import DOMAIN
from onnx_specops.graphs import constant_array

_ADDEND, _RESIDUAL = 8, 17
_BY_COLUMN = frozenset((1, 2, 3, 5, 6, 7, 16))
"""The inputs of QuantizedConv with a number for each column: W, scale, bias, y_zero_point, factor, slope and y_offset."""


def adds_tensor(node: ir.Node) -> bool:
    """Return whether a QuantizedConv adds a tensor to its results. An empty constant represents an omitted tensor."""
    given = [node.inputs[i] for i in (_ADDEND, _RESIDUAL) if i < len(node.inputs)]
    return any(value is not None and ((array := constant_array(value)) is None or array.size > 0) for value in given)


def with_columns(node: ir.Node, order: np.ndarray) -> list[ir.Value | np.ndarray | None] | None:
    """Return the inputs of a QuantizedConv that computes the columns of ``order``.

    ``None`` for another node, and for one with groups, an addend, a residual or numbers that are not constants.
    """
    if (node.domain, node.op_type) != (DOMAIN, "QuantizedConv") or node.attributes.get_int("group", 1) != 1:
        return None
    if adds_tensor(node):
        return None
    changed: Mapping[int, np.ndarray | None] = {
        i: constant_array(value) for i, value in enumerate(node.inputs) if i in _BY_COLUMN and value is not None
    }
    if any(constant is None for constant in changed.values()):
        return None
    filters = changed.get(1)
    columns = 0 if filters is None else len(filters)
    return [
        constant[order] if (constant := changed.get(i)) is not None and constant.ndim and len(constant) == columns else value
        for i, value in enumerate(node.inputs)
    ]
