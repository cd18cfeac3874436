"""StringTensorPack: strings from bytes and the begin and end of each string."""

from __future__ import annotations

import numpy as np

from onnx_specops.domain import INDICES, check_size, operator


@operator(
    inputs={"begins": "T_IND", "ends": "T_IND", "symbols": "tensor(uint8)"},
    outputs={"output": "tensor(string)"},
    types={"T_IND": INDICES},
    no_body="standard ONNX has no operator from bytes to strings",
)
def StringTensorPack(begins, ends, symbols):
    """Packs bytes into strings: string i is ``symbols[begins[i]:ends[i]]``.

    Inputs:
        begins: any shape, in ``[0, n]``.
        ends: the shape of ``begins``, in ``[begins, n]``.
        symbols: uint8 ``[n]``, UTF-8.

    Output: strings, of the shape of ``begins``. Their total number of bytes is limited to the number of elements that an
    output may have.

    Source: OpenVINO specification, StringTensorPack-15.
    """
    name = "StringTensorPack"
    if ends.shape != begins.shape:
        raise ValueError(f"{name}: ends has the shape {list(ends.shape)}; expected that of begins, {list(begins.shape)}")
    if symbols.ndim != 1:
        raise ValueError(f"{name}: symbols has the shape {list(symbols.shape)}; expected one dimension")
    first, last, size = begins.reshape(-1), ends.reshape(-1), len(symbols)
    for input_name, offsets in (("begins", first), ("ends", last)):
        if (bad := np.flatnonzero((offsets < 0) | (offsets > size))).size:
            raise IndexError(f"{name}: {input_name}[{bad[0]}] = {offsets[bad[0]]} is out of range [0, {size}]")
    if (bad := np.flatnonzero(first > last)).size:
        at = bad[0]
        raise ValueError(f"{name}: begins[{at}] = {first[at]} is greater than ends[{at}] = {last[at]}")
    check_size(f"{name}: output", int((last - first).sum(dtype=np.int64)), (begins, ends, symbols))
    text = symbols.tobytes()
    strings = np.empty(len(first), object)
    strings[:] = [text[b:e].decode("utf-8", "surrogateescape") for b, e in zip(first, last, strict=True)]
    return strings.reshape(begins.shape)


@StringTensorPack.infer_shapes
def _(node):
    return [node.shape(0)]
