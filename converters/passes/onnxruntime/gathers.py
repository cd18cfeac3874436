"""Gather along the last dimension: ONNX Runtime's kernel (1.32) copies one number at a time.

If that dimension is moved to the front, Gather copies complete rows. For 128 rows of 72 numbers and 9 x 64 indices, Gather
takes 550 microseconds, and a Gather between two Transposes takes 70 microseconds.
"""

from __future__ import annotations

from math import prod

import onnx_ir as ir

from converters.passes.patterns import PatternPass, rewrite
from onnx_specops.building import Builder, Value

_LEAST_ROWS, _LEAST_SIZE = 16, 4096
_TYPES = frozenset((
    ir.DataType.BOOL, ir.DataType.INT8, ir.DataType.UINT8, ir.DataType.INT32, ir.DataType.INT64, ir.DataType.FLOAT16,
    ir.DataType.FLOAT, ir.DataType.DOUBLE,
))  # fmt: skip


@rewrite("Gather", lambda op, x, indices: op.Gather(x, indices, _outputs=["whole"]), exclusive=False)
def of_numbers(op: Builder, *, x: Value, indices: Value, whole: Value) -> Value | None:
    """Gather rows of the transposed tensor.

    Conditions: all dimensions are known; the dimensions after the axis are 1; there are at least `_LEAST_ROWS` rows and
    `_LEAST_SIZE` results, and at most as many inputs; the type is one of `_TYPES`.
    """
    node = whole.producer()
    if node is None or x.dtype not in _TYPES or not x.is_static or not whole.is_static or indices.rank is None:
        return None
    sizes = [size or 0 for size in x.dims or ()]
    if not sizes:
        return None
    axis = node.attributes.get_int("axis", 0) % len(sizes)
    rows, results = prod(sizes[:axis]), prod(size or 0 for size in whole.dims or ())
    if prod(sizes[axis + 1 :]) != 1 or rows < _LEAST_ROWS or not max(_LEAST_SIZE, prod(sizes)) <= results:
        return None
    gathered = op.Gather(op.Transpose(op.Reshape(x, [rows, sizes[axis]]), perm=[1, 0]), indices, axis=0)
    back = op.Transpose(gathered, perm=[indices.rank, *range(indices.rank)])
    return op.Reshape(back, [size or 0 for size in whole.dims or ()])


class GatherRows(PatternPass):
    """Gather along the last dimension by rows of the transposed tensor."""

    rewrites = (of_numbers,)
