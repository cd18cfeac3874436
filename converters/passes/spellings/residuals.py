"""Sums and normalizations that OpenCV fuses without a comparison of shapes."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from converters.passes.workaround import Workaround
from onnx_specops.building import Builder, Value
from onnx_specops.graphs import constant_array, producer_of


class ExpandedResiduals(Workaround):
    """Expand an operand of an Add to the shape of the sum if one of the operands is the result of a Conv.

    OpenCV (5.0.0) fuses the addition into the convolution, which requires equal shapes.
    """

    operators = frozenset(("Add",))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        operands, result = list(node.inputs), node.outputs[0]
        if not isinstance(result, Value) or not result.is_static or any(constant_array(one) is not None for one in operands):
            return None
        if not any(producer_of(one, "Conv") for one in operands):
            return None
        small = [isinstance(one, Value) and one.is_static and one.dims != result.dims for one in operands]
        if not any(small):
            return None
        shape = op.const([dim or 0 for dim in result.dims or ()])
        return [op.Add(*(op.Expand(one, shape) if is_small else one for one, is_small in zip(operands, small, strict=True)))]


class SubtractedResiduals(Workaround):
    """Convert the sum of a three-dimensional convolution and another tensor to a subtraction of the negative.

    OpenCV (4.14.0) fuses the addition into the convolution, which it does not support in three dimensions.
    """

    operators = frozenset(("Add",))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        a, b = node.inputs
        if not isinstance(a, Value) or not isinstance(b, Value) or a.rank != 5 or b.rank != 5:
            return None
        if constant_array(a) is not None or constant_array(b) is not None:
            return None
        if not (producer_of(a, "Conv") or producer_of(b, "Conv")):
            return None
        return [op.Sub(a, op.Neg(b))]


class SubtractedBiases(Workaround):
    """Convert the Add to Sub in a subgraph that resembles a decomposed GroupNormalization but has other shapes or constants.

    OpenCV (5.0.0) fuses Reshape, InstanceNormalization, Reshape, Mul and Add. The fused operator ignores the second shape,
    and applies the constants to the channels of the tensor before the first Reshape. After a convolution, it rejects three
    dimensions.
    """

    operators = frozenset(("Add",))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        for product, bias in (tuple(node.inputs), tuple(reversed(node.inputs))):
            multiplication = producer_of(product, "Mul")
            if constant_array(bias) is None or multiplication is None:
                continue
            for normal, scale in (tuple(multiplication.inputs), tuple(reversed(multiplication.inputs))):
                shaped = _source(normal, "Reshape")
                raw = _source(shaped, "InstanceNormalization")
                before = _source(raw, "Reshape")
                if before is None or constant_array(scale) is None:
                    continue
                if not isinstance(before, Value) or not isinstance(normal, Value) or not isinstance(bias, Value):
                    return None
                if (
                    before.is_static
                    and before.rank != 3
                    and before.dims == normal.dims
                    and _per_channel(scale, before)
                    and _per_channel(bias, before)
                ):
                    return None
                return [op.Sub(product, op.Neg(bias))]
        return None


def _source(value: ir.Value | None, operator: str) -> ir.Value | None:
    """Return the first input of a value's node if that has a given operator."""
    node = producer_of(value, operator)
    return None if node is None else node.inputs[0]


def _per_channel(constant: ir.Value | None, x: Value) -> bool:
    """Return whether a constant varies along the channels only, with a number for each."""
    array = constant_array(constant)
    if array is None or x.rank is None or x.dims is None or array.ndim > x.rank:
        return False
    dims = [1] * (x.rank - array.ndim) + list(array.shape)
    return dims == [1, x.dims[1], *[1] * (x.rank - 2)]
