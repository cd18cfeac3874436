"""Language models with the KV cache as inputs and outputs, and their attention as GroupQueryAttention.

The input is a model in OpenVINO's form, with keys and values in variables and rows selected by ``beam_idx``. The result has
the inputs ``past_key_values.0.key``, ... and the outputs ``present.0.key``, ..., as ONNX Runtime's generators
(onnxruntime-genai) expect. Attention that GroupQueryAttention does not support stays in standard ONNX and is reported.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import onnx_ir as ir
from onnx_ir.passes import InPlacePass, PassResult
from onnx_ir.passes.common import RemoveUnusedNodesPass

from converters.options import KvCache, LogitsOf
from converters.passes.attention.caches import Cache, FixedState, NotACache, make_all_explicit
from converters.passes.attention.canonical import UnsupportedAttention
from converters.passes.attention.grouped import Emitter, check_size, check_types
from converters.passes.attention.last_token import keep_last_token
from converters.passes.attention.masks import Masks, VisibleKeys
from converters.passes.attention.matching import CachedAttention, Matcher, reached_caches
from converters.passes.attention.probe_shapes import Inputs, ProbeShapes
from converters.passes.attention.probing import Dependence, ProbeError
from converters.passes.attention.rotation import Rotations, Source, Table
from converters.variables import ExposedVariable
from onnx_specops.building import Builder
from onnx_specops.graphs import all_values
from onnx_specops.naming import Names
from onnx_specops.runtime.variables import METADATA_KEY

__all__ = ["PAST", "PRESENT", "Decoder", "ExposeCaches", "NotACache", "expose_caches"]

PAST, PRESENT = "past_key_values.{}.{}", "present.{}.{}"
"""The names of the caches, by layer and kind (``key`` or ``value``)."""

PAST_STATE, PRESENT_STATE = "past.{}.conv", "present.{}.conv"
"""The names of states of convolutions, by number. They follow the numbers of the caches."""

_CONVOLUTION, _RECURRENCE = "conv_state", "recurrent_state"
"""The kinds in the names of states, as for caches, if each convolution has a recurrence."""

_USUAL_POSITIONS = 4096
_MAX_POSITIONS = 1 << 22  # the maximum number of positions that a mask is probed with
_MAX_ROTATED = 1 << 18  # the maximum number of positions in a rotary table


@dataclass
class Decoder:
    """The form of a language model's attention.

    Attributes:
        layers: the number of attentions.
        groups: the number of key and value heads.
        heads: the number of query heads; equal to `groups` if the attention stays in standard ONNX.
        size: the size of a head.
        grouped: the number of attentions that are GroupQueryAttention.
        cache: the type of the caches.
        own: whether ONNX Runtime's operator extends them, not the domain's.
        rotated: the number of them that include the rotary embedding.
        in_place: whether a cache can be extended in place, in a larger buffer.
        kept: reason -> the layers whose attention stays in standard ONNX, or whose rotary embedding stays outside the
            attention.
        logits: the tokens of a run that have logits.
        width: the size of the hidden states from which the logits are computed; ``None`` if unknown.
        states: the shapes of the states of a fixed size, without the batch.
    """

    layers: int
    groups: int
    heads: int
    size: int
    grouped: int = 0
    rotated: int = 0
    cache: KvCache = "float32"
    own: bool = True
    in_place: bool = False
    kept: dict[str, list[int]] = field(default_factory=dict)
    logits: LogitsOf = "all"
    width: int | None = None
    states: list[tuple[int, ...]] = field(default_factory=list)


@dataclass
class _Layer:
    keys: Cache
    values: Cache
    attention: CachedAttention | None = None


class ExposeCaches(InPlacePass):
    """Convert the caches of a language model to inputs and outputs. The arguments are those of `expose_caches`.

    Args:
        variables: the model's variables. The pass empties the list.

    Attributes:
        decoder: after the pass, the form of the model's attention.
    """

    def __init__(
        self,
        variables: list[ExposedVariable],
        *,
        positions: int | None = None,
        contrib: bool = True,
        cache: KvCache = "float32",
        own: bool = True,
        logits: LogitsOf = "last",
    ) -> None:
        self.variables, self.positions, self.contrib, self.logits = variables, positions, contrib, logits
        self.cache, self.own = cache, own
        self.decoder: Decoder | None = None

    def call(self, model: ir.Model) -> PassResult:
        self.decoder = expose_caches(
            model,
            self.variables,
            positions=self.positions,
            contrib=self.contrib,
            cache=self.cache,
            own=self.own,
            logits=self.logits,
        )
        self.variables.clear()
        return PassResult(model, modified=True)


def expose_caches(
    model: ir.Model,
    variables: Sequence[ExposedVariable],
    *,
    positions: int | None = None,
    contrib: bool = True,
    cache: KvCache = "float32",
    own: bool = True,
    logits: LogitsOf = "last",
) -> Decoder:
    """Convert a language model's caches to inputs and outputs, and its attention to GroupQueryAttention.

    Args:
        model: the model; changed in place.
        variables: its variables.
        positions: the maximum number of tokens; ``None`` if unknown. Rotary embeddings then stay outside the attention,
            because the operator needs a table of all positions.
        contrib: whether ONNX Runtime's own operators may be used.
        cache: the type of the caches. It is float32 unless every attention becomes GroupQueryAttention.
        own: whether ONNX Runtime's operator has caches of this type, or only the domain's.
        logits: the tokens of a run that have logits.

    Raises:
        NotACache: a variable is not a cache of keys or values of past tokens.
    """
    graph = model.graph
    caches, states = make_all_explicit(graph, variables)
    RemoveUnusedNodesPass()(model)
    inputs = Inputs(graph, {cache.past: cache.axis for cache in caches})
    is_last = logits == "last" and keep_last_token(graph, inputs)
    dependence = Dependence(graph, inputs.sources)
    kept: dict[str, list[int]] = {}
    matches = list(_matches(graph, Matcher(inputs, caches, dependence)))
    layers = _layers(caches, [found for found in matches if isinstance(found, CachedAttention)])
    reasons = [found for found in matches if isinstance(found, UnsupportedAttention)]
    for number, layer in enumerate(layers):
        if layer.attention is None:
            text = str(reasons[0]) if reasons else "no Softmax follows a MatMul with its keys"
            kept.setdefault(text, []).append(number)
    decoder = _decoder(layers, inputs)
    decoder.kept = kept
    decoder.logits = "last" if is_last else "all"
    decoder.width = width_before(graph.outputs[0])
    results: dict[ir.Value, ir.Value] = {}
    if contrib:
        results = _grouped(graph, layers, inputs, dependence, positions, cache, decoder, own=own)
    else:
        kept["the options exclude ONNX Runtime's own operators"] = list(range(len(layers)))
    if decoder.cache != cache:
        kept[f"the cache stays float32: {cache} needs every attention of the model in a supported form"] = list(
            range(len(layers))
        )
    _rename(graph, layers, results)
    decoder.states = _rename_states(graph, states, len(layers))
    _name_tokens(inputs)
    RemoveUnusedNodesPass()(model)
    _remove_unused_inputs(graph)
    decoder.in_place = decoder.grouped == decoder.layers and inputs.mask is not None and not _reads_caches(inputs)
    model.metadata_props[METADATA_KEY] = json.dumps(
        [
            *_described(layers, results, decoder.in_place),
            *({"name": one.variable, "input": one.past.name, "output": one.present.name} for one in states),
        ]
    )
    return decoder


def width_before(logits: ir.Value) -> int | None:
    """Return the size of the rows that the last matrix multiplication before logits multiplies."""
    current: ir.Value | None = logits
    while current is not None and (node := current.producer()) is not None and not node.domain:
        if node.op_type in ("MatMul", "Gemm"):
            rows = node.inputs[0]
            size = None if rows is None or not rows.shape else rows.shape[-1]
            return size if isinstance(size, int) else None
        current = next((value for value in node.inputs if value is not None and value.const_value is None), None)
    return None


def _described(layers: Sequence[_Layer], results: dict[ir.Value, ir.Value], in_place: bool) -> list[dict[str, object]]:
    """Return the description of the caches for sessions."""
    caches = [cache for layer in layers for cache in (layer.keys, layer.values)]
    return [
        {
            "name": cache.variable,
            "input": cache.past.name,
            "output": results.get(cache.present, cache.present).name,
            "axis": cache.axis,
            "in_place": in_place,
        }
        for cache in caches
    ]


def _matches(graph: ir.Graph, matcher: Matcher) -> Iterable[CachedAttention | UnsupportedAttention]:
    for node in list(graph):
        if node.op_type == "Softmax" and not node.domain:
            try:
                if (found := matcher.match(node)) is not None:
                    yield found
            except (UnsupportedAttention, ProbeError) as error:
                yield error if isinstance(error, UnsupportedAttention) else UnsupportedAttention(str(error))


def _layers(caches: Sequence[Cache], attentions: Sequence[CachedAttention]) -> list[_Layer]:
    """Group the caches by attention, in topological order. Caches without an attention follow by name."""
    layers: list[_Layer] = []
    used: set[int] = set()
    for found in attentions:
        pair = (id(found.keys), id(found.values))
        if used.isdisjoint(pair):
            layers.append(_Layer(found.keys, found.values, found))
            used.update(pair)
    rest = [cache for cache in caches if id(cache) not in used]
    if not rest:
        return layers
    pairs: dict[str, list[Cache]] = {}
    for cache in sorted(rest, key=lambda cache: _natural(cache.variable)):
        pairs.setdefault(re.sub(r"key|value", "*", cache.variable), []).append(cache)
    for name, pair_ in pairs.items():
        if len(pair_) != 2:
            raise NotACache(f"the variables {name} are not a pair of keys and values")
        keys, values = sorted(pair_, key=lambda cache: "key" not in cache.variable)
        layers.append(_Layer(keys, values))
    if len(layers) > len(attentions):
        layers.sort(key=lambda layer: _natural(layer.keys.variable))
    return layers


def _natural(name: str) -> list[int | str]:
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)]


def _decoder(layers: Sequence[_Layer], inputs: Inputs) -> Decoder:
    first = layers[0]
    shape = inputs.probe(ProbeShapes(2, 3, 5)).shape(first.keys.past)
    heads = first.attention.heads if first.attention is not None else shape[1]
    return Decoder(len(layers), shape[1], heads, shape[3])


def _grouped(
    graph: ir.Graph,
    layers: Sequence[_Layer],
    inputs: Inputs,
    dependence: Dependence,
    positions: int | None,
    cache: KvCache,
    decoder: Decoder,
    *,
    own: bool,
) -> dict[ir.Value, ir.Value]:
    """Replace the supported attentions. Return the replacement of each cache's output."""
    if positions is not None and positions > _MAX_POSITIONS:
        decoder.kept[f"{positions:,} positions are more than the limit of {_MAX_POSITIONS:,}"] = list(range(len(layers)))
        return {}
    root = Builder.of_existing(graph)
    masks = Masks(inputs, positions, most=_MAX_POSITIONS, least=_USUAL_POSITIONS)
    rotations = Rotations(inputs, dependence, positions or _USUAL_POSITIONS)
    supported: list[tuple[int, CachedAttention, VisibleKeys]] = []
    taken = _caches_of_others(graph, layers)
    for number, layer in enumerate(layers):
        if layer.attention is not None:
            with _keep_if_unsupported(decoder, number):
                check_types(layer.attention)
                if not taken.isdisjoint((layer.keys.past, layer.values.past)):
                    raise UnsupportedAttention("other nodes use its cache, in which the operator moves padding")
                visible = masks.visible_keys(layer.attention.mask, layer.attention.is_boolean)
                supported.append((number, layer.attention, visible))
    if len(supported) == len(layers):
        decoder.cache, decoder.own = cache, own
    elif own and cache != "float32":  # the operator has no float32 on this device
        return {}
    planned = []
    for number, found, visible in _supported_sizes(supported, decoder):
        any_size = not decoder.own
        sources, table, reason = _sources(rotations, found, inputs, positions, any_size=any_size, padding=visible.padding)
        if reason:
            decoder.kept.setdefault(reason, []).append(number)
        planned.append((found, visible, sources, table))
    emitter = Emitter(graph, inputs, decoder.cache, decoder.own, root)
    results: dict[ir.Value, ir.Value] = {}
    for found, visible, sources, table in planned:
        key, value = emitter.replace(found, visible, sources, table)
        results |= {found.keys.present: key, found.values.present: value}
        decoder.grouped += 1
        decoder.rotated += table is not None
    return results


