"""Concats with fewer inputs, and merging of Concats."""

from __future__ import annotations

import onnx_ir as ir
from onnx_ir.passes import InPlacePass, PassResult

from onnx_specops.building import Builder, Value
from onnx_specops.graphs import all_nodes
from onnx_specops.replacing import replace_value


class MergeConcats(InPlacePass):
    """Merge a Concat with those after it along the same axis, which are its only consumers, and omit empty inputs."""

    def call(self, model: ir.Model) -> PassResult:
        omitted = sum(
            _without_empty(node) for node in all_nodes(model.graph) if not node.domain and node.op_type == "Concat"
        )
        root: Builder | None = None
        count = 0
        for node in list(all_nodes(model.graph)):
            if node.domain or node.op_type != "Concat" or not isinstance(node.graph, ir.Graph):
                continue
            result = node.outputs[0]
            inner = next((value for value in node.inputs if _is_part(value, node)), None)
            if inner is None or not isinstance(result, Value):
                continue
            root = root or Builder.of_existing(model.graph)
            op = Builder.before_node(node, root)
            producer = inner.producer()
            assert producer is not None
            parts: list[ir.Value | None] = []
            for value in node.inputs:
                parts += producer.inputs if value is inner else [value]
            merged = op.Concat(*parts, axis=node.attributes.get_int("axis"))
            if replace_value(result, op.place(merged)):
                node.graph.remove(node, safe=True)
                count += 1
        return PassResult(model, modified=count + omitted > 0)


def _without_empty(node: ir.Node) -> bool:
    """Omit the inputs of a Concat that have no elements along its axis, unless all may be empty."""
    axis, result = node.attributes.get_int("axis", 0), node.outputs[0]
    rank = None if result.shape is None else len(result.shape)
    if rank is None:
        return False
    kept = [v for v in node.inputs if v is None or v.shape is None or len(v.shape) != rank or v.shape[axis % rank] != 0]
    if not kept or len(kept) == len(node.inputs):
        return False
    for index, value in enumerate(kept):
        node.replace_input_with(index, value)
    node.resize_inputs(len(kept))
    return True


def _is_part(value: ir.Value | None, node: ir.Node) -> bool:
    producer = None if value is None else value.producer()
    if value is None or producer is None or producer.domain or producer.op_type != "Concat" or value.is_graph_output():
        return False
    if value.shape is None:
        return False
    axis, rank = producer.attributes.get_int("axis", 0), len(value.shape)
    return all(
        not user.domain
        and user.op_type == "Concat"
        and user.graph is node.graph is producer.graph
        and user.attributes.get_int("axis", 0) % rank == axis % rank
        for user, _ in value.uses()
    )
