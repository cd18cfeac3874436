"""Run-time assertions that every kernel of a device checks."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnx_ir as ir
from onnx_ir.passes import InPlacePass, PassResult

from onnx_specops.graphs import all_nodes
from onnx_specops.naming import Names
from onnx_specops.replacing import replace_value


class CheckShapes(InPlacePass):
    """Check assertions (`onnx_specops.assertions.required`) by a Reshape instead of a Gather, also in bodies.

    Gather of ONNX Runtime's CUDA provider (1.31.1) ignores indices out of range. Reshape compares the numbers of elements on
    the CPU, because its shape input is in CPU memory.
    """

    def call(self, model: ir.Model) -> PassResult:
        count = 0
        for graph in (model.graph, *(function.graph for function in model.functions.values())):
            names = Names.of(graph)
            for node in list(_assertions(graph)):
                _check(node, names)
                count += 1
        return PassResult(model, modified=count > 0)


def _check(node: ir.Node, names: Names) -> None:
    """Replace the Gather: its index, plus 1, becomes the number of elements of its data."""
    data, violations = node.inputs
    graph, result = node.graph, node.outputs[0]
    assert isinstance(graph, ir.Graph) and data is not None and violations is not None
    nodes = [ir.Node("", "Constant", [], [ir.AttrTensor("value", ir.Tensor(np.array([1], np.int64)))])]
    nodes.append(ir.Node("", "Add", [violations, nodes[-1].outputs[0]]))
    nodes.append(ir.Node("", "Reshape", [data, nodes[-1].outputs[0]]))
    # not Squeeze: ONNX Runtime would combine it with the Reshape, and drop both
    nodes.append(ir.Node("", "ReduceSum", [nodes[-1].outputs[0]], [ir.AttrInt64("keepdims", 0)]))
    for new, rank in zip(nodes, (1, 1, 1, 0), strict=True):
        value = new.outputs[0]
        new.name = value.name = names.unique(f"{node.name or result.name}/{new.op_type}")
        value.type, value.shape = ir.TensorType(ir.DataType.INT64), ir.Shape([1] * rank)
    graph.insert_before(node, nodes)
    replace_value(result, nodes[-1].outputs[0], equal=False)
    graph.remove(node, safe=True)


def _assertions(graph: ir.Graph) -> Iterator[ir.Node]:
    """Yield the Gathers of a constant tensor with one element, 0."""
    for node in all_nodes(graph):
        if (node.op_type, node.domain) != ("Gather", "") or node.attributes.get_int("axis", 0) != 0:
            continue
        data, index = node.inputs
        array = None if data is None else _constant(data)
        is_zero = array is not None and array.shape == (1,) and array.dtype == np.int64 and not array.any()
        if (
            is_zero
            and index is not None
            and index.dtype == ir.DataType.INT64
            and index.shape is not None
            and not index.shape
        ):
            yield node


def _constant(value: ir.Value) -> np.ndarray | None:
    node = value.producer()
    if node is not None and (node.op_type, node.domain) == ("Constant", ""):
        attribute = node.attributes.get("value")
        return None if attribute is None else attribute.as_tensor().numpy()
    return None if node is not None or value.const_value is None else value.const_value.numpy()
