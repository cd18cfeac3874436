"""BiasGelu: the Gaussian error linear unit of a sum."""

from __future__ import annotations

from onnx_specops.contrib.declaring import contrib_operator


@contrib_operator(inputs={"A": "T", "B": "T"}, outputs={"C": "T"}, types={"T": ("float16", "bfloat16", "float", "double")})
def BiasGelu(op, A, B):
    """Computes the exact GELU of ``A + B``: ``x * (1 + erf(x / sqrt(2))) / 2``.

    Inputs:
        A: any shape.
        B: [last dimension of A].

    Output: the shape of A.

    Source: ONNX Runtime, docs/ContribOperators.md.
    """
    return op.Gelu(op.Add(A, B))


@BiasGelu.infer_shapes
def _(node):
    return [node.shape(0)]
