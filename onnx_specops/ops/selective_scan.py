"""SelectiveScan: the recurrence of a selective state space (Mamba), as optimum-intel exports it for OpenVINO."""

from __future__ import annotations

import numpy as np

from onnx_specops.assertions import required
from onnx_specops.domain import operator


@operator(
    inputs={"x": "T", "time_step": "T", "decay": "T", "input_gate": "T", "output_gate": "T", "state": "T"},
    outputs={"y": "T", "present_state": "T"},
    types={"T": ("float",)},
)
def SelectiveScan(x, time_step, decay, input_gate, output_gate, state, *, epsilon: float):
    """Computes the state and the output of a selective state-space model (Mamba) for each token.

    With ``e[t] = exp(decay * (time_step[t + 1] + time_step[t + 2] + ...))``, which is 1 for the last token, the state after
    token ``t`` is::

        s[t] = sum over i <= t of (x[i] * input_gate[i] * e[i] + state * exp(decay * time_step[0])) / (e[t] + epsilon)

    and ``y[t]`` is the sum of ``output_gate[t] * s[t]`` over the last dimension. For one token, and for any number of tokens
    from a state of zeros, this is the recurrence ``s[t] = exp(decay * time_step[t]) * s[t - 1] + x[t] * input_gate[t]``,
    except where ``e[t]`` is not large relative to ``epsilon``. For several tokens and a nonzero state, the result differs
    from the recurrence. Exported models compute it in this form.

    Inputs:
        x: ``[batch, tokens, channels]``: the inputs, multiplied by the time steps.
        time_step: ``[batch, tokens, channels]``.
        decay: ``[channels, N]``, not positive in a trained model.
        input_gate: ``[batch, tokens, N]``, called B in the literature.
        output_gate: ``[batch, tokens, N]``, called C.
        state: ``[batch, channels, N]``, the state before the first token.

    Attributes:
        epsilon: the number that is added to ``e[t]`` before the division. optimum-intel writes 1e-12.

    Outputs:
        y: ``[batch, tokens, channels]``.
        present_state: ``[batch, channels, N]``, the state after the last token.

    At least one token is required.

    Source: optimum-intel's export of Mamba; A. Gu, T. Dao, "Mamba: Linear-Time Sequence Modeling with Selective State
    Spaces", 2023.
    """
    name = "SelectiveScan"
    if x.ndim != 3 or decay.ndim != 2:
        raise ValueError(
            f"{name}: x and decay have the shapes {list(x.shape)} and {list(decay.shape)}"
            "; expected [batch, tokens, channels] and [channels, size]"
        )
    (batch, tokens, channels), size = x.shape, decay.shape[1]
    shapes = {
        "time_step": (time_step, (batch, tokens, channels)),
        "decay": (decay, (channels, size)),
        "input_gate": (input_gate, (batch, tokens, size)),
        "output_gate": (output_gate, (batch, tokens, size)),
        "state": (state, (batch, channels, size)),
    }
    for key, (value, shape) in shapes.items():
        if value.shape != shape:
            raise ValueError(f"{name}: {key} has the shape {list(value.shape)} instead of {list(shape)}")
    if tokens == 0:
        raise ValueError(f"{name}: x has no tokens; expected at least one")
    with np.errstate(all="ignore"):
        rate = time_step[..., None] * decay
        behind = np.concatenate([rate[:, 1:], np.zeros_like(rate[:, :1])], 1)
        e = np.exp(np.cumsum(behind[:, ::-1], 1)[:, ::-1])
        added = x[..., None] * input_gate[:, :, None] * e + (state * np.exp(rate[:, 0]))[:, None]
        states = np.cumsum(added, 1) / (e + np.float32(epsilon))
        return (states * output_gate[:, :, None]).sum(-1), states[:, -1].copy()


@SelectiveScan.infer_shapes
def _(node):
    return [node.shape(0), node.shape(5)]


@SelectiveScan.body
def _(op, x, time_step, decay, input_gate, output_gate, state, *, epsilon):
    leading, channels, size = op.Shape(x, end=2), op.Shape(x, start=2), op.Shape(decay, start=1)
    gate_shape = op.Concat(leading, size, axis=0)
    shapes = [
        (time_step, op.Shape(x)),
        (decay, op.Concat(channels, size, axis=0)),
        (input_gate, gate_shape),
        (output_gate, gate_shape),
        (state, op.Concat(op.Shape(x, end=1), channels, size, axis=0)),
    ]
    differs = [op.Not(op.Equal(op.Shape(value), shape)) for value, shape in shapes]
    violations = op.Concat(*differs, op.Equal(op.Shape(x, start=1, end=2), 0), axis=0)
    tokens = required(op, "SelectiveScan: the shapes do not match, or there are no tokens", violations, op.const(1))
    rate = op.Mul(op.Unsqueeze(time_step, [3]), decay)
    behind = op.CumSum(rate, tokens, exclusive=1, reverse=1)
    e = op.Exp(behind)
    kept = op.Mul(op.Unsqueeze(state, [1]), op.Exp(op.Slice(rate, [0], [1], [1])))
    added = op.Add(op.Mul(op.Mul(op.Unsqueeze(x, [3]), op.Unsqueeze(input_gate, [2])), e), kept)
    states = op.Div(op.CumSum(added, tokens), op.Add(e, epsilon))
    y = op.ReduceSum(op.Mul(states, op.Unsqueeze(output_gate, [2])), [3], keepdims=0)
    return y, op.Squeeze(op.Slice(states, [-1], [2**31], [1]), [1])
