"""HardSigmoid and HardSwish, which reach an IR as chains of arithmetic, become one node again; Mish, arithmetic; and the
logarithm of a Sigmoid, Softplus.

The chains are not sought for speed alone: a sixth that the file keeps in 16 bits, 2e-4 off, is meant as a sixth, and
OpenVINO's CPU, which fuses the same chains, computes with the exact one. It does so only where the factor is near enough,
and only in the chains written here: in others the factor counts as it stands.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx_ir as ir

from converters.passes.patterns import PatternPass, Rewrite, number, rewrite
from onnx_specops.building import Builder, Value

_FLOATS = (ir.DataType.FLOAT, ir.DataType.FLOAT16)


def _sixth(op: Any, x: Any) -> Any:
    # The tolerance is that of OpenVINO's fusions to HSigmoid and HSwish.
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
    """x * HardSigmoid(x), where its slope is a sixth."""
    node = gate.producer()
    assert node is not None
    slope, shift = node.attributes.get_float("alpha", 0.2), node.attributes.get_float("beta", 0.5)
    return op.HardSwish(x) if abs(slope - 1 / 6) < 1e-6 and shift == 0.5 and _fits(x, whole) else None


def _fits(x: Value, whole: ir.Value) -> bool:
    """Whether the chain has x's shape, to which a constant of a higher rank could add dimensions."""
    return x.dtype in _FLOATS and x.shape is not None and whole.shape is not None and len(x.shape) == len(whole.shape)


class FuseHardSigmoid(PatternPass):
    """min(max(x + 3, 0), 6) / 6."""

    rewrites = tuple(
        _hard_sigmoid(root, scaled, clipped)
        for root, scaled in (("Mul", _sixth), ("Div", _sixth_of))
        for clipped in (_clip, _relu_min, _max_min)
    )


class FuseHardSwish(PatternPass):
    """x * min(max(x + 3, 0), 6) / 6."""

    rewrites = (
        gated_by_hard_sigmoid,
        _hard_swish("Mul", _sixth, _relu_min),
        *(_hard_swish("Div", _sixth_of, clipped) for clipped in (_clip, _relu_min, _max_min)),
    )


_SATURATED = 20.0
"""From here on tanh(softplus(x)) is 1 in float32, and its terms are far from infinity."""


@rewrite("Mish", lambda op, x: op.Mish(x))
def by_one_exponential(op: Builder, *, x: Value) -> Value | None:
    """x tanh(log(1 + e^x)): with n = e^x (e^x + 2) it is x n / (n + 2), and nothing cancels."""
    if x.dtype != ir.DataType.FLOAT:
        return None
    exponential = op.Exp(op.Min(x, _SATURATED))
    n = op.Mul(exponential, op.Add(exponential, 2))
    return op.Mul(x, op.Div(n, op.Add(n, 2)))


class DecomposeMish(PatternPass):
    """Mish by one exponential function: ONNX Runtime has no kernel, and by Softplus and Tanh it takes ten times as long."""

    rewrites = (by_one_exponential,)


_OVERFLOW = 88.72284
"""The exponential function of a greater number is infinite in float32, and the Sigmoid of its negative 0."""


@rewrite("Log", lambda op, x: op.Log(op.Sigmoid(x)), exclusive=False)
def as_softplus(op: Builder, *, x: Value) -> Value:
    """-log(1 + e^-x), which loses nothing for negative numbers, and -inf where the Sigmoid is 0 in OpenVINO."""
    return op.Where(op.Less(x, -_OVERFLOW), -np.inf, op.Neg(op.Softplus(op.Neg(x))))


class DecomposeLogSigmoid(PatternPass):
    """The logarithm of a Sigmoid by Softplus: ONNX Runtime's Sigmoid is right to 1e-8 only, and 0 below -18."""

    rewrites = (as_softplus,)
