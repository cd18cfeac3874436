"""QuickGelu: x * sigmoid(alpha * x)."""

from __future__ import annotations

from onnx_specops.contrib.declaring import contrib_operator


@contrib_operator(inputs={"X": "T"}, outputs={"Y": "T"}, types={"T": ("float16", "bfloat16", "float", "double")})
def QuickGelu(op, X, *, alpha: float = 1.702):
    """Computes ``x * sigmoid(alpha * x)``. With ``alpha = 1`` this is Swish.

    Input ``X``: any shape.

    Output: the shape of the input.

    Source: ONNX Runtime, docs/ContribOperators.md.
    """
    return op.Mul(X, op.Sigmoid(X if alpha == 1 else op.Mul(X, alpha)))


@QuickGelu.infer_shapes
def _(node):
    return [node.shape(0)]
