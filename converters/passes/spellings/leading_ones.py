"""Constants of arithmetic without leading dimensions of 1."""

from __future__ import annotations

import onnx_ir as ir
from onnx_ir.passes import InPlacePass, PassResult

from converters.passes.spellings.scalars import BROADCASTING
from onnx_specops.building import constant_value
from onnx_specops.graphs import all_nodes
from onnx_specops.naming import Names


class RemoveLeadingOnes(InPlacePass):
    """Remove the leading dimensions of 1 from a constant that is combined with a tensor of at least the same rank.

    In OpenVINO, constants have the rank of the other operand. Other programs expect a vector, which PyTorch's exporter
    writes. OpenCV fuses a MatMul with a three-dimensional bias into a Gemm that it then rejects.
    """

    def call(self, model: ir.Model) -> PassResult:
        made: dict[ir.Value, ir.Value] = {}
        names: Names | None = None
        for node in all_nodes(model.graph):
            if node.domain or node.op_type not in BROADCASTING or node.op_type == "PRelu":
                continue
            for index, value in enumerate(node.inputs):
                tensor = None if value is None or value.is_graph_input() else value.const_value
                if value is None or tensor is None or len(tensor.shape) < 2 or tensor.shape.numpy()[0] != 1:
                    continue
                others = [other for place, other in enumerate(node.inputs) if place != index and other is not None]
                if not any(other.shape is not None and len(other.shape) >= len(tensor.shape) for other in others):
                    continue
                if value not in made:
                    names = names or Names.of(model.graph)
                    dims = list(tensor.shape.numpy())
                    while len(dims) > 1 and dims[0] == 1:
                        dims.pop(0)
                    short = ir.Tensor(tensor.numpy().reshape(dims), dtype=tensor.dtype)
                    made[value] = constant_value(short, name=f"{value.name}_short")
                    names.register(model.graph, made[value])
                node.replace_input_with(index, made[value])
        return PassResult(model, modified=bool(made))