def _caches_of_others(graph: ir.Graph, layers: Sequence[_Layer]) -> set[ir.Value]:
    """Return the caches that nodes outside of the layers' attentions use, such as the attention of another layer."""
    caches = [cache for layer in layers for cache in (layer.keys, layer.values)]
    cached = {value: cache.past for cache in caches for value in (cache.past, cache.present)}
    own = {cache.present for cache in caches}
    outputs = [value for value in graph.outputs if not any(_is_same(value, present) for present in own)]
    return reached_caches(outputs, [layer.attention for layer in layers if layer.attention is not None], cached)


@contextmanager
def _keep_if_unsupported(decoder: Decoder, number: int) -> Iterator[None]:
    """If the attention of a layer is not supported, record why and keep it in standard ONNX."""
    try:
        yield
    except UnsupportedAttention as error:
        decoder.kept.setdefault(str(error), []).append(number)


def _supported_sizes(
    supported: Sequence[tuple[int, CachedAttention, VisibleKeys]], decoder: Decoder
) -> Iterator[tuple[int, CachedAttention, VisibleKeys]]:
    """Yield the attentions with a head size that ONNX Runtime's operator supports."""
    for number, found, visible in supported:
        with _keep_if_unsupported(decoder, number):
            if decoder.own:
                check_size(found)
            yield number, found, visible


