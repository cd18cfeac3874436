"""GatherTree: complete beams from the steps of a beam search."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto as Type

from onnx_specops.assertions import required
from onnx_specops.domain import NUMERIC, operator


@operator(
    inputs={"step_ids": "T", "parent_ids": "T", "max_seq_len": "T", "end_token": "T"},
    outputs={"final_ids": "T"},
    types={"T": NUMERIC},
)
def GatherTree(step_ids, parent_ids, max_seq_len, end_token):
    """Traces each beam of a beam search back from its last step, and outputs its tokens in order.

    Inputs:
        step_ids: ``[time, batch, beams]``, the token of each beam at each step.
        parent_ids: the same shape, the beam of the previous step that each beam continues, in ``[0, beams)``.
        max_seq_len: ``[batch]``, the number of valid steps.
        end_token: scalar or ``[1]``. It fills a beam after its first occurrence and from ``max_seq_len`` on.

    Output: ``[time, batch, beams]``.

    Source: OpenVINO specification, GatherTree-1.
    """
    name = "GatherTree"
    if step_ids.ndim != 3 or parent_ids.shape != step_ids.shape or max_seq_len.shape != step_ids.shape[1:2]:
        raise ValueError(
            f"{name}: the shapes {list(step_ids.shape)}, {list(parent_ids.shape)} and {list(max_seq_len.shape)} of step_ids,"
            " parent_ids and max_seq_len do not fit [time, batch, beams] and [batch]"
        )
    time, batch, beams = step_ids.shape
    end = np.reshape(end_token, -1)[0]
    output = np.full_like(step_ids, end)
    lengths = max_seq_len.astype(np.int64)[:, None]
    beam = np.broadcast_to(np.arange(beams), (batch, beams)).copy()
    for step in range(time - 1, -1, -1):
        running = lengths > step
        output[step] = np.where(running, np.take_along_axis(step_ids[step], beam, 1), end)
        if step:
            parents = np.take_along_axis(parent_ids[step], beam, 1).astype(np.int64)
            beam = np.where(running, parents, beam)
            if (bad := np.argwhere((beam < 0) | (beam >= beams))).size:
                row, column = bad[0]
                raise IndexError(
                    f"{name}: parent_ids: step {step} of batch {row} continues beam {beam[row, column]},"
                    f" out of range [0, {beams - 1}]"
                )
    ended = np.cumsum(output == end, axis=0) - (output == end) > 0
    return np.where(ended, end, output)


@GatherTree.infer_shapes
def _(node):
    return [node.shape(0)]


@GatherTree.body
def _(op, step_ids, parent_ids, max_seq_len, end_token):
    time, beams = op.Shape(step_ids, end=1), op.Shape(step_ids, start=2)
    end = op.Reshape(end_token, op.const([]))
    lengths = op.Unsqueeze(op.Cast(max_seq_len, to=Type.INT64), [1])
    parents = op.Cast(parent_ids, to=Type.INT64)
    first = op.Expand(op.Range(0, op.Squeeze(beams, [0]), 1), op.Shape(step_ids, start=1))
    last = op.Squeeze(op.Sub(time, 1), [0])

    def step(op, back, _condition, beam):
        at = op.Sub(last, back)
        running = op.Greater(lengths, at)
        tokens = op.Where(running, op.GatherElements(op.Gather(step_ids, at, axis=0), beam, axis=1), end)
        continued = op.GatherElements(op.Gather(parents, at, axis=0), beam, axis=1)
        beam = op.Where(op.And(running, op.Greater(at, 0)), continued, beam)
        outside = op.Or(op.Less(beam, 0), op.GreaterOrEqual(beam, beams))
        beam = required(op, "GatherTree: parent_ids must be in [0, beams)", outside, beam)
        return op.const(True), beam, tokens

    _, backward = op.loop(op.Squeeze(time, [0]), True, step, first)
    # ONNX's reference evaluator concatenates these scan outputs instead of stacking them.
    backward = op.Reshape(backward, op.Shape(step_ids), allowzero=1)
    tokens = op.Slice(backward, [-1], [np.iinfo(np.int64).min], [0], [-1])
    is_end = op.Cast(op.Equal(tokens, end), to=Type.INT64)
    ended = op.Greater(op.CumSum(is_end, 0, exclusive=1), 0)
    return op.Where(ended, end, tokens)
