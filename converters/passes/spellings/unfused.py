"""Patterns that a program would fuse to an operator with different results."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
from onnx_ir.passes import InPlacePass, PassResult

from converters.passes.spellings.reduced_axes import stated_axes
from onnx_specops.building import Value
from onnx_specops.graphs import all_nodes, constant_array, producer_of
from onnx_specops.naming import Names


class SeparatePatterns(InPlacePass):
    """Insert an Identity in patterns that look like Softplus, Celu, Gelu, Softmax or LayerNormalization.

    OpenCV (5.0.0) computes log(exp(x) + y) as Softplus for every y. It crashes for an Elu between Div and Mul, and for the
    gate of a Gelu that is multiplied by another value. It raises an error for a Softmax along several axes, and for a
    LayerNormalization with weights of another shape.
    """

    def call(self, model: ir.Model) -> PassResult:
        names: Names | None = None
        count = 0
        for node in list(all_nodes(model.graph)):
            index = None if node.domain else _mistaken(node)
            if index is None:
                continue
            value, graph = node.inputs[index], node.graph
            assert value is not None and graph is not None
            names = names or Names.of(model.graph)
            copy = Value(name=names.unique(f"{value.name}_separate"), type=value.type, shape=value.shape)
            identity = ir.Node("", "Identity", [value], outputs=[copy], name=names.unique(f"{value.name}_separated"))
            graph.insert_before(node, identity)
            node.replace_input_with(index, copy)
            count += 1
        return PassResult(model, modified=count > 0)


def _mistaken(node: ir.Node) -> int | None:
    """Return the input that must be separate from the node; ``None`` if the program is correct for the node."""
    match node.op_type:
        case "Log":
            return 0 if _is_other_sum(node.inputs[0]) else None
        case "Elu":
            is_scaled = any(after.op_type == "Mul" for after in node.outputs[0].consumers())
            return 0 if is_scaled and producer_of(node.inputs[0], "Div") is not None else None
        case "Div":
            return 1 if _is_along_several_axes(*node.inputs) else None
        case "Mul":
            for index, (value, other) in enumerate((node.inputs, node.inputs[::-1])):
                if _is_gate_of_another(value, other) or _is_normalized(value, other, node.outputs[0]):
                    return index
    return None


def _is_other_sum(value: ir.Value | None) -> bool:
    """Return whether a value is the sum of an exponential and something other than 1."""
    total = producer_of(value, "Add")
    if total is None:
        return False
    for term, other in (total.inputs, total.inputs[::-1]):
        array = constant_array(other)
        if producer_of(term, "Exp") is not None and (array is None or bool((array != 1).any())):
            return True
    return False


def _is_along_several_axes(value: ir.Value | None, total: ir.Value | None) -> bool:
    """Return whether an exponential is divided by its sum along any axes except a single one that it states."""
    node = producer_of(total, "ReduceSum")
    if node is None or producer_of(value, "Exp") is None or node.inputs[0] is not value:
        return False
    return len(stated_axes(node) or ()) != 1


def _is_gate_of_another(gate: ir.Value | None, other: ir.Value | None) -> bool:
    """Return whether a value is the error function of a quotient, plus something, and the other is not that dividend."""
    total = producer_of(gate, "Add")
    for term in () if total is None else total.inputs:
        erf = producer_of(term, "Erf")
        quotient = None if erf is None else producer_of(erf.inputs[0], "Div")
        if quotient is not None:
            return quotient.inputs[0] is not other
    return False


def _is_normalized(value: ir.Value | None, weight: ir.Value | None, product: ir.Value) -> bool:
    """Return whether a value is normalized by its mean and variance, and its weight or bias are not like the last axes."""
    quotient = producer_of(value, "Div")
    if quotient is None or producer_of(quotient.inputs[1], "Sqrt") is None:
        return False
    difference = producer_of(quotient.inputs[0], "Sub")
    mean = None if difference is None else producer_of(difference.inputs[1], "ReduceMean")
    x = None if mean is None else mean.inputs[0]
    if difference is None or mean is None or x is not difference.inputs[0]:
        return False
    axes = stated_axes(mean)
    if not isinstance(x, Value) or x.dims is None or not axes:
        return True
    dims = x.dims[min(axis % len(x.dims) for axis in axes) :]
    factors = [weight]
    for after in product.consumers():
        if after.op_type == "Add":
            factors += [one for one in after.inputs if one is not product]
    return any(_dims(factor) != dims for factor in factors)


def _dims(value: ir.Value | None) -> list[int] | None:
    array = constant_array(value)
    if array is not None:
        return list(np.shape(array))
    return None if value is None or value.shape is None else [dim if isinstance(dim, int) else -1 for dim in value.shape]
