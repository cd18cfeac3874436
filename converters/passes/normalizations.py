"""Fusion of normalizations with their scale and bias.

OpenVINO has a normalization without parameters (MVN), followed by broadcast arithmetic for scale and bias.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from converters.passes.patterns import PatternPass, Rewrite, rewrite
from onnx_specops.building import Builder, Value
from onnx_specops.graphs import attributes_of, constant_array


def _scaled(root: str) -> Rewrite:
    def pattern(op: Any, x: Any, ones: Any, scale: Any) -> Any:
        return op.Mul(getattr(op, root)(x, ones, _allow_other_inputs=True, _outputs=["normal"]), scale, _outputs=["whole"])

    @rewrite("Mul", pattern, commute=True)
    def replace(op: Builder, *, x: Value, ones: Value, scale: Value, normal: Value, whole: Value) -> Value | None:
        node = normal.producer()
        assert node is not None
        bias = node.inputs[2] if len(node.inputs) > 2 else None
        if not (_is_all(ones, 1) and (bias is None or _is_all(bias, 0))):
            return None
        factor = _parameter(op, node, scale, whole)
        return None if factor is None else _normalized(op, node, factor, bias)

    return replace


def _shifted(root: str) -> Rewrite:
    def pattern(op: Any, x: Any, scale: Any, bias: Any) -> Any:
        return op.Add(getattr(op, root)(x, scale, _allow_other_inputs=True, _outputs=["normal"]), bias, _outputs=["whole"])

    # InstanceNormalization of one element multiplies its rounding error by 316, the reciprocal square root of epsilon.
    @rewrite("Add", pattern, commute=True, tolerance=0.3 if root == "InstanceNormalization" else 0.0)
    def replace(op: Builder, *, x: Value, scale: Value, bias: Value, normal: Value, whole: Value) -> Value | None:
        node = normal.producer()
        assert node is not None
        before = node.inputs[2] if len(node.inputs) > 2 else None
        if not (before is None or _is_all(before, 0)):
            return None
        shift = _parameter(op, node, bias, whole)
        return None if shift is None else _normalized(op, node, scale, shift)

    return replace


def _parameter(op: Builder, node: ir.Node, value: Value, whole: Value) -> Value | None:
    """Return a factor or addend in the shape that the normalization needs; ``None`` if it has another one."""
    x, scale = node.inputs[0], node.inputs[1]
    if x is None or not isinstance(scale, Value) or not isinstance(x, Value):
        return None
    if x.rank is None or value.dims is None or whole.dims is None or len(whole.dims) != x.rank:
        return None
    inner = scale.dims or []
    behind = [1] * (x.rank - 2) if node.op_type == "InstanceNormalization" else []
    aligned = [1] * (x.rank - len(value.dims)) + value.dims
    if None in aligned:
        return None  # two unknown sizes may differ
    if aligned != [1] * (x.rank - len(inner) - len(behind)) + [*inner, *behind] or value.dtype != scale.dtype:
        return None
    return op.Reshape(value, inner) if value.dims != inner else value


def _normalized(op: Builder, node: ir.Node, scale: Value, bias: ir.Value | None) -> Value:
    attributes = attributes_of(node)
    return op.node(node.op_type, node.inputs[0], scale, bias, **attributes)


def _is_all(value: ir.Value, number: float) -> bool:
    array = constant_array(value)
    return array is not None and bool((array == np.float32(number)).all())


class FuseScaleAndBias(PatternPass):
    """Fuse normalization * scale + bias."""

    rewrites = tuple(form(root) for root in ("LayerNormalization", "InstanceNormalization") for form in (_scaled, _shifted))
