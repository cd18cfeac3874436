"""Element by element: arithmetic."""

from __future__ import annotations

from typing import Literal

from converters.openvino.rule import rule
from onnx_specops.building import Builder, Value

@rule("Relu")
def relu(op: Builder, x: Value):
    return op.Relu(x)

@rule("Add")
def add(op: Builder, a: Value, b: Value, *, auto_broadcast: Literal["numpy", "none", "pdpd"] = "numpy"):
    """Add-1."""
    return op.Add(a, b)
