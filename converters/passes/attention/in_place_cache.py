"""The caches of a language model in OpenVINO's form, extended in place by its attention.

OpenVINO keeps keys and values in variables: ReadValue, Gather by beam_idx, Concat with the new tokens, Assign. In ONNX, each
of these nodes would copy the whole cache for each token. `onnx_specops.ScaledDotProductAttentionWithKVCache` represents all
of them together with the attention. The model's inputs and outputs are unchanged, including ``beam_idx``.

The length of attention_mask is the number of tokens in a cache with spare capacity. The decoders of encoder-decoders have no
mask, so an additional variable counts the tokens.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import onnx_ir as ir
from onnx_ir.passes import InPlacePass, PassResult
from onnx_ir.passes.common import RemoveUnusedNodesPass

from converters.passes.attention.caches import Cache, CacheForm, recognize_caches
from converters.passes.attention.canonical import UnsupportedAttention
from converters.passes.attention.grouped import check_types
from converters.passes.attention.matching import PROBE_SHAPES, CachedAttention, Matcher, reached_caches
from converters.passes.attention.probe_shapes import Inputs, ProbeShapes
from converters.passes.attention.probing import Data, Dependence, Probe, ProbeError
from converters.variables import ExposedVariable, Variable, expose
from onnx_specops.building import Builder, Value, new_value
from onnx_specops.replacing import replace_value

_HIDDEN = -1e30
"""The sum of this number and any score equals this number."""

_COUNTER = "past_length"
"""The variable that counts the tokens of the caches."""

_ALL = -1
"""The initial value of the counter: the caches contain tokens only, without spare capacity."""


class ExtendCachesInPlace(InPlacePass):
    """Let attention extend its caches in place.

    Args:
        variables: the model's variables. The list changes as `extend_caches_in_place` describes.
    """

    def __init__(self, variables: list[ExposedVariable]) -> None:
        self.variables = variables

    def call(self, model: ir.Model) -> PassResult:
        return PassResult(model, modified=extend_caches_in_place(model, self.variables))


def extend_caches_in_place(model: ir.Model, variables: list[ExposedVariable]) -> bool:
    """Let a language model's attention extend its caches in place.

    Keys and values of unsupported attentions, or with other consumers, stay ordinary variables.

    Args:
        model: the model; changed in place.
        variables: its variables. Those that are caches start empty afterwards. If nothing else gives the number of tokens, a
            variable for it is added.

    Returns:
        Whether there are such caches. Otherwise nothing changes.
    """
    graph = model.graph
    forms, inputs, _ = recognize_caches(graph, variables)
    if not forms:
        return False
    try:
        chosen = _ChosenRows(inputs, graph, forms)
        probe = chosen.probe(PROBE_SHAPES)
        attentions = _with_exclusive_caches(graph, variables, forms, _attentions(graph, forms, chosen, probe))
        if not attentions:
            return False
        tokens = _tokens(chosen, attentions)
        ranks = {found.mask: len(probe.shape(found.mask)) for found in attentions if found.mask is not None}
    except (UnsupportedAttention, ProbeError):
        return False
    pasts = {cache.past for found in attentions for cache in (found.keys, found.values)}
    in_place = [form for form in forms if form.past in pasts]
    emitter = _Emitter(graph, in_place, inputs, tokens, ranks, _counted_by_mask(chosen, attentions))
    for found in attentions:
        emitter.replace(found)
    emitter.replace_shapes()
    variables += emitter.count()
    for item in variables:
        if item.variable.value in pasts:
            emitter.declare(item)
    emitter.name_dims()
    RemoveUnusedNodesPass()(model)
    return True


class _ChosenRows(Inputs):
    """The graph's inputs, with the selected rows of the caches as further inputs."""

    def __init__(self, inputs: Inputs, graph: ir.Graph, forms: Sequence[CacheForm]) -> None:
        super().__init__(graph, inputs.pasts, inputs.unset)
        self._forms = forms

    def probe(self, probe_shapes: ProbeShapes, more: Mapping[ir.Value, np.ndarray | Data] | None = None) -> Probe:
        plain = super().probe(probe_shapes)
        given: dict[ir.Value, np.ndarray | Data] = {}
        for form in self._forms:
            data = Data(form.past.dtype or ir.DataType.FLOAT, plain.shape(form.past))
            given |= dict.fromkeys((form.read, form.chosen), data)
        return super().probe(probe_shapes, {**given, **(more or {})})


