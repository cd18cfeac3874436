"""Sums and normalizations that OpenCV fuses without a comparison of shapes."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir
from onnx_ir.passes import InPlacePass, PassResult

from converters.passes.workaround import Workaround
from onnx_specops.building import Builder, Value
from onnx_specops.graphs import all_nodes, constant_array


class ExpandedResiduals(InPlacePass):
    """Expand an operand of an Add to the shape of the sum if one of the operands is the result of a Conv.

    OpenCV (5.0.0) adds the other operand as a part of the convolution, which requires equal shapes.
    """

    def call(self, model: ir.Model) -> PassResult:
        root = Builder.of_existing(model.graph)
        count = 0
        for node in list(all_nodes(model.graph)):
            if node.domain or node.op_type != "Add" or not isinstance(node.graph, ir.Graph):
                continue
            operands, result = list(node.inputs), node.outputs[0]
            if (
                not isinstance(result, Value)
                or not result.is_static
                or any(constant_array(one) is not None for one in operands)
            ):
                continue
            if not any(_made_by(one, "Conv") for one in operands):
                continue
            for index, one in enumerate(operands):
                if isinstance(one, Value) and one.is_static and one.dims != result.dims:
                    op = Builder.before_node(node, root)
                    node.replace_input_with(index, op.Expand(one, op.const([dim or 0 for dim in result.dims or ()])))
                    count += 1
        return PassResult(model, modified=count > 0)


class SubtractedResiduals(Workaround):
    """Convert the sum of a three-dimensional convolution and another tensor to a subtraction of the negative.

    OpenCV (4.14.0) adds the other tensor as a part of the convolution, which it cannot compute for volumes.
    """

    operators = frozenset(("Add",))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        a, b = node.inputs
        if not isinstance(a, Value) or not isinstance(b, Value) or a.rank != 5 or b.rank != 5:
            return None
        if constant_array(a) is not None or constant_array(b) is not None:
            return None
        if not (_made_by(a, "Conv") or _made_by(b, "Conv")):
            return None
        return [op.Sub(a, op.Neg(b))]


class SubtractedBiases(Workaround):
    """Convert the Add of a decomposed GroupNormalization to Sub, unless the shapes and constants are those of the operator.

    OpenCV (5.0.0) fuses Reshape, InstanceNormalization, Reshape, Mul and Add. It ignores the second shape, and applies the
    constants to the channels of the tensor before the first Reshape.
    """

    operators = frozenset(("Add",))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        for product, bias in (tuple(node.inputs), tuple(reversed(node.inputs))):
            if not isinstance(product, Value) or constant_array(bias) is None or not _made_by(product, "Mul"):
                continue
            factors = _producer(product).inputs
            for normal, scale in (tuple(factors), tuple(reversed(factors))):
                shaped = _source(normal, "Reshape")
                raw = _source(shaped, "InstanceNormalization")
                before = _source(raw, "Reshape")
                if before is None or constant_array(scale) is None:
                    continue
                if not isinstance(before, Value) or not isinstance(normal, Value) or not isinstance(bias, Value):
                    return None
                if (
                    before.is_static
                    and before.dims == normal.dims
                    and _per_channel(scale, before)
                    and _per_channel(bias, before)
                ):
                    return None
                return [op.Sub(product, op.Neg(bias))]
        return None


def _producer(value: ir.Value) -> ir.Node:
    producer = value.producer()
    assert producer is not None
    return producer


def _made_by(value: ir.Value | None, operator: str) -> bool:
    producer = None if value is None else value.producer()
    return producer is not None and not producer.domain and producer.op_type == operator


def _source(value: ir.Value | None, operator: str) -> ir.Value | None:
    """Return the first input of a value's node if that has a given operator."""
    return _producer(value).inputs[0] if value is not None and _made_by(value, operator) else None


def _per_channel(constant: ir.Value | None, x: Value) -> bool:
    """Return whether a constant varies along the channels only, with a number for each."""
    array = constant_array(constant)
    if array is None or x.rank is None or x.dims is None or array.ndim > x.rank:
        return False
    dims = [1] * (x.rank - array.ndim) + list(array.shape)
    return dims == [1, x.dims[1], *[1] * (x.rank - 2)]
