"""MatMul of transposed operands, in a form that ONNX Runtime loads."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
from onnx_ir.passes import PassResult

from converters.passes.running import OperatorPass
from onnx_specops.building import Value, constant_value
from onnx_specops.graphs import all_nodes
from onnx_specops.naming import Names
from onnx_specops.widening import HALVES

_PASSING = {("", "Cast"), ("", "Identity")}


class TransposeAfterCasts(OperatorPass):
    """Move a Cast before a Transpose that moves the first dimension back and precedes a MatMul.

    ONNX Runtime (1.31) fuses such a Transpose into the MatMul, also through a Cast, or two that are equal to one. If the
    ranks of the operands differ, it crashes with a Cast between them, including its own casts for 16-bit floats. A constant
    operand of these gets the rank of the other.
    """

    operators = frozenset(("MatMul",))

    def call(self, model: ir.Model) -> PassResult:
        products = [node for node in all_nodes(model.graph) if (node.domain, node.op_type) == ("", "MatMul")]
        names = Names.of(model.graph) if products else Names()
        count = sum(_reordered(model.graph, node, names) for node in products)
        return PassResult(model, modified=count > 0)


def _reordered(root: ir.Graph, node: ir.Node, names: Names) -> bool:
    changed = False
    for index, value in enumerate(node.inputs):
        between = _preceding_nodes(value)
        if any(passing.op_type == "Cast" for passing in between):
            _cast_first(node, index, between, names)
            changed = True
        elif between and value is not None and value.dtype in HALVES:
            changed |= _widen(root, node, 1 - index, value, names)
    return changed


def _preceding_nodes(value: ir.Value | None) -> list[ir.Node]:
    """Return the Casts, Identities and Transposes before a value if the Transposes together move the first dimension back,
    or nothing.
    """
    found: list[ir.Node] = []
    order: list[int] = []
    while value is not None and (producer := value.producer()) is not None:
        if found and producer.graph is not found[0].graph:
            break
        found.append(producer)
        if _is_transpose(producer):
            perm = producer.attributes.get_ints("perm", ())
            if not perm:
                break
            order = [perm[axis] for axis in order or range(len(perm))]
            last = len(order) - 1
            if last > 1 and order in ([*range(1, last), 0, last], [*range(1, last + 1), 0]):
                return found[::-1]
        elif (producer.domain, producer.op_type) not in _PASSING:
            break
        value = producer.inputs[0]
    return []


def _is_transpose(node: ir.Node) -> bool:
    return (node.domain, node.op_type) == ("", "Transpose")


def _cast_first(node: ir.Node, index: int, between: list[ir.Node], names: Names) -> None:
    """Replace a MatMul's operand by the transposed result of the cast."""
    assert node.graph is not None and node.name is not None
    value, taken = between[0].inputs[0], node.inputs[index]
    assert value is not None and taken is not None
    name = f"{node.outputs[0].name}_{'ab'[index]}"
    for count, old in enumerate(sorted(between, key=_is_transpose)):
        given = old.outputs[0]
        if _is_transpose(old):
            result = Value(name=names.unique(f"{name}_transposed{count}"), type=taken.type, shape=given.shape)
        else:
            result = Value(name=names.unique(f"{name}_cast{count}"), type=given.type, shape=value.shape)
        node.graph.insert_before(node, _copy_with(old, value, result))
        value = result
    node.replace_input_with(index, value)
    for old in reversed(between):
        if old.graph is not None and not old.outputs[0].uses() and not old.outputs[0].is_graph_output():
            old.graph.remove(old, safe=True)


def _copy_with(node: ir.Node, value: ir.Value, result: ir.Value) -> ir.Node:
    """Copy a node with another input and output."""
    return ir.Node(node.domain, node.op_type, [value], list(node.attributes.values()), outputs=[result], name=result.name)


def _widen(root: ir.Graph, node: ir.Node, index: int, other: ir.Value, names: Names) -> bool:
    """Increase the rank of a constant input to that of the other."""
    value = node.inputs[index]
    tensor = None if value is None else value.const_value
    if value is None or tensor is None or other.shape is None or not 1 < len(tensor.shape) < len(other.shape):
        return False
    assert node.graph is not None
    dims = [1] * (len(other.shape) - len(tensor.shape)) + list(tensor.shape.numpy())
    name = names.unique(f"{node.outputs[0].name}_{'ab'[index]}_wide")
    shape = constant_value(np.array(dims, np.int64), name=f"{name}_shape")
    names.register(root, shape)
    result = Value(name=name, type=value.type, shape=ir.Shape(dims))
    node.graph.insert_before(node, ir.Node("", "Reshape", [value, shape], outputs=[result], name=name))
    node.replace_input_with(index, result)
    return True
