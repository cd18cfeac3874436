"""One value in the place of another."""

from __future__ import annotations

import onnx_ir as ir

from onnx_specops.building import Value


def take_place(old: ir.Value, new: ir.Value) -> None:
    """Let ``new`` stand wherever ``old`` does: for the nodes that use it, among graph outputs, under its name.

    ``new`` has to be of the same element type and, as far as both know it, shape; what it does not know it takes from
    ``old``. The node that made ``old`` stays, for `RemoveUnusedNodesPass` to remove.
    """
    if new.type is None:
        new.type = old.type
    if new.shape is None:
        new.shape = old.shape
    producer, has_name = old.producer(), new.is_graph_output()
    if old.is_graph_output() and (new.producer() is None or new.is_graph_output() or new.graph is not old.graph):
        # An input, a constant or another output cannot be this output: a copy of it is.
        assert producer is not None and producer.graph is not None
        copy = Value(name=f"{old.name}_copy", type=old.type, shape=old.shape)
        node, source = ir.Node("", "Identity", [new], outputs=[copy]), new.producer()
        if source is not None and source.graph is producer.graph:
            producer.graph.insert_after(source, node)
        else:
            producer.graph.insert_before(producer, node)
        new, has_name = copy, False
    old.replace_all_uses_with(new, replace_graph_outputs=True)
    if new.producer() is not None and not has_name:
        new.name, old.name = old.name, new.name
