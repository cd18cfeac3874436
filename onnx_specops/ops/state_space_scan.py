"""StateSpaceScan: the recurrence of a state space with one decay for each head (Mamba 2)."""

from __future__ import annotations

import numpy as np

from onnx_specops.domain import operator
from onnx_specops.ops._grouped_heads import check_groups, required_groups


@operator(
    inputs={"x": "T", "decay": "T", "input_gate": "T", "output_gate": "T", "state": "T"},
    outputs={"y": "T", "present_state": "T"},
    types={"T": ("float",)},
)
def StateSpaceScan(x, decay, input_gate, output_gate, state):
    """Computes the state and the output of a state-space model with one decay per head (Mamba 2) for each token.

    For each token ``t``, head ``h`` and its group ``g = h * groups // heads``::

        s[t, h] = decay[t, h] * s[t - 1, h] + outer(x[t, h], input_gate[t, g])
        y[t, h] = s[t, h] @ output_gate[t, g]

    where ``s[-1]`` is ``state``. This is ONNX's LinearAttention with the update rule *gated*, except that the last two
    dimensions of the state are swapped, and ``decay`` is a factor instead of its logarithm.

    Inputs:
        x: ``[batch, tokens, heads, channels]``: the inputs, multiplied by the time steps.
        decay: ``[batch, tokens, heads]``: the factors of the state.
        input_gate: ``[batch, tokens, groups, N]``, called B in the literature.
        output_gate: ``[batch, tokens, groups, N]``, called C.
        state: ``[batch, heads, channels, N]``, the state before the first token.

    Outputs:
        y: ``[batch, tokens, heads, channels]``.
        present_state: ``[batch, heads, channels, N]``, the state after the last token; ``state`` if there are no tokens.

    The number of heads is a multiple of the number of groups.

    Source: optimum-intel's export of Mamba 2; T. Dao, A. Gu, "Transformers are SSMs", 2024.
    """
    name = "StateSpaceScan"
    if x.ndim != 4 or input_gate.ndim != 4:
        raise ValueError(
            f"{name}: x and input_gate have the shapes {list(x.shape)} and {list(input_gate.shape)}"
            "; expected [batch, tokens, heads, channels] and [batch, tokens, groups, size]"
        )
    (batch, tokens, heads, channels), (groups, size) = x.shape, input_gate.shape[2:]
    gates = (batch, tokens, groups, size)
    shapes = {
        "decay": (decay, (batch, tokens, heads)),
        "input_gate": (input_gate, gates),
        "output_gate": (output_gate, gates),
        "state": (state, (batch, heads, channels, size)),
    }
    check_groups(name, shapes, ("x", heads), ("input_gate", groups))
    y, s = np.empty_like(x), state.copy()
    repeats = heads // groups
    with np.errstate(all="ignore"):
        for t in range(tokens):
            into, out = (np.repeat(gate[:, t], repeats, axis=1) for gate in (input_gate, output_gate))
            s = s * decay[:, t, :, None, None] + x[:, t, :, :, None] * into[:, :, None]
            y[:, t] = (s * out[:, :, None]).sum(-1)
    return y, s


@StateSpaceScan.infer_shapes
def _(node):
    return [node.shape(0), node.shape(4)]


@StateSpaceScan.body
def _(op, x, decay, input_gate, output_gate, state):
    leading, heads, channels = op.Shape(x, end=2), op.Shape(x, start=2, end=3), op.Shape(x, start=3)
    groups, size = op.Shape(input_gate, start=2, end=3), op.Shape(input_gate, start=3)
    gate_shape = op.Concat(leading, groups, size, axis=0)
    shapes = [
        (decay, op.Concat(leading, heads, axis=0)),
        (input_gate, gate_shape),
        (output_gate, gate_shape),
        (state, op.Concat(op.Shape(x, end=1), heads, channels, size, axis=0)),
    ]
    groups = required_groups(op, "StateSpaceScan", shapes, heads, groups)
    repeats = op.Div(heads, groups)
    batch, tokens = op.Shape(x, end=1), op.Shape(x, start=1, end=2)

    def grouped(value, *trailing):
        return op.Reshape(value, op.Concat(batch, tokens, groups, *trailing, axis=0), allowzero=1)

    # [batch, groups, heads of a group, channels, N] at each token
    given = [
        grouped(x, repeats, channels, [1]),
        grouped(decay, repeats, [1], [1]),
        grouped(input_gate, [1], [1], size),
        grouped(output_gate, [1], size, [1]),
    ]

    def step(op, t, condition, before):
        added, factor, into, out = (op.Gather(value, t, axis=1) for value in given)
        after = op.Add(op.Mul(before, factor), op.Mul(added, into))
        return op.Identity(condition), after, op.MatMul(after, out)

    start = op.Reshape(state, op.Concat(batch, groups, repeats, channels, size, axis=0), allowzero=1)
    present, y = op.loop(op.Squeeze(tokens, [0]), op.const(np.array(True)), step, start)
    y = op.Reshape(y, op.Concat(tokens, batch, heads, channels, axis=0), allowzero=1)
    return op.Transpose(y, perm=[1, 0, 2, 3]), op.Reshape(present, op.Shape(state), allowzero=1)
