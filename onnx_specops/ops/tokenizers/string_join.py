"""StringJoin: joins strings along an axis with a separator."""

from __future__ import annotations

import math

import numpy as np

from onnx_specops.domain import check_size, operator
from onnx_specops.ops.tokenizers._strings import NO_BODY, STRINGS, pack, unpack


@operator(
    inputs={**STRINGS, "separator": "tensor(uint8)", "axis": "tensor(int64)"},
    outputs=STRINGS,
    no_body=NO_BODY,
)
def StringJoin(begins, ends, symbols, separator, axis):
    """Joins the strings along an axis, with a separator between them.

    Inputs:
        begins, ends, symbols: strings, of any shape. A scalar is copied.
        separator: uint8 ``[n]``.
        axis: one element, in ``[-rank, rank - 1]``.

    Outputs: strings, of the shape of ``begins`` without the axis. If the axis is empty, they are empty.

    Source: openvino_tokenizers, ContribStringJoin; onnxruntime-extensions, StringJoin.
    """
    name = "StringJoin"
    texts = np.empty(begins.size, object)
    texts[:] = unpack(name, begins, ends, symbols)
    texts = texts.reshape(begins.shape)
    if separator.ndim != 1:
        raise ValueError(f"{name}: separator has the shape {list(separator.shape)}; expected one dimension")
    if axis.size != 1:
        raise ValueError(f"{name}: axis has {axis.size} elements instead of one")
    if not texts.ndim:
        return pack(name, [texts.item()], ())
    along = int(axis.reshape(-1)[0])
    if not -texts.ndim <= along < texts.ndim:
        raise IndexError(f"{name}: axis = {along} is out of range [{-texts.ndim}, {texts.ndim - 1}]")
    rows = np.moveaxis(texts, along, -1)
    shape, count, between = rows.shape[:-1], rows.shape[-1], separator.tobytes()
    joined = math.prod(shape)
    check_size(f"{name}: begins", joined, (begins, symbols, separator))
    length = int((ends - begins).sum(dtype=np.int64)) + joined * max(0, count - 1) * len(between)
    check_size(f"{name}: symbols", length, (begins, symbols, separator))
    return pack(name, [between.join(row) for row in rows.reshape(joined, count)], shape)


@StringJoin.infer_shapes
def _(node):
    shape, axis = node.shape(0), node.constant(4)
    if shape is None:
        return [None, None, [None]]
    if not shape:
        return [[], [], [None]]
    if axis is None or axis.size != 1 or not -len(shape) <= int(axis.reshape(-1)[0]) < len(shape):
        return [[None] * (len(shape) - 1)] * 2 + [[None]]
    kept = list(shape)
    del kept[int(axis.reshape(-1)[0])]
    return [kept, kept, [None]]