def _sources(
    rotations: Rotations, found: CachedAttention, inputs: Inputs, positions: int | None, *, any_size: bool, padding: bool
) -> tuple[tuple[Source, Source, Source], Table | None, str]:
    """Return the sources of queries, keys and values, the rotary table of the first two, and why the rotation stays outside.

    ``any_size`` removes the restrictions of ONNX Runtime's own kernel. ``padding`` states that the attention uses
    the attention_mask.
    """
    new, groups, size = found.keys.new, found.groups, found.size
    values = rotations.source(found.values.new, groups, size, rotated=False, padding=padding)
    if inputs.has_several_positions:
        reason = "rotary embeddings of several positions per token stay outside"
    elif positions is not None and positions <= _MAX_ROTATED:
        query = rotations.source(found.query, found.heads, size, rotated=True, padding=padding)
        keys = rotations.source(new, groups, size, rotated=True, padding=padding)
        if query.table is not None and query.table is keys.table:
            rotated = 2 * query.table.cosine.shape[1]
            if any_size or (size % 16 == 0 and rotated % 16 == 0):
                return (query, keys, values), query.table, ""
            reason = f"ONNX Runtime does not support the rotation of {rotated} of {size} elements"
        elif query.table is None and keys.table is None and "BSD" in (query.layout.name, keys.layout.name):
            return (query, keys, values), None, ""  # there is no rotation
        else:
            reason = "rotary embeddings stay outside the operator: a table of positions cannot represent them"
    elif positions is None:
        reason = "rotary embeddings stay outside the operator: the number of positions is unknown"
    else:
        reason = f"rotary embeddings stay outside the operator: a table of {positions:,} positions would be too large"
    query = rotations.source(found.query, found.heads, size, rotated=False, padding=padding)
    keys = rotations.source(new, groups, size, rotated=False, padding=padding)
    return (query, keys, values), None, reason


