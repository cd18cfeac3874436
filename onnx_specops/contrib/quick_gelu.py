"""QuickGelu: x * sigmoid(alpha * x)."""

from __future__ import annotations

from onnx_specops.contrib.declaring import contrib_operator


@contrib_operator(inputs={"X": "T"}, outputs={"Y": "T"}, types={"T": ("float16", "bfloat16", "float", "double")})
def QuickGelu(op, X, *, alpha: float = 1.702):
    """``x sigmoid(alpha x)``; Swish with ``alpha`` of 1.

    Input ``X``: of any shape.

    Output: of the same shape.

    Source: ONNX Runtime, docs/ContribOperators.md.
    """
    return op.Mul(X, op.Sigmoid(X if alpha == 1 else op.Mul(X, alpha)))


@QuickGelu.infer_shapes
def _(node):
    return [node.shape(0)]
