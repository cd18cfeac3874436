"""Booleans and bytes as casts of integers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
import onnx_ir as ir
from onnx_ir.passes import InPlacePass, PassResult

from converters.passes.workaround import Workaround
from onnx_specops.building import Builder, Value, constant_value
from onnx_specops.naming import Names


class RemoveBooleanConstants(InPlacePass):
    """Replace each boolean constant by an int32 constant and a Cast. OpenCV and TVM cannot read boolean tensors."""

    kind: ClassVar[ir.DataType] = ir.DataType.BOOL
    suffix: ClassVar[str] = "boolean"
    stored: ClassVar[frozenset[str]] = frozenset()
    """Operators whose constants stay."""

    def call(self, model: ir.Model) -> PassResult:
        graph = model.graph
        found = [
            value
            for value in graph.initializers.values()
            if value.dtype == self.kind
            and not value.is_graph_input()
            and value.uses()
            and all(use.node.op_type not in self.stored for use in value.uses())
        ]
        names = Names.of(graph) if found else Names()
        for value in found:
            tensor = value.const_value
            assert tensor is not None and value.name is not None
            numbers = constant_value(tensor.numpy().astype(np.int32), name=f"{value.name}_numbers")
            names.register(graph, numbers)
            result = Value(name=names.unique(f"{value.name}_{self.suffix}"), type=value.type, shape=value.shape)
            cast = ir.Node("", "Cast", [numbers], [ir.AttrInt64("to", int(self.kind))], outputs=[result])
            cast.name = result.name
            value.replace_all_uses_with(result, replace_graph_outputs=True)
            if len(graph):
                graph.insert_before(graph[0], cast)
            else:
                graph.append(cast)
            graph.initializers.pop(value.name)
        return PassResult(model, modified=bool(found))


class RemoveByteConstants(RemoveBooleanConstants):
    """Replace each uint8 constant by an int32 constant and a Cast. OpenCV (4.14.0) subtracts 128 from the elements of such
    constants.
    """

    kind = ir.DataType.UINT8
    suffix = "byte"
    stored = frozenset(("DequantizeLinear", "QuantizeLinear"))


class SelectedNumbers(Workaround):
    """Select booleans as int32. OpenCV (5.0.0) rejects a Where of booleans."""

    operators = frozenset(("Where",))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        condition, *values = node.inputs
        if node.outputs[0].dtype != ir.DataType.BOOL:
            return None
        numbers = [op.Cast(value, to=ir.DataType.INT32) for value in values]
        return [op.Cast(op.Where(condition, *numbers), to=ir.DataType.BOOL)]
