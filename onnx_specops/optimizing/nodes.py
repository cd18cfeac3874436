"""Queries of single nodes."""

from __future__ import annotations

from typing import Any

from onnx import NodeProto, helper


def is_a(node: NodeProto, *operators: str) -> bool:
    """Return whether a node is one of these ONNX operators and has an output."""
    return node.domain == "" and node.op_type in operators and len(node.output) > 0


def attributes_of(node: NodeProto) -> dict[str, Any]:
    """Return a node's attributes; strings are bytes."""
    return {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}
