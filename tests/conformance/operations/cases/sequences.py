"""Sequences of classes: connectionist temporal classification, decoding and loss, and beam search trees."""

from __future__ import annotations

from functools import partial

import numpy as np

from tests.conformance.operation_models import decided, dynamic, dynamics, layer_case, static, statics

I32, F16, F32 = np.int32, np.float16, np.float32


def _logits(*shape, seed=0, grid=2):
    """Few distinct values, so that classes repeat and tie."""
    return (np.round(np.random.default_rng(seed).standard_normal(shape) * grid) / grid).astype(F32)


def _decoder():
    case = partial(layer_case, "CTCGreedyDecoder", "opset1", "ctc_greedy_decoder")

    def data(steps, batch, classes, seed=0):
        mask = np.ones((steps, batch), np.float32)
        mask[steps // 2, 0] = 0
        if batch > 2:
            mask[0, 2] = 0
        return _logits(steps, batch, classes, seed=seed), mask

    merged = {"merge_repeated": True}
    yield case("merge", statics(data(20, 3, 4)), merged)
    yield case("all", statics(data(20, 3, 4)), {"merge_repeated": False})
    yield case("dynamic", dynamics(data(7, 2, 3), data(9, 4, 5, 1), data(1, 1, 2)), merged)
    yield case("f16", statics([a.astype(F16) for a in data(12, 2, 3)]), merged)
    yield case("only-blanks", statics((np.zeros((4, 2, 1), F32), np.ones((4, 2), F32))), merged)


def _decoder_with_lengths():
    case = partial(layer_case, "CTCGreedyDecoderSeqLen", "opset6", "ctc_greedy_decoder_seq_len")

    def data(batch, steps, classes, lengths, seed=0, dtype=I32):
        return _logits(batch, steps, classes, seed=seed), np.array(lengths, dtype)

    plain = data(3, 20, 4, [20, 11, 0])
    blank = np.array([1], I32)
    yield case("merge", statics(plain))
    given = {"merge_repeated": False, "classes_index_type": "i64", "sequence_length_type": "i64"}
    yield case("all-i64", statics(data(3, 20, 4, [20, 11, 0], dtype=np.int64)), given)
    yield case("blank", [*statics(plain), blank], {"sequence_length_type": "i64"})
    yield case("blank-at-run-time", statics((*plain, blank), (*plain, blank + 2)))
    runs = plain, data(1, 1, 5, [1]), data(2, 6, 2, [3, 6], 2)
    yield case("dynamic", dynamics(*runs), {"classes_index_type": "i64"})
    yield case("f16", statics((plain[0].astype(F16), plain[1])))


def _loss():
    case = partial(layer_case, "CTCLoss", "opset4", "ctc_loss")

    def data(batch, steps, classes, logit_lengths, label_lengths, seed=0, dtype=I32):
        rng = np.random.default_rng(seed)
        labels = rng.integers(0, classes - 1, (batch, steps))
        arrays = (np.array(logit_lengths), labels, np.array(label_lengths))
        return (rng.standard_normal((batch, steps, classes)).astype(F32), *(a.astype(dtype) for a in arrays))

    plain = data(3, 12, 4, [12, 9, 7], [5, 3, 1])
    impossible = (plain[0], plain[1], np.zeros_like(plain[2]), np.array([7, 3, 1], I32))
    for merge in (True, False):
        for collapse in (True, False):
            for unique in (True, False):
                given = {"preprocess_collapse_repeated": collapse, "ctc_merge_repeated": merge, "unique": unique}
                name = "-".join(key for key, value in given.items() if value) or "plain"
                yield case(name, statics(plain, impossible), given)
    yield case("blank", [*statics(plain), np.array(0, I32)])
    yield case("blank-at-run-time", statics((*plain, np.array(3, I32)), (*plain, np.array(2, I32))))
    yield case("i64", statics(data(2, 6, 3, [6, 5], [3, 2], dtype=np.int64)))
    more = data(1, 3, 5, [3], [2], 1), data(4, 20, 9, [20, 8, 12, 5], [9, 5, 6, 3], 2)
    yield case("dynamic", dynamics(plain, *more))
    yield case("f16", statics((plain[0].astype(F16), *plain[1:])))


def _gather_tree():
    def case(name, steps, parents, lengths, end, dtype=I32, **settings):
        arrays = [np.asarray(x, dtype) for x in (steps, parents, lengths)]
        inputs = [*map(dynamic, arrays), static(np.array(end, dtype))]
        return layer_case("GatherTree", "opset1", "GatherTree", name, inputs, **settings)

    steps = np.arange(1, 10).reshape(3, 1, 3)
    parents = np.array([[[0, 0, 0]], [[0, 1, 1]], [[2, 1, 2]]])
    for dtype in (I32, F32):
        yield case(np.dtype(dtype).name, steps, parents, [3], 10, dtype)
    for length in (1, 2, 9):
        yield case(f"length-{length}", steps, parents, [length], 10)
    yield case("end-token-within", steps, parents, [3], 5)
    many = np.random.default_rng(0)
    yield case("batches", many.integers(0, 9, (6, 4, 5)), many.integers(0, 5, (6, 4, 5)), [6, 3, 1, 5], 7)
    yield case("unused-parents", steps, [[[9, 9, 9]], [[0, 1, 1]], [[-5, 7, 9]]], [2], 10)
    yield case("no-length", steps, parents, [0], 10, **decided("expected", "the CPU plugin does not write its output", np.full((3, 1, 3), 10, I32)))  # fmt: skip


CASES = [*_decoder(), *_decoder_with_lengths(), *_loss(), *_gather_tree()]
