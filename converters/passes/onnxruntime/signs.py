"""Sign of 16-bit floats: ONNX Runtime's kernel (1.31) gives 0 for NaN, but its float32 kernel gives NaN."""

from __future__ import annotations

import onnx_ir as ir

from converters.passes.patterns import PatternPass, rewrite
from onnx_specops.building import Builder, Value, cast_unrounded
from onnx_specops.widening import HALVES


@rewrite("Sign", lambda op, x: op.Sign(x), finite=True)
def in_float32(op: Builder, *, x: Value) -> Value | None:
    """Compute the sign in float32, and do not round it for the nodes that follow."""
    if x.dtype not in HALVES:
        return None
    return cast_unrounded(op, op.Sign(cast_unrounded(op, x, ir.DataType.FLOAT)), x.dtype)


class SignInFloat32(PatternPass):
    """Compute Sign of float16 and bfloat16 in float32."""

    rewrites = (in_float32,)
