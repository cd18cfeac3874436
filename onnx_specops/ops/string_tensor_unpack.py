"""StringTensorUnpack: a tensor of strings as bytes and the begin and end of each string."""

from __future__ import annotations

import numpy as np

from onnx_specops.domain import operator
from onnx_specops.hashing import encode


@operator(
    inputs={"data": "tensor(string)"},
    outputs={"begins": "tensor(int32)", "ends": "tensor(int32)", "symbols": "tensor(uint8)"},
    no_body="standard ONNX has no operator from strings to their bytes",
)
def StringTensorUnpack(data):
    """Concatenates the bytes of all strings in row-major order, and outputs the begin and end of each string.

    Inputs:
        data: strings, of any shape.

    Outputs:
        begins: int32, the shape of ``data``.
        ends: int32, the shape of ``data``; string i is ``symbols[begins[i]:ends[i]]``.
        symbols: uint8 ``[total]``, UTF-8.

    Source: OpenVINO specification, StringTensorUnpack-15.
    """
    texts = encode(data.reshape(-1))
    bounds = np.zeros(len(texts) + 1, np.int64)
    np.cumsum([len(text) for text in texts], out=bounds[1:])
    if bounds[-1] > np.iinfo(np.int32).max:
        raise ValueError("StringTensorUnpack: data: more bytes than an int32 can count")
    bounds = bounds.astype(np.int32)
    symbols = np.frombuffer(b"".join(texts), np.uint8)
    return bounds[:-1].reshape(data.shape), bounds[1:].reshape(data.shape), symbols


@StringTensorUnpack.infer_shapes
def _(node):
    return [node.shape(0), node.shape(0), [None]]
