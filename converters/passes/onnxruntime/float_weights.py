"""Float weights between quantized tensors.

ONNX Runtime (from 1.20, its WeightBiasQuantization) rounds the weights of a Conv, ConvTranspose or Gemm to 8 bits, with one
scale for all channels, if the input is dequantized and the output quantized. Quantized networks keep such weights in
floating point on purpose, and the channels differ by orders of magnitude. With rounded weights, the results would differ by
tens of levels.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
from onnx_ir.passes import PassResult

from converters.passes.quantized.graph import is_node
from converters.passes.running import OperatorPass
from onnx_specops.building import Builder, constant_value
from onnx_specops.graphs import all_nodes

_ROUNDED = ("Conv", "ConvTranspose", "Gemm", "MatMul")
"""The operators whose weights are rounded. A MatMul with a bias becomes a Gemm."""

_PASSED = frozenset(("Add", "BatchNormalization", "Clip", "Div", "Mul", "Relu", "Sub"))
"""Operators before the quantization that ONNX Runtime fuses or skips."""

_MOVERS = frozenset(("MaxPool", "Reshape", "Slice", "Squeeze", "Transpose", "Unsqueeze"))
"""Operators around the weights' operator through which ONNX Runtime moves quantization and dequantization."""


class KeepFloatWeights(OperatorPass):
    """Insert a Max with the lowest number, which changes nothing, before such a quantization. ONNX Runtime does not skip a
    Max.
    """

    operators = frozenset(("DequantizeLinear",))

    def call(self, model: ir.Model) -> PassResult:
        ends = [_end(node.outputs[0]) for node in all_nodes(model.graph) if _may_be_rounded(node)]
        found = dict.fromkeys(end for end in ends if end is not None)
        if not found:
            return PassResult(model, modified=False)
        root = Builder.of_existing(model.graph)
        for value in found:
            users, producer = list(value.consumers()), value.producer()
            assert producer is not None and isinstance(producer.graph, ir.Graph)
            op = Builder(producer.graph, root=root, before=producer)
            op.scope = f"{value.name}/kept"
            same = op.Max(value, constant_value(np.array(np.finfo(np.float32).min)))
            producer.graph.insert_after(producer, same.producer())
            same.shape = value.shape
            for user in users:
                for index, taken in enumerate(user.inputs):
                    if taken is value:
                        user.replace_input_with(index, same)
        return PassResult(model, modified=True)


def _may_be_rounded(node: ir.Node) -> bool:
    if node.domain or node.op_type not in _ROUNDED:
        return False
    x, weights = node.inputs[:2]
    if x is None or weights is None or x.dtype != ir.DataType.FLOAT:
        return False
    while x is not None and any(is_node(x.producer(), mover) for mover in _MOVERS):
        x = producer.inputs[0] if (producer := x.producer()) is not None else None
    if x is None or is_node(weights.producer(), "DequantizeLinear"):
        return False
    return is_node(x.producer(), "DequantizeLinear")


def _end(value: ir.Value) -> ir.Value | None:
    """Return the value that is only quantized, at most a few simple operators after ``value``."""
    while not value.is_graph_output():
        users = list(value.consumers())
        if users and all(is_node(user, "QuantizeLinear") for user in users):
            return value
        if len(users) != 1 or users[0].domain or users[0].op_type not in _PASSED | _MOVERS:
            break
        value = users[0].outputs[0]
    return None
