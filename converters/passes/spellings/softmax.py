"""Softmax along the last axis."""

from __future__ import annotations

from converters.passes.patterns import PatternPass, rewrite
from onnx_specops.building import Builder, Value


@rewrite("Softmax", lambda op, x: op.Softmax(x, _outputs=["whole"]))
def other_axis(op: Builder, *, x: Value, whole: Value) -> Value | None:
    """Exchange the axis and the last one, before and after Softmax."""
    node = whole.producer()
    assert node is not None
    axis = node.attributes.get_int("axis", -1)
    if x.rank is None or axis in (-1, x.rank - 1):
        return None
    order = list(range(x.rank))
    order[axis], order[-1] = order[-1], order[axis]
    result: Value = op.Transpose(op.Softmax(op.Transpose(x, perm=order), axis=-1), perm=order)
    return result


class LastAxisSoftmax(PatternPass):
    """Move the axis of Softmax to the end. Along other axes, MNN (3.6) computes with 87 instead of larger numbers."""

    rewrites = (other_axis,)
