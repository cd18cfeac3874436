"""Model API's wrappers in the graph, compared with Model API's results for the same images (record.py)."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import onnx
import onnx_ir as ir
import openvino as ov
import pytest

from converters.errors import ConversionError
from converters.model_api.action import prepare_video, video_input
from converters.model_api.configuration import Configuration
from converters.model_api.fixed_point import fixed_point_resized, halved
from converters.model_api.regions import boxes_of_regions, rotated_rectangle
from converters.openvino import convert
from onnx_specops.building import Builder, Value, new_value
from tests.converters.cli.specops import specops
from tests.converters.model_api import prepared, web
from tests.converters.model_api.compared import ANSWERS, LEAST, Compared, compared, in_onnxruntime
from tests.converters.model_api.networks import NETWORKS, SHOWN, images

_LOWERED = ("letterbox", "ssd_agnostic", "segmentation", "anomaly_boxes", "keypoints")
"""One network of each kind, for an older opset."""
_ON_THE_WEB = ("standard", "tiled_ssd", "rotated", "anomaly_boxes", "segmentation")


def _converted(name: str, tmp_path: Path, **options: Any) -> onnx.ModelProto:
    path = tmp_path / "model.xml"
    ov.save_model(NETWORKS[name](), path, compress_to_fp16=False)
    return convert(path, **options).model


def _run(model: onnx.ModelProto, image: np.ndarray) -> dict[str, Any]:
    return in_onnxruntime(model, [{"image": image}])[0]


def _check(found: Compared) -> None:
    assert not found.wrong
    assert found.labels
    assert not found.iou or min(found.iou) >= LEAST


@pytest.mark.parametrize(("name", "opset"), [*((name, 21) for name in NETWORKS), *((name, 13) for name in _LOWERED)])
def test_objects_are_those_of_model_api(name, opset, tmp_path):
    model = _converted(name, tmp_path, model_api="bgr", opset=opset)
    assert not model.functions or opset == 21
    _check(compared(name, model, in_onnxruntime, SHOWN))


@pytest.mark.parametrize("name", _ON_THE_WEB)
def test_objects_in_onnxruntime_web(name, tmp_path):
    if reason := web.missing():
        pytest.skip(reason)
    _check(compared(name, _converted(name, tmp_path, model_api="bgr"), web.in_node, SHOWN))


@pytest.mark.parametrize("name", ["standard", "nearest"])
def test_the_callers_order_of_channels(name, tmp_path):
    image = next(images())
    blue_first = _run(_converted(name, tmp_path, model_api="bgr"), image)
    red_first = _run(_converted(name, tmp_path, model_api="rgb"), np.ascontiguousarray(image[..., ::-1]))
    np.testing.assert_allclose(blue_first["raw_scores"], red_first["raw_scores"], atol=1e-6)


def test_names_that_the_network_has_already(tmp_path):
    """The input and outputs of the network may have the names of those of its wrapper."""
    model = _converted("ssd_boxes_and_labels", tmp_path, model_api="bgr", rename={"input": "scores"})
    assert [value.name for value in model.graph.output] == ["boxes", "labels", "scores", "label_names"]
    onnx.checker.check_model(model, full_check=True)


@pytest.mark.parametrize(
    ("info", "message"),
    [
        ({}, "has no model_info/model_type"),
        ({"model_type": "Sudoku"}, "model_type 'Sudoku' is not supported"),
        ({"model_type": "Classification", "resize_type": "shrink"}, "model_info/resize_type is 'shrink'; expected one of"),
        ({"model_type": "Classification", "topk": "many"}, "model_info/topk is 'many'; expected a number"),
        ({"model_type": "Classification", "mean_values": "1 x"}, "model_info/mean_values is '1 x'; expected numbers"),
        ({"model_type": "AnomalyDetection", "labels": "a"}, "has fewer than two labels"),
        ({"model_type": "Classification", "tile_size": "100"}, "Model API has no tiler for Classification"),
        ({"model_type": "SSD", "tile_size": "100", "tiles_overlap": "1"}, "give no positive distance between tiles"),
        ({"model_type": "Action Classification"}, "0 inputs of six dimensions"),
        ({"model_type": "sam_decoder"}, "expected image_embeddings, point_coords"),
        ({"model_type": "SSD"}, "not those of Model API's SSD"),
    ],
)
def test_models_that_cannot_be_embedded(info, message, tmp_path):
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


def _of_ultralytics(tmp_path: Path, model_type: str, **stated: str) -> onnx.ModelProto:
    network = NETWORKS["yolo_v8"]()
    for name, text in {"model_type": model_type, **stated}.items():
        network.set_rt_info(text, ["model_info", name])
    ov.save_model(network, tmp_path / "model.xml", compress_to_fp16=False)
    return convert(tmp_path / "model.xml", model_api="bgr").model


def test_ultralytics_states_the_type_yolo(tmp_path):
    image = next(images())
    stated, meant = (_run(_of_ultralytics(tmp_path, name), image) for name in ("YOLO", "YOLO11"))
    assert len(stated["boxes"])
    for name, value in meant.items():
        np.testing.assert_array_equal(stated[name], value)


def test_other_networks_of_the_type_yolo(tmp_path):
    """Poses have more numbers than labels; classifiers have no boxes."""
    with pytest.raises(ConversionError, match=r"has 3 dimensions; expected \[1, numbers, height, width\]"):
        _of_ultralytics(tmp_path, "YOLO", labels="person")
    network = NETWORKS["standard"]()
    network.set_rt_info("YOLO", ["model_info", "model_type"])
    ov.save_model(network, tmp_path / "model.xml")
    with pytest.raises(ConversionError, match="is not 255 numbers for each cell of 32 x 32 pixels"):
        convert(tmp_path / "model.xml", model_api="bgr")


def test_the_command(tmp_path):
    """The file runs on an unchanged image. `specops run` reorders its channels as the graph requires."""
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
        np.testing.assert_allclose(np.load(outputs)["raw_scores"], ANSWERS.of("standard", 0)["raw_scores"][0], atol=1e-3)
    checked = specops("convert", path, "-o", target, "--model-api", "rgb", "--check")
    assert checked.exit_code == 2
    assert "compares the outputs of the network" in " ".join(checked.stderr.split())


def test_tiles_are_ignored_on_request(tmp_path):
    model = _converted("tiled_ssd", tmp_path, model_api="bgr", model_api_tiles="none")
    assert not any(node.op_type == "Loop" for node in model.graph.node)
    whole = _converted("tiled_ssd", tmp_path, model_api="bgr")
    (loop,) = (node for node in whole.graph.node if node.op_type == "Loop")
    assert any(node.op_type == "Conv" for node in loop.attribute[0].g.node)


def _on_mask(emit: Callable[..., Value], mask: np.ndarray) -> np.ndarray:
    return _on_masks(emit, [mask])[0]


def _on_masks(emit: Callable[..., Value], masks: Iterable[np.ndarray]) -> list[np.ndarray]:
    given = new_value(ir.DataType.UINT8, ["height", "width"], "mask")
    found = in_onnxruntime(_graph([given], lambda op: emit(op, given)), [{"mask": mask} for mask in masks])
    return [next(iter(values.values())) for values in found]


def test_saliency_maps_without_objects(tmp_path):
    model = NETWORKS["mask_rcnn_explained"]()
    model.set_rt_info("1", ["model_info", "confidence_threshold"])
    path = tmp_path / "model.xml"
    ov.save_model(model, path, compress_to_fp16=False)
    found = _run(convert(path, model_api="bgr").model, np.zeros((20, 30, 3), np.uint8))
    assert found["boxes"].shape == (0, 4)
    assert found["saliency_map"].shape == (10, 20, 30)
    assert not found["saliency_map"].any()


def test_saliency_maps_of_tiles_need_the_whole_image(tmp_path):
    model = NETWORKS["tiled_ssd_explained"]()
    model.set_rt_info("False", ["model_info", "tile_with_full_img"])
    path = tmp_path / "model.xml"
    ov.save_model(model, path, compress_to_fp16=False)
    with pytest.raises(ConversionError, match="needs the whole image as a tile"):
        convert(path, model_api="bgr")
    assert convert(path, model_api="bgr", outputs=["bboxes", "scores", "labels"]).model.graph.output


@pytest.mark.parametrize(
    ("rows", "boxes"),
    [
        (["....", "...."], []),
        (["#..#", "...."], [[0, 0, 1, 1], [3, 0, 4, 1]]),
        (["#..", ".#.", "..#"], [[0, 0, 3, 3]]),  # diagonal neighbors belong to one region
        (
            ["#####", "#...#", "#.#.#", "#...#", "#####"],
            [[0, 0, 5, 5]],
        ),  # a region in a hole of another region does not count
        (["#####", "#...#", "#.#..", "#...#", "#####"], [[0, 0, 5, 5], [2, 2, 3, 3]]),  # unless the hole is open
        (["##", "##"], [[0, 0, 2, 2]]),
    ],
)
def test_boxes_of_regions(rows, boxes):
    mask = np.array([[letter == "#" for letter in row] for row in rows]).astype(np.uint8)
    assert sorted(_on_mask(boxes_of_regions, mask).tolist()) == sorted(boxes)


@pytest.mark.parametrize(
    ("rows", "rectangle"),
    [
        (["....", "...."], [0, 0, 0, 0, 0]),
        (["....", "..#."], [2, 1, 0, 0, 90]),
        (["....", ".##."], [1.5, 1, 0, 1, 90]),
        (["###", "###"], [1, 0.5, 1, 2, 90]),
        (["#...", ".#..", "..#."], [1, 1, 8**0.5, 0, 45]),
        (["..#..", ".###.", "#####", ".###.", "..#.."], [2, 2, 8**0.5, 8**0.5, 45]),
        (["...#", "..#.", ".#..", "#..."], [1.5, 1.5, 0, 18**0.5, 45]),
    ],
)
def test_rotated_rectangles(rows, rectangle):
    """Rectangles of ``cv2.minAreaRect``, with positive angles as in Model API."""
    mask = np.array([[letter == "#" for letter in row] for row in rows]).astype(np.uint8)
    np.testing.assert_allclose(_on_mask(rotated_rectangle, mask), rectangle, atol=1e-5)


def _shapes(count: int) -> Iterator[np.ndarray]:
    """Return masks of polygons and ellipses on small grids, where equally small rectangles are frequent."""
    random = np.random.default_rng(3)
    for _ in range(count):
        size = int(random.choice([8, 16, 40]))
        mask = np.zeros((size, size + int(random.integers(0, 9))), np.uint8)
        if random.random() < 0.5:
            cv2.fillPoly(mask, [random.integers(0, size, (random.integers(3, 9), 1, 2)).astype(np.int32)], 1)
        else:
            center = random.integers(size // 4, size - size // 4, 2).tolist()
            cv2.ellipse(mask, center, random.integers(1, size // 3, 2).tolist(), random.integers(0, 180), 0, 360, 1, -1)
        yield mask


def test_rotated_rectangles_are_those_that_opencv_chooses():
    """Also among equally small ones, where the rounding errors of the areas decide."""
    masks = [mask for mask in _shapes(400) if mask.any()]
    rectangles = _on_masks(rotated_rectangle, masks)
    for number, (mask, rectangle) in enumerate(zip(masks, rectangles, strict=True)):
        contours, _ = cv2.findContours(mask, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
        expected = cv2.boxPoints(cv2.minAreaRect(np.concatenate(contours)))
        x, y, width, height, angle = rectangle.tolist()
        found = cv2.boxPoints(((x, y), (width, height), angle))
        for corner in expected:
            assert np.abs(found - corner).sum(1).min() < 1e-3, number


@pytest.mark.parametrize(("kind", "mode"), prepared.RESIZES)
def test_prepared_images_are_exactly_those_of_model_api(kind, mode, tmp_path):
    for height, width in prepared.SIZES:
        path = tmp_path / "model.xml"
        model = prepared.network(height, width, resize_type=kind, interpolation_mode=mode)
        ov.save_model(model, path, compress_to_fp16=False)
        given = list(prepared.images(height, height, width, prepared.smallest(kind)))
        found = in_onnxruntime(convert(path, model_api="bgr").model, [{"image": image} for image in given])
        sums = [prepared.checksum(one["image_embeddings"]) for one in found]
        assert sums == _expected(f"{kind} {mode} {height}x{width}")


def _expected(name: str) -> list[int]:
    return json.loads(prepared.CHECKSUMS.read_text())[name]


def test_intensities_between_percentiles(tmp_path):
    """As Model API's preprocessing in Python scales them; its graphs ignore the mode."""
    stated = {"intensity_mode": "percentile", **prepared.PERCENTILES}
    path = tmp_path / "model.xml"
    ov.save_model(prepared.network(64, 96, **stated), path, compress_to_fp16=False)
    model = convert(path, model_api="bgr").model
    given = list(prepared.unchanged(64, 96))
    found = [one["image_embeddings"][0] for one in in_onnxruntime(model, [{"image": image} for image in given])]
    assert [prepared.floats_checksum(image.transpose(1, 2, 0)) for image in found] == _expected("percentile")
    (one,) = in_onnxruntime(model, [{"image": np.full((5, 7, 3), 40, np.uint8)}])
    assert not one["image_embeddings"].any()


