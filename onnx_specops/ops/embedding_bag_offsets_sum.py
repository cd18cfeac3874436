"""EmbeddingBagOffsetsSum: sums (weighted) rows of an embedding table, bag by bag."""

from __future__ import annotations

import numpy as np

from onnx_specops.domain import INDICES, NUMERIC, operator


@operator(
    inputs={
        "emb_table": "T",
        "indices": "T_IND",
        "offsets": "T_IND",
        "default_index": "T_IND",
        "per_sample_weights": "T",
    },
    outputs={"output": "T"},
    types={"T": NUMERIC, "T_IND": INDICES},
)
def EmbeddingBagOffsetsSum(emb_table, indices, offsets, default_index=None, per_sample_weights=None):
    """Sums the rows of ``emb_table`` named by ``indices``, bag by bag, without building the gathered rows.

    Bag ``b`` holds ``indices[offsets[b]:offsets[b + 1]]``, the last bag all to the end; indices before ``offsets[0]``
    belong to no bag.

    Inputs:
        emb_table: ``[num_emb, emb_dim1, ...]``.
        indices: ``[num_indices]``, in ``[0, num_emb)``.
        offsets: ``[batch]``, not decreasing, in ``[0, num_indices]``.
        default_index: scalar or ``[1]``; the row that an empty bag gets. Left out, empty or -1: zeros.
        per_sample_weights: ``[num_indices]``; factor of each row. Left out or empty: ones.

    Output: ``[batch, emb_dim1, ...]``. 16-bit floats are summed in float32.

    Source: OpenVINO specification, EmbeddingBagOffsetsSum-3.
    """
    name = "EmbeddingBagOffsetsSum"
    num_emb, count = emb_table.shape[0], len(indices)
    if (bad := np.flatnonzero((indices < 0) | (indices >= num_emb))).size:
        raise IndexError(f"{name}: indices[{bad[0]}] = {indices[bad[0]]} is out of range [0, {num_emb - 1}]")
    if (bad := np.flatnonzero((offsets < 0) | (offsets > count))).size:
        raise IndexError(f"{name}: offsets[{bad[0]}] = {offsets[bad[0]]} is out of range [0, {count}]")
    if (bad := np.flatnonzero(np.diff(offsets) < 0)).size:
        at = bad[0] + 1
        raise ValueError(f"{name}: offsets[{at}] = {offsets[at]} is less than offsets[{at - 1}] = {offsets[at - 1]}")
    row = -1 if default_index is None else int(np.reshape(default_index, -1)[0])
    if not -1 <= row < num_emb:
        raise IndexError(f"{name}: default_index = {row} is out of range [-1, {num_emb - 1}]")

    accumulated = np.float32 if emb_table.dtype.itemsize == 2 and emb_table.dtype.kind not in "iu" else emb_table.dtype
    rows = emb_table[indices].astype(accumulated, copy=False)
    if per_sample_weights is not None:
        if per_sample_weights.shape != indices.shape:
            raise ValueError(
                f"{name}: per_sample_weights has the shape {list(per_sample_weights.shape)}, indices {list(indices.shape)}"
            )
        weights = per_sample_weights.astype(accumulated, copy=False)
        rows = rows * weights.reshape(-1, *[1] * (emb_table.ndim - 1))
    output = np.zeros((len(offsets), *emb_table.shape[1:]), accumulated)
    ends = np.append(offsets[1:], count)
    filled = offsets < ends
    if filled.any():
        # Bags that follow each other without a gap: each sum reaches to the next start.
        output[filled] = np.add.reduceat(rows, offsets[filled], axis=0, dtype=accumulated)
    if row != -1:
        output[~filled] = emb_table[row]
    return output.astype(emb_table.dtype, copy=False)


@EmbeddingBagOffsetsSum.infer_shapes
def _(node):
    table, offsets = node.shape(0), node.shape(2)
    if table is None:
        return [None]
    return [[offsets[0] if offsets else None, *table[1:]]]
