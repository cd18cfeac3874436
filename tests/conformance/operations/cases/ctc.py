"""Connectionist temporal classification."""

from __future__ import annotations

import functools

import numpy as np

from tests.conformance.case import Case


def _build(opset, factory, shapes, types, constants, arguments):
    import openvino as ov

    opset = __import__(f"openvino.{opset}", fromlist=["opset"])
    inputs = [opset.parameter(ov.PartialShape(list(s)), t) for s, t in zip(shapes, types, strict=True)]
    named = {name: opset.constant(value) for name, value in constants.items()}
    return ov.Model(getattr(opset, factory)(*inputs, **named, **arguments).outputs(), inputs)


def case(operation, opset, factory, name, runs, arguments, *, shapes=None, constants=None):
    types = [a.dtype.type for a in runs[0]]
    build = functools.partial(
        _build, opset, factory, shapes or [a.shape for a in runs[0]], types, constants or {}, arguments
    )
    return Case(operation, opset, name, build, runs)


def _logits(*shape, seed=0, grid=2):
    """Few distinct values, so that classes repeat and tie."""
    return (np.round(np.random.default_rng(seed).standard_normal(shape) * grid) / grid).astype(np.float32)


def _decoder():
    decoder = functools.partial(case, "CTCGreedyDecoder", "opset1", "ctc_greedy_decoder")

    def data(steps, batch, classes, seed=0):
        mask = np.ones((steps, batch), np.float32)
        mask[steps // 2, 0] = 0
        if batch > 2:
            mask[0, 2] = 0
        return _logits(steps, batch, classes, seed=seed), mask

    dynamic = [[-1, -1, -1], [-1, -1]]
    yield decoder("merge", [data(20, 3, 4)], {"merge_repeated": True})
    yield decoder("all", [data(20, 3, 4)], {"merge_repeated": False})
    yield decoder("dynamic", [data(7, 2, 3), data(9, 4, 5, 1), data(1, 1, 2)], {"merge_repeated": True}, shapes=dynamic)
    yield decoder("f16", [tuple(a.astype(np.float16) for a in data(12, 2, 3))], {"merge_repeated": True})
    yield decoder("only-blanks", [(np.zeros((4, 2, 1), np.float32), np.ones((4, 2), np.float32))], {"merge_repeated": True})


def _decoder_with_lengths():
    decoder = functools.partial(case, "CTCGreedyDecoderSeqLen", "opset6", "ctc_greedy_decoder_seq_len")

    def data(batch, steps, classes, lengths, seed=0, dtype=np.int32):
        return _logits(batch, steps, classes, seed=seed), np.array(lengths, dtype)

    plain = data(3, 20, 4, [20, 11, 0])
    blank = np.array([1], np.int32)
    yield decoder("merge", [plain], {})
    yield decoder("all-i64", [data(3, 20, 4, [20, 11, 0], dtype=np.int64)], {
        "merge_repeated": False, "classes_index_type": "i64", "sequence_length_type": "i64"})  # fmt: skip
    yield decoder("blank", [plain], {"sequence_length_type": "i64"}, constants={"blank_index": blank})
    yield decoder("blank-at-run-time", [(*plain, blank), (*plain, blank + 2)], {})
    dynamic = [[-1, -1, -1], [-1]]
    yield decoder(
        "dynamic", [plain, data(1, 1, 5, [1]), data(2, 6, 2, [3, 6], 2)], {"classes_index_type": "i64"}, shapes=dynamic
    )
    yield decoder("f16", [(plain[0].astype(np.float16), plain[1])], {})


def _loss():
    loss = functools.partial(case, "CTCLoss", "opset4", "ctc_loss")

    def data(batch, steps, classes, logit_lengths, label_lengths, seed=0, dtype=np.int32):
        rng = np.random.default_rng(seed)
        labels = rng.integers(0, classes - 1, (batch, steps))
        arrays = (np.array(logit_lengths), labels, np.array(label_lengths))
        return (rng.standard_normal((batch, steps, classes)).astype(np.float32), *(a.astype(dtype) for a in arrays))

    plain = data(3, 12, 4, [12, 9, 7], [5, 3, 1])
    impossible = (plain[0], plain[1], np.zeros_like(plain[2]), np.array([7, 3, 1], np.int32))
    blank = np.array(0, np.int32)
    for merge in (True, False):
        for collapse in (True, False):
            for unique in (True, False):
                given = {"preprocess_collapse_repeated": collapse, "ctc_merge_repeated": merge, "unique": unique}
                name = "-".join(key for key, value in given.items() if value) or "plain"
                yield loss(name, [plain, impossible], given)
    yield loss("blank", [plain], {}, constants={"blank_index": blank})
    yield loss("blank-at-run-time", [(*plain, np.array(3, np.int32)), (*plain, np.array(2, np.int32))], {})
    yield loss("i64", [data(2, 6, 3, [6, 5], [3, 2], dtype=np.int64)], {})
    dynamic = [[-1, -1, -1], [-1], [-1, -1], [-1]]
    yield loss(
        "dynamic", [plain, data(1, 3, 5, [3], [2], 1), data(4, 20, 9, [20, 8, 12, 5], [9, 5, 6, 3], 2)], {}, shapes=dynamic
    )
    yield loss("f16", [(plain[0].astype(np.float16), *plain[1:])], {})


CASES = [*_decoder(), *_decoder_with_lengths(), *_loss()]
