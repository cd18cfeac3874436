"""Properties of Loops."""

from __future__ import annotations

import onnx_ir as ir

from onnx_specops.graphs import constant_array

_RESHAPES = frozenset(("Identity", "Reshape", "Squeeze", "Unsqueeze"))


def is_endless(loop: ir.Node) -> bool:
    """Return whether the condition of a Loop is always true, so that it ends after its trip count."""
    body = loop.attributes["body"].as_graph()
    return all(_is_true(value, body.inputs[1]) for value in (loop.inputs[1], body.outputs[0]))


def _is_true(value: ir.Value | None, before: ir.Value) -> bool:
    """Return whether a condition is omitted, true, or that of the previous iteration."""
    while value is not None and (node := value.producer()) is not None and node.op_type in _RESHAPES and not node.domain:
        value = node.inputs[0]
    return value is None or value is before or ((known := constant_array(value)) is not None and bool(known.all()))
