"""Attention, and products by groups."""

from __future__ import annotations

import numpy as np

from tests.conformance.case import Case


def _values(*shape, dtype=np.float32, seed=0):
    return np.random.default_rng(seed + sum(shape)).normal(size=shape).astype(dtype)


def _attention(shapes, dtypes, causal):
    def build():
        import openvino as ov
        from openvino import opset1
        from openvino.utils.node_factory import NodeFactory

        inputs = [opset1.parameter(ov.PartialShape(list(s)), d) for s, d in zip(shapes, dtypes, strict=True)]
        node = NodeFactory("opset13").create("ScaledDotProductAttention", inputs, {"causal": causal})
        return ov.Model([node], inputs)

    return build


def _case(name, *arrays, causal=False, shapes=None, more=()):
    shapes = shapes or [a.shape for a in arrays]
    build = _attention(shapes, [a.dtype for a in arrays], causal)
    return Case("ScaledDotProductAttention", "opset13", name, build, [arrays, *more])


def _attentions():
    q, k, v = _values(2, 3, 4, 8), _values(2, 3, 5, 8), _values(2, 3, 5, 6)
    mask, boolean = _values(2, 1, 4, 5), np.random.default_rng(1).random((2, 3, 4, 5)) < 0.6
    nought, scale, sink = np.array(0, np.float32), np.array(0.3, np.float32), _values(1, 3, 1, 1)
    boolean[0, 0, 0] = False  # nothing left to attend to: NaN
    yield _case("4d", q, k, v)
    yield _case("3d", _values(2, 4, 8), _values(2, 5, 8), _values(2, 5, 6))
    yield _case("5d", _values(2, 1, 3, 4, 8), _values(2, 1, 3, 5, 8), _values(2, 1, 3, 5, 6))
    yield _case("broadcast", _values(1, 6, 4, 8), _values(2, 1, 5, 8), _values(2, 6, 5, 6))
    yield _case("mask", q, k, v, mask)
    yield _case("mask-2d", q, k, v, _values(4, 5))
    yield _case("mask-of-one-row", q, k, v, _values(2, 1, 1, 5))
    yield _case("mask-of-infinities", q, k, v, np.where(boolean[:, :1], 0, -np.inf).astype(np.float32))
    yield _case("boolean-mask", q, k, v, boolean)
    yield _case("no-mask", q, k, v, nought)
    yield _case("scale", q, k, v, nought, scale)
    yield _case("scale-of-rank-1", q, k, v, mask, scale.reshape(1))
    yield _case("causal", q, k, v, causal=True)
    yield _case("causal-ignores-mask", q, k, v, mask, causal=True)
    yield _case("causal-more-rows", _values(2, 3, 7, 8), k, v, causal=True)
    yield _case("sink", q, k, v, mask, scale, sink)
    yield _case("causal-sink", q, k, v, nought, scale, sink, causal=True)
    dynamic = [(-1, 3, -1, 8), (-1, 3, -1, 8), (-1, 3, -1, 8), (-1, 1, -1, -1)]
    other = (_values(1, 3, 2, 8), _values(1, 3, 6, 8), _values(1, 3, 6, 8), _values(1, 1, 2, 6))
    yield _case("dynamic", q, k, _values(2, 3, 5, 8), mask, shapes=dynamic, more=[other])
    yield _case("dynamic-causal", q, k, _values(2, 3, 5, 8), shapes=dynamic[:3], more=[other[:3]], causal=True)
    yield _case("dynamic-embedding", q, k, v, shapes=[(-1, -1, -1, -1)] * 3)
    yield _case("float16", *(x.astype(np.float16) for x in (q, k, v, mask)))


def _attention_of_unknown_rank():
    """Query, key and value have been given shapes of unknown length."""
    import openvino as ov
    from openvino import opset1
    from openvino.utils.node_factory import NodeFactory

    inputs = [opset1.parameter([-1], kind) for _ in range(3) for kind in (np.float32, np.int64)]
    shaped = [opset1.reshape(inputs[k], inputs[k + 1], False) for k in (0, 2, 4)]
    return ov.Model([NodeFactory("opset13").create("ScaledDotProductAttention", shaped, {"causal": True})], inputs)


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
    yield Case(
        "ScaledDotProductAttention",
        "opset13",
        "unknown-rank",
        _attention_of_unknown_rank,
        runs,
        oracle="expected",
        reason="OpenVINO takes no inputs of unknown rank; values by the specification's formula",
        expected=expected,
    )


def _grouped(a, groups, dtype=np.float32, index_type=np.int32):
    """``a``: the partial shape of the first input; its matrices are constants, as the CPU plugin demands."""

    def build():
        import openvino as ov
        from openvino import opset1, opset17

        x, matrices = opset1.parameter(ov.PartialShape(list(a)), dtype), opset1.constant(_matrices(groups, dtype))
        if len(a) == 3:
            return ov.Model([opset17.grouped_matmul(x, matrices)], [x])
        offsets = opset1.parameter([groups], index_type)
        return ov.Model([opset17.grouped_matmul(x, matrices, offsets)], [x, offsets])

    return build


def _matrices(groups, dtype=np.float32):
    return _values(groups, 5, 4, dtype=dtype, seed=3)


def _groups():
    for name, a, offsets in (
        ("groups", (7, 4), [2, 4, 7]),
        ("empty-groups", (7, 4), [0, 7, 7]),
        ("two-empty-groups", (7, 4), [0, 0, 7]),
        ("offsets-beyond", (7, 4), [2, 4, 9]),
    ):
        yield Case("GroupedMatMul", "opset17", name, _grouped(a, 3), [(_values(*a), np.array(offsets, np.int32))])
    yield Case(
        "GroupedMatMul",
        "opset17",
        "dynamic-i64",
        _grouped((-1, 4), 3, index_type=np.int64),
        [(_values(7, 4), np.array([1, 4, 7])), (_values(2, 4), np.array([0, 1, 2])), (_values(0, 4), np.array([0, 0, 0]))],
    )
    for dtype in (np.float16, np.float64):
        yield Case(
            "GroupedMatMul",
            "opset17",
            np.dtype(dtype).name,
            _grouped((7, 4), 3, dtype),
            [(_values(7, 4, dtype=dtype), np.array([2, 4, 7], np.int32))],
        )
    yield Case("GroupedMatMul", "opset17", "batches", _grouped((3, 2, 4), 3), [(_values(3, 2, 4),)])
    yield Case(
        "GroupedMatMul",
        "opset17",
        "batches-dynamic",
        _grouped((-1, -1, 4), 3),
        [(_values(3, 2, 4),), (_values(3, 5, 4),)],
    )


CASES = [*_attentions(), *_unknown_ranks(), *_groups()]
