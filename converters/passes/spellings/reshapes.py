"""Reshape to a constant shape, without `allowzero`."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
from onnx_ir.passes import InPlacePass, PassResult

from converters.passes.simplification.data_movement import one_target
from onnx_specops.building import Value, constant_value
from onnx_specops.graphs import all_nodes, constant_array
from onnx_specops.naming import Names


class StaticReshape(InPlacePass):
    """Make the shape of a Reshape constant if at most one dimension of the result is unknown.

    Remove ``allowzero`` if no dimension is 0, because it has no effect.
    """

    def call(self, model: ir.Model) -> PassResult:
        names: Names | None = None
        count = 0
        for node in all_nodes(model.graph):
            if node.domain or node.op_type != "Reshape" or len(node.inputs) < 2:
                continue
            data, given, result = node.inputs[0], node.inputs[1], node.outputs[0]
            if given is None or not isinstance(data, Value) or not isinstance(result, Value):
                continue
            known = None if given.is_graph_input() or given.const_value is None else given.const_value.numpy().tolist()
            if known is None or 0 in known:
                target = one_target(data, result)
                if target is not None:
                    names = names or Names.of(model.graph)
                    shape = constant_value(np.array(target, np.int64), name=f"{result.name}_shape")
                    names.register(model.graph, shape)
                    node.replace_input_with(1, shape)
                    known = target
                    count += 1
            if known is not None and 0 not in known and node.attributes.pop("allowzero", None) is not None:
                count += 1
        return PassResult(model, modified=count > 0)


class StatedDimensions(InPlacePass):
    """Replace the -1 in the constant shape of a Reshape by the dimension if all dimensions of the result are known.

    Condition: no dimension of the result is 0, because a 0 in the shape copies a dimension of the input. OpenCV (5.0.0)
    fuses attention, and interprets the number in the shape as the number of heads.
    """

    def call(self, model: ir.Model) -> PassResult:
        names: Names | None = None
        count = 0
        for node in all_nodes(model.graph):
            if node.domain or node.op_type != "Reshape":
                continue
            given, result = constant_array(node.inputs[1]), node.outputs[0]
            if given is None or -1 not in given or not isinstance(result, Value):
                continue
            if not result.is_static or 0 in (result.dims or ()):
                continue
            names = names or Names.of(model.graph)
            shape = constant_value(np.array(result.dims, np.int64), name=f"{result.name}_shape")
            names.register(model.graph, shape)
            node.replace_input_with(1, shape)
            count += 1
        return PassResult(model, modified=count > 0)
