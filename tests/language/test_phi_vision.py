"""Phi-3 vision in onnxruntime-genai: images in crops, with separators."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import onnx
import onnxruntime as ort
import openvino as ov
import pytest
from PIL import Image

from converters.errors import ConversionError
from converters.folders.genai_vision import DECODER, EMBEDDING, VISION
from onnx_specops.generation import GenerationError, Sampling, VisionLanguageModel, open_model
from onnx_specops.generation.images import ImageProcessor
from onnx_specops.generation.tokenizer import Tokenizer
from tests.converters.cli.specops import as_json, specops
from tests.folders import phi_vision, vision
from tests.language.record_phi_images import RECORD, asked, noise, places
from tests.language.test_vision_genai import check_tokens_of_genai, convert, converted, write_genai

RECORDED = json.loads(RECORD.read_text())


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the original model and, in OUT, its conversion."""
    place = tmp_path_factory.mktemp("folder") / phi_vision.NAME
    phi_vision.unpack(place)
    return converted(place)


def test_onnxruntime_genai_gives_openvinos_tokens(place: Path) -> None:
    check_tokens_of_genai(place)


def test_onnxruntime_genai_prepares_images(place: Path) -> None:
    """Its processor reads the configuration, and prepares the crops and tokens that vision.onnx expects."""
    genai = pytest.importorskip("onnxruntime_genai")
    image = np.random.default_rng(1).integers(0, 256, (90, 120, 3), np.uint8)
    named = vision.processed_by_genai(genai.Model(str(place / "OUT")), vision.Request("<|image_1|>", (image,)))
    height, width = named["image_sizes"].as_numpy()[0]
    assert named["pixel_values"].as_numpy().shape == (1, 17, 3, 336, 336)
    assert named["num_image_tokens"].as_numpy().tolist() == [[phi_vision.tokens_of(height, width)]]


def test_attention_is_grouped(place: Path) -> None:
    graph = onnx.load(place / "OUT" / DECODER).graph
    assert [node.op_type for node in graph.node].count("GroupQueryAttention") == 2
    assert not {"input_ids", "position_ids"} & {value.name for value in graph.input}


def test_crops_and_separators_are_in_order(place: Path) -> None:
    """Images of 2 x 1, 1 x 1 and 1 x 2 crops, of which the first and the second have fewer than the array."""
    session = ort.InferenceSession(place / "OUT" / VISION)
    encode, project = (
        ov.compile_model(place / f"openvino_vision_{part}_model.xml", "CPU", vision.CPU)
        for part in ("embeddings", "projection")
    )
    config = json.loads((place / "config.json").read_text())
    row_end, image_end = (np.array(config[name], np.float32).reshape(1, -1) for name in ("sub_GN", "glb_GN"))
    draw = np.random.default_rng(7)
    sizes = np.array([[672, 336], [336, 336], [336, 672]])
    pixels = draw.standard_normal((3, 4, 3, 336, 336)).astype(np.float32)
    rows = []
    for crops, (high, wide) in zip(pixels, sizes // 336, strict=True):
        patches = encode([crops])[0].reshape(4, 12, 2, 12, 2, 1024).transpose(0, 1, 3, 2, 4, 5).reshape(4, 12, 12, 4096)
        parts = patches[1 : 1 + high * wide].reshape(high, wide, 12, 12, 4096).transpose(0, 2, 1, 3, 4)
        rows += [part for row in parts.reshape(high * 12, wide * 12, 4096) for part in (row, row_end)]
        rows += [image_end, *(part for row in patches[0] for part in (row, row_end))]
    expected = project([np.concatenate(rows)[None]])[0][0]
    (found,) = session.run(None, {"pixel_values": pixels, "image_sizes": sizes})
    assert len(found) == sum(phi_vision.tokens_of(*size) for size in sizes)
    np.testing.assert_allclose(found, expected, atol=2e-5 * np.abs(expected).max())


def test_negative_tokens_are_images(place: Path) -> None:
    session = ort.InferenceSession(place / "OUT" / EMBEDDING)
    ids = np.array([[5, -1, -1, 6, -2, 0]])
    (text,) = ov.compile_model(place / "openvino_text_embeddings_model.xml", "CPU", vision.CPU)(
        [np.maximum(ids, 0)]
    ).values()
    expected, features = text.copy(), np.random.default_rng(1).standard_normal((3, 64)).astype(np.float32)
    expected[ids < 0] = features
    (found,) = session.run(None, {"input_ids": ids, "image_features": features})
    np.testing.assert_array_equal(found, expected)
    (found,) = session.run(None, {"input_ids": ids[:, :1], "image_features": features[:0]})
    np.testing.assert_array_equal(found, expected[:, :1])


@pytest.fixture(scope="module")
def model(place: Path) -> VisionLanguageModel:
    model = open_model(place / "OUT")
    assert isinstance(model, VisionLanguageModel)
    return model


def test_texts_equal_openvinos(model: VisionLanguageModel) -> None:
    """Without onnxruntime-genai, for images that the processor of the model prepares."""
    for (text, images), tokens in zip(asked(), RECORDED["answers"], strict=True):
        assert "".join(model.write(text, vision.TOKENS, images=images)) == model.decode(tokens)
        assert model.given == tokens


def processor(folder: Path, crops: int) -> ImageProcessor:
    """Return a processor of images with at most ``crops`` crops."""
    steps = [{"type": "DecodeImage"}, {"type": "Phi3ImageTransform", "attrs": {"num_crops": crops}}]
    path = folder / "image_processor_config.json"
    path.write_text(json.dumps({"processor": {"transforms": [{"operation": step} for step in steps]}}))
    return ImageProcessor(path)


@pytest.mark.parametrize("row", RECORDED["images"], ids=lambda row: f"{row['crops']}, {row['size']}")
def test_images_are_prepared_as_by_the_processor_of_the_model(row: dict[str, Any], tmp_path: Path) -> None:
    found = processor(tmp_path, row["crops"])(noise(*row["size"]))
    assert found.sizes is not None and found.sizes.tolist() == [row["sizes"]]
    values = found.pixels.ravel()
    np.testing.assert_allclose(values[places(values.size)], row["values"], atol=2e-6)


def test_narrow_images(place: Path) -> None:
    process = ImageProcessor(place / "OUT" / "image_processor_config.json")
    assert process(np.zeros((1, 5376, 3), np.uint8)).pixels.shape == (1, 17, 3, 336, 336)  # 16 crops, one row of pixels
    with pytest.raises(GenerationError, match="an image of 1 x 5377 pixels is too narrow"):
        process(np.zeros((1, 5377, 3), np.uint8))


def test_images_are_where_the_prompt_names_them(
    model: VisionLanguageModel, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """With at most 2 crops, because the model encodes the 16 of its configuration many times slower."""
    monkeypatch.setattr(model, "_processor", processor(tmp_path, 2))
    one, other = noise(60, 120), 255 - noise(120, 60)
    sizes = [model._processor(image).sizes for image in (one, other)]
    assert np.concatenate(sizes).tolist() == [[336, 672], [672, 336]]  # different numbers of tokens

    def answer(text: str, *images: np.ndarray) -> list[int]:
        list(model.write(text, 8, images=images))
        return model.given

    expected = answer("<|image_1|> or <|image_2|>?", one, other)
    assert answer("<|image_2|> or <|image_1|>?", other, one) == expected
    assert answer("<|image_1|> or <|image_2|>?", other, one) != expected
    assert answer("<|image_1|><|image_1|>?", one) == answer("<|image_1|><|image_2|>?", one, one)
    assert answer("<|image_1|>\n<|image_2|>\nWhich?", one, other) == answer("Which?", one, other)
    sampling = Sampling(repetition_penalty=1.5)
    assert len(list(model.write("<|image_1|> What?", 8, sampling, images=[one])))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<|image_2|>?", r"the prompt has <\|image_2\|>, but 1 images are given"),
        ("<|image_1|><|image_2|>?", r"the prompt has <\|image_1\|>, <\|image_2\|>, but 1 images are given"),
    ],
)
def test_images_that_are_not_given(text: str, message: str, model: VisionLanguageModel) -> None:
    with pytest.raises(GenerationError, match=message):
        model.write(text, 8, images=[noise(60, 80)])
    with pytest.raises(GenerationError, match="1 tokens for images, whose features are 0"):
        list(model.generate([5, -1], 8))