def _attentions(graph: ir.Graph, forms: Sequence[CacheForm], chosen: _ChosenRows, probe: Probe) -> list[CachedAttention]:
    """Return the supported attentions over two caches that no other attention uses."""
    caches = [Cache(form.name, form.past, form.present, form.new, form.axis) for form in forms]
    matcher = Matcher(chosen, caches, Dependence(graph, chosen.sources))
    found: list[CachedAttention] = []
    for node in graph:
        if node.op_type != "Softmax" or node.domain:
            continue
        try:
            if (attention := matcher.match(node)) is not None:
                _check(attention, probe, chosen)
                found.append(attention)
        except (UnsupportedAttention, ProbeError):
            continue
    times = Counter(cache.past for attention in found for cache in (attention.keys, attention.values))
    return [attention for attention in found if times[attention.keys.past] == times[attention.values.past] == 1]


def _check(found: CachedAttention, probe: Probe, inputs: Inputs) -> None:
    """Raise `UnsupportedAttention` if the operator does not support an attention."""
    check_types(found)
    if probe.shape(found.query)[::2] != (PROBE_SHAPES.batch, PROBE_SHAPES.sequence):
        raise UnsupportedAttention("its queries are not those of the tokens of the run")
    for cache in (found.keys, found.values):
        groups, size = _sizes(cache.past)
        if probe.shape(cache.new) != (PROBE_SHAPES.batch, groups, PROBE_SHAPES.sequence, size):
            raise UnsupportedAttention("its cache does not grow by the tokens of the run")
    if found.mask is None:
        return
    if found.is_boolean and found.lowest > _HIDDEN:
        raise UnsupportedAttention("the effect of its mask depends on the masked scores")
    if not found.is_boolean and found.mask.dtype != ir.DataType.FLOAT:
        raise UnsupportedAttention(f"its mask is {found.mask.dtype}")
    shape = probe.shape(found.mask)
    whole = (PROBE_SHAPES.batch, found.heads, PROBE_SHAPES.sequence, PROBE_SHAPES.total)
    fits = 0 < len(shape) <= 4 and shape[-1] == whole[-1]
    if not fits or any(d not in (1, w) for d, w in zip(shape[::-1], whole[::-1], strict=False)):
        raise UnsupportedAttention(f"its mask has the shape {shape} instead of {whole}")
    if not inputs.grows(PROBE_SHAPES, found.mask, -1):
        raise UnsupportedAttention("its mask covers only some of the tokens")


def _tokens(inputs: Inputs, attentions: Sequence[CachedAttention]) -> ir.Value:
    """Return the input whose second dimension is the number of new tokens.

    Raises:
        UnsupportedAttention: no input has this dimension.
    """
    longer = ProbeShapes(PROBE_SHAPES.batch, PROBE_SHAPES.sequence + 1, PROBE_SHAPES.past)
    as_it_was = inputs.probe(PROBE_SHAPES)
    shapes = {value: Data(value.dtype or ir.DataType.INT64, as_it_was.shape(value)) for value in inputs.data}
    for value in inputs.data:
        probe = inputs.probe(longer, {other: shape for other, shape in shapes.items() if other is not value})
        try:
            if all(probe.shape(found.query)[2] == longer.sequence for found in attentions):
                return value
        except ProbeError:
            continue
    raise UnsupportedAttention("no input determines the number of tokens of a run")


def _counted_by_mask(inputs: Inputs, attentions: Sequence[CachedAttention]) -> bool:
    """Return whether the attention_mask covers all cached tokens, so that its length is their number. The mask of an
    encoder's output does not.
    """
    if inputs.mask is None or not _is_dynamic(inputs.mask, 1):
        return False
    longer = np.ones((PROBE_SHAPES.batch, PROBE_SHAPES.total + 1), np.int64)
    hiding = PROBE_SHAPES.given_mask.copy()
    hiding[0, 0] = 0
    as_it_was, *others = (
        inputs.probe(replace(PROBE_SHAPES, mask=mask)) for mask in (PROBE_SHAPES.given_mask, longer, hiding)
    )
    for mask in dict.fromkeys(found.mask for found in attentions if found.mask is not None):
        try:
            if not all(np.array_equal(probe.array(mask), as_it_was.array(mask)) for probe in others):
                return True
        except ProbeError:
            return True
    return False


def _sizes(past: ir.Value) -> tuple[int, int]:
    """Return the key heads and head size of a cache. Raise `UnsupportedAttention` if they are unknown."""
    dims = _dims(past)
    if len(dims) == 4 and isinstance(dims[1], int) and isinstance(dims[3], int):
        return dims[1], dims[3]
    raise UnsupportedAttention("the size of a token in its cache is unknown")


