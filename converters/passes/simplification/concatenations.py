"""Concats with fewer inputs, and merging of Concats."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Collection, Mapping

import onnx_ir as ir
from onnx_ir.passes import PassResult

from converters.passes.running import OperatorPass
from onnx_specops.building import Builder, Value
from onnx_specops.graphs import all_nodes
from onnx_specops.replacing import replace_value

_MOST_COPIED = 64
"""The maximum number of inputs of a Concat after another Concat with several consumers was merged into it."""


class MergeConcats(OperatorPass):
    """Merge a Concat with those after it along the same axis, which are its only consumers, and omit empty inputs.

    If there are several consumers, each gets its inputs, and has at most 64: the number may double with each Concat.
    """

    operators = frozenset(("Concat",))

    def call(self, model: ir.Model) -> PassResult:
        omitted = sum(
            _without_empty(node) for node in all_nodes(model.graph) if not node.domain and node.op_type == "Concat"
        )
        root: Builder | None = None
        count = 0
        places = {node: place for place, node in enumerate(all_nodes(model.graph))}
        for node in reversed(places):  # the last Concat first, so that each input moves once
            if node.domain or node.op_type != "Concat" or not isinstance(node.graph, ir.Graph):
                continue
            result = node.outputs[0]
            inner = _merged(node, places)
            if not inner or not isinstance(result, Value):
                continue
            root = root or Builder.of_existing(model.graph)
            op = Builder.before_node(node, root)
            if replace_value(result, op.place(op.Concat(*_parts(node, inner), axis=node.attributes.get_int("axis")))):
                for old in (node, *inner):
                    if not old.outputs[0].uses() and isinstance(old.graph, ir.Graph):
                        old.graph.remove(old, safe=True)
                count += 1
        return PassResult(model, modified=count + omitted > 0)


def _merged(node: ir.Node, places: Mapping[ir.Node, int]) -> list[ir.Node]:
    """Return the Concats that can be merged with one after them, each before those that it consumes."""
    times = Counter(node.inputs)
    total = len(node.inputs)
    copied: set[ir.Node] = set()
    found: list[ir.Node] = []
    pending = [(-places[part], part) for part in _producers(node, node, times)]
    heapq.heapify(pending)
    while pending:  # in reverse order, so that the number of times is final
        _, part = heapq.heappop(pending)
        value = part.outputs[0]
        grown = total + times[value] * (len(part.inputs) - 1)
        is_copied = part in copied or len(value.uses()) > 1
        if is_copied and grown > _MOST_COPIED:
            continue
        found.append(part)
        total = grown
        for one in _producers(part, node, {given for given in part.inputs if given not in times}):
            heapq.heappush(pending, (-places[one], one))
        for given in part.inputs:
            times[given] += times[value]
        if is_copied:
            copied.update(producer for given in part.inputs if given is not None and (producer := given.producer()))
    return found


def _producers(part: ir.Node, node: ir.Node, values: Collection[ir.Value | None]) -> list[ir.Node]:
    """Return the Concats that compute the given inputs of ``part`` and can be merged with ``node``."""
    given = [value for value in dict.fromkeys(part.inputs) if value in values and _is_part(value, node)]
    return [producer for value in given if value is not None and (producer := value.producer()) is not None]


def _parts(node: ir.Node, inner: Collection[ir.Node]) -> list[ir.Value | None]:
    """Return the inputs of a Concat with which others are merged."""
    merged, parts = set(inner), list[ir.Value | None]()
    pending = list(reversed(node.inputs))
    while pending:
        value = pending.pop()
        producer = None if value is None else value.producer()
        if producer in merged and producer is not None:
            pending += reversed(producer.inputs)
        else:
            parts.append(value)
    return parts


def _without_empty(node: ir.Node) -> bool:
    """Omit the inputs of a Concat that have no elements along its axis, unless all may be empty."""
    axis, result = node.attributes.get_int("axis", 0), node.outputs[0]
    rank = None if result.shape is None else len(result.shape)
    if rank is None:
        return False
    kept = [v for v in node.inputs if v is None or v.shape is None or len(v.shape) != rank or v.shape[axis % rank] != 0]
    if not kept or len(kept) == len(node.inputs):
        return False
    for index, value in enumerate(kept):
        node.replace_input_with(index, value)
    node.resize_inputs(len(kept))
    return True


def _is_part(value: ir.Value | None, node: ir.Node) -> bool:
    producer = None if value is None else value.producer()
    if value is None or producer is None or producer.domain or producer.op_type != "Concat" or value.is_graph_output():
        return False
    if value.shape is None:
        return False
    axis, rank = producer.attributes.get_int("axis", 0), len(value.shape)
    return all(
        not user.domain
        and user.op_type == "Concat"
        and user.graph is node.graph is producer.graph
        and user.attributes.get_int("axis", 0) % rank == axis % rank
        for user, _ in value.uses()
    )
