"""Scattered updates."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from converters.passes.workaround import Workaround
from onnx_specops.building import Builder, Value


class ScatterWithinData(Workaround):
    """Append elements to the data of a ScatterElements with more updates than data along its axis.

    OpenCV (5.0.0) rejects it otherwise.
    """

    operators = frozenset(("ScatterElements",))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        data, indices, updates = node.inputs
        if not isinstance(data, Value) or not isinstance(indices, Value) or not isinstance(updates, Value):
            return None
        if not data.is_static or not indices.is_static or not data.dims or not indices.dims or data.dtype is None:
            return None
        axis = node.attributes.get_int("axis", 0) % len(data.dims)
        size, count = data.dims[axis] or 0, indices.dims[axis] or 0
        if count <= size:
            return None
        more = [(count - size if place == axis else dim) or 0 for place, dim in enumerate(data.dims)]
        whole = op.Concat(data, op.const(np.zeros(more, data.dtype.numpy()), data.dtype), axis=axis)
        # Negative indices refer to the end of the data.
        within = op.Where(
            op.Less(indices, op.const(0, indices.dtype)), op.Add(indices, op.const(size, indices.dtype)), indices
        )
        reduction = node.attributes.get_string("reduction", "none")
        scattered = op.ScatterElements(whole, within, updates, axis=axis, reduction=reduction)
        return [op.Slice(scattered, [0], [size], [axis])]
