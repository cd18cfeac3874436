"""A decoder with cross-attention whose caches are inputs and outputs, as in onnxruntime-genai's Whisper.

In OpenVINO's form, a branch of an If computes the keys and values of cross-attention from the encoder's output in the first
run, and variables store them. In the converted form, they are inputs of the decoder, and the encoder computes them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import onnx_ir as ir
from onnx_ir.passes.common import RemoveUnusedNodesPass

from converters.passes.attention import Decoder
from converters.passes.attention.caches import Cache, NotACache, detach, make_explicit
from converters.passes.attention.canonical import UnsupportedAttention
from converters.passes.attention.genai import width_before
from converters.passes.attention.matching import CachedAttention, Matcher
from converters.passes.attention.probe_shapes import Inputs
from converters.passes.attention.probing import Dependence, ProbeError
from converters.passes.copied_nodes import constant_copy, copied, loaded_copy
from converters.variables import ExposedVariable
from onnx_specops.building import Builder, new_value
from onnx_specops.graphs import nested
from onnx_specops.naming import Names
from onnx_specops.replacing import replace_value

STATES = "encoder_hidden_states"
"""The input of the decoder for the encoder's output."""

SELF_PAST, SELF_PRESENT = "past_{}_self_{}", "present_{}_self_{}"
CROSS_PAST, CROSS_PRESENT = "past_{}_cross_{}", "present_{}_cross_{}"
"""The names of the caches, by kind (``key`` or ``value``) and layer."""


@dataclass
class Projections:
    """The nodes that compute the keys and values of cross-attention.

    Attributes:
        states: the encoder's output, as the nodes use it.
        nodes: the nodes in topological order.
        outputs: name -> ``[batch, heads, frames, size]``.
    """

    states: ir.Value
    nodes: list[ir.Node] = field(default_factory=list)
    outputs: dict[str, ir.Value] = field(default_factory=dict)

    def append_to(self, model: ir.Model) -> None:
        """Append the nodes to an encoder, with further outputs.

        Raises:
            NotACache: the encoder has several inputs or outputs.
        """
        graph = model.graph
        if len(graph.outputs) != 1 or len(graph.inputs) != 1:
            raise NotACache("its encoder has more than one input or output")
        names = Names.of(graph)
        made_copies = {self.states: graph.outputs[0]}

        def constant(value: ir.Value) -> ir.Value:
            copy = constant_copy(value)
            names.register(graph, copy)
            return copy

        for node in copied(self.nodes, made_copies, constant):
            for value in node.outputs:
                value.name = names.unique(value.name or "projected")
            graph.append(node)
        for name, value in self.outputs.items():
            made_copies[value].name = names.unique(name)
            graph.outputs.append(made_copies[value])


@dataclass
class _Cross:
    """A variable for keys or values of cross-attention, as the decoder reads it, and its initial computation."""

    exposed: ExposedVariable
    read: ir.Value
    computed: ir.Value


def expose_encoder_decoder(model: ir.Model, variables: Sequence[ExposedVariable]) -> tuple[Decoder, Projections]:
    """Convert the caches of a decoder with cross-attention to inputs and outputs.

    Args:
        model: the decoder; changed in place.
        variables: its variables.

    Returns:
        The form of its attention, and the nodes that move to the encoder.

    Raises:
        NotACache: a variable is neither a cache of past tokens nor computed once from the encoder's output, or the attention
            is not supported.
    """
    graph = model.graph
    states = next((value for value in graph.inputs if value.name == STATES), None)
    if states is None:
        raise NotACache(f"it has no input {STATES}")
    crosses: list[_Cross] = []
    others: list[ExposedVariable] = []
    for item in variables:
        found = _cross(graph, item) if item.names else None
        if found is None:
            others.append(item)
        else:
            crosses.append(found)
    if not crosses:
        raise NotACache("no variable stores values computed from the encoder's output")
    closures = [_closure(cross, states) for cross in crosses]
    made_copies: dict[ir.Value, ir.Value] = {states: new_value(states.dtype, None, states.name)}
    made_copies[states].shape = states.shape
    projections = Projections(made_copies[states])
    projections.nodes = copied(list(dict.fromkeys(node for nodes in closures for node in nodes)), made_copies, loaded_copy)
    held = [_as_input(graph, cross) for cross in crosses]
    computed = {past: made_copies[cross.computed] for past, cross in zip(held, crosses, strict=True)}
    own = make_explicit(graph, others)
    _count_positions(graph, own[0])
    RemoveUnusedNodesPass()(model)
    _replace_states(graph, states, held[0])
    inputs = Inputs(graph, {cache.past: cache.axis for cache in own})
    fixed = [Cache(value.name or "", value, value, value, 2) for value in held]
    pairs = _pairs(graph, inputs, own, fixed)
    if len(pairs) * 2 != len(own) + len(fixed):
        raise NotACache("an attention over a cache has an unsupported form")
    pasts = {cache.past for cache in own}
    layers = [pair for pair in pairs if pair.keys.past in pasts]
    crossed = [pair for pair in pairs if pair.keys.past not in pasts]
    if len(layers) != len(crossed):
        raise NotACache("the number of its cross-attentions differs from that of its other attentions")
    _rename(graph, layers, crossed, computed, projections)
    first = layers[0]
    decoder = Decoder(len(layers), first.groups, first.heads, first.size, width=width_before(graph.outputs[0]))
    decoder.kept["the self-attention of a decoder with cross-attention stays in standard ONNX"] = list(range(len(layers)))
    return decoder, projections


