"""Matrix multiplications whose results Qualcomm's compiler cannot rearrange."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from converters.passes.spellings.qnn_limits import LOWEST, MOST_DIMENSIONS
from converters.passes.workaround import Workaround, again
from onnx_specops.building import Builder, Value
from onnx_specops.graphs import constant_array

_RESHAPES = frozenset(("Flatten", "Reshape", "Squeeze", "Unsqueeze"))


class SeparateProducts(Workaround):
    """Insert a Max with -60,000 after a multiplication by a constant matrix if Reshape and Transpose of the result give five
    dimensions, of which the last two are equal.

    QNN's HTP (2.7) merges these nodes, and its compiler crashes. State space models such as Mamba 2 have them.
    """

    operators = frozenset(("Gemm", "MatMul"))
    finite = True

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        left, right, *bias = node.inputs
        product = node.outputs[0]
        if right is None or constant_array(right) is None or product.dtype is None:
            return None
        if (product.shape is not None and product.shape.rank() > MOST_DIMENSIONS) or not _gives_squares(product):
            return None
        return [op.Max(again(op, node, left, right, *bias), op.const(LOWEST, product.dtype))]


def _gives_squares(product: ir.Value) -> bool:
    """Return whether Reshape and at least one Transpose give five dimensions, of which the last two are equal."""
    remaining, seen = [(product, False, False)], set()
    while remaining:
        state = remaining.pop()
        if state in seen:
            continue
        seen.add(state)
        value, is_transposed, has_squares = state
        if is_transposed and has_squares:
            return True
        for use in value.uses():
            moved = use.node.op_type == "Transpose"
            if use.idx or not (moved or use.node.op_type in _RESHAPES):
                continue
            result = use.node.outputs[0]
            remaining.append((result, is_transposed or moved, has_squares or _is_of_squares(result)))
    return False


def _is_of_squares(value: ir.Value) -> bool:
    return value.shape is not None and value.shape.rank() > MOST_DIMENSIONS and value.shape[-1] == value.shape[-2]
