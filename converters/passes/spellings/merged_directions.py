"""The outputs of recurrent layers with their directions in the last dimension."""

from __future__ import annotations

import onnx_ir as ir
from onnx_ir.passes import InPlacePass, PassResult
from onnx_ir.passes.common import RemoveUnusedNodesPass

from onnx_specops.building import OPSET, Builder, Value
from onnx_specops.graphs import all_nodes, attributes_of
from onnx_specops.replacing import replace_value

_RECURRENT = ("GRU", "LSTM", "RNN")
_MOVES = ("Flatten", "Reshape", "Squeeze", "Unsqueeze")
_EXCHANGED = [0, 2, 1, 3]
_ATTRIBUTES = 12
"""The last opset in which the axes of Squeeze are an attribute."""


class MergeDirections(InPlacePass):
    """Merge the directions of a recurrent layer into the last dimension of its output, directly after the layer.

    pnnx (2026) converts the layer only if a Squeeze (one direction) or a Transpose and a Reshape (two directions) follow.
    """

    def call(self, model: ir.Model) -> PassResult:
        root: Builder | None = None
        count = 0
        for node in list(all_nodes(model.graph)):
            if node.domain or node.op_type not in _RECURRENT or not isinstance(node.graph, ir.Graph):
                continue
            whole = node.outputs[0]
            if isinstance(whole, Value) and whole.is_static and (whole.uses() or whole.is_graph_output()):
                root = root or Builder.of_existing(model.graph)
                older = model.graph.opset_imports.get("", OPSET) <= _ATTRIBUTES
                _merge(node, whole, Builder.before_node(node, root), older=older)
                count += 1
        RemoveUnusedNodesPass()(model)
        return PassResult(model, modified=count > 0)


def _merge(node: ir.Node, whole: Value, op: Builder, *, older: bool) -> None:
    steps, directions, batch, size = (dim or 0 for dim in whole.dims or ())
    types = [(value.dtype, value.dims) for value in node.outputs if isinstance(value, Value)]
    made = op.node(node.op_type, *node.inputs, outputs=len(types), types=types, **attributes_of(node))
    outputs = made if isinstance(made, tuple) else (made,)
    if directions == 1:
        merged = op.at(_ATTRIBUTES).Squeeze(outputs[0], axes=[1]) if older else op.Squeeze(outputs[0], [1])
    else:
        merged = op.Reshape(op.Transpose(outputs[0], perm=_EXCHANGED), [steps, batch, directions * size])
    if 1 in (directions, batch):
        _replace(whole, merged, op)
    else:
        for user, _ in list(whole.uses()):
            if user.op_type == "Transpose" and list(user.attributes.get_ints("perm", ())) == _EXCHANGED:
                _replace(user.outputs[0], merged, op)
        if _is_used(whole):
            apart = op.Reshape(merged, [steps, batch, directions, size])
            replace_value(whole, op.Transpose(apart, perm=_EXCHANGED))
    for old, new in zip(node.outputs[1:], outputs[1:], strict=True):
        replace_value(old, new)


def _replace(old: ir.Value, merged: Value, op: Builder) -> None:
    """Replace a value with the same elements in the same order, and those that other nodes reshape."""
    for user, _ in list(old.uses()):
        result = user.outputs[0]
        if user.op_type in _MOVES and isinstance(result, Value) and result.is_static:
            replace_value(result, _reshaped(merged, result, op))
    if _is_used(old) and isinstance(old, Value):
        replace_value(old, _reshaped(merged, old, op))


def _is_used(value: ir.Value) -> bool:
    """Return whether a value is an output, or used by nodes whose results are."""
    results = [result for user, _ in value.uses() for result in user.outputs]
    return value.is_graph_output() or any(result.uses() or result.is_graph_output() for result in results)


def _reshaped(merged: Value, like: Value, op: Builder) -> Value:
    result: Value = merged if merged.dims == like.dims else op.Reshape(merged, [dim or 0 for dim in like.dims or ()])
    return result
