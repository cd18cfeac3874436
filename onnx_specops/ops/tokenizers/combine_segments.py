"""CombineSegments: concatenates the rows of several segments."""

from __future__ import annotations

import numpy as np

from onnx_specops.domain import check_size, operator
from onnx_specops.ops.tokenizers._strings import RAGGED, bounds, check_spans


@operator(
    inputs={**RAGGED, "elements": "T", "counts": "tensor(int64)", "sizes": "tensor(int64)", "ids": "T_IDS"},
    outputs={**RAGGED, "combined": "T", "segment_ids": "T_IDS"},
    types={"T": ("int32", "int64", "float"), "T_IDS": ("int32", "int64")},
    no_body="standard ONNX has no operator on ragged rows",
)
def CombineSegments(ragged_begins, ragged_ends, elements, counts, sizes, ids):
    """Concatenates the corresponding rows of several segments, and outputs the segment of each element.

    Inputs:
        ragged_begins, ragged_ends: ``[sum(counts)]``, the rows of all segments, one segment after another. Positions are
            relative to the elements of the segment.
        elements: ``[sum(sizes)]``, the elements of all segments, one segment after another.
        counts: ``[segments]``, the number of rows of each segment. All segments have the same number of rows, or one row,
            which then applies to every row.
        sizes: ``[segments]``, the number of elements of each segment.
        ids: ``[segments]``, the id of each segment.

    Outputs:
        ragged_begins, ragged_ends: ``[rows]``, for both outputs that follow.
        combined: the elements.
        segment_ids: the id of the segment of each element.

    Source: openvino_tokenizers, CombineSegments.
    """
    name = "CombineSegments"
    elements, counts, sizes, ids = (x.reshape(-1) for x in (elements, counts, sizes, ids))
    segments = len(ids)
    if not len(counts) == len(sizes) == segments or (counts < 0).any() or (sizes < 0).any():
        raise ValueError(f"{name}: counts, sizes and ids have different numbers of segments")
    if not counts.sum() == ragged_begins.size == ragged_ends.size or sizes.sum() != elements.size:
        raise ValueError(f"{name}: the sums of counts and sizes do not match the inputs")
    total = int(counts.max(initial=0))
    if bad := [int(count) for count in counts if count not in (1, total)]:
        raise ValueError(f"{name}: a segment of {bad[0]} rows next to one of {total}")
    first_row, first_element = np.cumsum(counts) - counts, np.cumsum(sizes) - sizes
    begins, lengths = np.empty((total, segments), np.int64), np.empty((total, segments), np.int64)
    for segment in range(segments):
        rows = slice(int(first_row[segment]), int(first_row[segment] + counts[segment]))
        own_begins, own_ends = ragged_begins.reshape(-1)[rows], ragged_ends.reshape(-1)[rows]
        check_spans(name, ("ragged_begins", "ragged_ends"), own_begins, own_ends, int(sizes[segment]))
        begins[:, segment] = own_begins.astype(np.int64) + first_element[segment]
        lengths[:, segment] = own_ends.astype(np.int64) - own_begins
    edges = bounds(name, lengths.sum(axis=1).tolist())
    check_size(f"{name}: combined", int(edges[-1]), (ragged_begins, ragged_ends, elements))
    flat = lengths.reshape(-1)
    starts = np.repeat(begins.reshape(-1) - (np.cumsum(flat) - flat), flat)
    combined = elements[starts + np.arange(len(starts))]
    return edges[:-1], edges[1:], combined, np.repeat(np.tile(ids, total), flat)


@CombineSegments.infer_shapes
def _(node):
    return [[None], [None], [None], [None]]
