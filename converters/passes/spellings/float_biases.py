"""Biases of quantized networks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from converters.passes.workaround import Workaround
from onnx_specops.building import Builder, Value
from onnx_specops.graphs import constant_array


class FloatBiases(Workaround):
    """Store constant int32 inputs of DequantizeLinear as floats.

    ONNX Runtime's CUDA provider (1.31.1) has no DequantizeLinear for int32, so the CPU would compute and copy them in
    each run.
    """

    operators = frozenset(("DequantizeLinear",))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        integers, scale, *zero = node.inputs
        blocks = node.attributes.get_int("block_size", 0)
        if integers is None or integers.dtype != ir.DataType.INT32 or blocks:
            return None
        numbers, factors = constant_array(integers), constant_array(scale)
        if numbers is None or factors is None or (zero and zero[0] is not None):
            return None
        if factors.ndim:
            shape = [1] * numbers.ndim
            shape[node.attributes.get_int("axis", 1) if numbers.ndim > 1 else 0] = -1
            factors = factors.reshape(shape)
        # float16 represents products of integers that it does not represent.
        products = numbers.astype(np.float32) * factors.astype(np.float32)
        return [op.const(products.astype(factors.dtype), node.outputs[0].dtype)]
