"""Insertion of the nodes of another IR into a graph."""

from __future__ import annotations

from pathlib import Path

import onnx_ir as ir

from converters.folders.path_errors import path_error
from converters.formats import format_of
from converters.passes.copied_nodes import copied, loaded_copy
from onnx_specops.building import new_value
from onnx_specops.naming import Names


def inserted(graph: ir.Graph, path: Path, scope: str, *, before: ir.Node | None = None) -> tuple[ir.Value, ir.Value]:
    """Insert the nodes of an IR with one input and one output. Return both; the input has no producer yet.

    Args:
        graph: the graph; changed in place.
        path: the IR.
        scope: the prefix of the nodes' names.
        before: the node that follows them; without it, they are the last.

    Raises:
        ConversionError: the IR has several inputs or outputs, or cannot be converted.
    """
    names = Names.of(graph)
    with format_of(path).open(path, None) as source:
        inner = source.emit().model.graph
        if len(inner.inputs) != 1 or len(inner.outputs) != 1:
            raise path_error(path, "it has more than one input or output", "convert it without --genai")
        taken = inner.inputs[0]
        given = new_value(taken.dtype, None, names.unique(f"{scope}/{taken.name}"))
        given.shape = taken.shape
        made: dict[ir.Value, ir.Value] = {taken: given}

        def constant(value: ir.Value) -> ir.Value:
            copy = loaded_copy(value)
            names.register(graph, copy)
            return copy

        for node in copied(list(inner), made, constant):
            for value in node.outputs:
                value.name = names.unique(f"{scope}/{value.name}")
            if before is None:
                graph.append(node)
            else:
                graph.insert_before(before, node)
        return given, made[inner.outputs[0]]
