"""CausalConv: the short convolution of hybrids, over the tokens before each token (Qwen3-Next, Qwen3.5, Mamba 2)."""

from __future__ import annotations

import numpy as np

from onnx_specops.assertions import required
from onnx_specops.domain import operator


@operator(
    inputs={"x": "T", "weight": "T", "past_state": "T"},
    outputs={"y": "T", "present_state": "T"},
    types={"T": ("float",)},
)
def CausalConv(x, weight, past_state):
    """Convolves each channel over each token and the tokens before it.

    ``joined`` is ``past_state`` followed by ``x``, so that token ``t`` has the index ``t + length``::

        y[t, c] = sum(weight[k, c] * joined[t + length - K + 1 + k, c] for k in range(K))

    This is ONNX's CausalConvWithState without bias and activation function. In ``x`` and ``weight``, tokens precede
    channels. The state may be longer than ``K - 1``.

    Inputs:
        x: ``[batch, tokens, channels]``.
        weight: ``[K, channels]``, with at least one row.
        past_state: ``[batch, channels, length]``, the values before the first token; ``length`` is at least ``K - 1``.

    Outputs:
        y: ``[batch, tokens, channels]``.
        present_state: ``[batch, channels, length]``, the last values of ``joined``.

    Source: optimum-intel's export of Qwen3-Next and Granite hybrids.
    """
    name = "CausalConv"
    if x.ndim != 3 or weight.ndim != 2 or past_state.ndim != 3:
        ranks = f"{x.ndim}, {weight.ndim} and {past_state.ndim}"
        raise ValueError(f"{name}: x, weight and past_state have {ranks} dimensions; expected 3, 2 and 3")
    (batch, tokens, channels), (kernel, _) = x.shape, weight.shape
    length = past_state.shape[2]
    if weight.shape[1] != channels:
        raise ValueError(f"{name}: weight has the shape {list(weight.shape)}; expected {channels} channels, as x has")
    if past_state.shape[:2] != (batch, channels):
        raise ValueError(f"{name}: past_state has the shape {list(past_state.shape)} instead of {[batch, channels, length]}")
    if not 1 <= kernel <= length + 1:
        raise ValueError(f"{name}: weight has {kernel} rows; expected 1 to {length + 1}, one more than the state is long")
    joined = np.concatenate([past_state, x.transpose(0, 2, 1)], axis=2)
    y = np.zeros_like(x)
    with np.errstate(all="ignore"):
        for k in range(kernel):
            first = length - kernel + 1 + k
            y += weight[k] * joined[:, :, first : first + tokens].transpose(0, 2, 1)
    return y, joined[:, :, tokens:]


@CausalConv.infer_shapes
def _(node):
    return [node.shape(0), node.shape(2)]


@CausalConv.body_facts
def _(x, weight, past_state):
    """Return the number of channels, or 0 if it is unknown. Conv needs it as an attribute."""
    known = [shape[axis] for shape, axis in ((x.shape, 2), (weight.shape, 1)) if shape is not None and len(shape) > axis]
    return {"channels": next((size for size in known if isinstance(size, int)), 0)}


@CausalConv.body
def _(op, x, weight, past_state, *, channels):
    batch, tokens, width = (op.Shape(x, start=axis, end=axis + 1) for axis in range(3))
    kernel, length = op.Shape(weight, end=1), op.Shape(past_state, start=2)
    differs = [
        op.Not(op.Equal(op.Shape(weight), op.Concat(kernel, width, axis=0))),
        op.Not(op.Equal(op.Shape(past_state), op.Concat(batch, width, length, axis=0))),
    ]
    violations = op.Concat(*differs, op.Less(kernel, [1]), op.Greater(kernel, op.Add(length, [1])), axis=0)
    tokens = required(op, "CausalConv: the shapes do not match, or the state is too short", violations, tokens)
    joined = op.Concat(past_state, op.Transpose(x, perm=[0, 2, 1]), axis=2)
    before = op.Sub(length, op.Sub(kernel, [1]))
    if channels:
        # ONNX Runtime convolves images of one row faster.
        image = op.Unsqueeze(op.Slice(joined, before, [2**31 - 1], [2]), [2])
        rows = op.Reshape(op.Transpose(weight, perm=[1, 0]), [channels, 1, 1, -1])
        y = op.Transpose(op.Squeeze(op.Conv(image, rows, group=channels), [2]), perm=[0, 2, 1])
    else:
        count = [op.Range(0, op.Squeeze(size, [0]), 1) for size in (tokens, kernel)]
        places = op.Add(op.Add(op.Unsqueeze(count[0], [1]), count[1]), before)
        windows = op.Gather(joined, places, axis=2)  # [batch, channels, tokens, K]
        products = op.Mul(windows, op.Unsqueeze(op.Transpose(weight, perm=[1, 0]), [1]))
        y = op.Transpose(op.ReduceSum(products, [3], keepdims=0), perm=[0, 2, 1])
    return y, op.Slice(joined, tokens, [2**31 - 1], [2])
