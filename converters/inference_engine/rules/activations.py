"""Activations and other elementwise functions."""

from __future__ import annotations

from converters.errors import Malformed
from converters.inference_engine.rule import find_layer_rule, layer
from converters.inference_engine.rules._channels import by_channel
from converters.openvino.rule import Context
from converters.openvino.rules import activations as opset
from onnx_specops.building import Builder, Value

_MATH = {
    "Abs": "Abs",
    "Acos": "Acos",
    "Acosh": "Acosh",
    "Asin": "Asin",
    "Asinh": "Asinh",
    "Atan": "Atan",
    "Atanh": "Atanh",
    "Ceil": "Ceil",
    "Cos": "Cos",
    "Cosh": "Cosh",
    "Erf": "Erf",
    "Exp": "Exp",
    "Floor": "Floor",
    "Log": "Log",
    "Neg": "Neg",
    "Reciprocal": "Reciprocal",
    "Sign": "Sign",
    "Sin": "Sin",
    "Sinh": "Sinh",
    "Softplus": "Softplus",
    "Softsign": "Softsign",
    "Sqrt": "Sqrt",
    "Tan": "Tan",
    "Sigmoid": "Sigmoid",
    "Logistic": "Sigmoid",
    "TanH": "Tanh",
}


def _register(kind: str, node: str) -> None:
    @layer(kind)
    def emit(op: Builder, x: Value):
        return op.node(node, x)


for _kind, _node in _MATH.items():
    _register(_kind, _node)


@layer("ReLU")
def relu(op: Builder, x: Value, *, negative_slope: float = 0.0):
    """ReLU, leaky with a slope."""
    return op.LeakyRelu(x, alpha=negative_slope) if negative_slope else op.Relu(x)


@layer("ReLU6")
def relu6(op: Builder, x: Value, *, n: float = 6.0):
    """ReLU6: from 0 to ``n``."""
    return op.Clip(x, 0.0, n)


@layer("PReLU")
def prelu(op: Builder, x: Value, weights: Value, *, channel_shared: bool = False):
    """PReLU: a slope for each channel, or one for all. As many slopes as channels are used even if they are shared."""
    return op.PRelu(x, by_channel(op, x, weights, "slopes", shared=channel_shared))


@layer("ELU")
def elu(op: Builder, x: Value, *, alpha: float = 1.0):
    """ELU."""
    return op.Elu(x, alpha=alpha)


@layer("Clamp")
def clamp(op: Builder, x: Value, *, min: float, max: float):
    """Clamp."""
    return op.Clip(x, min, max)


@layer("HardSigmoid")
def hard_sigmoid(op: Builder, x: Value, *, alpha: float = 0.2, beta: float = 0.5):
    """HardSigmoid. The Inference Engine replaces 0 by the default."""
    return op.HardSigmoid(x, alpha=alpha or 0.2, beta=beta or 0.5)


@layer("Selu")
def selu(op: Builder, x: Value, *, alpha: float = 0.0, gamma: float = 0.0):
    """Selu. The Inference Engine replaces 0 by the default."""
    return op.Selu(x, alpha=alpha or 1.67326, gamma=gamma or 1.0507)


@layer("Swish")
def swish(op: Builder, x: Value, *, alpha: float = 1.0):
    """Swish: ``x * sigmoid(alpha * x)``."""
    return op.Mul(x, op.Sigmoid(x if alpha == 1 else op.Mul(x, alpha)))


@layer("Gelu")
def gelu(op: Builder, x: Value):
    """Gelu: oneDNN's approximation with tanh."""
    return opset.gelu(op, x, approximation_mode="tanh")


@layer("Not")
def not_(op: Builder, x: Value):
    """Not: 1 where the element is 0."""
    return op.Cast(op.Equal(x, 0.0), to=x.dtype)


@layer("SoftMax")
def softmax(op: Builder, x: Value, *, axis: int = 1):
    """SoftMax."""
    return opset.softmax(op, x, axis=axis)


@layer("LogSoftmax")
def log_softmax(op: Builder, x: Value, *, axis: int = -1):
    """LogSoftmax: along the last axis by default, unlike SoftMax."""
    return op.LogSoftmax(x, axis=axis)


@layer("GRN")
def grn(op: Builder, x: Value, *, bias: float = 0.0):
    """GRN: each vector of channels divided by its length."""
    return opset.grn(op, x, bias=bias)


_ACTIVATIONS = (
    "relu", "relu6", "prelu", "clamp", "elu", "sigmoid", "tanh", "logistic", "exp", "not", "swish", "gelu",
)  # fmt: skip


@layer("Activation")
def activation(op: Builder, x: Value, weights: Value | None = None, *, type: str, context: Context):
    """Activation: the layer that ``type`` names, with its attributes."""
    rule = find_layer_rule(type)
    if type.lower() not in _ACTIVATIONS:
        raise Malformed(f"the Inference Engine has no activation {type}")
    known = {name: value for name, value in context.layer.attributes.items() if name.lower() != "type"}
    keywords = rule.keywords(known, lambda text: context.remarks.add(text, layer=context.layer))
    return rule.function(op, *[value for value in (x, weights) if value is not None], **keywords)
