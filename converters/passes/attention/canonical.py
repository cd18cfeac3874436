"""The canonical form of attention: `spellings.py` recognizes it, and the lowerings use it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import onnx_ir as ir

MASKED = -1e4
"""An addend of this or less to a key's score makes its attention weight 0."""


class UnsupportedAttention(ValueError):
    """A lowering, or the canonical form, does not support the attention."""


@dataclass
class Attention:
    """``softmax(softcap * tanh(scale * query @ key.T / softcap) + mask) @ value``, in four dimensions.

    A lowering may accept three dimensions as well, with batch and heads in the first one.

    Attributes:
        softmax: the Softmax node.
        query: ``[batch, heads, queries, size]``.
        key: ``[batch, heads, keys, size]``, permuted by ``order``. A head that several queries share is repeated or
            broadcast.
        order: the axes of ``key`` for batch, heads, keys and size. A graph may transpose the key once for all uses.
        value: ``[batch, heads, keys, value size]``, with heads as in ``key``.
        scale: the factor of the attention scores.
        softcap: the limit of the scores; 0 if there is none.
        mask: the addend of the scores; ``None`` if there is none.
        is_boolean: whether the mask is boolean, with true for visible keys. The scores of hidden keys are ``lowest``.
        lowest: the score of a key that a boolean mask hides.
        sink: an additional last column of scores, without a value; ``None`` if there is none.
        product: the MatMul of queries and keys.
        scores: the scores before the mask.
        inner: all values between the inputs and the output, which a lowering removes.
        output: ``[batch, heads, queries, value size]``.
        guarded: the output with 0 for queries without a visible key under a mask of -inf, if the graph computes that;
            otherwise the output.
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
        """Whether the layout of the key is ``[batch, heads, keys, size]``."""
        return tuple(self.order) == (0, 1, 2, 3)

    @property
    def is_exclusive(self) -> bool:
        """Whether the values between the inputs and the output have no other consumers."""
        return all(len(value.uses()) == 1 and not value.is_graph_output() for value in self.inner)