def _rename(graph: ir.Graph, layers: Sequence[_Layer], results: dict[ir.Value, ir.Value]) -> None:
    """Rename the caches. They follow the model's own inputs and outputs, sorted by layer."""
    names = {value.name: value for value in all_values(graph)}
    unique = Names(names).unique
    for number, layer in enumerate(layers):
        for kind, cache in (("key", layer.keys), ("value", layer.values)):
            present = results.get(cache.present, cache.present)
            index = next(i for i, output in enumerate(graph.outputs) if _is_same(output, cache.present))
            graph.outputs.pop(index)
            graph.inputs.remove(cache.past)
            for value, name in ((cache.past, PAST.format(number, kind)), (present, PRESENT.format(number, kind))):
                if (other := names.get(name)) is not None and other is not value:
                    other.name = unique(f"{name}_inner")
                value.name = name
                names[name] = value
            graph.inputs.append(cache.past)
            graph.outputs.append(present)
            _name_dims(cache.past, present, cache.axis)


def _rename_states(graph: ir.Graph, states: Sequence[FixedState], first: int) -> list[tuple[int, ...]]:
    """Rename the states, which follow the caches, and return their shapes without the batch."""
    shapes = []
    for past, present, state in _named_states(states, first):
        dims = [size for size in (state.past.shape or ())[1:] if isinstance(size, int)]
        graph.inputs.remove(state.past)
        graph.outputs.remove(state.present)
        graph.inputs.append(state.past)
        graph.outputs.append(state.present)
        for value, name in ((state.past, past), (state.present, present)):
            value.name, value.shape = name, ir.Shape(["batch_size", *dims])
        shapes.append(tuple(dims))
    return shapes


