"""Negative pads as slices."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from converters.passes.workaround import Workaround
from onnx_specops.building import Builder, Value
from onnx_specops.graphs import constant_list

_END = np.iinfo(np.int64).max


class NonnegativePads(Workaround):
    """Convert the negative pads of a Pad to a Slice before it.

    OpenCV (4.14.0), MNN (3.6) and pnnx (2026) do not support negative pads.
    """

    operators = frozenset(("Pad",))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        x, pads = node.inputs[0], constant_list(node.inputs[1])
        if not isinstance(x, Value) or x.dims is None or pads is None or all(pad >= 0 for pad in pads):
            return None
        if node.attributes.get_string("mode", "constant") != "constant":
            return None
        given = node.inputs[3] if len(node.inputs) > 3 else None
        axes = list(range(len(x.dims))) if given is None else constant_list(given)
        if axes is None:
            return None
        count = len(axes)
        axes = [axis % len(x.dims) for axis in axes]
        starts, ends = ([max(0, -pad) for pad in half] for half in (pads[:count], pads[count:]))
        cut = [k for k in range(count) if starts[k] or ends[k]]
        # A Slice cannot remove elements that the Pad adds.
        if any((size := x.dims[axes[k]]) is None or starts[k] + ends[k] > size for k in cut):
            return None
        last = [-ends[k] if ends[k] else _END for k in cut]
        result = op.Slice(x, [starts[k] for k in cut], last, [axes[k] for k in cut])
        if any(pad > 0 for pad in pads):
            fill = node.inputs[2] if len(node.inputs) > 2 else None
            result = op.Pad(result, [max(0, pad) for pad in pads], fill, None if given is None else axes)
        return [result]
