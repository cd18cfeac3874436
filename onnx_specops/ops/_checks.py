"""What the operators share: inputs of one element, conditions in a body that must hold at run time, wording of positions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from onnx_specops.building import Builder, Value

FLOAT16S = ("float16", "bfloat16")


def scalar(value: Any, name: str) -> Any:
    """The one element of a scalar or ``[1]``; raises ``ValueError`` for other shapes."""
    if np.shape(value) not in ((), (1,)):
        raise ValueError(f"{name}: shape {list(np.shape(value))} where a scalar or [1] was expected")
    return np.reshape(value, -1)[0]


def position(index: Sequence[Any]) -> str:
    """``[1, 2]`` for the coordinates ``(1, 2)``."""
    return f"[{', '.join(str(int(i)) for i in index)}]"


def required(op: Builder, rule: str, violations: Any, value: Any) -> Value:
    """``value``, whose computation fails at run time where any element of ``violations`` is true.

    Standard ONNX has no assertion, but every runtime refuses an index that is out of range: the number of violations indexes
    a tensor of one element, a zero that is then added to ``value`` (of an integer type). ``rule`` names the nodes, so that
    the runtime's error says what was violated.
    """
    outer, op.scope = op.scope, rule
    count = op.ReduceSum(op.Cast(violations, to=_INT64), keepdims=0)
    zero = op.Gather(op.const([0]), count, axis=0)
    checked = op.Add(value, op.Cast(zero, to=value.dtype))
    op.scope = outer
    return checked


_INT64 = 7  # onnx.TensorProto.INT64
