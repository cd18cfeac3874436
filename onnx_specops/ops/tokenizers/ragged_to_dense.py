"""RaggedToDense: rows of elements as a padded tensor."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto as Type

from onnx_specops.domain import INDICES, NUMERIC, check_size, operator
from onnx_specops.ops._checks import scalar
from onnx_specops.ops.tokenizers._strings import RAGGED, check_spans


@operator(
    inputs={**RAGGED, "data": "T", "length": "T_IND", "default_value": "T", "pad_right": "tensor(bool)"},
    outputs={"dense": "T", "mask": "tensor(bool)"},
    types={"T": (*NUMERIC, "bool"), "T_IND": INDICES},
)
def RaggedToDense(ragged_begins, ragged_ends, data, length, default_value, pad_right):
    """Converts rows of elements to a dense tensor with rows of equal length, which are truncated or padded.

    Inputs:
        ragged_begins, ragged_ends: any shape.
        data: ``[n, ...]``.
        length: scalar or ``[1]``, the length of every row.
        default_value: scalar or ``[1]``, the padding.
        pad_right: scalar or ``[1]``, whether rows are padded at their end. If not, they are padded at their beginning.

    Outputs:
        dense: ``[*ragged_begins.shape, length, ...]``.
        mask: boolean, of the shape of ``dense``, true where the element is from ``data``.

    Source: openvino_tokenizers, RaggedToDense.
    """
    name = "RaggedToDense"
    if data.ndim < 1:
        raise ValueError(f"{name}: data is a scalar; expected at least one dimension")
    for what, value in (("default_value", default_value), ("pad_right", pad_right)):
        if value.size != 1:
            raise ValueError(f"{name}: {what} has {value.size} elements instead of one")
    check_spans(name, ("ragged_begins", "ragged_ends"), ragged_begins, ragged_ends, len(data))
    target = int(scalar(length, f"{name}: length"))
    if target < 0:
        raise ValueError(f"{name}: length = {target} is negative")
    shape, inner = (*ragged_begins.shape, target), data.shape[1:]
    given = (ragged_begins, ragged_ends, data)
    check_size(f"{name}: dense", int(np.prod((*shape, *inner), dtype=np.float64)), given)
    check_size(f"{name}: the places of elements", int(np.prod(shape, dtype=np.float64)), given)
    begins, counts = ragged_begins.reshape(-1, 1).astype(np.int64), (ragged_ends - ragged_begins).reshape(-1, 1)
    counts = np.minimum(counts, target)
    shift = 0 if pad_right.reshape(-1)[0] else target - counts
    columns = np.arange(target) - shift
    mask = (columns >= 0) & (columns < counts)
    dense = np.full((*mask.shape, *inner), default_value.reshape(-1)[0], data.dtype)
    dense[mask] = data[(begins + columns)[mask]]
    mask = np.broadcast_to(mask.reshape((*mask.shape, *(1,) * len(inner))), dense.shape)
    return dense.reshape((*shape, *inner)), mask.reshape((*shape, *inner))


@RaggedToDense.infer_shapes
def _(node):
    rows, data, length = node.shape(0), node.shape(2), node.constant(3)
    if rows is None or data is None:
        return [None, None]
    target = int(length.reshape(-1)[0]) if length is not None and length.size == 1 else None
    return [[*rows, target, *data[1:]]] * 2


@RaggedToDense.body
def _(op, ragged_begins, ragged_ends, data, length, default_value, pad_right):
    begins, ends = (op.Unsqueeze(op.Cast(edge, to=Type.INT64), [-1]) for edge in (ragged_begins, ragged_ends))
    target = op.Reshape(op.Cast(length, to=Type.INT64), [])
    counts = op.Min(op.Sub(ends, begins), target)
    shift = op.Where(op.Reshape(pad_right, []), op.Sub(counts, counts), op.Sub(target, counts))
    columns = op.Sub(op.Range(op.const(np.int64(0)), target, op.const(np.int64(1))), shift)
    mask = op.And(op.GreaterOrEqual(columns, 0), op.Less(columns, counts))
    inner = op.Shape(data, start=1)
    filling = op.Expand(op.Reshape(default_value, []), op.Concat([1], inner, axis=0))
    # The padding value follows the data.
    places = op.Where(mask, op.Add(begins, columns), op.Shape(data, start=0, end=1))
    dense = op.Gather(op.Concat(data, filling, axis=0), places, axis=0)
    ones = op.Expand(op.const([1]), op.Shape(inner))
    spread = op.Reshape(mask, op.Concat(op.Shape(mask), ones, axis=0), allowzero=1)
    return dense, op.Expand(spread, op.Shape(dense))
