"""The canonical form of attention: every spelling becomes it (`spellings.py`), and every lowering takes it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import onnx_ir as ir

MASKED = -1e4
"""A key to whose score this or less is added has the weight 0."""


class UnsupportedAttention(ValueError):
    """The attention has a form that a lowering, or the canonical form, does not have."""


@dataclass
class Attention:
    """``softmax(softcap * tanh(scale * query @ key.T / softcap) + mask) @ value``, of four dimensions.

    Attributes:
        softmax: the node of the softmax.
        query: ``[batch, heads, queries, size]``.
        key: ``[batch, heads, keys, size]`` in the order ``order``; a head that several queries share is repeated, or
            broadcast.
        order: the axes of ``key`` that are batch, heads, keys and size: a graph may transpose it once for all.
        value: ``[batch, heads, keys, value size]``, in the same way.
        scale: the factor of the attention scores.
        softcap: the limit of the scores; 0 if there is none.
        mask: what is added to the scores; ``None`` for nothing.
        is_boolean: whether the mask is instead true for visible keys. The scores of the others are ``lowest``.
        lowest: the score of a key that a boolean mask hides.
        sink: a last column of scores that leads to no value; ``None`` if there is none.
        product: the product of queries and keys.
        scores: the scores before the mask.
        inner: all values between the inputs and the output, which a lowering makes superfluous.
        output: ``[batch, heads, queries, value size]``.
        guarded: the output with 0 for the queries that a mask of -inf leaves no key, where the graph asks for that; else
            the output.
    """

    softmax: ir.Node
    query: ir.Value
    key: ir.Value
    order: Sequence[int]
    value: ir.Value
    scale: float
    softcap: float
    mask: ir.Value | None
    is_boolean: bool
    lowest: float
    sink: ir.Value | None
    product: ir.Value
    scores: ir.Value
    inner: Sequence[ir.Value]
    output: ir.Value
    guarded: ir.Value

    @property
    def is_heads_first(self) -> bool:
        """Whether the key is ``[batch, heads, keys, size]`` as it is."""
        return tuple(self.order) == (0, 1, 2, 3)

    @property
    def is_exclusive(self) -> bool:
        """Whether nothing else takes the values between the inputs and the output."""
        return all(len(value.uses()) == 1 and not value.is_graph_output() for value in self.inner)
