"""Replacement of an attention over a cache by GroupQueryAttention."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx_ir as ir

from converters.options import KvCache
from converters.passes.attention.canonical import UnsupportedAttention
from converters.passes.attention.masks import VisibleKeys
from converters.passes.attention.matching import CachedAttention
from converters.passes.attention.probe_shapes import Inputs, ProbeShapes
from converters.passes.attention.probing import ProbeError, of_all_sizes
from converters.passes.attention.rotation import Source, Table
from onnx_specops.assertions import required
from onnx_specops.building import Builder, Value, constant_value
from onnx_specops.ops.group_query_attention_compressed import TAIL
from onnx_specops.replacing import replace_value

_TYPES = {"float16": ir.DataType.FLOAT16, "uint8": ir.DataType.UINT8}

_MULTIPLE = 8
"""ONNX Runtime's kernel needs a head size that is a multiple of this."""

OTHER_NUMBERS = "attention_mask_of_other_numbers_than_0_and_1"
"""The assertion that an attention_mask contains only 0 and 1."""

_UNKNOWN = -(1 << 30)
"""An invalid number of tokens, which ONNX Runtime rejects."""


@dataclass
class Emitter:
    """Emits the operators, and the values that they share once.

    Attributes:
        graph: the graph.
        inputs: its inputs.
        cache: the type of the caches.
        own: whether ONNX Runtime's operator extends them, not the domain's.
        root: a builder of the graph that knows its names.
    """

    graph: ir.Graph
    inputs: Inputs
    cache: KvCache
    own: bool
    root: Builder
    _lengths: dict[bool, tuple[Value, Value]] = field(default_factory=dict)
    _caches: dict[Table, tuple[Value, Value]] = field(default_factory=dict)

    @property
    def _computed(self) -> ir.DataType:
        """The type of the operator's floats: that of the caches for ONNX Runtime's operator."""
        return _TYPES.get(self.cache, ir.DataType.FLOAT) if self.own else ir.DataType.FLOAT

    def replace(
        self, found: CachedAttention, visible: VisibleKeys, sources: tuple[Source, Source, Source], table: Table | None
    ) -> tuple[ir.Value, ir.Value]:
        """Replace an attention by GroupQueryAttention. Return the replacements of its caches.

        Args:
            found: the attention.
            visible: the keys that its mask leaves visible.
            sources: the sources of its queries, keys and values.
            table: the table of the rotary embedding; ``None`` if it stays outside, or does not exist.
        """
        mixing = found.guarded.producer()
        assert mixing is not None
        lengths, total = self._counted(visible.padding)
        op = Builder(self.graph, root=self.root, before=mixing)
        op.scope = found.softmax.name or "attention"
        heads = (found.heads, found.groups, found.groups)
        tokens = [_in_rows(op, source, n, found.size) for source, n in zip(sources, heads, strict=True)]
        rotary = (None, None) if table is None else self._rotary_caches(table)
        sink = None if found.sinks is None else op.const(found.sinks, self._computed)
        attributes: dict[str, Any] = {
            "num_heads": found.heads,
            "kv_num_heads": found.groups,
            "scale": found.scale,
            "softcap": found.softcap or None,
            "local_window_size": visible.window if visible.window > 0 else None,
            "rotary_interleaved": 1 if table is not None and table.interleaved else None,
            "outputs": 3,
        }
        rows = self._in_rows_again(found)
        pasts = found.keys.past, found.values.past
        if self.cache != "float32":
            for past in pasts:
                _compress(past, self.cache)
        if self.own:
            attributes["do_rotary"] = None if table is None else 1
            if self._computed != ir.DataType.FLOAT:
                tokens = [op.Cast(value, to=self._computed) for value in tokens]
            inputs = *tokens, *pasts, lengths, total, *rotary, None, None, sink
            output, key, value = op.contrib.GroupQueryAttention(*inputs, **attributes)
            output = output if self._computed == ir.DataType.FLOAT else op.Cast(output, to=ir.DataType.FLOAT)
        else:
            inputs = *tokens, *pasts, lengths, total, *rotary, sink
            output, key, value = op.specops.GroupQueryAttentionCompressed(*inputs, **attributes)
        if rows is None:
            whole = op.Reshape(output, [0, 0, found.heads, found.size])
            replace_value(found.guarded, op.Transpose(whole, perm=[0, 2, 1, 3]), equal=False)
        else:
            replace_value(rows, output, equal=False)
        return key, value

    def _counted(self, padding: bool) -> tuple[Value, Value]:
        """Return the number of tokens of each row minus one, and the maximum of all rows."""
        if padding in self._lengths:
            return self._lengths[padding]
        op = Builder(self.graph, root=self.root, before=next(iter(self.graph)))
        op.scope = "tokens"
        data, mask = self.inputs.tokens, self.inputs.mask
        sequence = op.Shape(data, start=1, end=2)
        if mask is None:
            past = next(iter(self.inputs.pasts))
            total = op.Add(op.Shape(past, start=2, end=3), sequence)
        else:
            total = op.Shape(mask, start=1, end=2)
        whole = op.Cast(op.Squeeze(total, [0]), to=ir.DataType.INT32)
        if mask is None or not padding:
            lengths = op.Expand(op.Sub(total, 1), op.Shape(data, start=0, end=1))
        else:
            mask = op.Cast(mask, to=ir.DataType.INT64)
            counts = op.Sub(op.ReduceSum(mask, [1], keepdims=0), 1)
            right_padded, others = _is_right_padded(op, mask, sequence, total), has_other_numbers(op, mask)
            if self._computed == ir.DataType.FLOAT:
                lengths = op.Where(op.And(right_padded, op.Not(others)), counts, _UNKNOWN)
            else:  # other kernels do not check the lengths
                lengths = required(op, "padding_before_tokens", op.Not(right_padded), counts)
                lengths = required(op, OTHER_NUMBERS, others, lengths)
        self._lengths[padding] = op.Cast(lengths, to=ir.DataType.INT32), whole
        return self._lengths[padding]

    def _rotary_caches(self, table: Table) -> tuple[Value, Value]:
        if table not in self._caches:
            dtype = self._computed.numpy()
            cosine, sine = (constant_value(array.astype(dtype), name=name) for array, name in
                            ((table.cosine, "cos_cache"), (table.sine, "sin_cache")))  # fmt: skip
            self._caches[table] = cosine, sine
        return self._caches[table]

    def _in_rows_again(self, found: CachedAttention) -> ir.Value | None:
        """Return the value after ``mixed`` in the operator's layout ``[batch, sequence, heads * size]``."""
        value = found.guarded
        for _ in range(3):
            if len(uses := list(value.uses())) != 1 or value.is_graph_output():
                return None
            value = uses[0][0].outputs[0]
            if all(self._are_rows(found, value, shapes) for shapes in (ProbeShapes(2, 3, 5), ProbeShapes(2, 1, 5))):
                return value
        return None

    def _are_rows(self, found: CachedAttention, value: ir.Value, probe_shapes: ProbeShapes) -> bool:
        """Return whether a value is ``mixed`` in the operator's layout for a number of tokens."""
        mixed = of_all_sizes((probe_shapes.batch, found.heads, probe_shapes.sequence, found.size), seed=3)
        wanted = mixed.transpose(0, 2, 1, 3).reshape(probe_shapes.batch, probe_shapes.sequence, -1)
        given = {found.guarded: mixed}
        try:
            got = self.inputs.probe(probe_shapes, given).array(value)
        except ProbeError:
            return False
        return np.array_equal(got, wanted) and self.inputs.stays(probe_shapes, value, got, given)


