"""The table of element types that represent all values of another type, used by inference and casts."""

from __future__ import annotations

import functools

import onnx_ir as ir

D = ir.DataType

HALVES = frozenset({D.FLOAT16, D.BFLOAT16})
"""The 16-bit float types."""

# For each type, the types that represent all its values, best first. For 64-bit integers the last entries only agree modulo
# wrap-around. Operators that only move bits treat uint64 as int64; for others the order decides.
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
    """Return the wider types of the same kind (integer or float), except 8-bit floats, which have no arithmetic."""
    if dtype.bitwidth < 16 and not dtype.is_integer():
        return ()
    return tuple(
        wider
        for wider in WIDER.get(dtype, ())
        if wider.bitwidth > dtype.bitwidth and wider.is_integer() == dtype.is_integer()
    )
