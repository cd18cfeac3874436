"""Model API's wrappers in the graph, compared with Model API's results for the same images (record.py)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import openvino as ov
import pytest

from converters.errors import ConversionError
from converters.openvino import convert
from tests.converters.cli.specops import specops
from tests.converters.model_api.networks import NETWORKS, images

_ANSWERS = np.load(Path(__file__).with_name("answers.npz"))
_COORDINATES = 0.5
"""The tolerance of box corners: for YOLOX, Model API resizes with OpenCV, which rounds pixels."""


def _converted(name: str, tmp_path: Path, **options: Any) -> onnx.ModelProto:
    path = tmp_path / "model.xml"
    ov.save_model(NETWORKS[name](), path, compress_to_fp16=False)
    return convert(path, **options).model


def _run(model: onnx.ModelProto, image: np.ndarray) -> dict[str, Any]:
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return dict(zip([output.name for output in session.get_outputs()], session.run(None, {"image": image}), strict=True))


def _answers(name: str, number: int) -> dict[str, np.ndarray]:
    start = f"{name}/{number}/"
    return {key.removeprefix(start): _ANSWERS[key] for key in _ANSWERS.files if key.startswith(start)}


_LOWERED = ("letterbox", "ssd_agnostic", "segmentation", "anomaly", "keypoints")
"""One network of each kind, for an older opset."""


@pytest.mark.parametrize(("name", "opset"), [*((name, 21) for name in NETWORKS), *((name, 13) for name in _LOWERED)])
def test_objects_agree_with_model_api(name, opset, tmp_path):
    model = _converted(name, tmp_path, model_api="bgr", opset=opset)
    assert [value.name for value in model.graph.input] == ["image"]
    assert not model.functions or opset == 21
    for number, image in enumerate(images()):
        found, expected = _run(model, image), _answers(name, number)
        if "boxes" in expected:
            _compare_boxes(found, expected)
            continue
        for field, value in expected.items():
            _compare(field, found[field], value)


def _compare(field: str, found: Any, expected: np.ndarray) -> None:
    if field in ("labels", "label_names", "pred_label"):
        assert np.array(found).tolist() == expected.tolist()
    elif field in ("mask", "pred_mask"):
        assert found.shape == expected.shape
        assert np.mean(found != expected) <= 0.005  # OpenCV's vector code and its remainder round differently
    elif field == "anomaly_map":
        assert np.abs(found.astype(int) - expected.astype(int)).max() <= 1
    else:
        # A pixel halfway between two integers may be rounded to either.
        tolerance = 0.01 if field == "soft_prediction" else 1e-3
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=tolerance)


def _compare_boxes(found: dict[str, Any], expected: dict[str, np.ndarray]) -> None:
    """Match each expected object with a found one, without extra objects; equal scores have no order."""
    assert len(found["boxes"]) == len(expected["boxes"])
    left = list(range(len(found["boxes"])))
    for place, box in enumerate(expected["boxes"]):
        apart = [np.abs(found["boxes"][i] - box).max() for i in left]
        scores = [abs(found["scores"][i] - expected["scores"][place]) for i in left]
        other = [found["labels"][i] != expected["labels"][place] for i in left]
        worst = np.array(apart) / (1 if box.dtype.kind == "i" else _COORDINATES)
        best = int(np.argmin(np.maximum.reduce([worst, np.array(scores) / 5e-3, np.array(other) * 1e3])))
        nearest = left[best]
        assert worst[best] <= 1
        assert scores[best] <= 5e-3
        assert not other[best]
        left.remove(nearest)
        if expected.get("label_names", np.array("#")).reshape(-1)[:1] != ["#"] and "label_names" in found:
            assert found["label_names"][nearest] == expected["label_names"][place]
        if "masks" in expected:
            ours, theirs = found["masks"][nearest].astype(bool), expected["masks"][place].astype(bool)
            assert ours.shape == theirs.shape
            assert np.sum(ours ^ theirs) <= max(2, 0.005 * np.sum(ours | theirs))


@pytest.mark.parametrize("name", ["standard", "nearest"])
def test_the_callers_order_of_channels(name, tmp_path):
    image = next(images())
    blue_first = _run(_converted(name, tmp_path, model_api="bgr"), image)
    red_first = _run(_converted(name, tmp_path, model_api="rgb"), np.ascontiguousarray(image[..., ::-1]))
    np.testing.assert_allclose(blue_first["raw_scores"], red_first["raw_scores"], atol=1e-6)


def test_names_that_the_network_uses(tmp_path):
    """The network's input and outputs have the same names as those of its wrapper."""
    model = _converted("ssd_boxes_and_labels", tmp_path, model_api="bgr", rename={"input": "scores"})
    assert [value.name for value in model.graph.output] == ["boxes", "labels", "scores", "label_names"]
    onnx.checker.check_model(model, full_check=True)


@pytest.mark.parametrize(
    ("info", "message"),
    [
        ({}, "states no model_info/model_type"),
        ({"model_type": "Sudoku"}, "model_type 'Sudoku' is not supported"),
        ({"model_type": "Classification", "resize_type": "shrink"}, "model_info/resize_type is 'shrink': expected one of"),
        ({"model_type": "Classification", "topk": "many"}, "model_info/topk is 'many': expected a number"),
        ({"model_type": "Classification", "mean_values": "1 x"}, "model_info/mean_values is '1 x': expected numbers"),
        ({"model_type": "AnomalyDetection", "task": "detection", "labels": "a b"}, "task 'detection'"),
        ({"model_type": "SSD"}, "none that Model API's SSD takes"),
    ],
)
def test_wrappers_that_cannot_be_embedded(info, message, tmp_path):
    network = NETWORKS["nearest"]()
    model = ov.Model(network.outputs, network.get_parameters())
    for name, text in info.items():
        model.set_rt_info(text, ["model_info", name])
    path = tmp_path / "model.xml"
    ov.save_model(model, path)
    with pytest.raises(ConversionError, match=r"model\.xml") as caught:
        convert(path, model_api="rgb")
    assert message in str(caught.value)
    assert caught.value.problems[0].remedy == "convert it without --model-api"


def test_the_command(tmp_path):
    """The file accepts unprocessed images; `specops run` reorders their channels."""
    from PIL import Image

    path, target = tmp_path / "model.xml", tmp_path / "model.onnx"
    ov.save_model(NETWORKS["standard"](), path, compress_to_fp16=False)
    image = next(images())
    Image.fromarray(image[..., ::-1].copy()).save(tmp_path / "image.png")
    for order in ("rgb", "bgr"):
        assert specops("convert", path, "-o", target, "--model-api", order).exit_code == 0
        outputs = tmp_path / f"{order}.npz"
        arguments = ["--inputs", tmp_path / "image.png", "--outputs", outputs, "--kernels", "none"]
        assert specops("run", target, *arguments).exit_code == 0
        np.testing.assert_allclose(np.load(outputs)["raw_scores"], _answers("standard", 0)["raw_scores"], atol=1e-3)
    checked = specops("convert", path, "-o", target, "--model-api", "rgb", "--check")
    assert checked.exit_code == 2
    assert "compares the outputs of the network" in " ".join(checked.stderr.split())
