"""Col2Im of integers and doubles, for all targets.

Opsets before 18 represent Col2Im by ConvTranspose, which supports floats only. ONNX Runtime (1.31) has a kernel for float32
only, which would round the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import onnx_ir as ir

from converters.passes.workaround import KernelWorkaround
from onnx_specops.building import Builder, Value
from onnx_specops.graphs import attributes_of

_FITTING = (ir.DataType.FLOAT, ir.DataType.FLOAT16, ir.DataType.BFLOAT16)


class Col2ImByAddition(KernelWorkaround):
    """Replace Col2Im of types that float32 does not represent by ScatterElements, which adds elements at positions."""

    operators = frozenset(("Col2Im",))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        x, image, block = (cast(Value, value) for value in node.inputs)
        attributes = attributes_of(node)
        dilations, strides = attributes.get("dilations", [1, 1]), attributes.get("strides", [1, 1])
        pads = attributes.get("pads", [0] * 4)
        if x.dtype in _FITTING or len(strides) != 2:
            return None
        batch, columns = op.Shape(x, start=0, end=1), op.Shape(x, start=1, end=2)
        height, width = (op.Slice(image, [axis], [axis + 1]) for axis in (0, 1))
        at, inside = [], []
        for axis, size in enumerate((height, width)):
            kernel = op.Slice(block, [axis], [axis + 1])
            room = op.Sub(op.Add(size, pads[axis] + pads[axis + 2]), op.Mul(op.Sub(kernel, 1), dilations[axis]))
            blocks = op.Add(op.Div(op.Sub(room, 1), strides[axis]), 1)
            within = op.Mul(_range(op, kernel), dilations[axis])
            starts = op.Sub(op.Mul(_range(op, blocks), strides[axis]), pads[axis])
            places = op.Add(op.Unsqueeze(within, [1]), op.Unsqueeze(starts, [0]))
            # Kernel and block of this axis, with dimensions of 1 for those of the other one.
            places = op.Unsqueeze(places, [1, 3] if axis == 0 else [0, 2])
            at.append(places)
            inside.append(op.And(op.GreaterOrEqual(places, 0), op.Less(places, size)))
        area = op.Mul(height, width)
        positions = op.Where(op.And(*inside), op.Add(op.Mul(at[0], width), at[1]), area)
        taps = op.ReduceProd(block, keepdims=1)
        channels = op.Div(columns, taps)
        maps = op.Concat(op.Mul(batch, channels), op.Mul(taps, op.Shape(x, start=2, end=3)), axis=0)
        values = op.Reshape(x, maps, allowzero=1)
        positions = op.Expand(op.Reshape(positions, [1, -1]), op.Shape(values))
        # Elements outside the image are added to an extra element, which is then removed.
        empty = op.Expand(op.CastLike(0, x), op.Concat(op.Slice(maps, [0], [1]), op.Add(area, 1), axis=0))
        images = op.Slice(op.ScatterElements(empty, positions, values, axis=1, reduction="add"), [0], area, [1])
        return [op.Reshape(images, op.Concat(batch, channels, image, axis=0), allowzero=1)]


def _range(op: Builder, count: Value) -> Value:
    """Return 0, 1, ..., ``count`` - 1; ``count`` is a vector of one element."""
    return cast(Value, op.Range(0, op.Reshape(count, []), 1))
