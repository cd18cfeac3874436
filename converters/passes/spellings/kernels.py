"""Kernel sizes of convolutions as attributes."""

from __future__ import annotations

import onnx_ir as ir
from onnx_ir.passes import InPlacePass, PassResult

from onnx_specops.building import Value
from onnx_specops.graphs import all_nodes

_CONVOLUTIONS = frozenset(("Conv", "ConvInteger", "ConvTranspose", "QLinearConv"))


class StateKernels(InPlacePass):
    """Add ``kernel_shape``, which ONNX infers from the weights, to convolutions.

    MNN (3.6) computes no three-dimensional convolution without it, and its results are arbitrary numbers.
    """

    def call(self, model: ir.Model) -> PassResult:
        count = 0
        for node in all_nodes(model.graph):
            if node.domain or node.op_type not in _CONVOLUTIONS or "kernel_shape" in node.attributes:
                continue
            weights = node.inputs[3 if node.op_type == "QLinearConv" else 1]
            if isinstance(weights, Value) and weights.is_static and weights.dims:
                node.attributes.add(ir.AttrInt64s("kernel_shape", [dim or 0 for dim in weights.dims[2:]]))
                count += 1
        return PassResult(model, modified=count > 0)