def _with_exclusive_caches(
    graph: ir.Graph, variables: Sequence[ExposedVariable], forms: Sequence[CacheForm], attentions: Sequence[CachedAttention]
) -> Sequence[CachedAttention]:
    """Return the attentions whose caches are used only by attentions that will be replaced.

    The caches must not be outputs of the model, or used by other nodes, because a cache with spare capacity has a larger
    shape. Uses of the shape itself are replaced.
    """
    by_past = {form.past: form for form in forms}
    outputs: dict[ir.Value, str] = {item.variable.value: item.names["output"] for item in variables if item.names}
    while attentions:
        cached: dict[ir.Value, ir.Value] = {}
        for found in attentions:
            for cache in (found.keys, found.values):
                form = by_past[cache.past]
                cached |= dict.fromkeys((form.past, form.read, form.chosen, form.present), form.past)
        own = {outputs[past] for past in cached.values()}
        taken = reached_caches([value for value in graph.outputs if value.name not in own], attentions, cached)
        kept = [found for found in attentions if taken.isdisjoint((found.keys.past, found.values.past))]
        if len(kept) == len(attentions):
            break
        attentions = kept
    return attentions


_MaskKey = tuple[ir.Value | None, float | None]
"""A mask, and the score of the keys that it hides if it is boolean."""


def _mask_key(found: CachedAttention) -> _MaskKey:
    return found.mask, found.lowest if found.is_boolean else None


