"""Attention over a cache: its canonical form, with the caches of its keys and values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

import numpy as np
import onnx_ir as ir

from converters.passes.attention.caches import Cache
from converters.passes.attention.canonical import Attention, UnsupportedAttention
from converters.passes.attention.probe_shapes import Inputs, ProbeShapes
from converters.passes.attention.probing import Dependence, ProbeError, inputs_of, of_all_sizes
from converters.passes.attention.spellings import product_with_values, read


@dataclass
class CachedAttention(Attention):
    """Attention over a cache.

    Attributes:
        keys, values: the caches.
        heads, groups, size: the number of query heads, the number of key heads, and the head size.
        sinks: the score of each head without a value, ``[heads]``; ``None`` if there is none.
    """

    keys: Cache
    values: Cache
    heads: int
    groups: int
    size: int
    sinks: np.ndarray | None = None


class Matcher:
    """Finds the attentions over caches in a graph.

    Args:
        inputs: the graph's inputs.
        caches: its caches.
        dependence: the values that depend on data.
    """

    def __init__(self, inputs: Inputs, caches: Sequence[Cache], dependence: Dependence) -> None:
        self._inputs, self._dependence = inputs, dependence
        self._by_present = {cache.present: cache for cache in caches}
        self._probe, self._later = inputs.probe(PROBE_SHAPES), inputs.probe(_LATER_SHAPES)

    def match(self, softmax: ir.Node) -> CachedAttention | None:
        """Return the attention of a Softmax; ``None`` if it is not one over a cache.

        Raises:
            UnsupportedAttention: the attention over a cache is not supported.
        """
        mixing = product_with_values(softmax, self)
        if mixing is None or softmax.inputs[0] not in self._dependence or mixing.inputs[1] is None:
            return None
        values = self._cache(mixing.inputs[1])
        if values is None:
            return None
        found = read(softmax, self)
        if not found.is_heads_first:
            raise UnsupportedAttention("its keys are not transposed before the matrix multiplication")
        sinks = None if found.sink is None else self._sinks(found.sink)
        keys = self._cache(found.key)
        if keys is None:
            raise UnsupportedAttention("its keys are not from a cache")
        heads, size = self._probe.shape(found.query)[1::2]
        groups = self._probe.shape(keys.present)[1]
        if keys.axis != 2 or values.axis != 2 or self._probe.shape(values.present) != self._probe.shape(keys.present):
            raise UnsupportedAttention("its keys and values have different shapes")
        if heads % groups:
            raise UnsupportedAttention(f"{heads} query heads are not a multiple of {groups} key heads")
        batch, queries = PROBE_SHAPES.batch, self._probe.shape(found.query)[2]
        if self._probe.shape(found.guarded) != (batch, heads, queries, size):
            raise UnsupportedAttention("its factors or its mask add dimensions or broadcast the queries")
        for cache, used in ((keys, found.key), (values, found.value)):
            self._check_repeated(cache, used, heads // groups)
        canonical = {each.name: getattr(found, each.name) for each in fields(Attention)}
        return CachedAttention(**canonical, keys=keys, values=values, heads=heads, groups=groups, size=size, sinks=sinks)

    # The protocol `spellings.Evaluation`.

    def operands(self, node: ir.Node) -> Sequence[ir.Value]:
        """Return the inputs that depend on data."""
        return self._dependence.among(list(node.inputs))

    def number(self, value: ir.Value) -> float:
        """Return the only element of a value that does not depend on data."""
        try:
            array, later = self._probe.array(value), self._later.array(value)
        except ProbeError as error:
            raise UnsupportedAttention(f"a factor of its attention scores is unknown: {error}") from error
        if array.size != 1:
            raise UnsupportedAttention("its attention scores are multiplied by several numbers")
        if not np.array_equal(array, later) or not self._inputs.stays(PROBE_SHAPES, value, array):
            raise UnsupportedAttention("a factor of its attention scores changes with the tokens")
        return float(array.reshape(-1)[0])

    def drops_last(self, weights: ir.Value, node: ir.Node) -> bool:
        """Return whether a node drops only the last column of the attention weights."""
        for shapes in (PROBE_SHAPES, _LATER_SHAPES):
            whole = of_all_sizes((2, 2, shapes.sequence, shapes.total + 1), seed=4)
            try:
                got = self._inputs.probe(shapes, {weights: whole}).array(node.outputs[0])
            except ProbeError:
                return False
            if not np.array_equal(got, whole[..., :-1]):
                return False
        return True

    def has_factor(self, node: ir.Node) -> bool:
        """Return whether a node multiplies data by a value that does not depend on data."""
        return len(self.operands(node)) == 1

    def _sinks(self, column: ir.Value) -> np.ndarray:
        """Return the score of each head without a value."""
        if column in self._dependence:
            raise UnsupportedAttention("its attention sink depends on data")
        try:
            array, later = (probe.array(column) for probe in (self._probe, self._later))
        except ProbeError as error:
            raise UnsupportedAttention(f"its attention sink is unknown: {error}") from error
        if any(x.ndim != 4 or x.shape[3] != 1 or not (x == array[:1, :, :1]).all() for x in (array, later)):
            raise UnsupportedAttention("its attention sink is not one number per head")
        if not self._inputs.stays(PROBE_SHAPES, column, array[:1, :, :1], broadcasts=True):
            raise UnsupportedAttention("its attention sink changes with the tokens")
        return array[0, :, 0, 0]

    def _cache(self, value: ir.Value) -> Cache | None:
        """Return the cache from which a value is computed."""
        for dominator in self._dependence.dominators(value, most=40) if value in self._dependence else []:
            if dominator in self._by_present:
                return self._by_present[dominator]
        return None

    def _check_repeated(self, cache: Cache, used: ir.Value, times: int) -> None:
        """Raise `UnsupportedAttention` unless ``used`` is the cache with each head repeated."""
        if used is cache.present and times == 1:
            return
        content = of_all_sizes(self._probe.shape(cache.present), seed=1)
        try:
            got = self._inputs.probe(PROBE_SHAPES, {cache.present: content}).array(used)
        except ProbeError as error:
            raise UnsupportedAttention(f"the processing of its keys or values is unknown: {error}") from error
        if not self._inputs.grows(PROBE_SHAPES, used, 2):
            raise UnsupportedAttention("its keys or values cover only some of the tokens")
        if not self._inputs.stays(PROBE_SHAPES, used, got, {cache.present: content}):
            raise UnsupportedAttention("its keys or values are multiplied by a number that changes with the tokens")
        if content.shape[1] == 1 and np.array_equal(got, content):
            return  # MatMul broadcasts it
        wanted = np.repeat(content, times, axis=1)
        if got.shape != wanted.shape or not np.array_equal(got, wanted):
            raise UnsupportedAttention("its keys or values are not those of the cache, repeated for groups of heads")


def reached_caches(
    outputs: Sequence[ir.Value], attentions: Sequence[CachedAttention], cached: Mapping[ir.Value, ir.Value]
) -> set[ir.Value]:
    """Return the caches whose values, not only shapes, are needed for the outputs once the attentions are replaced.

    Args:
        outputs: the outputs.
        attentions: the attentions.
        cached: value of the graph -> the cache that it represents.
    """
    ends = {found.guarded for found in attentions}
    pending = list(outputs)
    for found in attentions:
        pending += [value for value in (found.query, found.keys.new, found.values.new, found.mask) if value is not None]
    seen, reached = set(pending), set()
    while pending:
        value = pending.pop()
        if value in cached:
            reached.add(cached[value])
        node = value.producer()
        if node is None or value in ends:
            continue
        for taken in inputs_of(node):
            if taken not in seen and not (node.op_type == "Shape" and taken in cached):
                seen.add(taken)
                pending.append(taken)
    return reached


PROBE_SHAPES = ProbeShapes(batch=2, sequence=3, past=5)
"""The shapes with which attentions are evaluated."""

_LATER_SHAPES = ProbeShapes(batch=2, sequence=2, past=9)
"""Other shapes, to recognize values that do not depend on the number of tokens."""
