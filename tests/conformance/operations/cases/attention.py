"""Attention."""

from __future__ import annotations

from functools import partial

import numpy as np

from tests.conformance.operation_models import decided, dynamics, layer_case, shaped, statics

_case = partial(layer_case, "ScaledDotProductAttention", "opset13", "ScaledDotProductAttention")


def _values(*shape, dtype=np.float32, seed=0):
    return np.random.default_rng(seed + sum(shape)).normal(size=shape).astype(dtype)


def _attentions():
    free, causal = {"causal": False}, {"causal": True}
    q, k, v = _values(2, 3, 4, 8), _values(2, 3, 5, 8), _values(2, 3, 5, 6)
    mask, boolean = _values(2, 1, 4, 5), np.random.default_rng(1).random((2, 3, 4, 5)) < 0.6
    nought, scale, sink = np.array(0, np.float32), np.array(0.3, np.float32), _values(1, 3, 1, 1)
    boolean[0, 0, 0] = False  # nothing left to attend to: NaN
    infinite, hidden = k.copy(), np.ones((4, 5), bool)  # NaN for the queries whose hidden score is infinite
    infinite[0, 0, 3, 2], hidden[:, 3] = np.inf, False
    for name, attributes, *arrays in (
        ("4d", free, q, k, v),
        ("3d", free, _values(2, 4, 8), _values(2, 5, 8), _values(2, 5, 6)),
        ("5d", free, _values(2, 1, 3, 4, 8), _values(2, 1, 3, 5, 8), _values(2, 1, 3, 5, 6)),
        ("broadcast", free, _values(1, 6, 4, 8), _values(2, 1, 5, 8), _values(2, 6, 5, 6)),
        ("mask", free, q, k, v, mask),
        ("mask-2d", free, q, k, v, _values(4, 5)),
        ("mask-of-one-row", free, q, k, v, _values(2, 1, 1, 5)),
        ("mask-of-infinities", free, q, k, v, np.where(boolean[:, :1], 0, -np.inf).astype(np.float32)),
        ("boolean-mask", free, q, k, v, boolean),
        ("boolean-mask-infinite-key", free, q, infinite, v, hidden),
        ("no-mask", free, q, k, v, nought),
        ("scale", free, q, k, v, nought, scale),
        ("scale-of-rank-1", free, q, k, v, mask, scale.reshape(1)),
        ("causal", causal, q, k, v),
        ("causal-infinite-key", causal, q, infinite, v),
        ("causal-ignores-mask", causal, q, k, v, mask),
        ("causal-more-rows", causal, _values(2, 3, 7, 8), k, v),
        ("sink", free, q, k, v, mask, scale, sink),
        ("causal-sink", causal, q, k, v, nought, scale, sink),
    ):
        yield _case(name, statics(arrays), attributes)
    for seen in (False, True):  # false does not mean "no mask", as the number 0 does
        yield _case(f"boolean-of-one-{seen}", [*statics((q, k, v)), np.array([[seen]])], free)
    shapes = [(-1, 3, -1, 8), (-1, 3, -1, 8), (-1, 3, -1, 8), (-1, 1, -1, -1)]
    runs = (
        (q, k, _values(2, 3, 5, 8), mask),
        (_values(1, 3, 2, 8), _values(1, 3, 6, 8), _values(1, 3, 6, 8), _values(1, 1, 2, 6)),
    )
    yield _case("dynamic", shaped(shapes, *runs), free)
    yield _case("dynamic-causal", shaped(shapes[:3], *(run[:3] for run in runs)), causal)
    yield _case("dynamic-embedding", dynamics((q, k, v)), free)
    # An attention weight is a difference of similar numbers.
    yield _case("float16", statics([x.astype(np.float16) for x in (q, k, v, mask)]), free, atol=2e-3)


def _of_unknown_rank(ops, *nodes):
    """Query, key and value are reshaped to shapes of unknown length."""
    from openvino import opset1
    from openvino.utils.node_factory import NodeFactory

    shaped = [opset1.reshape(nodes[k], nodes[k + 1], False).output(0) for k in (0, 2, 4)]
    return NodeFactory("opset13").create("ScaledDotProductAttention", shaped, {"causal": True})


def _unknown_ranks():
    runs = []
    for lead in ((2,), (2, 3)):
        parts = [_values(*lead, length, 8) for length in (4, 5, 5)]
        runs.append(tuple(array for x in parts for array in (x.reshape(-1), np.array(x.shape))))
    expected = []
    for q, q_shape, k, k_shape, v, v_shape in runs:
        weights = q.reshape(q_shape) @ np.swapaxes(k.reshape(k_shape), -1, -2) / np.sqrt(8)
        weights = np.exp(weights) * np.tri(4, 5)
        shares = weights / weights.sum(-1, keepdims=True)
        expected.append([(shares @ v.reshape(v_shape)).astype(np.float32)])
    reason = "OpenVINO does not support inputs of unknown rank; values by the specification's formula"
    settings = decided("expected", reason, runs=expected)
    make = _of_unknown_rank
    yield layer_case("ScaledDotProductAttention", "opset13", make, "unknown-rank", dynamics(*runs), **settings)


CASES = [*_attentions(), *_unknown_ranks()]
