"""Forms that tinygrad computes."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
import onnx_ir as ir

from converters.passes.spellings.scattering import places_of_slices
from converters.passes.workaround import Workaround
from converters.targets.limits import are_of_planes
from onnx_specops.building import Builder, Value
from onnx_specops.graphs import attributes_of, constant_array


class ScatteredRows(Workaround):
    """Convert ScatterND of known sizes to ScatterElements of rows.

    tinygrad (0.14) writes the updates of a ScatterND into its data. Other nodes that use the data, and the next run of the
    model, then read the result.
    """

    operators = frozenset(("ScatterND",))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        data, indices, updates = node.inputs
        if not isinstance(data, Value) or not isinstance(indices, Value) or not isinstance(updates, Value):
            return None
        if not all(value.is_static and value.dims and 0 not in value.dims for value in (data, indices, updates)):
            return None
        sizes, places = [size or 0 for size in data.dims or ()], [size or 0 for size in indices.dims or ()]
        depth, count = places[-1], prod(places[:-1])
        rest = sizes[depth:]
        rows = places_of_slices(op, indices, op.const(sizes[:depth]), depth)
        rows = op.Reshape(rows, [count, *[1] * len(rest)])
        if rest:
            rows = op.Expand(rows, [count, *rest])
        flat = op.Reshape(data, [prod(sizes[:depth]), *rest])
        reduction = node.attributes.get_string("reduction", "none")
        attributes = {} if reduction == "none" else {"reduction": reduction}
        scattered = op.ScatterElements(flat, rows, op.Reshape(updates, [count, *rest]), axis=0, **attributes)
        return [op.Reshape(scattered, sizes)]


class IndicesOfPlanes(Workaround):
    """Compute the indices of a MaxPool from the indices within each plane.

    tinygrad (0.14) counts from the beginning of each channel, and ONNX from the beginning of the tensor. The remainder of
    the division by the size of a plane is the same.
    """

    operators = frozenset(("MaxPool",))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        x = node.inputs[0]
        if len(node.outputs) < 2 or not isinstance(x, Value) or not x.is_static or x.dims is None or 0 in x.dims:
            return None
        attributes = attributes_of(node)
        if attributes.get("storage_order", 0) or are_of_planes(node):
            return None
        sizes = [size or 0 for size in x.dims]
        size, planes = prod(sizes[2:]), prod(sizes[:2])
        maxima, indices = op.MaxPool(x, outputs=2, **attributes)
        begins = (np.arange(planes) * size).reshape(*sizes[:2], *[1] * (len(sizes) - 2))
        return [maxima, op.Add(op.Mod(indices, op.const([size])), op.const(begins))]


class StrictComparisons(Workaround):
    """Convert GreaterOrEqual and LessOrEqual of floats to Greater or Less, and Equal.

    tinygrad (0.14) negates the opposite comparison, which is true for NaN.
    """

    operators = frozenset(("GreaterOrEqual", "LessOrEqual"))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        a, b = node.inputs
        if not isinstance(a, Value) or not isinstance(b, Value) or a.dtype is None or not a.dtype.is_floating_point():
            return None
        strict = op.Greater(a, b) if node.op_type == "GreaterOrEqual" else op.Less(a, b)
        return [op.Or(strict, op.Equal(a, b))]


class PositiveAxes(Workaround):
    """Count several axes of Squeeze and Unsqueeze from the first dimension.

    tinygrad (0.14) inserts or removes axes one at a time, in ascending order, so negative axes then refer to other
    dimensions.
    """

    operators = frozenset(("Squeeze", "Unsqueeze"))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        x, axes = node.inputs[0], constant_array(node.inputs[1]) if len(node.inputs) > 1 else None
        if not isinstance(x, Value) or x.rank is None or axes is None or axes.size <= 1 or (axes >= 0).all():
            return None
        rank = x.rank + (axes.size if node.op_type == "Unsqueeze" else 0)
        counted = sorted((axes.reshape(-1) % rank).tolist())
        return [op.Unsqueeze(x, counted) if node.op_type == "Unsqueeze" else op.Squeeze(x, counted)]
