"""Checks of numbers, which may only be known at run time."""

from __future__ import annotations

import numpy as np

from converters.errors import Malformed
from onnx_specops.assertions import required
from onnx_specops.building import Builder, Value


def checked(op: Builder, rule: str, violations: Value, value: Value) -> Value:
    """Return ``value``. Raise `Malformed` if an element of ``violations`` is known to be true, or fail at run time."""
    known = violations.constant
    if known is None:
        return required(op, rule, violations, value)
    if known.any():
        raise Malformed(f"its {rule.replace('_', ' ')}", "check that the file is intact")
    return value


def outside(op: Builder, indices: Value, size: Value) -> Value:
    """Return which indices are negative, or not less than ``size``."""
    return op.Or(op.Less(indices, np.int64(0)), op.GreaterOrEqual(indices, size))
