"""The variables of a stateful model as additional inputs and outputs of the ONNX model.

The input has the variable's initial value as its default, so a run without this input starts from the initial value. Some
APIs cannot set an input that has a default (ONNX Runtime for JavaScript and Java, and Triton). For these APIs, both inputs
of a variable are required, and the second one determines whether the first one is used.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field

import onnx_ir as ir

from converters.options import Variables
from onnx_specops.building import Builder, Value, new_value
from onnx_specops.runtime.variables import METADATA_KEY


@dataclass
class Variable:
    """A variable of the model in one graph that can read it.

    Attributes:
        name: its id.
        value: the value before the run: an input of the model, or a value from outside a nested graph.
        initial: the default of the input.
        graph: the graph that can read and assign it.
        is_set: whether ``value`` is valid, if the initial value is computed.
        is_read: whether it has been read.
        assigned: its value after the run; ``None`` before it is assigned.
        assigned_is_set: whether ``assigned`` is valid; ``None`` if it always is.
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
    """A variable and the names of its inputs and outputs in the model's metadata.

    A variable that is never assigned is a constant of the graph and has no names. The traits tell sessions how the variable
    grows.
    """

    variable: Variable
    names: dict[str, str]
    traits: dict[str, str | int | bool] = field(default_factory=dict)


def expose(op: Builder, variables: Iterable[Variable]) -> list[ExposedVariable]:
    """Append the inputs and outputs of all assigned variables to the graph."""
    return [ExposedVariable(v, _fix(op, v) if v.assigned is None else _expose(op, v)) for v in variables]


def _fix(op: Builder, variable: Variable) -> dict[str, str]:
    """Make a variable that is never assigned a constant. Passes may then fold it, and change its type."""
    for value in (variable.value, variable.is_set):
        if value is not None:
            value.name = op.unique(value.name or variable.name)
    _start(op.graph, variable)
    return {}


def _start(graph: ir.Graph, variable: Variable) -> None:
    """Make the initial value, and False for ``is_set``, initializers of a graph."""
    variable.value.const_value = variable.initial
    graph.register_initializer(variable.value)
    if variable.is_set is not None:
        variable.is_set.const_value = ir.tensor(False, name=variable.is_set.name)
        graph.register_initializer(variable.is_set)


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


def complete(model: ir.Model, exposed: Iterable[ExposedVariable], form: Variables = "defaults") -> None:
    """Set the defaults of the inputs, and record in the model's metadata which inputs and outputs belong together.

    Call this last. A default is not a constant and must not be folded.

    Args:
        model: the finished model.
        exposed: its variables.
        form: with ``"inputs"``, inputs have no defaults. A run with `False` for ``is_set`` starts from the initial value,
            for any value of the variable's input.
    """
    entries = []
    op: Builder | None = None
    for item in exposed:
        variable = item.variable
        if not item.names:
            continue
        if form == "defaults":
            _start(model.graph, variable)
        elif variable.is_set is None and not item.traits:  # a growing variable starts empty, which can be fed
            if op is None:
                op = Builder.of_existing(model.graph, before=next(iter(model.graph), None))
            _choose_at_run_time(op, item)
        if _is_kept(model.graph, item):
            item.traits["in_place"] = True
        entries.append({**item.names, **item.traits})
    if entries:
        model.metadata_props[METADATA_KEY] = json.dumps(entries)


def _is_kept(graph: ir.Graph, item: ExposedVariable) -> bool:
    """Return whether an If keeps a variable that is set by returning the value that it reads.

    ONNX Runtime then copies nothing if the variable's input and output are bound to the same memory.
    """
    variable = item.variable
    output = next((value for value in graph.outputs if value.name == item.names["output"]), None)
    node = None if output is None else output.producer()
    if output is None or node is None or node.op_type != "If" or node.domain or node.inputs[0] is not variable.is_set:
        return False
    given = node.attributes["then_branch"].as_graph().outputs[output.index() or 0].producer()
    return given is not None and given.op_type == "Identity" and not given.domain and given.inputs[0] is variable.value


def _choose_at_run_time(op: Builder, item: ExposedVariable) -> None:
    """Insert an If that selects the fed value if the second input is true, and the initial value otherwise."""
    variable = item.variable
    value, uses = variable.value, list(variable.value.uses())
    is_set = new_value(ir.DataType.BOOL, [], op.unique(f"{value.name}.is_set"))
    item.names["is_set"] = is_set.name or ""
    op.scope = value.name or ""
    initial = new_value(variable.initial.dtype, variable.initial.shape.numpy(), f"{value.name}.initial")
    initial.const_value = variable.initial
    chosen = op.if_(is_set, lambda op: value, lambda op: initial)
    chosen.shape = value.shape
    for user, index in uses:
        user.replace_input_with(index, chosen)
    op.graph.inputs.append(is_set)
