"""A model's variables as its inputs and outputs, behind the model's own."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

import onnx_ir as ir

from converters.openvino.rules.state import Variable
from onnx_specops.building import Builder
from onnx_specops.runtime.state import METADATA_KEY


def add_variable(op: Builder, variable: Variable) -> None:
    """Append the variable's inputs and outputs to the graph, unless nothing assigns it."""
    if variable.assigned is None:
        return
    for value in (variable.value, variable.is_set):
        if value is not None:
            value.name = op.unique(value.name or variable.name)
            op.graph.inputs.append(value)
    for held, following in variable.links:
        output = op.result(following)
        output.name = op.unique(f"{held.name}.next")
        op.graph.outputs.append(output)


def expose_variables(model: ir.Model, variables: Sequence[Variable]) -> None:
    """Give the inputs their defaults, and tell sessions in the model's metadata which inputs and outputs belong together."""
    for variable in variables:
        variable.value.const_value = variable.initial
        model.graph.register_initializer(variable.value)
        if variable.is_set is not None:
            variable.is_set.const_value = ir.tensor(False, name=variable.is_set.name)
            model.graph.register_initializer(variable.is_set)
    names = [output.name for output in model.graph.outputs]
    following = iter(names[len(names) - sum(len(variable.links) for variable in variables) :])
    entries = [_entry(variable, following) for variable in variables if variable.links]
    if entries:
        model.metadata_props[METADATA_KEY] = json.dumps(entries)


def _entry(variable: Variable, following: Iterator[str | None]) -> dict[str, str | None]:
    """What the metadata say of a variable, whose outputs are the next ones of ``following``."""
    entry = {"name": variable.name, "input": variable.value.name}
    if variable.is_set is not None:
        entry["is_set"] = variable.is_set.name
    outputs = [next(following) for _ in variable.links]
    return entry | dict(zip(("output", "is_set_output"), outputs, strict=False))
