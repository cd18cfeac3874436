"""Cast to 8-bit floats without saturation: for values out of range, ONNX Runtime (1.31) does not return NaN or infinity."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np
import onnx_ir as ir

from converters.passes.workaround import KernelWorkaround
from onnx_specops.building import Builder, Value
from onnx_specops.graphs import attributes_of

D = ir.DataType

_LARGEST = {D.FLOAT8E4M3FN: 464.0, D.FLOAT8E5M2: 61408.0}
"""The largest float16 that is rounded to a finite number."""


class CastToFloat8(KernelWorkaround):
    """Replace numbers out of range by infinity before a Cast of float16 to float8 without saturation."""

    operators = frozenset(("Cast",))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        x, attributes = cast(Value, node.inputs[0]), attributes_of(node)
        largest = _LARGEST.get(D(attributes["to"]))
        if largest is None or x.dtype != D.FLOAT16 or attributes.get("saturate", 1):
            return None
        beyond = op.Greater(op.Abs(x), np.float16(largest))
        return [op.Cast(op.Where(beyond, op.Mul(x, np.float16(np.inf)), x), **attributes)]
