"""StringSplit: splits strings at a delimiter into a sparse tensor of pieces."""

from __future__ import annotations

import numpy as np

from onnx_specops.domain import check_size, operator
from onnx_specops.ops.tokenizers._strings import NO_BODY, STRINGS, pack, unpack


@operator(
    inputs={**STRINGS, "delimiter": "tensor(uint8)", "skip_empty": "tensor(bool)"},
    outputs={"indices": "tensor(int64)", **STRINGS, "shape": "tensor(int64)"},
    no_body=NO_BODY,
)
def StringSplit(begins, ends, symbols, delimiter, skip_empty):
    """Splits strings at a delimiter, which is dropped. An empty delimiter splits them into bytes.

    Inputs:
        begins, ends, symbols: strings, of any shape.
        delimiter: uint8 ``[n]``.
        skip_empty: one element, whether empty pieces are dropped. Dropped pieces are included in the positions of later
            pieces.

    Outputs:
        indices: int64 ``[pieces, rank + 1]``, the position of the string of a piece, and the position of the piece in
            it.
        begins, ends, symbols: the pieces, ``[pieces]``.
        shape: int64 ``[rank + 1]``, the shape of ``begins`` and the largest number of pieces of a string.

    Source: openvino_tokenizers, ContribStringSplit; onnxruntime-extensions, StringSplit.
    """
    name = "StringSplit"
    texts, mark = unpack(name, begins, ends, symbols), delimiter.tobytes()
    if delimiter.ndim != 1:
        raise ValueError(f"{name}: delimiter has the shape {list(delimiter.shape)}; expected one dimension")
    if skip_empty.size != 1:
        raise ValueError(f"{name}: skip_empty has {skip_empty.size} elements instead of one")
    skips = bool(skip_empty.reshape(-1)[0])
    pieces: list[bytes] = []
    owners: list[tuple[int, int]] = []
    most = 0
    for owner, text in enumerate(texts):
        parts = text.split(mark) if mark else [bytes([byte]) for byte in text]
        most = max(most, len(parts))
        for place, part in enumerate(parts):
            if part or not skips:
                pieces.append(part)
                owners.append((owner, place))
    check_size(f"{name}: indices", len(pieces) * (begins.ndim + 1), (begins, ends, symbols))
    numbers = np.array(owners, np.int64).reshape(-1, 2)
    coordinates = np.unravel_index(numbers[:, 0], begins.shape) if begins.ndim and pieces else ()
    indices = np.stack([*coordinates, numbers[:, 1]], axis=1) if pieces else np.zeros((0, begins.ndim + 1))
    return indices.astype(np.int64), *pack(name, pieces, (len(pieces),)), np.array([*begins.shape, most], np.int64)


@StringSplit.infer_shapes
def _(node):
    shape = node.shape(0)
    columns = None if shape is None else len(shape) + 1
    return [[None, columns], [None], [None], [None], [columns]]
