"""NonMaxSuppression of a single class is in the order of the scores already."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnxruntime as ort
import pytest

from converters.openvino import convert

ov = pytest.importorskip("openvino")


@pytest.mark.parametrize(("images", "classes", "again"), [(1, 1, False), (1, 2, True), (2, 1, True), (1, -1, True)])
def test_boxes_of_a_single_class_are_not_sorted_again(images: int, classes: int, again: bool, tmp_path: Path) -> None:
    op = ov.opset9
    boxes, scores = (
        op.parameter([images, 6, 4], np.float32, "boxes"),
        op.parameter([images, classes, 6], np.float32, "scores"),
    )
    selected = op.non_max_suppression(boxes, scores, np.int64(9), np.float32(0.5), np.float32(-9))
    model = ov.Model([op.gather(selected.output(0), np.int64([2]), np.int64(1))], [boxes, scores])
    ov.save_model(model, tmp_path / "model.xml")
    _, report = convert(tmp_path / "model.xml", tmp_path / "model.onnx")
    assert (report.nodes.get("TopK", 0) > 0) == again
    generator = np.random.default_rng(0)
    corners = generator.random((images, 6, 4), np.float32)
    corners[..., 2:] += corners[..., :2]
    given = [corners, np.float32(generator.integers(-2, 3, (images, abs(classes), 6)))]  # with equal scores
    session = ort.InferenceSession(tmp_path / "model.onnx")
    (found,) = session.run(None, {value.name: array for value, array in zip(session.get_inputs(), given, strict=True)})
    (expected,) = ov.compile_model(model, "CPU")(given).values()
    np.testing.assert_array_equal(found, expected[: len(found)])
    assert (expected[len(found) :] == -1).all()