def _cross(graph: ir.Graph, item: ExposedVariable) -> _Cross | None:
    """Return a variable that an If computes in the first run and keeps afterwards; ``None`` for other variables."""
    variable = item.variable
    assigned: ir.Value | None = variable.assigned
    while assigned is not None and (node := assigned.producer()) is not None and node.op_type == "Identity":
        assigned = node.inputs[0]
    node = None if assigned is None else assigned.producer()
    if assigned is None or node is None or (node.op_type, node.domain) != ("If", ""):
        return None
    if variable.is_set is None or node.inputs[0] is not variable.is_set:
        return None
    index = assigned.index() or 0
    kept, computed = (
        _origin(node.attributes[branch].as_graph().outputs[index]) for branch in ("then_branch", "else_branch")
    )
    if kept is not variable.value:
        return None
    return _Cross(item, assigned, computed)


def _origin(value: ir.Value) -> ir.Value:
    """Return the value before any Identity nodes."""
    while (node := value.producer()) is not None and (node.op_type, node.domain) == ("Identity", ""):
        assert node.inputs[0] is not None
        value = node.inputs[0]
    return value


def _closure(cross: _Cross, states: ir.Value) -> list[ir.Node]:
    """Return the nodes that compute a variable's first value, in topological order.

    Raises:
        NotACache: they depend on something other than the encoder's output.
    """
    order: list[ir.Node] = []
    done: set[ir.Node] = set()
    pending = [(cross.computed.producer(), False)]
    while pending:
        node, is_ready = pending.pop()
        if node is None or node in done:
            continue
        if is_ready:
            done.add(node)
            order.append(node)
            continue
        if nested(node):
            raise NotACache(f"the initial value of the variable {cross.exposed.variable.name} has branches")
        pending.append((node, True))
        for value in node.inputs:
            if value is None or value is states or value.const_value is not None:
                continue
            if value.producer() is None:
                text = f"the variable {cross.exposed.variable.name} is computed from {value.name}, not only from {STATES}"
                raise NotACache(text)
            pending.append((value.producer(), False))
    if not order:
        raise NotACache(f"the variable {cross.exposed.variable.name} is not computed from {STATES}")
    return order


def _as_input(graph: ir.Graph, cross: _Cross) -> ir.Value:
    """Replace the variable by an input with the value that the first run would compute."""
    variable = cross.exposed.variable
    dims = list(variable.value.shape or ())
    if len(dims) != 4 or not isinstance(dims[1], int) or not isinstance(dims[3], int):
        raise NotACache(f"the variable {variable.name} is not [batch, heads, frames, size]")
    own = {cross.exposed.names["output"]}
    for output in [value for value in graph.outputs if value.name in own]:
        graph.outputs.remove(output)
    for value in (variable.value, variable.is_set):
        if value is not None:
            graph.inputs.remove(value)
    past = new_value(variable.value.dtype, None, variable.value.name)
    past.shape = ir.Shape(["batch_size", dims[1], "frames", dims[3]])
    choice = cross.read.producer()
    replace_value(cross.read, past, equal=False)
    assert choice is not None
    detach(choice)
    graph.inputs.append(past)
    return past


