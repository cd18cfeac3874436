"""Forms of operators that pnnx converts, for ncnn."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from converters.passes.workaround import Workaround
from onnx_specops.building import Builder, Value
from onnx_specops.graphs import attributes_of


class ConvForSpaceToDepth(Workaround):
    """Convert SpaceToDepth to a Conv whose weights are zeros and ones. pnnx (2026) orders the channels differently."""

    operators = frozenset(("SpaceToDepth",))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        x = node.inputs[0]
        size: int = node.attributes.get_int("blocksize", 1)
        if not isinstance(x, Value) or x.dtype != ir.DataType.FLOAT or x.dims is None or x.dims[1] is None:
            return None
        channels = x.dims[1]
        if channels == 1:
            return None
        weights = np.zeros((size, size, channels, channels, size, size), np.float32)
        for row in range(size):
            for column in range(size):
                weights[row, column, :, :, row, column] = np.eye(channels)
        kernel = op.const(weights.reshape(-1, channels, size, size))
        return [op.Conv(x, kernel, kernel_shape=[size, size], strides=[size, size])]


class NormalizedLines(Workaround):
    """Convert a LayerNormalization of several dimensions to that of one. pnnx (2026) normalizes the last one only."""

    operators = frozenset(("LayerNormalization",))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        x, attributes = node.inputs[0], attributes_of(node)
        if not isinstance(x, Value) or not x.is_static or not x.dims or len(node.outputs) > 1:
            return None
        axis = attributes.pop("axis", -1) % len(x.dims)
        if axis == len(x.dims) - 1:
            return None
        whole = [dim or 0 for dim in x.dims]
        if any(isinstance(value, Value) and value.dims != whole[axis:] for value in node.inputs[1:]):
            return None
        factors = [None if value is None else op.Reshape(value, [-1]) for value in node.inputs[1:]]
        line = op.Reshape(x, [*whole[:axis], -1])
        return [op.Reshape(op.LayerNormalization(line, *factors, axis=-1, **attributes), whole)]
