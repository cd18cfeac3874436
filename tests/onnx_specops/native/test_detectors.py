"""The native kernels of detector postprocessing with the dimensions of real models and many ties, against OpenVINO."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from converters.openvino import convert
from tests.conformance.case import Case
from tests.conformance.check import run_model
from tests.conformance.operation_models import layer_case, statics
from tests.conformance.operations.cases.detection import CENTER_SIZE
from tests.conformance.oracle import Oracle, OracleError

F = np.float32


def _boxes(rng: np.random.Generator, shape: tuple[int, ...], extent: float, size: float) -> np.ndarray:
    start = rng.random((*shape, 2)) * extent
    return np.concatenate([start, start + rng.random((*shape, 2)) * size + size / 20], axis=-1).astype(F)


def _scores(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Return mostly low scores, like those of a quantized network."""
    return (np.round(rng.random(shape) ** 8 * 255) / 255).astype(F)


def _detection_outputs(rng: np.random.Generator) -> Iterator[Case]:
    images, priors, classes = 2, 8732, 21
    scores = rng.random((images, priors * classes)).astype(F) ** 8
    prior = _boxes(rng, (1, 1, priors), 0.8, 0.2).reshape(1, 1, -1)
    given = {
        "nms_threshold": 0.45, "normalized": True, "code_type": CENTER_SIZE, "confidence_threshold": 0.4, "top_k": 400,
        "keep_top_k": [200],
    }  # fmt: skip
    for shared in (True, False):
        logits = rng.standard_normal((images, priors * 4 * (1 if shared else classes))).astype(F)
        arrays = [logits, scores, np.concatenate([prior, np.full_like(prior, 0.1)], axis=1)]
        for name, more in (("classes", {}), ("priors", {"decrease_label_id": True, "top_k": 2000})):
            inputs, attributes = statics(arrays), {"attrs": {**given, **more, "share_location": shared}}
            yield layer_case("DetectionOutput", "opset8", "detection_output", f"{name}-{shared}", inputs, attributes)


def _cases() -> Iterator[Case]:
    rng = np.random.default_rng(0)
    yield from _detection_outputs(rng)
    arrays = [_boxes(rng, (1, 2000), 560, 80), _scores(rng, (1, 80, 2000))]
    for decay in ("linear", "gaussian"):
        given = {"decay_function": decay, "score_threshold": 0.05}
        yield layer_case("MatrixNms", "opset8", "matrix_nms", decay, statics(arrays), given)
    given = {"iou_threshold": 0.5, "nms_top_k": 400, "score_threshold": 0.1}
    yield layer_case("MulticlassNms", "opset9", "multiclass_nms", "own", statics(arrays), given)
    arrays = [
        _boxes(rng, (1000,), 1000, 200), rng.standard_normal((1000, 324)).astype(F), _scores(rng, (1000, 81)),
        np.array([[800, 1216, 1]], F),
    ]  # fmt: skip
    given = {
        "score_threshold": 0.05, "nms_threshold": 0.5, "num_classes": 81, "post_nms_count": 2000,
        "max_detections_per_image": 2000, "class_agnostic_box_regression": False, "max_delta_log_wh": 4.135,
        "deltas_weights": [10.0, 10.0, 5.0, 5.0],
    }  # fmt: skip
    operation = "ExperimentalDetectronDetectionOutput"
    yield layer_case(operation, "opset6", operation, "best", statics(arrays), given)


@pytest.fixture(scope="module")
def oracle() -> Iterator[Oracle]:
    pytest.importorskip("openvino")
    it = Oracle()
    yield it
    it.close()


@pytest.mark.parametrize("case", list(_cases()), ids=lambda case: case.id)
def test_detections_bit_for_bit(case: Case, oracle: Oracle, tmp_path: Path) -> None:
    path, runs = case.save(tmp_path), [list(arrays) for arrays in case.inputs]
    expected = oracle.run(path, runs, names=("cpu",))["cpu"]
    assert not isinstance(expected, OracleError), expected
    convert(path, tmp_path / "model.onnx")
    got = run_model(tmp_path / "model.onnx", runs, "native")
    for one, other in zip(got[0], expected[0], strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)