def _compress(past: ir.Value, cache: KvCache) -> None:
    """Change the type of a float cache input to that of the smaller cache."""
    assert past.shape is not None
    *dims, size = past.shape
    past.dtype = _TYPES[cache]
    past.shape = ir.Shape([*dims, size + TAIL if cache == "uint8" and isinstance(size, int) else size])


def _is_right_padded(op: Builder, mask: ir.Value, sequence: Value, total: Value) -> Value:
    """Return for each row whether its padding is after its tokens, as GroupQueryAttention requires.

    Padding can be before the tokens of a later run, but all tokens of that run must be visible.
    """
    begins = op.Greater(op.Slice(mask, [0], [1], [1]), 0)
    earlier, later = op.Slice(mask, [0], [-1], [1]), op.Slice(mask, [1], [2**62], [1])
    # ReduceMax of an empty tensor would be an error.
    rises = op.ReduceSum(op.Cast(op.Less(earlier, later), to=ir.DataType.INT64), [1], keepdims=1)
    own = op.ReduceSum(op.Slice(mask, op.Neg(sequence), [2**62], [1]), [1], keepdims=1)
    is_right = op.Where(op.Less(sequence, total), op.Equal(own, sequence), op.Equal(rises, 0))
    return op.Squeeze(op.And(begins, is_right), [1])


def has_other_numbers(op: Builder, mask: ir.Value) -> Value:
    """Return for each row of an integer mask whether it contains numbers other than 0 and 1, whose effect is unknown."""
    others = op.Cast(op.Not(op.Equal(op.Mul(mask, mask), mask)), to=ir.DataType.INT64)
    found: Value = op.Greater(op.ReduceSum(others, [1], keepdims=0), 0)
    return found


def _in_rows(op: Builder, source: Source, heads: int, size: int) -> ir.Value:
    """Convert a query, key or value to ``[batch, sequence, heads * size]``."""
    value = source.value
    if source.layout.name == "BSD":
        return value
    if source.layout.name == "BNSH":
        value = op.Transpose(value, perm=[0, 2, 1, 3])
    return op.Reshape(value, [0, 0, heads * size])


def check_types(found: CachedAttention) -> None:
    """Raise `UnsupportedAttention` if an attention is not computed in float32."""
    types = {value.dtype for value in (found.query, found.keys.past, found.values.past, found.keys.new, found.guarded)}
    if types != {ir.DataType.FLOAT}:
        raise UnsupportedAttention(f"it is computed in {', '.join(sorted(str(t) for t in types))}")


def check_size(found: CachedAttention) -> None:
    """Raise `UnsupportedAttention` if ONNX Runtime's kernel rejects the head size."""
    if found.size % _MULTIPLE:
        raise UnsupportedAttention(f"its heads have {found.size} elements; ONNX Runtime requires a multiple of {_MULTIPLE}")
