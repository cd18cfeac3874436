"""Slices against the order of an axis."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
from onnx_ir.passes import InPlacePass, PassResult

from onnx_specops.building import Builder, Value
from onnx_specops.graphs import all_nodes, constant_array
from onnx_specops.replacing import replace_value


class ReversedSliceToGather(InPlacePass):
    """Convert a Slice with a negative step to Gather, and to a Slice of the other axes.

    MNN (3.6) reads out of bounds for most of these.
    """

    def call(self, model: ir.Model) -> PassResult:
        found = [node for node in all_nodes(model.graph) if not node.domain and node.op_type == "Slice"]
        root = Builder.of_existing(model.graph)
        return PassResult(model, modified=sum(_gathered(node, root) for node in found) > 0)


def _gathered(node: ir.Node, root: Builder) -> bool:
    x, arrays = node.inputs[0], [constant_array(value) for value in node.inputs[1:]]
    if not isinstance(x, Value) or x.dims is None or not isinstance(node.graph, ir.Graph) or len(arrays) < 4:
        return False
    if any(array is None for array in arrays):
        return False
    starts, ends, axes, steps = ([int(n) for n in array] for array in arrays if array is not None)
    places = [axis % len(x.dims) for axis in axes]
    backward = [k for k, step in enumerate(steps) if step < 0]
    if not backward or any(x.dims[places[k]] is None for k in backward):
        return False
    op = Builder.before_node(node, root)
    forward = [k for k in range(len(steps)) if k not in backward]
    result = x
    if forward:
        result = op.Slice(result, *([given[k] for k in forward] for given in (starts, ends, places, steps)))
    for k in backward:
        size = x.dims[places[k]] or 0
        indices = np.arange(size, dtype=np.int64)[_slice(starts[k], ends[k], steps[k], size)]
        result = op.Gather(result, op.const(indices), axis=places[k])
    assert isinstance(result, Value)
    replace_value(node.outputs[0], op.place(result), equal=False)
    node.graph.remove(node, safe=True)
    return True


def _slice(start: int, end: int, step: int, size: int) -> slice:
    """Return Python's equivalent, whose -1 is the last element and not the one before the first."""
    end = end + size if end < 0 else end
    return slice(start, None if end < 0 else end, step)
