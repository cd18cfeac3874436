"""OpenVINO's operations as data, with the bodies of If, Loop and TensorIterator; runs in its process."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tests.conformance.operation_models import TYPES
from tests.conformance.random.recipe import Dims, Layer, Leaf, Recipe, Ref


def source(port: Any) -> tuple[str, int]:
    """Return the output that an input of a node is connected to."""
    output = port.get_source_output()
    return output.get_node().get_name(), output.get_index()


def dims_of(shape: Any) -> Dims:
    """Return the dimensions of a partial shape."""
    return tuple(d.get_length() if d.is_static else -1 for d in shape) if shape.rank.is_static else None


def constant_of(op: Any) -> Leaf:
    """Return a Constant."""
    type_, shape = op.get_element_type().get_type_name(), tuple(op.get_output_shape(0))
    array = np.array(op.data)
    return Leaf(type_, array.reshape(shape) if type_ in TYPES else array, shape, constant=True)


def layer_of(op: Any, refs: Mapping[tuple[str, int], Ref]) -> Layer:
    """Return a layer whose inputs have the given references."""
    inputs = tuple(refs[source(port)] for port in op.inputs())
    kind, opset = op.get_type_name(), op.get_type_info().version_id
    if kind == "If":
        bodies = tuple(map(recipe_of, (op.get_then_body(), op.get_else_body())))
        return Layer(kind, opset, inputs, {}, bodies, (*_branch_inputs(op), *_branch_outputs(op)))
    if kind in ("Loop", "TensorIterator"):
        attributes = {"special": tuple(op.get_special_body_ports())} if kind == "Loop" else {}
        body = op.get_function() if kind == "Loop" else op.get_body()
        return Layer(
            kind, opset, inputs, attributes, (recipe_of(body),), (*map(_input, op.get_input_descriptions()), *_outputs(op))
        )
    return Layer(kind, opset, inputs, op.get_attributes())


def recipe_of(model: Any) -> Recipe:
    """Return the nodes of a model or a body; its Parameters come first and have no values."""
    nodes: list[Leaf | Layer] = []
    refs: dict[tuple[str, int], Ref] = {}
    parameters = list(model.get_parameters())  # ports have their numbers
    others = [op for op in model.get_ordered_ops() if op.get_type_name() not in ("Parameter", "Result")]
    for op in (*parameters, *others):
        node: Leaf | Layer
        if op.get_type_name() == "Parameter":
            node = Leaf(op.get_element_type().get_type_name(), None, dims_of(op.get_partial_shape()))
        else:
            node = constant_of(op) if op.get_type_name() == "Constant" else layer_of(op, refs)
        refs |= {(op.get_name(), index): (len(nodes), index) for index in range(op.get_output_size())}
        nodes.append(node)
    return Recipe(tuple(nodes), tuple(refs[source(result.input(0))] for result in model.get_results()))


def _input(found: Any) -> tuple[Any, ...]:
    kind, ports = type(found).__name__, (found.body_parameter_index, found.input_index)
    if kind == "SliceInputDescription":
        return ("set_sliced_input", *ports, found.start, found.stride, found.part_size, found.end, found.axis)
    if kind == "MergedInputDescription":
        return ("set_merged_input", *ports, found.body_value_index)
    return ("set_invariant_input", *ports)


def _outputs(op: Any) -> list[tuple[Any, ...]]:
    ports: list[tuple[Any, ...]] = []
    for found in sorted(op.get_output_descriptions(), key=lambda found: found.output_index):
        if type(found).__name__ == "ConcatOutputDescription":
            how = (found.start, found.stride, found.part_size, found.end, found.axis)
            ports.append(("get_concatenated_slices", found.body_value_index, *how))
        else:
            ports.append(("get_iter_value", found.body_value_index, found.iteration))
    return ports


def _branch_inputs(op: Any) -> list[tuple[Any, ...]]:
    own = [
        {found.input_index: found.body_parameter_index for found in op.get_input_descriptions(branch)} for branch in (0, 1)
    ]
    return [("set_input", k, *(branch.get(k) for branch in own)) for k in range(1, op.get_input_size())]


def _branch_outputs(op: Any) -> list[tuple[Any, ...]]:
    own = [{found.output_index: found.body_value_index for found in op.get_output_descriptions(branch)} for branch in (0, 1)]
    return [("set_output", *(branch[k] for branch in own)) for k in range(op.get_output_size())]