def _graph(inputs: list[Value], emit: Callable[[Builder], Value]) -> onnx.ModelProto:
    graph = ir.Graph(inputs, [], nodes=[], opset_imports={"": 21}, name="graph")
    op = Builder(graph)
    op.reserve([value.name or "" for value in inputs])
    graph.outputs.append(op.result(emit(op)))
    return ir.to_proto(ir.Model(graph, ir_version=10))


@pytest.mark.parametrize(("height", "width"), prepared.CROPS)
def test_crops_of_frames(height, width):
    network = new_value(ir.DataType.FLOAT, [1, 1, 3, 1, height, width], "network")
    video = video_input(network, "")
    config = Configuration.of({"model_info resize_type": "crop"})
    model = _graph([video], lambda op: prepare_video(op, video, network, "", config, "bgr").prepared)
    frames = prepared.images(height, height, width, 2)
    found = [next(iter(one.values())) for one in in_onnxruntime(model, [{"video": frame[None]} for frame in frames])]
    assert [prepared.checksum(one[0, 0, :, 0].transpose(1, 2, 0)) for one in found] == _expected(f"frames {height}x{width}")


def test_bytes_are_resized_exactly_as_opencv_resizes_them():
    levels = new_value(ir.DataType.UINT8, ["h", "w", "channels"], "levels")
    size = [new_value(ir.DataType.INT64, [], name) for name in ("height", "width")]
    model = _graph([levels, *size], lambda op: fixed_point_resized(op, levels, *size, axis=0, others=1))
    given = [{"levels": a, "height": np.array(h), "width": np.array(w)} for a, h, w in prepared.resizes()]
    found = in_onnxruntime(model, given)
    assert [prepared.checksum(next(iter(one.values()))) for one in found] == _expected("opencv")


