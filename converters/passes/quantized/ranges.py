"""Which inputs of an activation function make a difference to the 8-bit number that its result is rounded to.

A convolution whose result goes through a function before it is quantised has no limits of its own. But the levels behind the
function have two ends, and what lies beyond the inputs that reach them changes nothing: between these the convolution's result
may be quantised too, which ONNX Runtime needs to compute it in integers.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import onnx_ir as ir

from converters.passes.quantized.affine import Affine

_POINTS = 40001

Function = Callable[[np.ndarray], np.ndarray]


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return 0.5 * (1 + np.tanh(0.5 * x))


def _gelu(node: ir.Node) -> Function:
    if node.attributes.get_string("approximate", "none") == "tanh":
        return lambda x: 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    erf = np.vectorize(math.erf, otypes=[np.float64])
    return lambda x: 0.5 * x * (1 + erf(x / math.sqrt(2)))


def _hard_sigmoid(node: ir.Node) -> Function:
    slope, shift = node.attributes.get_float("alpha", 0.2), node.attributes.get_float("beta", 0.5)
    return lambda x: np.clip(slope * x + shift, 0, 1)


def _leaky_relu(node: ir.Node) -> Function:
    slope = node.attributes.get_float("alpha", 0.01)
    return lambda x: np.where(x < 0, slope * x, x)


def _elu(node: ir.Node) -> Function:
    alpha = node.attributes.get_float("alpha", 1.0)
    return lambda x: np.where(x < 0, alpha * np.expm1(np.minimum(x, 0)), x)


_FUNCTIONS: dict[str, Callable[[ir.Node], Function]] = {
    "Elu": _elu,
    "Gelu": _gelu,
    "HardSigmoid": _hard_sigmoid,
    "HardSwish": lambda _: lambda x: x * np.clip(x / 6 + 0.5, 0, 1),
    "LeakyRelu": _leaky_relu,
    "Mish": lambda _: lambda x: x * np.tanh(np.logaddexp(0, x)),
    "Relu": lambda _: lambda x: np.maximum(x, 0),
    "Sigmoid": lambda _: _sigmoid,
    "Softplus": lambda _: lambda x: np.logaddexp(0, x),
    "Tanh": lambda _: np.tanh,
}


def function(node: ir.Node) -> Function | None:
    """What a node computes of each number, if it is one of these functions."""
    known = None if node.domain else _FUNCTIONS.get(node.op_type)
    return None if known is None else known(node)


def swish(x: np.ndarray) -> np.ndarray:
    """x * sigmoid(x)."""
    return x * _sigmoid(x)


def before(function: Function, behind: Affine) -> Affine | None:
    """The 256 levels that are enough for what goes through ``function`` and is then quantised by ``behind``, a tensor's."""
    scale, zero, info = behind.scale.astype(np.float64), behind.zero_point.astype(np.int64), np.iinfo(behind.zero_point.dtype)
    edge = 16 + 4 * 256 * float(scale.max())
    points = np.linspace(-edge, edge, _POINTS)
    values = function(points)
    levels = np.clip(np.rint(values / float(scale.max())) + int(zero.flat[0]), info.min, info.max)
    (different,) = np.nonzero(levels[1:] != levels[:-1])
    if not len(different) or info.max - info.min != 255:
        return None
    low, high = min(points[different[0]], 0.0), max(points[different[-1] + 1], 0.0)
    step = (high - low) / 255
    return Affine(np.asarray(step, np.float32), np.asarray(np.rint(-low / step), np.uint8))
