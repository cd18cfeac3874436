"""Elements around a tensor, along some of its axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # which the import of onnx_specops does without
    from onnx_specops.building import Builder, Value


def pad(op: Builder, x: Value, axes: Sequence[int], before: Sequence[int | Value], after: Sequence[int | Value]) -> Value:
    """``x`` with zeros before and after its elements along some axes.

    Of known rank the node names no axes: ONNX Runtime, which moves a Transpose behind the Pad, mistakes them.

    Args:
        op: the builder.
        x: a tensor.
        axes: of it.
        before, after: how many zeros, for each of the axes: a number, or a tensor ``[1]``.
    """
    counts = [*before, *after]
    if x.rank is not None:
        whole: list[int | Value] = [0] * (2 * x.rank)
        for axis, first, last in zip(axes, before, after, strict=True):
            whole[axis % x.rank], whole[x.rank + axis % x.rank] = first, last
        counts = whole
    known = [count for count in counts if isinstance(count, int)]
    pads = known if len(known) == len(counts) else op.Concat(*([c] if isinstance(c, int) else c for c in counts), axis=0)
    return op.Pad(x, pads, None, list(axes) if x.rank is None else None)
