"""FastGelu: the tanh approximation of GELU, after adding a bias."""

from __future__ import annotations

from onnx_specops.contrib.declaring import contrib_operator

# ONNX Runtime computes x * (0.5 + 0.5 * tanh(x * (C * x * x + B))) with these constants.
_B = 0.7978845608028654  # sqrt(2 / pi)
_C = 0.035677408136300125  # 0.044715 * sqrt(2 / pi)


@contrib_operator(inputs={"X": "T", "bias": "T"}, outputs={"Y": "T"}, types={"T": ("float16", "bfloat16", "float")})
def FastGelu(op, X, bias=None):
    """Computes the tanh approximation of GELU of ``X + bias``: ``x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))) / 2``.

    Inputs:
        X: any shape.
        bias: [last dimension of X]; optional.

    Output: the shape of X.

    Source: ONNX Runtime, docs/ContribOperators.md.
    """
    x = X if bias is None else op.Add(X, bias)
    gate = op.Tanh(op.Mul(x, op.Add(op.Mul(op.Mul(x, x), _C), _B)))
    return op.Mul(x, op.Add(op.Mul(gate, 0.5), 0.5))


@FastGelu.infer_shapes
def _(node):
    return [node.shape(0)]
