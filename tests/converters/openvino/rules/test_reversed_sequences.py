"""ReverseSequence of whole sequences is a Slice, which more programs have."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnxruntime as ort
import openvino as ov
import pytest
from openvino import opset13 as op

from converters.openvino import convert


@pytest.mark.parametrize(
    ("lengths", "shape", "axes", "found"),
    [
        ([4, 4], [2, 4, 3], (0, 1), "Slice"),
        ([3, 3, 3, 3], [2, 4, 3], (1, 2), "Slice"),
        ([4, 4], [-1, 4, -1], (0, 1), "Slice"),
        ([4, 3], [2, 4, 3], (0, 1), "ReverseSequence"),
        ([3, 3], [2, 4, 3], (0, 1), "ReverseSequence"),
        ([4, 4], [2, -1, 3], (0, 1), "ReverseSequence"),
    ],
)
def test_lengths(lengths: list[int], shape: list[int], axes: tuple[int, int], found: str, tmp_path: Path):
    x = op.parameter(shape, ov.Type.f32, name="x")
    model = ov.Model([op.reverse_sequence(x, op.constant(np.array(lengths)), *axes)], [x])
    ov.save_model(model, tmp_path / "model.xml", compress_to_fp16=False)
    given = np.random.default_rng(0).random((2, 4, 3), np.float32)
    wanted = ov.compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})([given])[0]
    converted, _ = convert(tmp_path / "model.xml")
    assert [node.op_type for node in converted.graph.node] == [found]
    session = ort.InferenceSession(converted.SerializeToString(), providers=["CPUExecutionProvider"])
    (result,) = session.run(None, {session.get_inputs()[0].name: given})
    assert np.array_equal(result, wanted)