def _named_states(states: Sequence[FixedState], first: int) -> Iterator[tuple[str, str, FixedState]]:
    """Yield the names of the inputs and outputs of states, in the order of the layers."""
    ordered = sorted(states, key=lambda state: _natural(state.variable))
    convolutions, recurrences = ([one for one in ordered if len(one.past.shape or ()) == rank] for rank in (3, 4))
    if len(convolutions) == len(recurrences):
        for number, pair in enumerate(zip(convolutions, recurrences, strict=True)):
            for kind, state in zip((_CONVOLUTION, _RECURRENCE), pair, strict=True):
                yield PAST.format(number, kind), PRESENT.format(number, kind), state
    else:
        for number, state in enumerate(ordered, first):
            yield PAST_STATE.format(number), PRESENT_STATE.format(number), state


def _is_same(output: ir.Value, present: ir.Value) -> bool:
    while output is not present:
        node = output.producer()
        if node is None or node.op_type != "Identity" or node.inputs[0] is None:
            return False
        output = node.inputs[0]
    return True


def _name_dims(past: ir.Value, present: ir.Value, axis: int) -> None:
    dims = [d if isinstance(d, int) else None for d in past.shape or ()]
    for value, tokens in ((past, "past_sequence_length"), (present, "total_sequence_length")):
        named = [tokens if i == axis else "batch_size" if i == 0 else d for i, d in enumerate(dims)]
        value.shape = ir.Shape(named)


def _name_tokens(inputs: Inputs) -> None:
    """Give equal dimensions of the inputs the same name."""
    tokens: list[str | None] = ["batch_size", "sequence_length"]
    whole: list[str | None] = ["batch_size", "total_sequence_length"]
    positions = [None, *tokens] if inputs.has_several_positions else tokens
    named = [(inputs.mask, whole), (inputs.positions, positions), *((value, tokens) for value in inputs.data)]
    for value, names in named:
        if value is not None and value.shape is not None and len(value.shape) >= len(names):
            dims = [d if isinstance(d, int) or i >= len(names) else names[i] for i, d in enumerate(value.shape)]
            value.shape = ir.Shape(dims)


def _remove_unused_inputs(graph: ir.Graph) -> None:
    """Remove the input for positions if only rotary embeddings inside the attention used it."""
    for value in list(graph.inputs):
        if value.name == "position_ids" and not value.uses():
            graph.inputs.remove(value)


def _reads_caches(inputs: Inputs) -> bool:
    """Return whether an operator other than GroupQueryAttention uses a cache, whose length it would misread."""
    return any(not node.op_type.startswith("GroupQueryAttention") for past in inputs.pasts for node, _ in past.uses())
