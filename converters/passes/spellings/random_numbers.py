"""Random numbers without a seed."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
from onnx_ir.passes import InPlacePass, PassResult

from onnx_specops.building import Builder, Value
from onnx_specops.domain import DOMAIN
from onnx_specops.graphs import all_nodes, attributes_of, constant_list
from onnx_specops.replacing import replace_value


class UnseededRandomUniform(InPlacePass):
    """Draw random numbers without a seed by ONNX's RandomUniform, whose generator differs, from 0 to 1.

    The operator's function is a generator of its own, with a Loop and operations on bits that most programs other than ONNX
    Runtime lack. OpenVINO (2026.4.1) has no RandomUniform of float64, which draws its key. The shape is constant, and the
    numbers are floats of 32 bits.
    """

    def call(self, model: ir.Model) -> PassResult:
        root: Builder | None = None
        count = 0
        for node in list(all_nodes(model.graph)):
            if (node.domain, node.op_type) != (DOMAIN, "RandomUniform") or not isinstance(node.graph, ir.Graph):
                continue
            shape, low, high = constant_list(node.inputs[0]), node.inputs[1], node.inputs[2]
            seeds = attributes_of(node)
            if shape is None or any(seeds.get(name, 0) for name in ("global_seed", "op_seed")):
                continue
            if not isinstance(low, Value) or not isinstance(high, Value) or low.dtype != ir.DataType.FLOAT:
                continue
            root = root or Builder.of_existing(model.graph)
            op = Builder.before_node(node, root)
            drawn = op.RandomUniform(shape=shape, dtype=ir.DataType.FLOAT.value, low=0.0, high=1.0)
            scalars = [op.Reshape(value, op.const(np.zeros(0, np.int64))) for value in (low, high)]
            drawn = op.Add(op.Mul(drawn, op.Sub(scalars[1], scalars[0])), scalars[0])
            replace_value(node.outputs[0], op.place(drawn), equal=False)
            node.graph.remove(node, safe=True)
            count += 1
        return PassResult(model, modified=count > 0)