@dataclass
class _Emitter:
    """Emits the operators, and the values that they share once.

    Attributes:
        graph: the graph.
        forms: its caches.
        inputs: its inputs.
        tokens: the input whose second dimension is the number of new tokens.
        ranks: the ranks of the attentions' masks.
        counted_by_mask: whether the attention_mask has the length of all tokens.
        in_place: whether the caches may have spare capacity.
    """

    graph: ir.Graph
    forms: Sequence[CacheForm]
    inputs: Inputs
    tokens: ir.Value
    ranks: Mapping[ir.Value, int]
    counted_by_mask: bool
    _masks: dict[_MaskKey, ir.Value] = field(default_factory=dict)
    _unseen: dict[_MaskKey, ir.Value] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._root = Builder.of_existing(self.graph)
        op = Builder(self.graph, root=self._root, before=next(iter(self.graph)))
        op.scope = "tokens"
        self._by_past = {form.past: form for form in self.forms}
        data, mask = self.tokens, self.inputs.mask
        self._counter: Value | None = None
        self._length: Value | None = None
        self._batch, sequence = op.Shape(data, start=0, end=1), op.Shape(data, start=1, end=2)
        room = op.Shape(self.forms[0].past, start=2, end=3)
        self._own_shape = room.producer()
        if self.counted_by_mask:
            # A mask of a fixed length is longer than all tokens. A cache without spare capacity gives their number. With
            # spare capacity, sessions cut the mask.
            self._total = op.Min(op.Shape(mask, start=1, end=2), op.Add(room, sequence))
            self._held = op.Sub(self._total, sequence)
            self._length = op.Squeeze(self._held, [0])
        elif _is_dynamic(data, 1):
            self._counter = new_value(ir.DataType.INT64, [], _COUNTER)
            self._held = op.Where(op.Less(self._counter, 0), room, self._counter)
            self._total = op.Add(self._held, sequence)
            self._length = op.Squeeze(self._held, [0])
        else:
            self._held = room
            self._total = op.Add(self._held, sequence)
        self.in_place = self._length is not None

    def count(self) -> list[ExposedVariable]:
        """Return the variable that counts the tokens, if nothing else gives their number."""
        if self._counter is None:
            return []
        op = Builder(self.graph, root=self._root)
        op.scope = "tokens"
        initial = ir.tensor(np.int64(_ALL), name=_COUNTER)
        counter = Variable(_COUNTER, self._counter, initial, self.graph, assigned=op.Squeeze(self._total, [0]))
        return expose(op, [counter])

    def replace(self, found: CachedAttention) -> None:
        """Replace an attention by the operator."""
        node = found.guarded.producer()
        assert node is not None
        op = Builder(self.graph, root=self._root, before=node)
        op.scope = found.softmax.name or "attention"
        mixed, key, value = op.specops.ScaledDotProductAttentionWithKVCache(
            found.query,
            found.keys.new,
            found.values.new,
            found.keys.past,
            found.values.past,
            None if found.mask is None else self._mask(op, found),
            self.inputs.beams,
            self._length,
            None if found.sinks is None else op.const(found.sinks, ir.DataType.FLOAT),
            scale=found.scale,
            softcap=found.softcap or None,
            mask_replaces=1 if found.is_boolean else None,
            outputs=3,
        )
        if (unseeing := self._nan_for_hidden(op, found)) is not None:
            mixed = op.Add(mixed, unseeing)
        replace_value(found.guarded, mixed, equal=False)
        for cache, present in ((found.keys, key), (found.values, value)):
            self._replace_shapes(cache.present, self._by_past[cache.past], self._total)
            replace_value(cache.present, present, equal=False)

    def _mask(self, op: Builder, found: CachedAttention) -> ir.Value:
        """Return the additive mask, ``[batch or 1, heads or 1, sequence or 1, total sequence]``."""
        mask = found.mask
        assert mask is not None
        if (key := _mask_key(found)) not in self._masks:
            added = mask
            if found.is_boolean:
                added = op.Where(mask, np.float32(0), np.float32(found.lowest))
            if (rank := self.ranks[mask]) < 4:
                added = op.Unsqueeze(added, list(range(4 - rank)))
            self._masks[key] = added
        return self._masks[key]

    def _nan_for_hidden(self, op: Builder, found: CachedAttention) -> ir.Value | None:
        """Return NaN for tokens without visible keys under a mask of -inf, and 0 for others; ``None`` if there are no such
        tokens.

        The operator gives 0 for these tokens, and a Softmax gives NaN.
        """
        if found.mask is None or found.sinks is not None:
            return None
        if found.guarded is not found.output or (found.is_boolean and np.isfinite(found.lowest)):
            return None
        if (key := _mask_key(found)) not in self._unseen:
            mask = self._mask(op, found)
            hidden = op.Equal(op.ReduceMax(mask, [-1], keepdims=1), np.float32(-np.inf))
            self._unseen[key] = op.Where(hidden, np.float32(np.nan), np.float32(0))
        return self._unseen[key]

    def replace_shapes(self) -> None:
        """Replace uses of a cache's shape by equal values that do not need the cache."""
        for form in self.forms:
            for value in dict.fromkeys((form.past, form.read, form.chosen)):
                self._replace_shapes(value, form, self._held)

    def _replace_shapes(self, value: ir.Value, form: CacheForm, tokens: Value) -> None:
        groups, size = _sizes(form.past)
        for node, _ in list(value.uses()):
            if node.op_type != "Shape" or node.domain or node is self._own_shape:
                continue
            op = Builder(self.graph, root=self._root, before=node)
            op.scope = node.name or "shape"
            parts = [self._batch, [groups], tokens, [size]]
            start, end = node.attributes.get_int("start", 0), node.attributes.get_int("end", 4)
            wanted = parts[start:end]
            shape = op.Concat(*wanted, axis=0) if wanted else op.const(np.zeros(0, np.int64))
            node.outputs[0].replace_all_uses_with(shape, replace_graph_outputs=True)

    def declare(self, item: ExposedVariable) -> None:
        """Remove the flag of a cache, because a cache starts empty."""
        variable = item.variable
        form = self._by_past[variable.value]
        if variable.is_set is not None:
            self.graph.inputs.remove(variable.is_set)
            variable.is_set = None
            del item.names["is_set"]
        groups, size = _sizes(form.past)
        rows = _dims(self.tokens)[0]
        empty = np.zeros((rows if isinstance(rows, int) else 1, groups, 0, size), np.float32)
        variable.initial = ir.tensor(empty, name=variable.value.name)
        item.traits.update(axis=form.axis, in_place=self.in_place, native=True)
        if self._counter is not None:
            item.traits["past_length"] = self._counter.name or ""
        if self.inputs.beams is not None:
            item.traits["beams"] = self.inputs.beams.name or ""

    def name_dims(self) -> None:
        """Give equal dimensions of the inputs the same name, by which sessions determine the size of a cache."""
        data, mask = self.tokens, self.inputs.mask
        named: list[tuple[ir.Value | None, int, str]] = [(data, 0, "batch_size"), (data, 1, "sequence_length")]
        named += [(mask, 1, "total_sequence_length")] if self.counted_by_mask else []
        for value, axis, name in named:
            if value is not None and _is_dynamic(value, axis):
                value.shape = ir.Shape([name if i == axis else d for i, d in enumerate(_dims(value))])
        for form in self.forms:
            groups, size = _sizes(form.past)
            form.past.shape = ir.Shape([_dims(data)[0], groups, "past_sequence_length", size])


def _dims(value: ir.Value) -> list[int | ir.SymbolicDim]:
    """Return the dimensions of a value; an empty list if the rank is unknown."""
    return list(value.shape or ())


def _is_dynamic(value: ir.Value, axis: int) -> bool:
    """Return whether a value has an axis with a dynamic dimension."""
    dims = _dims(value)
    return axis < len(dims) and not isinstance(dims[axis], int)
