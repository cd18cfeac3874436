"""A model's variables as its inputs and outputs, behind the model's own."""

from __future__ import annotations

import json
from collections.abc import Sequence

import onnx_ir as ir

from converters.openvino.rules.state import Variable
from onnx_specops.building import Builder
from onnx_specops.runtime.state import METADATA_KEY


def add_variable(op: Builder, variable: Variable) -> None:
    """Append the variable's inputs and its output to the graph, unless nothing assigns it."""
    if variable.assigned is None:
        return
    for value in (variable.value, variable.is_set):
        if value is not None:
            value.name = op.unique(value.name or variable.name)
            op.graph.inputs.append(value)
    output = op.result(variable.assigned)
    output.name = op.unique(f"{variable.value.name}.next")
    op.graph.outputs.append(output)


def expose_variables(model: ir.Model, variables: Sequence[Variable]) -> None:
    """Give the inputs their defaults, and tell sessions in the model's metadata which inputs and outputs belong together."""
    for variable in variables:
        variable.value.const_value = variable.initial
        model.graph.register_initializer(variable.value)
        if variable.is_set is not None:
            variable.is_set.const_value = ir.tensor(False, name=variable.is_set.name)
            model.graph.register_initializer(variable.is_set)
    assigned = [variable for variable in variables if variable.assigned is not None]
    entries = []
    for variable, output in zip(
        assigned, list(model.graph.outputs)[len(model.graph.outputs) - len(assigned) :], strict=True
    ):
        entry = {"name": variable.name, "input": variable.value.name, "output": output.name}
        if variable.is_set is not None:
            entry["is_set"] = variable.is_set.name
        entries.append(entry)
    if entries:
        model.metadata_props[METADATA_KEY] = json.dumps(entries)
