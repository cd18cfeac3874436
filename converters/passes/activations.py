"""Fusion of arithmetic into HardSigmoid and HardSwish, Mish in one pass or decomposed, and Softplus for the logarithm of a
Sigmoid.

The fusions also improve the accuracy. A file may store 1/6 in 16 bits, with an error of 2e-4. If the stored factor is close
enough, OpenVINO's CPU plugin fuses the same chains and uses the exact factor. In other chains, it uses the stored factor.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
import onnx_ir as ir

from converters.passes.dequantization import static
from converters.passes.patterns import PatternPass, Rewrite, number, rewrite
from onnx_specops.building import Builder, Value

_FLOATS = (ir.DataType.FLOAT, ir.DataType.FLOAT16)


def gelu_function(node: ir.Node) -> str:
    """Return the name of a Gelu's function in operators of the domain."""
    return "gelu_tanh" if node.attributes.get_string("approximate", "none") == "tanh" else "gelu"


def _sixth(op: Any, x: Any) -> Any:
    # The same tolerance as OpenVINO's fusions to HSigmoid and HSwish.
    return op.Mul(x, number(1 / 6, tolerance=1e-4), _outputs=["whole"])


def _sixth_of(op: Any, x: Any) -> Any:
    return op.Div(x, number(6), _outputs=["whole"])


def _clip(op: Any, x: Any) -> Any:
    return op.Clip(op.Add(x, number(3)), number(0), number(6))


def _relu_min(op: Any, x: Any) -> Any:
    return op.Min(op.Relu(op.Add(x, number(3))), number(6))


def _max_min(op: Any, x: Any) -> Any:
    return op.Min(op.Max(op.Add(x, number(3)), number(0)), number(6))


_Form = Callable[[Any, Any], Any]


def _hard_sigmoid(root: str, scaled: _Form, clipped: _Form) -> Rewrite:
    @rewrite(root, lambda op, x: scaled(op, clipped(op, x)), commute=True, exclusive=False)
    def replace(op: Builder, *, x: Value, whole: Value) -> Value | None:
        return op.HardSigmoid(x, alpha=1 / 6, beta=0.5) if _fits(x, whole) else None

    return replace


def _hard_swish(root: str, scaled: _Form, clipped: _Form) -> Rewrite:
    @rewrite(root, lambda op, x: scaled(op, op.Mul(x, clipped(op, x))), commute=True, exclusive=False)
    def replace(op: Builder, *, x: Value, whole: Value) -> Value | None:
        return op.HardSwish(x) if _fits(x, whole) else None

    return replace


def _gated(op: Any, x: Any) -> Any:
    return op.Mul(x, op.HardSigmoid(x, _outputs=["gate"]), _outputs=["whole"])


@rewrite("Mul", _gated, commute=True)
def gated_by_hard_sigmoid(op: Builder, *, x: Value, gate: Value, whole: Value) -> Value | None:
    """Fuse x * HardSigmoid(x) with a slope of 1/6."""
    node = gate.producer()
    assert node is not None
    slope, shift = node.attributes.get_float("alpha", 0.2), node.attributes.get_float("beta", 0.5)
    return op.HardSwish(x) if abs(slope - 1 / 6) < 1e-6 and shift == 0.5 and _fits(x, whole) else None


def _fits(x: Value, whole: ir.Value) -> bool:
    """Return whether the chain has x's shape. A constant of a higher rank could add dimensions."""
    return x.dtype in _FLOATS and x.shape is not None and whole.shape is not None and len(x.shape) == len(whole.shape)


class FuseHardSigmoid(PatternPass):
    """Fuse min(max(x + 3, 0), 6) / 6."""

    rewrites = tuple(
        _hard_sigmoid(root, scaled, clipped)
        for root, scaled in (("Mul", _sixth), ("Div", _sixth_of))
        for clipped in (_clip, _relu_min, _max_min)
    )


class FuseHardSwish(PatternPass):
    """Fuse x * min(max(x + 3, 0), 6) / 6."""

    rewrites = (
        gated_by_hard_sigmoid,
        _hard_swish("Mul", _sixth, _relu_min),
        *(_hard_swish("Div", _sixth_of, clipped) for clipped in (_clip, _relu_min, _max_min)),
    )


_SATURATED = 20.0
"""Above this number, tanh(softplus(x)) is 1 in float32. Its terms are still far from infinity."""


@rewrite("Mish", lambda op, x: op.Mish(x))
def by_one_exponential(op: Builder, *, x: Value) -> Value | None:
    """Compute x tanh(log(1 + e^x)) as x n / (n + 2) with n = e^x (e^x + 2), which avoids cancellation."""
    if x.dtype != ir.DataType.FLOAT:
        return None
    exponential = op.Exp(op.Min(x, _SATURATED))
    n = op.Mul(exponential, op.Add(exponential, 2))
    return op.Mul(x, op.Div(n, op.Add(n, 2)))


class DecomposeMish(PatternPass):
    """Decompose Mish with one exponential. ONNX Runtime has no kernel, and Softplus and Tanh take ten times as long."""

    rewrites = (by_one_exponential,)


_LEAST_SIZE = 2048
"""With fewer elements, calling a kernel takes longer than the computation."""


@rewrite("Mish", lambda op, x: op.Mish(x), finite=True)
def in_one_pass(op: Builder, *, x: Value) -> Value | None:
    """Replace Mish of many float32 elements by Elementwise."""
    shape = static(x)
    if x.dtype != ir.DataType.FLOAT or (shape is not None and prod(shape) < _LEAST_SIZE):
        return None
    return op.specops.Elementwise(x, np.zeros([], np.float32), program="mish 0")


class FuseMish(PatternPass):
    """Replace Mish, which is five nodes in ONNX Runtime, by the domain's Elementwise.

    Conditions: the elements are float32. There are at least `_LEAST_SIZE` elements, or their number is unknown.
    """

    rewrites = (in_one_pass,)


_OVERFLOW = 88.72284
"""Above this number, exp(x) is infinite in float32, and the Sigmoid of -x is 0."""


@rewrite("Log", lambda op, x: op.Log(op.Sigmoid(x)), exclusive=False)
def as_softplus(op: Builder, *, x: Value) -> Value:
    """Compute log(sigmoid(x)) as -softplus(-x), which is accurate for negative numbers, and as -inf where OpenVINO's Sigmoid
    is 0.
    """
    return op.Where(op.Less(x, -_OVERFLOW), -np.inf, op.Neg(op.Softplus(op.Neg(x))))


class DecomposeLogSigmoid(PatternPass):
    """Replace the logarithm of a Sigmoid by Softplus. ONNX Runtime's Sigmoid has an error of 1e-8, and is 0 below -18."""

    rewrites = (as_softplus,)
