"""The variables of a stateful model, as inputs and outputs of the ONNX model behind its own.

The input has the variable's initial value as its default, so that a run which does not feed it begins anew.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

import onnx_ir as ir

from onnx_specops.building import Builder, Value
from onnx_specops.runtime.state import METADATA_KEY


@dataclass
class Variable:
    """A variable of the model, as the graph sees it that may read it.

    Attributes:
        name: its id.
        value: what holds it before the run: an input of the model, or a value that is handed in to a nested graph.
        initial: the input's default.
        graph: the graph that may read and assign it.
        is_set: says whether ``value`` holds anything, where the initial value is computed.
        is_read: whether it has been read.
        assigned: its value after the run; ``None`` before it is assigned.
        assigned_is_set: says whether ``assigned`` holds anything; ``None`` where it always does.
    """

    name: str
    value: Value
    initial: ir.TensorProtocol
    graph: ir.Graph
    is_set: Value | None = None
    is_read: bool = False
    assigned: Value | None = None
    assigned_is_set: Value | None = None


@dataclass(frozen=True)
class ExposedVariable:
    """A variable, and the names of the model's inputs and outputs that hold it, as the metadata have them.

    No names where nothing assigns it: it is a constant then.
    """

    variable: Variable
    names: dict[str, str]


def expose(op: Builder, variables: Iterable[Variable]) -> list[ExposedVariable]:
    """Append the inputs and outputs of every variable that something assigns to the graph."""
    return [ExposedVariable(v, {} if v.assigned is None else _expose(op, v)) for v in variables]


def _expose(op: Builder, variable: Variable) -> dict[str, str]:
    names = {"name": variable.name}
    places = (
        ("input", variable.value, "output", variable.assigned),
        ("is_set", variable.is_set, "is_set_output", variable.assigned_is_set),
    )
    for input_key, value, output_key, following in places:
        if value is None:
            continue
        value.name = names[input_key] = op.unique(value.name or variable.name)
        op.graph.inputs.append(value)
        if following is not None:
            output = op.result(following)
            output.name = names[output_key] = op.unique(f"{value.name}.next")
            op.graph.outputs.append(output)
    return names


def complete(model: ir.Model, exposed: Iterable[ExposedVariable]) -> None:
    """Give the inputs their defaults, and tell sessions in the model's metadata which inputs and outputs belong together.

    Last of all: a default is no constant that could be folded away.
    """
    entries = []
    for item in exposed:
        variable = item.variable
        variable.value.const_value = variable.initial
        model.graph.register_initializer(variable.value)
        if variable.is_set is not None:
            variable.is_set.const_value = ir.tensor(False, name=variable.is_set.name)
            model.graph.register_initializer(variable.is_set)
        if item.names:
            entries.append(item.names)
    if entries:
        model.metadata_props[METADATA_KEY] = json.dumps(entries)
