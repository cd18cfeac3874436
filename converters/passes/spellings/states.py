"""The last states of recurrent layers as outputs."""

from __future__ import annotations

import onnx_ir as ir
from onnx_ir.passes import InPlacePass, PassResult

from onnx_specops.graphs import all_nodes
from onnx_specops.naming import Names

_OUTPUTS = {"GRU": ("Y", "Y_h"), "LSTM": ("Y", "Y_h", "Y_c"), "RNN": ("Y", "Y_h")}


class NameLastStates(InPlacePass):
    """Name all outputs of recurrent nodes, including unused ones.

    OpenCV (5.0.0) computes a wrong shape for a GRU whose last state is unnamed. MNN's converter (3.6) crashes if an LSTM
    precedes another one.
    """

    def call(self, model: ir.Model) -> PassResult:
        names: Names | None = None
        count = 0
        for node in all_nodes(model.graph):
            if node.domain or node.op_type not in _OUTPUTS:
                continue
            expected = _OUTPUTS[node.op_type]
            node.resize_outputs(len(expected))
            for value, suffix in zip(node.outputs, expected, strict=True):
                if not value.name:
                    names = names or Names.of(model.graph)
                    value.name = names.unique(f"{node.name or node.op_type}_{suffix}")
                    count += 1
        return PassResult(model, modified=count > 0)
