"""Activation functions of operators that compute several steps in one pass; `QuantizedConv` describes them."""

from __future__ import annotations

import math

import numpy as np

_erf = np.vectorize(math.erf, otypes=[np.float64])


def applied(x: np.ndarray, slope: np.ndarray | None, function: str, alpha: np.float32, beta: np.float32) -> np.ndarray:
    """Return the function of ``x``."""
    zero, one = np.float32(0), np.float32(1)
    with np.errstate(over="ignore"):
        if function == "clip":
            return np.minimum(np.maximum(x, alpha), beta)
        if function == "prelu":
            return np.where(x < 0, x * slope, x)
        if function in ("hard_sigmoid", "hard_swish"):
            gate = np.minimum(np.maximum(x * alpha + beta, zero), one)
            return gate if function == "hard_sigmoid" else x * gate
        if function == "sigmoid":
            return one / (one + np.exp(-x))
        if function == "swish":
            return x / (one + np.exp(-(x * alpha)))
        if function == "gelu":
            return x * 0.5 * (1 + _erf(x * np.float32(math.sqrt(0.5))))
        if function == "gelu_tanh":
            return x * 0.5 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x.astype(np.float64) ** 3)))
        if function == "elu":
            return np.where(x < 0, alpha * np.expm1(x), x)
        if function == "mish":
            return x * np.tanh(np.log1p(np.exp(np.minimum(x, np.float32(30)))))
    return x


def applied_body(op, x, slope, function, alpha, beta):
    """Emit the function of ``x``."""
    if function == "clip":
        return op.Clip(x, np.float32(alpha), np.float32(beta))
    if function == "prelu":
        return op.PRelu(x, slope)
    if function in ("hard_sigmoid", "hard_swish"):
        gate = op.HardSigmoid(x, alpha=alpha, beta=beta)
        return gate if function == "hard_sigmoid" else op.Mul(x, gate)
    if function == "sigmoid":
        return op.Sigmoid(x)
    if function == "swish":
        return op.Mul(x, op.Sigmoid(x if alpha == 1 else op.Mul(x, np.float32(alpha))))
    if function == "gelu":
        return op.Gelu(x)
    if function == "gelu_tanh":
        return op.Gelu(x, approximate="tanh")
    if function == "elu":
        return op.Elu(x, alpha=alpha)
    if function == "mish":  # Softplus and Tanh take ten times as long in ONNX Runtime
        exponential = op.Exp(op.Min(x, np.float32(30)))
        both = op.Mul(exponential, op.Add(exponential, np.float32(2)))
        return op.Mul(x, op.Div(both, op.Add(both, np.float32(2))))
    return x
