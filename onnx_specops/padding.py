"""Zero padding along some axes of a tensor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # not needed for ``import onnx_specops``
    from onnx_specops.building import Builder, Value


def pad(op: Builder, x: Value, axes: Sequence[int], before: Sequence[int | Value], after: Sequence[int | Value]) -> Value:
    """Pad ``x`` with zeros along some axes.

    If the rank is known, the Pad has no ``axes`` input: ONNX Runtime handles it incorrectly when it moves a Transpose after
        the Pad.

    Args:
        op: the builder.
        x: a tensor.
        axes: the axes to pad.
        before, after: the number of zeros for each axis: a number, or a tensor ``[1]``.
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
