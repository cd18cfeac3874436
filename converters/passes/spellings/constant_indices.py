"""Gather with constant indices as Slices or a matrix multiplication, or with computed ones."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir
from onnx_ir.passes import InPlacePass, PassResult

from converters.passes.spellings.resize_matrices import multiplied
from converters.passes.workaround import Workaround
from onnx_specops.building import Builder, Value
from onnx_specops.graphs import all_nodes, constant_array
from onnx_specops.naming import Names

_MAX_SLICES = 8
"""The number of Slices above which floats are multiplied by a matrix of zeros and ones."""

_SEVERAL = 2


class ConstantIndices(Workaround):
    """Convert a Gather with constant indices to Slice and Concat, or to a matrix multiplication.

    pnnx (2026) reads several indices as one, and a single index as a scalar, which removes the dimension. With more than
    eight separate ranges of floats, the result is a matrix multiplication, in which an infinity or a NaN makes all elements
    of its line NaN.
    """

    operators = frozenset(("Gather",))
    finite = True

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        x, result = node.inputs[0], node.outputs[0]
        indices = constant_array(node.inputs[1])
        if indices is None or not indices.ndim or not indices.size or not isinstance(x, Value) or not x.dims:
            return None
        if not isinstance(result, Value) or not result.is_static:
            return None
        axis = node.attributes.get_int("axis", 0) % len(x.dims)
        size = x.dims[axis]
        if size is None or ((indices < -size) | (indices >= size)).any():
            return None
        places = np.where(indices < 0, indices + size, indices).reshape(-1).astype(np.int64)
        runs = np.split(places, np.flatnonzero(np.diff(places) != 1) + 1)
        if len(runs) <= _MAX_SLICES or x.dtype != ir.DataType.FLOAT:
            parts = [op.Slice(x, [int(run[0])], [int(run[-1]) + 1], [axis]) for run in runs]
            line = parts[0] if len(parts) == 1 else op.Concat(*parts, axis=axis)
        else:
            line = multiplied(op, x, axis, (places[:, None] == np.arange(size)).astype(np.float32))
        return [line if indices.ndim == 1 else op.Reshape(line, [dim or 0 for dim in result.dims or ()])]


class ComputedIndices(InPlacePass):
    """Insert an Identity after constant indices of a Gather that have two or more dimensions.

    tinygrad (0.14) reads constant indices as a list of numbers.
    """

    def call(self, model: ir.Model) -> PassResult:
        names: Names | None = None
        computed: dict[ir.Value, ir.Value] = {}
        for node in list(all_nodes(model.graph)):
            indices = node.inputs[1] if not node.domain and node.op_type == "Gather" else None
            if indices is None or indices.const_value is None or len(indices.const_value.shape) < _SEVERAL:
                continue
            if indices not in computed:
                names = names or Names.of(model.graph)
                name = names.unique(f"{indices.name}_computed")
                computed[indices] = Value(name=name, type=indices.type, shape=indices.shape)
                copy = ir.Node("", "Identity", [indices], outputs=[computed[indices]])
                first = next(iter(model.graph))
                model.graph.insert_before(first, copy)
            node.replace_input_with(1, computed[indices])
        return PassResult(model, modified=bool(computed))
