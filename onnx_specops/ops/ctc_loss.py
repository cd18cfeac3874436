"""CTCLoss: the negative log probability of label sequences, summed over their alignments with the logits."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto as Type

from onnx_specops.assertions import required
from onnx_specops.domain import FLOATS, operator
from onnx_specops.ops._boxes import emit_scalar, emit_wide, number_type, wide
from onnx_specops.ops._checks import scalar


@operator(
    inputs={
        "logits": "T",
        "logit_length": "tensor(int64)",
        "labels": "tensor(int64)",
        "label_length": "tensor(int64)",
        "blank_index": "tensor(int64)",
    },
    outputs={"output": "T"},
    types={"T": FLOATS},
)
def CTCLoss(
    logits,
    logit_length,
    labels,
    label_length,
    blank_index=None,
    *,
    preprocess_collapse_repeated: int = 0,
    ctc_merge_repeated: int = 1,
    unique: int = 0,
):
    """Computes the negative log-likelihood of the labels under the softmax of ``logits``, summed over all alignments.

    Inputs:
        logits: ``[N, T, C]``.
        logit_length: ``[N]``, the number of time steps of each sequence.
        labels: ``[N, T]``, the classes. Values beyond the length of a sequence are ignored.
        label_length: ``[N]``, at most ``logit_length``.
        blank_index: scalar or ``[1]``, the blank class. If omitted or empty, the last class.

    Attributes:
        preprocess_collapse_repeated: whether a label equal to the previous one is dropped.
        ctc_merge_repeated: whether equal labels at adjacent time steps are merged.
        unique: whether labels that occurred before are dropped.

    Output: ``[N]``. The loss is infinite if no alignment is possible.

    Source: OpenVINO specification, CTCLoss-4. (OpenVINO's CPU plugin overflows for logits above 88.)
    """
    name = "CTCLoss"
    if logits.ndim != 3 or labels.shape != logits.shape[:2]:
        raise ValueError(f"{name}: labels has the shape {list(labels.shape)}, logits {list(logits.shape)}")
    images, steps, classes = logits.shape
    for what, given, most in (
        ("logit_length", logit_length, np.full(images, steps)),
        ("label_length", label_length, logit_length),
    ):
        if given.shape != (images,):
            raise ValueError(f"{name}: {what} has the shape {list(given.shape)} instead of [{images}]")
        if (bad := np.flatnonzero((given < 0) | (given > most))).size:
            raise ValueError(f"{name}: {what}[{bad[0]}] = {given[bad[0]]} is out of range [0, {most[bad[0]]}]")
    blank = classes - 1 if blank_index is None else int(scalar(blank_index, f"{name}: blank_index"))
    if not 0 <= blank < classes:
        raise IndexError(f"{name}: blank_index = {blank} is out of range [0, {classes - 1}]")
    values = wide(logits)
    highest = values.max(axis=2, keepdims=True, initial=np.finfo(values.dtype).min)
    logs = values - highest
    logs = logs - np.log(np.exp(logs).sum(axis=2, keepdims=True))
    output = np.empty(images, values.dtype)
    for n in range(images):
        target = labels[n, : label_length[n]]
        if (bad := np.flatnonzero((target < 0) | (target >= classes))).size:
            raise IndexError(f"{name}: labels[{n}, {bad[0]}] = {target[bad[0]]} is out of range [0, {classes - 1}]")
        if unique:
            target = target[np.sort(np.unique(target, return_index=True)[1])]
        elif preprocess_collapse_repeated:
            target = target[np.append([True], target[1:] != target[:-1])[: len(target)]]
        output[n] = _loss(logs[n, : logit_length[n]], target, blank, ctc_merge_repeated)
    return output.astype(logits.dtype)


def _loss(logs, target, blank, merge):
    states = np.full(2 * len(target) + 1, blank)
    states[1::2] = target
    if not len(logs):
        return 0 if not len(target) else np.inf
    lost = np.array(-np.inf, logs.dtype)
    stays = (states == blank) | bool(merge)
    skips = states[:-2] != blank
    if merge:
        skips = skips & (states[:-2] != states[2:])
    backward = np.full(len(states) + 2, lost)
    backward[max(len(states) - 2, 0) : len(states)] = 0
    for step in logs[:0:-1]:
        ahead = backward.copy()
        ahead[:-2] += step[states]
        backward[:-2] = np.logaddexp(np.where(stays, ahead[:-2], lost), ahead[1:-1])
        backward[: len(skips)] = np.logaddexp(backward[: len(skips)], np.where(skips, ahead[2 : 2 + len(skips)], lost))
    return -np.logaddexp.reduce(backward[:2] + np.append(logs[0, states[:2]], 0)[:2])


@CTCLoss.infer_shapes
def _(node):
    logits = node.shape(0)
    return [[logits[0] if logits else None]]


@CTCLoss.body
def _(
    op, logits, logit_length, labels, label_length, blank_index, *, preprocess_collapse_repeated, ctc_merge_repeated, unique
):
    values = emit_wide(op, logits)
    lost = number_type(values)(-np.inf)
    steps, classes = op.Shape(values, start=1, end=2), op.Shape(values, start=2)
    blank = op.Sub(op.Squeeze(classes, [0]), 1) if blank_index is None else emit_scalar(op, blank_index, Type.INT64)
    wrong = op.Or(op.Less(logit_length, 0), op.Greater(logit_length, steps))
    length = required(op, "logit_length_out_of_range", wrong, op.Unsqueeze(logit_length, [1]))
    wrong = op.Or(op.Less(label_length, 0), op.Greater(label_length, logit_length))
    count = required(op, "label_length_out_of_range", wrong, op.Unsqueeze(label_length, [1]))

    positions = op.Range(0, op.Squeeze(steps, [0]), 1)
    given = op.Less(positions, count)
    wrong = op.And(given, op.Or(op.Less(labels, 0), op.GreaterOrEqual(labels, classes)))
    labels = op.Where(given, required(op, "labels_out_of_range", wrong, labels), -1)
    if unique:
        earlier = op.Less(positions, op.Unsqueeze(positions, [1]))
        same = op.And(op.Equal(op.Unsqueeze(labels, [2]), op.Unsqueeze(labels, [1])), earlier)
        given = op.And(given, op.Equal(op.ReduceSum(op.Cast(same, to=Type.INT64), [2], keepdims=0), 0))
    elif preprocess_collapse_repeated:
        given = op.And(given, op.Not(op.Equal(labels, emit_shifted(op, labels, -2))))
    labels = emit_compacted(op, labels, given, steps)
    count = op.ReduceSum(op.Cast(given, to=Type.INT64), [1], keepdims=1)

    # The states of an alignment: blank, label, blank, ... The first `last + 1` of them exist.
    last = op.Mul(count, 2)
    labels = op.Where(op.Equal(labels, -1), blank, labels)
    pair = op.Concat(op.Unsqueeze(op.Expand(blank, op.Shape(labels)), [2]), op.Unsqueeze(labels, [2]), axis=2)
    states = op.Reshape(pair, op.Concat(op.Shape(labels, end=1), op.Mul(steps, 2), axis=0), allowzero=1)
    states = op.Pad(states, [0, 0, 0, 1], blank)
    state = op.Range(0, op.Squeeze(op.Shape(states, start=1), [0]), 1)
    index = op.Concat(op.Shape(values, end=2), op.Shape(states, start=1), axis=0)
    logs = op.GatherElements(op.LogSoftmax(values, axis=2), op.Expand(op.Unsqueeze(states, [1]), index), axis=2)

    is_blank = op.Equal(states, blank)
    stays = op.Or(is_blank, op.const(np.array(bool(ctc_merge_repeated))))
    skips = op.And(op.Not(is_blank), op.Less(op.Add(state, 1), last))
    if ctc_merge_repeated:
        skips = op.And(skips, op.Not(op.Equal(states, emit_ahead(op, states, 2, blank))))
    ends = op.And(op.GreaterOrEqual(state, op.Sub(last, 1)), op.LessOrEqual(state, last))
    start = op.Where(ends, op.CastLike(0.0, values), lost)

    def step(op, iteration, condition, backward):
        step = op.Sub(op.Sub(steps, 1), iteration)
        ahead = op.Add(backward, op.Squeeze(op.Gather(logs, step, axis=1), [1]))
        terms = [
            op.Where(stays, ahead, lost),
            emit_ahead(op, ahead, 1, lost),
            op.Where(skips, emit_ahead(op, ahead, 2, lost), lost),
        ]
        return op.Identity(condition), op.Where(op.Less(step, length), _emit_sum(op, terms), backward)

    trips = op.Max(op.Squeeze(op.Sub(steps, 1), [0]), 0)
    backward = op.loop(trips, op.const(np.array(True)), step, start)
    backward = op.Add(backward, op.Squeeze(op.Gather(logs, [0], axis=1), [1]))
    first = [op.Gather(backward, np.array(i), axis=1) for i in (0, 1)]
    loss = op.Neg(_emit_sum(op, first))
    empty = op.Where(op.Equal(op.Squeeze(count, [1]), 0), op.CastLike(0.0, values), op.Neg(op.const(lost)))
    loss = op.Where(op.Equal(op.Squeeze(length, [1]), 0), empty, loss)
    return op.Cast(loss, to=logits.dtype)


def _emit_sum(op, terms):
    """Emit log-sum-exp of ``terms``."""
    highest = op.Max(*terms)
    possible = op.Greater(highest, -np.inf)
    base = op.Where(possible, highest, op.CastLike(0.0, highest))
    total = op.Sum(*(op.Exp(op.Sub(term, base)) for term in terms))
    return op.Where(possible, op.Add(base, op.Log(total)), highest)


def emit_shifted(op, x, first):
    """Shift ``[N, T]`` by one position to the right, with ``first`` at the start."""
    return op.Slice(op.Pad(x, [0, 1, 0, 0], op.CastLike(first, x)), [0], op.Shape(x, start=1), [1])


def emit_ahead(op, x, places, filled):
    """Shift ``[N, S]`` to the left along the rows, padding with ``filled``."""
    return op.Slice(op.Pad(x, [0, 0, 0, places], op.CastLike(filled, x)), [places], [2**31], [1])


def emit_compacted(op, x, kept, size):
    """Move the elements of the rows of ``x`` (int64 ``[N, T]``) for which ``kept`` is true to the start, followed by -1."""
    slots = op.Where(kept, op.Sub(op.CumSum(op.Cast(kept, to=Type.INT64), 1), 1), size)
    room = op.Expand(op.const([[-1]]), op.Concat(op.Shape(x, end=1), op.Add(size, 1), axis=0))
    return op.Slice(op.ScatterElements(room, slots, x, axis=1), [0], size, [1])
