"""SpaceToBatch and BatchToSpace transpose only the dimensions with blocks: programs limit the number of dimensions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnxruntime as ort
import openvino as ov
import pytest
from openvino import opset13 as op

from converters.openvino import convert

LARGE = {"space_to_batch": (2, 4, 6, 4), "batch_to_space": (24, 4, 6, 4)}


@pytest.mark.parametrize(
    ("blocks", "constant", "dimensions"),
    [
        ([1, 1, 3, 2], True, 6),
        ([1, 2, 1, 1], True, 5),
        ([1, 2, 3, 2], True, 7),
        ([1, 1, 3, 2], False, 8),  # blocks at run time
        ([1, 1, 1, 1], True, 0),
        ([1, 1, 2, 2], True, 5),  # SpaceToDepth or DepthToSpace
    ],
)
@pytest.mark.parametrize("name", LARGE)
def test_dimensions_without_blocks(name: str, blocks: list[int], constant: bool, dimensions: int, tmp_path: Path):
    x = op.parameter([-1, -1, -1, -1], ov.Type.f32, name="x")
    zeros, sizes = op.constant(np.zeros(4, np.int64)), np.array(blocks, np.int64)
    at_run_time = op.parameter([4], ov.Type.i64, name="blocks")
    layer = getattr(op, name)(x, op.constant(sizes) if constant else at_run_time, zeros, zeros)
    model = ov.Model([layer], [x] if constant else [x, at_run_time])
    ov.save_model(model, tmp_path / "model.xml", compress_to_fp16=False)
    given = np.random.default_rng(0).random(LARGE[name], np.float32)
    inputs = [given] if constant else [given, sizes]
    wanted = ov.compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})(inputs)[0]
    converted, _ = convert(tmp_path / "model.xml")
    found = [len(node.attribute[0].ints) for node in converted.graph.node if node.op_type == "Transpose"]
    assert found == [dimensions] * bool(dimensions)
    session = ort.InferenceSession(converted.SerializeToString(), providers=["CPUExecutionProvider"])
    (result,) = session.run(None, dict(zip([value.name for value in session.get_inputs()], inputs, strict=True)))
    assert np.array_equal(result, wanted)
