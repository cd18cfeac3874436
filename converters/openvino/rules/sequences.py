"""Sequences of classes: decoding and loss of connectionist temporal classification (CTC), and beam search trees."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from converters.openvino.onnx_types import data_type
from converters.openvino.reader.element_types import ElementType
from converters.openvino.rule import Departure, omitted, rule
from converters.openvino.rules._indices import int64, scalar
from converters.openvino.rules._shapes import match_shapes
from onnx_specops.building import Builder, Value
from onnx_specops.ops.ctc_loss import emit_compacted, emit_shifted

D = ir.DataType


@rule("CTCGreedyDecoder")
def ctc_greedy_decoder(op: Builder, data: Value, sequence_mask: Value, *, ctc_merge_repeated: bool = True):
    """CTCGreedyDecoder-1: a sequence ends at the first 0 of its mask. The blank is the last class."""
    match_shapes(data=(data, "T N C"), sequence_mask=(sequence_mask, "T N"))
    classes = op.Transpose(op.ArgMax(data, axis=2, keepdims=0), perm=[1, 0])
    ended = op.CumSum(op.Cast(op.Equal(sequence_mask, 0.0), to=D.INT64), op.const(np.array(0)))
    valid = op.Transpose(op.Equal(ended, 0), perm=[1, 0])
    blank = op.Sub(op.Shape(data, start=2, end=3), 1)
    decoded, _ = _decode(op, classes, valid, blank, ctc_merge_repeated)
    return op.Cast(op.Unsqueeze(decoded, [2, 3]), to=data.dtype)


@rule("CTCGreedyDecoderSeqLen", since="opset6")
def ctc_greedy_decoder_seq_len(
    op: Builder,
    data: Value,
    sequence_length: Value,
    blank_index: Value | None = None,
    *,
    merge_repeated: bool = True,
    classes_index_type: ElementType = ElementType.I32,
    sequence_length_type: ElementType = ElementType.I32,
):
    """CTCGreedyDecoderSeqLen-6."""
    match_shapes(data=(data, "N T C"), sequence_length=(sequence_length, "N"), blank_index=(blank_index, "1| "))
    classes = op.ArgMax(data, axis=2, keepdims=0)
    blank = op.Sub(op.Shape(data, start=2, end=3), 1) if blank_index is None else scalar(op, blank_index)
    steps = op.Range(0, op.Squeeze(op.Shape(classes, start=1), [0]), 1)
    valid = op.Less(steps, op.Unsqueeze(int64(op, sequence_length), [1]))
    decoded, lengths = _decode(op, classes, valid, blank, merge_repeated)
    return op.Cast(decoded, to=data_type(classes_index_type)), op.Cast(lengths, to=data_type(sequence_length_type))


def _decode(op: Builder, classes: Value, valid: Value, blank: Value, merge: bool) -> tuple[Value, Value]:
    """Return the labels among the best classes ``[N, T]``, followed by -1, and their number."""
    kept = op.And(valid, op.Not(op.Equal(classes, blank)))
    if merge:
        kept = op.And(kept, op.Not(op.Equal(classes, emit_shifted(op, classes, -1))))
    lengths = op.ReduceSum(op.Cast(kept, to=D.INT64), [1], keepdims=0)
    return emit_compacted(op, classes, kept, op.Shape(classes, start=1)), lengths


@rule(
    "CTCLoss",
    since="opset4",
    departs=[
        Departure(
            where="labels of length 0, with `preprocess_collapse_repeated`",
            cpu="uses the first label",
            specification="uses no label",
            follows="specification",
        ),
        Departure(
            where="labels of length 0, without `preprocess_collapse_repeated`",
            cpu="crashes",
            specification="uses no label",
            follows="specification",
        ),
        Departure(where="logits above 88", cpu="gives infinity", specification="gives the loss", follows="specification"),
        omitted("ctc_merge_repeated", "false", "true"),
    ],
)
def ctc_loss(
    op: Builder,
    logits: Value,
    logit_length: Value,
    labels: Value,
    label_length: Value,
    blank_index: Value | None = None,
    *,
    preprocess_collapse_repeated: bool = False,
    ctc_merge_repeated: bool = False,
    unique: bool = False,
):
    """CTCLoss-4."""
    match_shapes(
        logits=(logits, "N T C"), logit_length=(logit_length, "N"), labels=(labels, "N T"), label_length=(label_length, "N")
    )
    match_shapes(blank_index=(blank_index, "1| "))
    integers = (int64(op, x) for x in (logit_length, labels, label_length))
    return op.specops.CTCLoss(
        logits, *integers, op.const(np.zeros(0, np.int64)) if blank_index is None else int64(op, blank_index),
        preprocess_collapse_repeated=preprocess_collapse_repeated, ctc_merge_repeated=ctc_merge_repeated, unique=unique,
    )  # fmt: skip


@rule(
    "GatherTree",
    departs=[
        Departure(
            where="a `max_seq_len` of 0",
            cpu="does not write the output",
            specification="gives end tokens",
            follows="specification",
        ),
    ],
)
def gather_tree(op: Builder, step_ids: Value, parent_ids: Value, max_seq_len: Value, end_token: Value):
    """GatherTree-1."""
    match_shapes(
        step_ids=(step_ids, "T B W"),
        parent_ids=(parent_ids, "T B W"),
        max_seq_len=(max_seq_len, "B"),
        end_token=(end_token, "| 1"),
    )
    return op.specops.GatherTree(step_ids, parent_ids, max_seq_len, end_token)