def test_bytes_are_halved_exactly_as_opencv_halves_them():
    levels = new_value(ir.DataType.UINT8, [1, "h", "w", 3], "levels")
    size = [new_value(ir.DataType.INT64, [], name) for name in ("height", "width")]
    model = _graph([levels, *size], lambda op: halved(op, levels, *size))
    random = np.random.default_rng(4)
    sizes = itertools.product(range(2, 14), (2, 5, 7, 8, 23), (4, 256))
    pictures = [random.integers(0, top, (height, width, 3)).astype(np.uint8) for height, width, top in sizes]
    expected = [cv2.resize(picture, None, fx=0.5, fy=0.5) for picture in pictures]
    given = [
        {"levels": picture[None], "height": np.array(half.shape[0]), "width": np.array(half.shape[1])}
        for picture, half in zip(pictures, expected, strict=True)
    ]
    for half, found in zip(expected, in_onnxruntime(model, given), strict=True):
        np.testing.assert_array_equal(next(iter(found.values()))[0], half)


def test_yolox_halves_images_of_twice_the_size(tmp_path):
    """Its scores are those of the image that OpenCV halved, also where the other side is odd."""
    model = _converted("yolo_x", tmp_path, model_api="bgr")
    picture = cv2.resize(next(images()), (2 * 128, 2 * 96 - 1))
    half = cv2.resize(picture, None, fx=0.5, fy=0.5)
    whole = np.full((96, 128, 3), 114, np.uint8)
    whole[: half.shape[0], : half.shape[1]] = half
    large, small = _run(model, picture), _run(model, whole)
    assert small["scores"].size
    np.testing.assert_array_equal(large["scores"], small["scores"])