def _count_positions(graph: ir.Graph, cache: Cache) -> None:
    """Compute the positions of the tokens from the length of the cache, if the decoder has them as an input."""
    inputs = Inputs(graph, {})
    for value in (inputs.slots, inputs.positions):
        if value is None:
            continue
        op = Builder(graph, root=Builder.of_existing(graph), before=next(iter(graph)))
        op.scope = value.name or ""
        tokens = next(data for data in inputs.data if data.name != STATES)
        past = op.Squeeze(op.Shape(cache.past, start=cache.axis, end=cache.axis + 1), [0])
        count = op.Squeeze(op.Shape(tokens, start=1, end=2), [0])
        positions = op.Range(past, op.Add(past, count), np.int64(1))
        if value is inputs.positions:
            positions = op.Expand(op.Unsqueeze(positions, [0]), op.Shape(tokens, start=0, end=2))
        replace_value(value, positions, equal=False)
        graph.inputs.remove(value)


def _replace_states(graph: ir.Graph, states: ir.Value, past: ir.Value) -> None:
    """Remove the encoder's output from the decoder. The keys have its batch and number of frames."""
    for node, _ in list(states.uses()):
        axis = node.attributes.get_int("start", 0)
        if node.op_type != "Shape" or node.domain or node.attributes.get_int("end", 3) != axis + 1 or axis not in (0, 1):
            shape = node.op_type == "Shape" and not node.domain and not node.attributes
            if not shape:
                raise NotACache(f"{node.op_type} reads {STATES} in every run")
            op = Builder(graph, root=Builder.of_existing(graph), before=node)
            dims = list(states.shape or ())
            width = dims[2] if len(dims) == 3 else None
            if not isinstance(width, int):
                raise NotACache(f"the size of {STATES} is unknown")
            whole = op.Concat(op.Shape(past, start=0, end=1), op.Shape(past, start=2, end=3), [width], axis=0)
            node.outputs[0].replace_all_uses_with(whole)
            graph.remove(node, safe=True)
            continue
        start = 0 if axis == 0 else 2
        node.replace_input_with(0, past)
        node.attributes.clear()
        node.attributes.update({"start": ir.AttrInt64("start", start), "end": ir.AttrInt64("end", start + 1)})
    graph.inputs.remove(states)


def _pairs(graph: ir.Graph, inputs: Inputs, own: Sequence[Cache], fixed: Sequence[Cache]) -> list[CachedAttention]:
    """Return the attentions over caches, in topological order."""
    dependence = Dependence(graph, [*inputs.sources])
    found: list[CachedAttention] = []
    matcher = Matcher(inputs, [*own, *fixed], dependence)
    for node in graph:
        if node.op_type == "Softmax" and not node.domain:
            try:
                if (attention := matcher.match(node)) is not None:
                    found.append(attention)
            except (UnsupportedAttention, ProbeError) as error:
                raise NotACache(f"an attention has an unsupported form: {error}") from error
    taken = [cache for attention in found for cache in (attention.keys, attention.values)]
    if len({id(cache) for cache in taken}) != len(taken):
        raise NotACache("several attentions share a cache")
    return found


def _rename(
    graph: ir.Graph,
    layers: Sequence[CachedAttention],
    crossed: Sequence[CachedAttention],
    computed: dict[ir.Value, ir.Value],
    projections: Projections,
) -> None:
    """Rename the caches, and sort inputs and outputs by layer."""
    names = {value.name: value for node in graph for value in node.outputs}
    unique = Names.of(graph).unique
    tokens = next(value for value in graph.inputs if not value.name or "input_ids" in value.name)
    tokens.shape = ir.Shape(["batch_size", "sequence_length"])

    def name(value: ir.Value, wanted: str) -> None:
        if (other := names.get(wanted)) is not None and other is not value:
            other.name = unique(f"{wanted}_inner")
        value.name = wanted

    for number, (attention, cross) in enumerate(zip(layers, crossed, strict=True)):
        for kind, cache in (("key", attention.keys), ("value", attention.values)):
            index = next(i for i, output in enumerate(graph.outputs) if _origin(output) is _origin(cache.present))
            graph.outputs.pop(index)
            graph.inputs.remove(cache.past)
            name(cache.past, SELF_PAST.format(kind, number))
            name(cache.present, SELF_PRESENT.format(kind, number))
            graph.inputs.append(cache.past)
            graph.outputs.append(cache.present)
            for value, length in ((cache.past, "past_sequence_length"), (cache.present, "total_sequence_length")):
                value.shape = ir.Shape(["batch_size", attention.groups, length, attention.size])
        for kind, cache in (("key", cross.keys), ("value", cross.values)):
            graph.inputs.remove(cache.past)
            name(cache.past, CROSS_PAST.format(kind, number))
            graph.inputs.append(cache.past)
            projections.outputs[CROSS_PRESENT.format(kind, number)] = computed[cache.past]
