"""EmbeddingBagOffsetsSum: comparison with torch, and the body with large tables."""

from __future__ import annotations

import numpy as np
import onnxruntime as ort
import pytest

import onnx_specops
from tests.onnx_specops.ops.case import Case
from tests.onnx_specops.ops.cases_embedding_bag_offsets_sum import FOR_TORCH, by_torch
from tests.onnx_specops.ops.one_node import one_node


@pytest.mark.parametrize("case", FOR_TORCH, ids=lambda case: case.id)
def test_torch_agrees(case: Case) -> None:
    session = onnx_specops.InferenceSession(one_node(case.op, case.inputs).SerializeToString())
    np.testing.assert_allclose(session.run(None, dict(case.inputs))[0], by_torch(**case.inputs), rtol=1e-5, atol=1e-4)


def test_the_body_loses_no_row_with_several_threads() -> None:
    """Many rows into few bags, with several threads, repeatedly. Integers make the result exact in any order."""
    random = np.random.default_rng(1)
    inputs = {
        "emb_table": random.integers(-8, 8, (100, 64)).astype(np.float32),
        "indices": random.integers(0, 100, 20_000),
        "offsets": np.array([0, 9_000]),
    }
    rows = inputs["emb_table"][inputs["indices"]]
    expected = np.stack([rows[:9_000].sum(axis=0), rows[9_000:].sum(axis=0)])
    options = ort.SessionOptions()
    options.intra_op_num_threads = 4
    model = onnx_specops.add_bodies(one_node("EmbeddingBagOffsetsSum", inputs))
    session = onnx_specops.InferenceSession(model.SerializeToString(), options, kernels="none")
    for _ in range(20):
        np.testing.assert_array_equal(session.run(None, inputs)[0], expected)
