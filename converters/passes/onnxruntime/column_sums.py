"""Sums of columns: ONNX Runtime's kernels (1.32) of ReduceSum, ReduceMean and ReduceL2 are slow along the first axes.

For 56 x 56 pixels with 160 channels, they take 340 microseconds. A multiplication by a matrix of ones takes 47 microseconds.
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

# For fewer elements, the added nodes take as long as they save.
_LEAST_ELEMENTS, _LEAST_COLUMNS = 1 << 12, 16


class SumsByProducts(Workaround):
    """Replace ReduceSum, ReduceMean and ReduceL2 of float32 along leading axes by a product with ones.

    The reduced axes are adjacent in memory. These axes and those after them are not empty, and the axes before them have a
    size of 1.
    """

    operators = frozenset(("ReduceSum", "ReduceMean", "ReduceL2"))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        x, *given = (cast(Value, value) for value in node.inputs)
        # float16 is for GPUs. Older opsets have the axes of other reductions than ReduceSum as an attribute.
        if x.dtype != ir.DataType.FLOAT or not x.is_static or len(given) != 1 or given[0].constant is None:
            return None
        sizes = [size or 0 for size in x.dims or ()]
        rank = len(sizes)
        reduced = {int(axis) % rank for axis in given[0].constant.reshape(-1)}
        kept = [1 if axis in reduced else size for axis, size in enumerate(sizes)]
        if not attributes_of(node).get("keepdims", 1):
            kept = [size for axis, size in enumerate(sizes) if axis not in reduced]
        x, order = _before_transpose(x)
        dims = [sizes[order.index(place)] for place in range(rank)]
        axes = sorted(order[axis] for axis in reduced)
        others = [order[axis] for axis in range(rank) if axis not in reduced and dims[order[axis]] != 1]
        if not axes or axes != list(range(axes[0], axes[-1] + 1)) or others != sorted(others):
            return None
        rows, columns = math.prod(dims[axes[0] : axes[-1] + 1]), math.prod(dims[axes[-1] + 1 :])
        if math.prod(dims[: axes[0]]) != 1 or rows < 2 or columns < _LEAST_COLUMNS or rows * columns < _LEAST_ELEMENTS:
            return None
        matrix = op.Reshape(op.Mul(x, x) if node.op_type == "ReduceL2" else x, [rows, columns])
        # ONNX Runtime expands the ones once, when it loads the file.
        ones = op.Expand(np.float32(1), [1, rows])
        total = cast(Value, op.Reshape(op.MatMul(ones, matrix), kept))
        if node.op_type == "ReduceMean":
            return [cast(Value, op.Div(total, float(rows)))]
        return [cast(Value, op.Sqrt(total)) if node.op_type == "ReduceL2" else total]


def _before_transpose(x: Value) -> tuple[Value, Sequence[int]]:
    """Return the input of the Transpose that computes ``x``, and the axis there of each axis; or ``x`` itself.

    ONNX Runtime moves Transposes across reductions, but not across reshapes.
    """
    node = x.producer()
    assert x.rank is not None
    if node is None or node.op_type != "Transpose" or node.domain or node.inputs[0] is None:
        return x, range(x.rank)
    return cast(Value, node.inputs[0]), list(node.attributes.get_ints("perm", range(x.rank)[::-1]))
