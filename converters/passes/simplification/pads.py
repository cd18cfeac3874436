"""Padding as part of convolutions and max pooling."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from converters.passes.patterns import PatternPass, rewrite
from onnx_specops.building import Builder, Value
from onnx_specops.graphs import attributes_of, constant_array, constant_list


@rewrite(
    "Conv",
    lambda op, x, pads: op.Conv(
        op.Pad(x, pads, _allow_other_inputs=True, _allow_other_attributes=True, _outputs=["padded"]),
        _allow_other_inputs=True,
        _allow_other_attributes=True,
        _outputs=["whole"],
    ),
    exclusive=False,
)
def padded_convolution(op: Builder, *, x: Value, pads: Value, padded: Value, whole: Value) -> Value | None:
    """Add a Pad by zeros to the pads of the convolutions after it, if nothing else uses it."""
    pad, conv, added = padded.producer(), whole.producer(), _borders(padded, pads, "Conv")
    if pad is None or conv is None or added is None:
        return None
    fill = pad.inputs[2] if len(pad.inputs) > 2 else None
    if fill is not None and ((number := constant_array(fill)) is None or number.any()):
        return None
    result: Value | None = _with_pads(op, conv, x, added)
    return result


@rewrite(
    "MaxPool",
    lambda op, x, pads, fill: op.MaxPool(
        op.Pad(x, pads, fill, _allow_other_inputs=True, _allow_other_attributes=True, _outputs=["padded"]),
        _allow_other_attributes=True,
        _outputs=["whole"],
    ),
    exclusive=False,
)
def padded_maximum(op: Builder, *, x: Value, pads: Value, fill: Value, padded: Value, whole: Value) -> Value | None:
    """Add a Pad by minus infinity to the pads of the MaxPools after it, if nothing else uses it.

    Each window contains an element: the pads are smaller than it, and it does not start in the pad at the end.
    """
    pool, added, number = whole.producer(), _borders(padded, pads, "MaxPool"), constant_array(fill)
    if pool is None or added is None or number is None or not np.isneginf(number).all():
        return None
    stated = pool.attributes
    kernel = list(stated.get_ints("kernel_shape", ()))
    sums = [a + b for a, b in zip(added, stated.get_ints("pads", [0] * len(added)), strict=True)]
    if (
        len(pool.outputs) > 1
        or stated.get_int("ceil_mode", 0) != 0
        or set(stated.get_ints("dilations", [1])) != {1}
        or any(width >= size for width, size in zip(sums, kernel * 2, strict=True))
    ):
        return None
    result: Value | None = _with_pads(op, pool, x, added)
    return result


def _borders(padded: Value, pads: Value, operator: str) -> list[int] | None:
    """Return the constant widths before and after the image that a Pad adds, if only an operator's images use it."""
    pad, widths, x = padded.producer(), constant_list(pads), padded
    if pad is None or widths is None or x.rank is None or min(widths) < 0:
        return None
    axes = list(range(x.rank))
    if len(pad.inputs) > 3 and pad.inputs[3] is not None:
        given = constant_list(pad.inputs[3])
        if given is None:
            return None
        axes = [axis % x.rank for axis in given]
    if len(widths) != 2 * len(axes) or pad.attributes.get_string("mode", "constant") != "constant":
        return None
    if padded.is_graph_output() or any(user.op_type != operator or place for user, place in padded.uses()):
        return None
    first, last = [0] * x.rank, [0] * x.rank
    for axis, before, after in zip(axes, widths[: len(axes)], widths[len(axes) :], strict=True):
        first[axis], last[axis] = before, after
    return None if any(first[:2]) or any(last[:2]) else [*first[2:], *last[2:]]


def _with_pads(op: Builder, node: ir.Node, x: Value, added: list[int]) -> Value | None:
    """Return the operator of a node on ``x``, with more pads."""
    attributes = attributes_of(node)
    if attributes.get("auto_pad", "NOTSET") != "NOTSET":
        return None
    given = attributes.pop("pads", [0] * len(added))
    pads = [a + b for a, b in zip(given, added, strict=True)]
    result: Value = op.node(node.op_type, x, *node.inputs[1:], pads=pads, **attributes)
    return result


class FusePads(PatternPass):
    """Fuse Pads by zeros into convolutions, and those by minus infinity into maxima."""

    rewrites = (padded_convolution, padded_maximum)
