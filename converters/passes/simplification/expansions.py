"""Expand before a Transpose or an arithmetic operator that broadcasts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import onnx_ir as ir

from converters.passes.patterns import PatternPass, Rewrite, rewrite
from converters.passes.simplification.data_movement import permutation
from onnx_specops.building import Builder, Value
from onnx_specops.graphs import attributes_of, constant_list, producer_of


@rewrite(
    "Transpose",
    lambda op, x, shape: op.Transpose(op.Expand(x, shape, _outputs=["copies"]), _outputs=["whole"]),
)
def transposed_copies(op: Builder, *, x: Value, shape: Value, copies: Value, whole: Value) -> Value | None:
    """Transpose before an Expand to a constant shape that adds no dimension, because there are fewer elements."""
    target, order = constant_list(shape), permutation(whole, x.rank)
    if target is None or order is None or x.rank is None or copies.rank != x.rank or len(target) > x.rank:
        return None
    aligned = [1] * (x.rank - len(target)) + target
    return op.Expand(op.Transpose(x, perm=order), [aligned[axis] for axis in order])


@dataclass(frozen=True)
class _Copies:
    """The operand of an arithmetic operator that an Expand computes, perhaps followed by a DequantizeLinear."""

    x: Value
    dequantization: ir.Node | None

    def without_expansion(self, op: Builder) -> Value:
        node = self.dequantization
        if node is None:
            return self.x
        result: Value = op.node("DequantizeLinear", self.x, *node.inputs[1:], **attributes_of(node))
        return result


def _copies(value: Value) -> _Copies | None:
    dequantization = producer_of(value, "DequantizeLinear")
    if dequantization is not None:
        if any(constant is None or constant.shape is None or len(constant.shape) for constant in dequantization.inputs[1:]):
            return None
        node = producer_of(dequantization.inputs[0], "Expand")
    else:
        node = producer_of(value, "Expand")
    if node is None or constant_list(node.inputs[1]) is None:
        return None
    return _Copies(cast(Value, node.inputs[0]), dequantization)


def _broadcast(*shapes: Sequence[Any]) -> list[int] | None:
    try:
        return list(np.broadcast_shapes(*(tuple(shape) for shape in shapes)))
    except ValueError:
        return None


def _of_expansions(operator: str) -> Rewrite:
    @rewrite(operator, lambda op, a, b: getattr(op, operator)(a, b, _outputs=["whole"]), exclusive=False)
    def replace(op: Builder, *, a: Value, b: Value, whole: Value) -> Value | None:
        """Remove Expands if the arithmetic broadcasts to the same shape, also before a DequantizeLinear with one scale.

        All shapes must be known.
        """
        if not whole.is_static:
            return None
        found = {i: copies for i, value in enumerate((a, b)) if (copies := _copies(value)) is not None}
        for removed in ((0, 1), (0,), (1,)):
            if any(i not in found for i in removed):
                continue
            operands = [found[i].x if i in removed else value for i, value in enumerate((a, b))]
            if not all(operand.is_static for operand in operands):
                continue
            if _broadcast(*(operand.dims or () for operand in operands)) == whole.dims:
                values = [found[i].without_expansion(op) if i in removed else value for i, value in enumerate((a, b))]
                result: Value = op.node(operator, *values)
                return result
        return None

    return replace


class MergeExpansions(PatternPass):
    """Transpose before an Expand, and remove Expands before arithmetic that broadcasts.

    Spellings for targets insert such Expands, so this pass runs before them.
    """

    rewrites = (transposed_copies, *(_of_expansions(operator) for operator in ("Add", "Sub", "Mul", "Div")))
