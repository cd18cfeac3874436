"""Forms of TopK: sorted instead of any order, and the order of equal elements."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir
from onnx_ir.passes import InPlacePass, PassResult

from converters.passes.spellings.qnn_limits import MOST_DIMENSIONS
from converters.passes.workaround import KernelWorkaround
from onnx_specops.building import Builder, Value
from onnx_specops.graphs import all_nodes, attributes_of


class SortedTopK(InPlacePass):
    """Replace ``sorted=0`` by ``sorted=1``. With 0, the order of the results is undefined."""

    def call(self, model: ir.Model) -> PassResult:
        found = [
            node
            for node in all_nodes(model.graph)
            if not node.domain and node.op_type == "TopK" and not node.attributes.get_int("sorted", 1)
        ]
        for node in found:
            node.attributes.add(ir.AttrInt64("sorted", 1))
        return PassResult(model, modified=bool(found))


_TYPES = frozenset((ir.DataType.FLOAT, ir.DataType.INT32, ir.DataType.INT64))


class ReversedTopK(KernelWorkaround):
    """Reverse the input of a TopK, and subtract the indices from the last one, if they are used.

    Of equal elements, ONNX selects the first ones. QNN's HTP (2.7) selects the last ones. Conditions: at most four
    dimensions, a known size, and float32 or signed integers of 32 or 64 bits.
    """

    operators = frozenset(("TopK",))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        x, k = node.inputs
        indices = node.outputs[1]
        if not (indices.uses() or indices.is_graph_output()):
            return None
        if not isinstance(x, Value) or x.dtype not in _TYPES or not x.dims or len(x.dims) > MOST_DIMENSIONS:
            return None
        axis = node.attributes.get_int("axis", -1) % len(x.dims)
        size = x.dims[axis]
        if not size:
            return None
        places = np.arange(size)[::-1].copy()
        values, found = op.TopK(op.Gather(x, places, axis=axis), k, outputs=2, **attributes_of(node))
        return [values, op.Sub(size - 1, found)]
