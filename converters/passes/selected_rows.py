"""Rows of a variable, without copies of the whole variable.

A recurrent model selects the rows of its states by ``beam_idx``. An If chooses between the state and its initial value, a
Gather selects the rows, and a Where replaces the rows of invalid indices by zeros. Each of these three nodes copies the
state, which takes 36 to 111 us for 1 MB. The recurrence of a token takes 110 us. After the first run, only the Gather is
needed. A token of the Qwen3.5 in benchmarks/state_spaces.py with 8-bit weights then takes 5.9 ms instead of 6.3 ms.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir
from onnx_ir.passes import PassResult

from converters.passes.running import OperatorPass
from onnx_specops.building import Builder
from onnx_specops.graphs import constant_array, constant_list, producer_of

_PLAIN = ("Cast", "CastLike", "Reshape", "Squeeze")


@dataclass
class _Selection:
    """Rows of a variable.

    Attributes:
        is_set: whether the variable is set.
        stored: the variable.
        choice: the If.
        indices: the rows.
        counted: whether negative indices count from the end.
        result: the rows, and zeros for invalid indices.
    """

    is_set: ir.Value
    stored: ir.Value
    choice: ir.Node
    indices: ir.Value
    counted: bool
    result: ir.Value


class SelectRowsOnce(OperatorPass):
    """Replace the selection of rows of a variable by an If with only a Gather in one branch.

    Conditions: the variable's If returns the variable or its initial value. The Gather selects rows of the first dimension.
    The Where replaces exactly the rows with an index below 0 (or the negative number of rows) or beyond the last row.
    """

    operators = frozenset(("Where",))

    def call(self, model: ir.Model) -> PassResult:
        found = [one for node in model.graph if (one := _selection(node)) is not None]
        for one in found:
            _select(model.graph, one)
        return PassResult(model, modified=bool(found))


def _selection(node: ir.Node) -> _Selection | None:
    result = node.outputs[0]
    if (node.op_type, node.domain) != ("Where", "") or not _is_zero(node.inputs[2]) or result.is_graph_output():
        return None
    gather, valid = producer_of(node.inputs[1], "Gather"), _of_rows(node.inputs[0], result)
    if gather is None or valid is None or gather.attributes.get_int("axis", 0) != 0:
        return None
    safe = producer_of(gather.inputs[1], "Where")
    choice = producer_of(gather.inputs[0], "If")
    if safe is None or choice is None or safe.inputs[0] is not valid or not _is_zero(safe.inputs[2]):
        return None
    indices, is_set, stored = safe.inputs[1], choice.inputs[0], _returned(choice, "then_branch")
    if indices is None or is_set is None or stored is None or _returned(choice, "else_branch") is None:
        return None
    if is_set.shape is None or len(is_set.shape) != 0 or indices.shape is None or len(indices.shape) != 1:
        return None
    if indices.dtype not in (ir.DataType.INT32, ir.DataType.INT64):
        return None
    counted = _counts(valid, indices, choice.outputs[0])
    return None if counted is None else _Selection(is_set, stored, choice, indices, counted, result)


def _is_zero(value: ir.Value | None) -> bool:
    array = constant_array(value)
    return array is not None and array.size == 1 and array.ndim <= 1 and not array.any()


def _of_rows(mask: ir.Value | None, result: ir.Value) -> ir.Value | None:
    """Return the vector that a mask extends by dimensions of 1 to the number of dimensions of a result."""
    node = producer_of(mask, "Unsqueeze")
    if node is None or result.shape is None:
        return None
    added, axes = len(result.shape) - 1, constant_list(node.inputs[1])
    by_end, by_start = list(range(-added, 0)), list(range(1, added + 1))
    return node.inputs[0] if axes is not None and sorted(axes) in (by_end, by_start) else None


def _returned(choice: ir.Node, branch: str) -> ir.Value | None:
    """Return the outer value that a branch returns."""
    graph = choice.attributes[branch].as_graph()
    if len(graph.outputs) != 1 or len(graph) != 1:
        return None
    node = producer_of(graph.outputs[0], "Identity")
    return None if node is None else node.inputs[0]


def _counts(valid: ir.Value, indices: ir.Value, state: ir.Value) -> bool | None:
    """Return whether negative indices are valid; ``None`` if other indices are valid than those of the rows of a state."""
    both = producer_of(valid, "And")
    if both is None:
        return None
    for one, other in (both.inputs, both.inputs[::-1]):
        low, high = producer_of(one, "GreaterOrEqual"), producer_of(other, "Less")
        if low is None or high is None or low.inputs[0] is not indices or high.inputs[0] is not indices:
            continue
        size, least = high.inputs[1], low.inputs[1]
        if not _is_size(size, state):
            continue
        negative = producer_of(least, "Neg")
        if negative is not None and negative.inputs[0] is size:
            return True
        if _is_zero(least):
            return False
    return None


def _is_size(value: ir.Value | None, state: ir.Value) -> bool:
    """Return whether a value is the first dimension of a state."""
    node = None if value is None else value.producer()
    while node is not None and not node.domain and node.op_type in _PLAIN:
        value = node.inputs[0]
        node = None if value is None else value.producer()
    if node is None or (node.op_type, node.domain) != ("Shape", "") or node.inputs[0] is not state:
        return False
    return (node.attributes.get_int("start", 0), node.attributes.get_int("end", 0)) == (0, 1)


def _select(graph: ir.Graph, found: _Selection) -> None:
    uses, node = list(found.result.uses()), found.result.producer()
    assert node is not None and found.indices.dtype is not None
    op = Builder.of_existing(graph, before=node)
    op.scope = f"{node.name or 'rows'}/selected"
    rows = op.Cast(op.Squeeze(op.Shape(found.stored, start=0, end=1), [0]), to=found.indices.dtype)
    least = op.Neg(rows) if found.counted else op.const(np.array(0, found.indices.dtype.numpy()))
    valid = op.And(op.GreaterOrEqual(found.indices, least), op.Less(found.indices, rows))
    invalid = op.ReduceSum(op.Cast(op.Not(valid), to=ir.DataType.INT32), keepdims=0)
    ready = op.And(found.is_set, op.Equal(invalid, op.const(np.array(0, np.int32))))
    chosen = op.if_(ready, lambda op: op.Gather(found.stored, found.indices, axis=0), lambda op: found.result)
    chosen.shape = found.result.shape
    last = chosen.producer()
    graph.remove(last)
    graph.insert_after(node, last)  # the other branch returns the result of the node
    _move_filling(op, found.choice)
    for user, index in uses:
        user.replace_input_with(index, chosen)


def _move_filling(op: Builder, choice: ir.Node) -> None:
    """Move an initial value that repeats a number into the branch that needs it. Several variables may share it."""
    graph = choice.attributes["else_branch"].as_graph()
    node = producer_of(graph.outputs[0], "Identity")
    filling = None if node is None else producer_of(node.inputs[0], "Expand")
    if node is None or filling is None or constant_array(filling.inputs[0]) is None:
        return
    inner = Builder(graph, root=op, before=node)
    inner.scope = op.scope
    node.replace_input_with(0, inner.Expand(*filling.inputs))
