"""Record torch's results for cases of EmbeddingBagOffsetsSum: a second oracle, and the only one where OpenVINO has none.

``python -m tests.data.make_torch_embedding_bags``
"""

from __future__ import annotations

import numpy as np
import torch

from tests.onnx_specops.ops.cases_embedding_bag_offsets_sum import FOR_TORCH, STORED, inputs_digest


def embedding_bag(emb_table, indices, offsets, default_index=None, per_sample_weights=None):
    """Compute the sums with torch, which has no default row; it is added for empty bags afterwards."""
    dims = emb_table.shape[1:]
    weights = None if per_sample_weights is None or not per_sample_weights.size else torch.from_numpy(per_sample_weights)
    bags = torch.nn.functional.embedding_bag(
        torch.from_numpy(indices),
        torch.from_numpy(emb_table.reshape(len(emb_table), -1)),
        torch.from_numpy(offsets),
        mode="sum",
        per_sample_weights=weights,
    ).numpy()
    ends = np.append(offsets[1:], len(indices))
    if default_index is not None and default_index.size and default_index.reshape(-1)[0] != -1:
        bags = bags.copy()
        bags[offsets == ends] = emb_table.reshape(len(emb_table), -1)[default_index.reshape(-1)[0]]
    return bags.reshape(-1, *dims)


if __name__ == "__main__":
    answers = {inputs_digest(**case.inputs): embedding_bag(**case.inputs) for case in FOR_TORCH}
    np.savez_compressed(STORED, **answers)
    print(f"{len(answers)} cases, {STORED.stat().st_size} bytes")
