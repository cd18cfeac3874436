"""Sums of columns: ONNX Runtime's kernels (1.32) of ReduceSum, ReduceMean and ReduceL2 are slow along the first axes.

For 56 x 56 pixels of 160 channels they take 340 microseconds; the product of ones and a matrix takes 47.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import cast

import numpy as np
import onnx_ir as ir

from converters.passes.workaround import Workaround
from onnx_specops.building import Builder, Value
from onnx_specops.graphs import attributes_of

# Below, the nodes that are added take as long as they save.
_LEAST_ELEMENTS, _LEAST_COLUMNS = 1 << 12, 16


class SumsByProducts(Workaround):
    """Replace ReduceSum, ReduceMean and ReduceL2 of float32 along leading axes by a product with ones.

    The reduced axes are adjacent and have elements, as have those after them; those before them have sizes of 1.
    """

    operators = frozenset(("ReduceSum", "ReduceMean", "ReduceL2"))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        x, *given = (cast(Value, value) for value in node.inputs)
        # float16 is for GPUs. Older opsets have the axes of other reductions than ReduceSum as an attribute.
        if x.dtype != ir.DataType.FLOAT or x.dims is None or len(given) != 1 or given[0].constant is None:
            return None
        dims = [size for size in x.dims if size is not None]
        axes = sorted({int(axis) % len(x.dims) for axis in given[0].constant.reshape(-1)})
        if len(dims) != len(x.dims) or not axes or axes != list(range(axes[0], axes[-1] + 1)):
            return None
        before, rows, columns = dims[: axes[0]], math.prod(dims[axes[0] : axes[-1] + 1]), math.prod(dims[axes[-1] + 1 :])
        if math.prod(before) != 1 or rows < 2 or columns < _LEAST_COLUMNS or rows * columns < _LEAST_ELEMENTS:
            return None
        kept = [1 if axis in axes else size for axis, size in enumerate(dims)]
        if not attributes_of(node).get("keepdims", 1):
            kept = [size for axis, size in enumerate(dims) if axis not in axes]
        matrix = op.Reshape(op.Mul(x, x) if node.op_type == "ReduceL2" else x, [rows, columns])
        total = cast(Value, op.Reshape(op.MatMul(np.ones((1, rows), np.float32), matrix), kept))
        if node.op_type == "ReduceMean":
            return [cast(Value, op.Div(total, float(rows)))]
        return [cast(Value, op.Sqrt(total)) if node.op_type == "ReduceL2" else total]
