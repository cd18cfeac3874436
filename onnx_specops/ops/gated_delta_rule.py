"""GatedDeltaRule: linear attention whose state decays and replaces the values of similar keys (Qwen3-Next, Qwen3.5)."""

from __future__ import annotations

import numpy as np

from onnx_specops.domain import operator
from onnx_specops.ops._grouped_heads import check_groups, required_groups


@operator(
    inputs={"query": "T", "key": "T", "value": "T", "past_state": "T", "decay": "T", "beta": "T"},
    outputs={"output": "T", "present_state": "T"},
    types={"T": ("float",)},
)
def GatedDeltaRule(query, key, value, past_state, decay, beta):
    """Computes linear attention by the gated delta rule (Qwen3-Next, Qwen3.5) for each token.

    For each token ``t``, head ``h`` and its group ``g = h * groups // heads``::

        s[t, h] = exp(decay[t, h]) * s[t - 1, h]
        s[t, h] += outer(key[t, g], beta[t, h] * (value[t, h] - key[t, g] @ s[t, h]))
        output[t, h] = query[t, g] @ s[t, h]

    where ``s[-1]`` is ``past_state``. This is ONNX's LinearAttention with the update rule *gated_delta* and the scale 1,
    except that heads are a separate dimension, and several value heads share a query and key head.

    Inputs:
        query: ``[batch, tokens, groups, K]``, multiplied by the scale.
        key: ``[batch, tokens, groups, K]``, usually of length 1.
        value: ``[batch, tokens, heads, V]``.
        past_state: ``[batch, heads, K, V]``, the state before the first token.
        decay: ``[batch, tokens, heads]``: the logarithms of the state's factors.
        beta: ``[batch, tokens, heads]``: the rates of the updates.

    Outputs:
        output: ``[batch, tokens, heads, V]``.
        present_state: ``[batch, heads, K, V]``, the state after the last token; ``past_state`` if there are no tokens.

    The number of heads is a multiple of the number of groups.

    Source: optimum-intel's export of Qwen3-Next; S. Yang, J. Kautz, A. Hatamizadeh, "Gated Delta Networks", 2025.
    """
    name = "GatedDeltaRule"
    if query.ndim != 4 or value.ndim != 4:
        raise ValueError(
            f"{name}: query and value have the shapes {list(query.shape)} and {list(value.shape)}"
            "; expected [batch, tokens, groups, size] and [batch, tokens, heads, size]"
        )
    (batch, tokens, heads, columns), (groups, rows) = value.shape, query.shape[2:]
    keys, gates = (batch, tokens, groups, rows), (batch, tokens, heads)
    shapes = {
        "query": (query, keys),
        "key": (key, keys),
        "past_state": (past_state, (batch, heads, rows, columns)),
        "decay": (decay, gates),
        "beta": (beta, gates),
    }
    check_groups(name, shapes, ("value", heads), ("query", groups))
    output, s = np.empty_like(value), past_state.copy()
    repeats = heads // groups
    with np.errstate(all="ignore"):
        factor = np.exp(decay)
        for t in range(tokens):
            q, k = (np.repeat(array[:, t], repeats, axis=1)[..., None] for array in (query, key))
            s = s * factor[:, t, :, None, None]
            delta = beta[:, t, :, None] * (value[:, t] - (s * k).sum(-2))
            s = s + k * delta[:, :, None]
            output[:, t] = (s * q).sum(-2)
    return output, s


@GatedDeltaRule.infer_shapes
def _(node):
    return [node.shape(2), node.shape(3)]


@GatedDeltaRule.body
def _(op, query, key, value, past_state, decay, beta):
    leading, heads, columns = op.Shape(value, end=2), op.Shape(value, start=2, end=3), op.Shape(value, start=3)
    groups, rows = op.Shape(query, start=2, end=3), op.Shape(query, start=3)
    batch, tokens = op.Shape(value, end=1), op.Shape(value, start=1, end=2)
    keys, gates = op.Concat(leading, groups, rows, axis=0), op.Concat(leading, heads, axis=0)
    shapes = [
        (query, keys),
        (key, keys),
        (past_state, op.Concat(batch, heads, rows, columns, axis=0)),
        (decay, gates),
        (beta, gates),
    ]
    groups = required_groups(op, "GatedDeltaRule", shapes, heads, groups)
    repeats = op.Div(heads, groups)

    def grouped(given, *trailing):
        return op.Reshape(given, op.Concat(batch, tokens, groups, *trailing, axis=0), allowzero=1)

    # [batch, groups, heads of a group, K or 1, V] at each token
    given = [
        grouped(query, [1], [1], rows),
        grouped(key, [1], rows, [1]),
        grouped(value, repeats, [1], columns),
        grouped(op.Exp(decay), repeats, [1], [1]),
        grouped(beta, repeats, [1], [1]),
    ]

    def step(op, t, condition, before):
        q, k, v, factor, rate = (op.Gather(array, t, axis=1) for array in given)
        kept = op.Mul(before, factor)
        found = op.MatMul(op.Transpose(k, perm=[0, 1, 2, 4, 3]), kept)
        after = op.Add(kept, op.Mul(k, op.Mul(rate, op.Sub(v, found))))
        return op.Identity(condition), after, op.MatMul(q, after)

    start = op.Reshape(past_state, op.Concat(batch, groups, repeats, rows, columns, axis=0), allowzero=1)
    present, output = op.loop(op.Squeeze(tokens, [0]), op.const(np.array(True)), step, start)
    output = op.Reshape(output, op.Concat(tokens, batch, heads, columns, axis=0), allowzero=1)
    return op.Transpose(output, perm=[1, 0, 2, 3]), op.Reshape(present, op.Shape(past_state), allowzero=1)
