"""Which element types hold all values of which others: the one table that inference and casts go by."""

from __future__ import annotations

import functools

import onnx_ir as ir

D = ir.DataType

HALVES = frozenset({D.FLOAT16, D.BFLOAT16})
"""The floats of 16 bits."""

# For each type the types that hold all its values, best first; the last ones of the 64-bit integers only wrap alike.
# Where bits are only moved, 64-bit unsigned integers travel as signed ones; elsewhere the order decides.
WIDER: dict[ir.DataType, tuple[ir.DataType, ...]] = {
    D.FLOAT16: (D.FLOAT, D.DOUBLE),
    D.BFLOAT16: (D.FLOAT, D.DOUBLE),
    D.FLOAT8E4M3FN: (D.FLOAT, D.DOUBLE),
    D.FLOAT8E5M2: (D.FLOAT, D.DOUBLE),
    D.FLOAT: (D.DOUBLE,),
    D.DOUBLE: (D.FLOAT,),
    D.BOOL: (D.UINT8, D.INT32, D.INT64, D.FLOAT),
    D.INT4: (D.INT8, D.INT32, D.INT64, D.FLOAT),
    D.UINT4: (D.UINT8, D.INT32, D.INT64, D.FLOAT),
    D.INT8: (D.INT16, D.INT32, D.INT64, D.FLOAT, D.DOUBLE),
    D.UINT8: (D.INT32, D.UINT32, D.INT64, D.UINT64, D.FLOAT, D.DOUBLE),
    D.INT16: (D.INT32, D.INT64, D.FLOAT, D.DOUBLE),
    D.UINT16: (D.INT32, D.UINT32, D.INT64, D.UINT64, D.FLOAT, D.DOUBLE),
    D.INT32: (D.INT64, D.DOUBLE, D.FLOAT),
    D.UINT32: (D.INT64, D.UINT64, D.DOUBLE, D.FLOAT),
    D.INT64: (D.UINT64, D.DOUBLE, D.FLOAT),
    D.UINT64: (D.INT64, D.DOUBLE, D.FLOAT),
}


MOVES = frozenset((
    "Compress", "Concat", "DepthToSpace", "Expand", "Flatten", "Gather", "GatherElements", "GatherND", "Identity", "Pad",
    "Reshape", "ReverseSequence", "ScatterElements", "ScatterND", "Slice", "SpaceToDepth", "Split", "Squeeze", "Tile",
    "Transpose", "Unsqueeze", "Where",
))  # fmt: skip
"""The operators that only move elements, of any type."""


@functools.cache
def wider_of_kind(dtype: ir.DataType) -> tuple[ir.DataType, ...]:
    """The wider types of a type's own kind, integers for integers and floats for floats; none of the floats of 8 bits, in
    which nothing computes."""
    if dtype.bitwidth < 16 and not dtype.is_integer():
        return ()
    return tuple(
        wider
        for wider in WIDER.get(dtype, ())
        if wider.bitwidth > dtype.bitwidth and wider.is_integer() == dtype.is_integer()
    )
