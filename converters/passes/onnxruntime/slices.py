"""Slice with negative steps: ONNX Runtime (1.31) treats the largest int32 and int64 as the end of the complete axis.

ONNX clamps such an end to the last element, which leaves nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np
import onnx_ir as ir

from converters.passes.workaround import KernelWorkaround
from onnx_specops.building import Builder, Value

_INT32_MAX, _INT64_MAX = 2**31 - 1, 2**63 - 1


class EndsOfBackwardSlices(KernelWorkaround):
    """Change the ends of Slices with negative steps that ONNX Runtime would misinterpret by one."""

    operators = frozenset(("Slice",))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        if len(node.inputs) < 5 or node.inputs[4] is None:
            return None
        x, starts, ends, axes, steps = (cast(Value, value) for value in node.inputs)
        if steps.constant is not None and (steps.constant > 0).all():
            return None
        known, backward = _elements(ends), True if steps.constant is None else steps.constant < 0
        if known is not None and not (np.isin(known, (_INT32_MAX, _INT64_MAX)) & backward).any():
            return None
        beyond = op.Where(op.Equal(ends, _INT32_MAX), _INT32_MAX + 1, op.Min(ends, _INT64_MAX - 1))
        return [op.Slice(x, starts, op.Where(op.Less(steps, 0), beyond, ends), axes, steps)]


def _elements(x: Value) -> np.ndarray | None:
    """Return the elements of a constant, or the constant that an Expand repeats; ``None`` for another value."""
    node = x.producer()
    if x.constant is None and node is not None and not node.domain and node.op_type == "Expand":
        x = cast(Value, node.inputs[0])
    return x.constant
