"""Split rows of tokens into attention heads, and join them again.

Both functions support zero tokens and zero heads. Therefore, no Reshape has a dimension of -1, or a dimension that ONNX
Runtime's optimizer replaces by -1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:  # not needed for ``import onnx_specops``
    from onnx_specops.building import Builder, Value


def split_heads(op: Builder, rows: Value, heads: int) -> Value:
    """Reshape ``[batch, tokens, heads * size]`` to ``[batch, heads, tokens, size]``."""
    width = None if rows.dims is None else rows.dims[-1]
    if width:
        split = op.Reshape(rows, [0, 0, heads, width // heads])
    else:  # no Concat: ONNX Runtime would replace one of these dimensions by -1
        whole = op.Shape(op.Unsqueeze(rows, [2]))
        shape = op.Div(op.Mul(whole, [1, 1, heads, 1]), [1, 1, 1, heads])
        split = op.Reshape(rows, shape, allowzero=1)
    return op.Transpose(split, perm=[0, 2, 1, 3])


def join_heads(op: Builder, x: Value) -> Value:
    """Reshape ``[batch, heads, tokens, size]`` to ``[batch, tokens, heads * size]``."""
    rows = op.Transpose(x, perm=[0, 2, 1, 3])
    _, heads, _, size = x.dims or [None] * 4
    if heads and size:
        return op.Reshape(rows, [0, 0, heads * size])
    of_heads = op.Concat([1, 1], op.Shape(rows, start=3, end=4), axis=0)
    return op.Reshape(rows, op.Mul(op.Shape(rows, start=0, end=3), of_heads), allowzero=1)
