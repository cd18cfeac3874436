"""Inline model-local functions that contain nodes of the domain. Their values have types only after inlining."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import onnx
import onnx.inliner
from onnx import TensorProto

from onnx_specops.domain import DOMAIN

_FIRST_WITH_DEFAULTS = 4
"""The first IR version in which initializers of inputs are their defaults. In earlier versions, they are constants."""

SMALL = 1024  # bytes; smaller constants may be shapes and axes


def nested_graphs(node: onnx.NodeProto) -> Iterator[onnx.GraphProto]:
    """Iterate over the graphs among the attributes of ``node``."""
    for attribute in node.attribute:
        if attribute.type == onnx.AttributeProto.GRAPH:
            yield attribute.g
        yield from attribute.graphs


def graphs_and_functions(model: onnx.ModelProto) -> Iterator[Any]:
    """Iterate over graphs, including nested ones, and functions except the domain's own bodies."""
    pending: list[Any] = [model.graph, *(f for f in model.functions if f.domain != DOMAIN)]
    while pending:
        holder = pending.pop()
        yield holder
        for node in holder.node:
            pending.extend(nested_graphs(node))


def inputs_with_defaults(model: onnx.ModelProto) -> set[str]:
    """Return the names of the initializers that a caller can replace."""
    if model.ir_version < _FIRST_WITH_DEFAULTS:
        return set()
    return {info.name for info in model.graph.input} & {tensor.name for tensor in model.graph.initializer}


def without_weights(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return the graph of ``model`` with inputs in place of weights and of constants that a caller can replace.

    Functions are omitted.
    """
    light = onnx.ModelProto(ir_version=model.ir_version)
    light.opset_import.extend(model.opset_import)
    graph = light.graph
    graph.name = model.graph.name
    for field in ("node", "input", "output", "value_info"):
        getattr(graph, field).extend(getattr(model.graph, field))
    given, defaults = {info.name for info in model.graph.input}, inputs_with_defaults(model)
    for tensor in model.graph.initializer:
        if tensor.name in defaults:
            continue
        if tensor.data_location != TensorProto.EXTERNAL and tensor.ByteSize() <= SMALL:
            graph.initializer.append(tensor)
        elif tensor.name not in given:
            graph.input.append(onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims))
    return light


def inline_users(model: onnx.ModelProto) -> None:
    """Inline, in place, the functions (except bodies) that use nodes of the domain, directly or through other functions."""
    users = [f for f in model.functions if f.domain != DOMAIN]
    in_functions = onnx.ModelProto()
    in_functions.functions.extend(users)
    if not any(node.domain == DOMAIN for holder in graphs_and_functions(in_functions) for node in holder.node):
        return
    light = without_weights(model)
    light.functions.extend(model.functions)
    inlined = onnx.inliner.inline_selected_functions(light, [(f.domain, f.name) for f in users])
    for field in ("node", "value_info"):
        del getattr(model.graph, field)[:]
        getattr(model.graph, field).extend(getattr(inlined.graph, field))
    del model.functions[:]
    model.functions.extend(inlined.functions)
