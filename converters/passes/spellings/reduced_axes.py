"""The axes of reductions, which older opsets have as an attribute and newer ones as an input."""

from __future__ import annotations

import onnx_ir as ir

from onnx_specops.building import Value
from onnx_specops.graphs import constant_list


def stated_axes(node: ir.Node) -> list[int] | None:
    """Return the axes that a reduction states; ``None`` if it omits them, or computes them at run time."""
    if "axes" in node.attributes:
        return list(node.attributes.get_ints("axes", ()) or ())
    return constant_list(node.inputs[1]) if len(node.inputs) > 1 else None


def reduced_axes(node: ir.Node) -> list[int] | None:
    """Return the axes along which a node reduces a tensor of known rank: all of them if it states none.

    The result is ``None`` if the axes are computed at run time, or if the node reduces along no axis.
    """
    x, axes = node.inputs[0], stated_axes(node)
    if not isinstance(x, Value) or x.rank is None:
        return None
    if axes is None and len(node.inputs) > 1 and node.inputs[1] is not None:
        return None
    is_noop: int = node.attributes.get_int("noop_with_empty_axes", 0)
    if not axes and is_noop:
        return None
    return axes or list(range(x.rank))
