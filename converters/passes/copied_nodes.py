"""Copies of nodes and constants for another graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import onnx_ir as ir

from onnx_specops.building import new_value


def copied(
    nodes: Sequence[ir.Node], made_copies: dict[ir.Value, ir.Value], constant: Callable[[ir.Value], ir.Value]
) -> list[ir.Node]:
    """Copy nodes.

    Args:
        nodes: nodes without nested graphs, in topological order.
        made_copies: the copies of values. It contains those of outer values, and receives those of computed values.
        constant: copies a constant.
    """
    copies = []
    for node in nodes:
        for value in node.inputs:
            if value is not None and value not in made_copies:
                made_copies[value] = constant(value)
        taken = [None if value is None else made_copies[value] for value in node.inputs]
        outputs = [new_value(value.dtype, None, value.name) for value in node.outputs]
        for value, output in zip(node.outputs, outputs, strict=True):
            output.shape = value.shape
        attributes = list(node.attributes.values())
        copies.append(ir.Node(node.domain, node.op_type, taken, attributes, outputs=outputs, name=node.name))
        made_copies |= dict(zip(node.outputs, outputs, strict=True))
    return copies


def constant_copy(value: ir.Value) -> ir.Value:
    """Copy a constant with the same tensor."""
    tensor = value.const_value
    assert tensor is not None
    copy = new_value(tensor.dtype, tensor.shape.numpy(), value.name)
    copy.const_value = tensor
    return copy


def loaded_copy(value: ir.Value) -> ir.Value:
    """Copy a constant and its data, because the file may be closed before the copy is used."""
    copy = constant_copy(value)
    tensor = copy.const_value
    assert tensor is not None
    copy.const_value = ir.Tensor(np.array(tensor.numpy()), dtype=tensor.dtype, name=value.name)
    return copy
