"""Outputs of a model that are transposed and quantized afterwards.

ONNX Runtime (1.32) moves a quantization before the preceding Transpose, and removes a Relu or Clip before it that has no
effect on the integers. If the Transpose is the only consumer of an output of the model, the output then contains the
quantized numbers. A Transpose that computes an output may become such a consumer, because ONNX Runtime moves it.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnx_ir as ir
from onnx_ir.passes import InPlacePass, PassResult

from converters.passes.copied_nodes import copy_output
from converters.passes.quantized.graph import is_node
from onnx_specops.captured_values import MOVERS
from onnx_specops.domain import DOMAIN
from onnx_specops.graphs import all_nodes, constant_array, nested
from onnx_specops.naming import Names

_REMOVED = frozenset(("Cast", "Clip", "Identity", "Relu"))
_FLOATS = frozenset((ir.DataType.FLOAT, ir.DataType.FLOAT16))


class CopyMovedOutputs(InPlacePass):
    """Return a copy of such an output, by an Identity, or after a Transpose by a Max, which ONNX Runtime does not remove.

    Conditions: a Transpose is the only consumer, or a Transpose computes the output from a value with one other consumer. A
    QuantizeLinear is that consumer, or follows it, perhaps after nodes that move numbers, or that ONNX Runtime may remove. A
    Relu is not removed if the integers represent negative numbers. The function body of an Elementwise may begin with all
    of these.
    """

    def call(self, model: ir.Model) -> PassResult:
        graphs = [model.graph, *(graph for node in all_nodes(model.graph) for graph in nested(node))]
        outputs = [(graph, index) for graph in graphs for index in range(len(graph.outputs))]
        found = {place: copy for place in outputs if (copy := _copy_of(place[0].outputs[place[1]], place[0])) is not None}
        names = Names.of(model.graph) if found else Names()
        for (graph, index), operator in found.items():
            copy_output(graph, index, names, "moved", operator)
        return PassResult(model, modified=bool(found))


def _copy_of(value: ir.Value, graph: ir.Graph) -> str | None:
    """Return the operator that copies an output, or ``None`` if none is necessary."""
    node, users = value.producer(), [use.node for use in value.uses()]
    if node is None or node.graph is not graph:
        return None
    if len(users) == 1 and is_node(users[0], "Transpose") and _is_quantized(users[0]):
        return "Identity"
    source = node.inputs[0] if is_node(node, "Transpose") else None
    if source is None or users or value.dtype not in _FLOATS:
        return None
    others = [use.node for use in source.uses() if use.node is not node]
    return "Max" if len(others) == 1 and _is_quantized(others[0]) else None


def _is_quantized(first: ir.Node) -> bool:
    """Return whether a node is a quantization, or one follows it that may move before it."""
    return any(
        is_node(node, "Elementwise", DOMAIN) or (is_node(node, "QuantizeLinear") and not (is_cut and _has_negatives(node)))
        for node, is_cut in _following(first)
    )


def _following(first: ir.Node) -> Iterator[tuple[ir.Node, bool]]:
    """Iterate over a node and those after it, up to the first ones that neither move numbers nor may be removed, and whether
    there is a Relu before them.
    """
    pending = [(first, False)]
    while pending:
        node, is_cut = pending.pop()
        yield node, is_cut
        if not node.domain and node.op_type in MOVERS | _REMOVED:
            pending += [(user, is_cut or node.op_type == "Relu") for user in node.outputs[0].consumers()]


def _has_negatives(quantizer: ir.Node) -> bool:
    """Return whether the integers of a QuantizeLinear represent negative numbers, as far as its zero point is known."""
    zero = constant_array(quantizer.inputs[2]) if len(quantizer.inputs) > 2 and quantizer.inputs[2] is not None else None
    return zero is not None and zero.dtype.kind in "iu" and bool((zero > np.iinfo(zero.dtype).min).all())