def test_the_tokenizer_surrounds_each_part(model: VisionLanguageModel) -> None:
    """As in the processor of the model, also if a chat template renders the prompt."""
    with patch.object(model, "_tokenizer", Tokenizer(lambda text, special: [7] * special + [9] * len(text), lambda ids: "")):
        model._images = [model._processor(noise(60, 80))]
        found = model.encode("ab<|image_1|>c", special=False)
        model._images = []
    assert found[:3] == [7, 9, 9] and found[-2:] == [7, 9] and set(found[3:-2]) == {-1}


def test_the_command(place: Path, tmp_path: Path) -> None:
    Image.fromarray(asked()[1][1][0]).save(tmp_path / "image.png")
    given = (
        "generate",
        place / "OUT",
        "What is it?",
        "--tokens",
        vision.TOKENS,
        "--image",
        tmp_path / "image.png",
        "--json",
    )
    assert as_json(specops(*given))["ids"] == RECORDED["answers"][1]


@pytest.mark.parametrize(
    ("file", "change", "message"),
    [
        ("openvino_vision_projection_model.xml", None, "it contains no openvino_vision_projection_model.xml"),
        ("config.json", {"sub_GN": None}, "its sub_GN has 0 numbers; expected 4096"),
        ("config.json", {"glb_GN": [1, 2]}, "its glb_GN has 2 numbers; expected 4096"),
        ("preprocessor_config.json", {"num_img_tokens": 72}, "it has the num_img_tokens 72, but the model needs 144"),
        (
            "preprocessor_config.json",
            {"image_mean": [0.5] * 3},
            "its image_mean is .*; onnxruntime-genai supports",
        ),
        (
            "preprocessor_config.json",
            {"image_std": [0.5] * 3},
            "its image_std is .*; onnxruntime-genai supports",
        ),
        ("preprocessor_config.json", {"image_std": [0.5, 0.5]}, "its image_std is .*; expected three numbers"),
        ("preprocessor_config.json", {"num_img_tokens": "x"}, "its num_img_tokens is 'x'; expected a positive integer"),
    ],
)
def test_inconsistent_folders(file: str, change: dict[str, Any] | None, message: str, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    phi_vision.unpack(folder)
    path = folder / file
    if change is None:
        path.unlink()
    else:
        path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(ConversionError, match=message):
        write_genai(folder, tmp_path / "out", convert)
    assert not any((tmp_path / "out").glob("*"))


@pytest.mark.parametrize(("crops", "reported"), [(4, True), (16, False)])
def test_other_numbers_of_crops_are_reported(crops: int, reported: bool, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    phi_vision.unpack(folder)
    path = folder / "preprocessor_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "num_crops": crops}))
    written = write_genai(folder, tmp_path / "out", convert)
    assert any("does not apply num_crops" in remark for remark in written.remarks) == reported
