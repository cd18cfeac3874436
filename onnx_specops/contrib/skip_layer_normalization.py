"""SkipLayerNormalization: LayerNormalization of a sum, with the sum as another output."""

from __future__ import annotations

from onnx_specops.contrib.declaring import contrib_operator


@contrib_operator(
    inputs={"input": "T", "skip": "T", "gamma": "T", "beta": "T", "bias": "T"},
    outputs={"output": "T", "mean": "U", "inv_std_var": "U", "input_skip_bias_sum": "T"},
    types={"T": ("float16", "float"), "U": ("float",)},
    optional_outputs=3,
)
def SkipLayerNormalization(op, input, skip, gamma, beta=None, bias=None, *, epsilon: float = 1e-12):
    """Applies LayerNormalization over the last axis to ``input + skip + bias``.

    Inputs:
        input: [batch, sequence, C] or [tokens, C].
        skip: the shape of ``input``, or [1, sequence, C] or [sequence, C].
        gamma: [C], the scale.
        beta: [C], added after scaling; optional.
        bias: [C], added before normalization; optional.

    Outputs:
        output: the shape of ``input``.
        mean, inv_std_var: [batch, sequence, 1]. ONNX Runtime's CPU kernel does not compute them.
        input_skip_bias_sum: ``input + skip + bias``, before normalization.

    Source: ONNX Runtime, docs/ContribOperators.md.
    """
    total = op.Add(input, skip)
    if bias is not None:
        total = op.Add(total, bias)
    normalized, mean, inverse = op.LayerNormalization(total, gamma, beta, epsilon=epsilon, axis=-1, outputs=3)
    return normalized, mean, inverse, total


@SkipLayerNormalization.infer_shapes
def _(node):
    whole = node.shape(0)
    one = None if whole is None else [*whole[:-1], 1]
    return [whole, one, one, whole]
