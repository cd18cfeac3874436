"""Vision-language models in onnxruntime-genai give the tokens that transformers generates with OpenVINO."""

from __future__ import annotations

import json
import zipfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import openvino as ov
import pytest

from converters.convert import Conversion, convert_with
from converters.errors import ConversionError
from converters.folders.genai import write_genai
from converters.folders.genai_vision import DECODER, EMBEDDING, VISION, _take_embeddings
from converters.options import Options
from tests.converters.cli.specops import as_json, specops
from tests.folders import vision

ARCHIVES = Path(__file__).parent / "vision"
NAMES = ("gemma3", "mistral3", "qwen2.5-vl", "qwen3-vl", "qwen3.5")
WITH_TABLES = ("qwen3-vl", "qwen3.5")


def convert(model: Any, target: Path | None, *, adapt: Any = None, **more: Any) -> Conversion:
    return convert_with(model, target, Options(**more), adapt=adapt)


def unpacked(name: str, folder: Path) -> Path:
    with zipfile.ZipFile(ARCHIVES / f"{name}.zip") as file:
        file.extractall(folder)
    return folder


def converted(place: Path) -> Path:
    """Convert the model in a folder for onnxruntime-genai, into OUT in it; return the folder."""
    document = as_json(specops("convert", place, "-o", place / "OUT", "--genai", "--json"))
    assert [Path(path).name for path in document["models"]] == [DECODER, EMBEDDING, VISION]
    return place


def check_tokens_of_genai(place: Path) -> None:
    """Check that onnxruntime-genai generates the recorded tokens of OpenVINO, different ones for each request."""
    pytest.importorskip("onnxruntime_genai")
    expected = json.loads((place / "expected.json").read_text())
    assert len({tuple(row) for row in expected}) == 3
    assert vision.in_genai(place / "OUT", place.name, processed=True) == expected


@pytest.fixture(scope="module", params=NAMES)
def place(request: pytest.FixtureRequest, with_images: Callable[[str], Path]) -> Path:
    """Return a folder with the original model and, in OUT, its conversion."""
    place = with_images(request.param)
    assert {path.name for path in (place / "OUT").glob("*.onnx")} >= {DECODER, EMBEDDING, VISION}
    return place


def test_onnxruntime_genai_gives_openvinos_tokens(place: Path) -> None:
    check_tokens_of_genai(place)


def test_attention_is_grouped(place: Path) -> None:
    graph = onnx.load(place / "OUT" / DECODER).graph
    layers = json.loads((place / "config.json").read_text())["text_config"]["num_hidden_layers"]
    operators = Counter(node.op_type for node in graph.node)
    recurrences = 2 if place.name == "qwen3.5" else 0
    assert operators["GroupQueryAttention"] == layers - recurrences
    assert operators["GatedDeltaRule"] == operators["CausalConv"] == recurrences
    inputs = {
        value.name: [dim.dim_param or dim.dim_value for dim in value.type.tensor_type.shape.dim] for value in graph.input
    }
    assert not inputs.keys() & {"token_type_ids", "input_ids", "deepstack_visual_embeds", "visual_pos_masks"}
    if not place.name.startswith("qwen"):  # the positions are part of the attention
        assert "position_ids" not in inputs
    else:
        assert inputs["position_ids"] == [3, "batch_size", "sequence_length"]


def test_the_patches_of_an_image(place: Path) -> None:
    """Windows and positions, for sizes that are and are not multiples of a window; masks for frames of a video."""
    if not place.name.startswith("qwen"):
        pytest.skip("its images are not split into patches")
    torch = pytest.importorskip("torch")
    intel = pytest.importorskip("optimum.intel")
    model = intel.OVModelForVisualCausalLM.from_pretrained(place, device="CPU", ov_config=vision.CPU)
    session = ort.InferenceSession(place / "OUT" / VISION)
    draw = np.random.default_rng(3)
    for grid in ([1, 8, 8], [1, 2, 2], [1, 18, 4], [3, 4, 10]):
        elements = 3 * 2 * (16 if place.name in WITH_TABLES else 14) ** 2
        patches = draw.standard_normal((int(np.prod(grid)), elements)).astype(np.float32)
        expected = model.get_vision_embeddings(torch.from_numpy(patches), torch.tensor([grid]))
        if place.name == "qwen3-vl":  # the features of the first layer, and of the others
            expected = np.concatenate([expected[0], *expected[1]], axis=1)
        (found,) = session.run(None, {"pixel_values": patches, "image_grid_thw": np.array([grid], np.int64)})
        np.testing.assert_allclose(found, expected, atol=2e-5 * np.abs(expected).max())


def test_patches_become_tokens(tmp_path: Path) -> None:
    """Patches of 2 rows and 2 columns, for images of several sizes."""
    folder = unpacked("mistral3", tmp_path / "model")
    write_genai(folder, folder / "OUT", convert)
    session = ort.InferenceSession(folder / "OUT" / VISION)
    parts = (folder / f"openvino_{part}_model.xml" for part in ("vision_embeddings", "multi_modal_projector"))
    encode, project = (ov.compile_model(part, "CPU", vision.CPU) for part in parts)
    draw = np.random.default_rng(6)
    for rows, columns in ((4, 6), (2, 2), (8, 2)):
        pixels = draw.standard_normal((1, 3, rows * 14, columns * 14)).astype(np.float32)
        patches = encode([pixels])[0].reshape(rows // 2, 2, columns // 2, 2, 32)
        expected = project([patches.transpose(0, 2, 4, 1, 3).reshape(-1, 128).copy()])[0]
        (found,) = session.run(None, {"pixel_values": pixels})
        np.testing.assert_allclose(found, expected, atol=2e-5 * np.abs(expected).max())


def test_embeddings_of_images_replace_their_tokens(place: Path) -> None:
    session = ort.InferenceSession(place / "OUT" / EMBEDDING)
    ids = np.array([[5, vision.IMAGE, vision.IMAGE, 6], [vision.IMAGE, 7, 8, 9]])
    compiled = ov.compile_model(place / "openvino_text_embeddings_model.xml", "CPU", vision.CPU)
    expected = compiled([ids])[0].copy()
    width = 64 * (3 if place.name == "qwen3-vl" else 1)
    expected = np.pad(expected, [(0, 0), (0, 0), (0, width - 64)])
    none = np.zeros((0, width), np.float32)
    (found,) = session.run(None, {"input_ids": ids, "image_features": none})
    np.testing.assert_array_equal(found, expected)
    features = np.random.default_rng(1).standard_normal((3, width)).astype(np.float32)
    expected[ids == vision.IMAGE] = features
    for given in (features, features[:, None]):  # [tokens, width], [images, tokens, width]
        (found,) = session.run(None, {"input_ids": ids, "image_features": given})
        np.testing.assert_array_equal(found, expected)
    with pytest.raises(Exception, match="out of data bounds"):
        session.run(None, {"input_ids": ids, "image_features": features[:2]})


def test_features_of_other_layers_follow_the_embeddings(tmp_path: Path) -> None:
    folder = unpacked("qwen3-vl", tmp_path / "model")
    write_genai(folder, folder / "OUT", convert, logits="all")
    session = ort.InferenceSession(folder / "OUT" / DECODER)
    draw = np.random.default_rng(4)
    embeddings, features = (draw.standard_normal((1, 7, 64 * n)).astype(np.float32) for n in (1, 2))
    places = np.array([[0, 1, 1, 0, 0, 1, 0]], bool)
    features[~places] = 0
    feeds = {"attention_mask": np.ones((1, 7), np.int64), "position_ids": np.tile(np.arange(7), (3, 1, 1))}
    past = {
        value.name: np.zeros((1, 2, 0, 16), np.float32) for value in session.get_inputs() if value.name.startswith("past")
    }
    whole = np.concatenate([embeddings, features], axis=2)
    (found,) = session.run(["logits"], {"inputs_embeds": whole, **feeds, **past})
    request = ov.compile_model(folder / "openvino_language_model.xml", "CPU", vision.CPU).create_infer_request()
    given = {"inputs_embeds": embeddings, "visual_pos_masks": places, "beam_idx": np.zeros(1, np.int32), **feeds}
    deep = features[places].reshape(-1, 2, 64).transpose(1, 0, 2).copy()
    expected = request.infer({**given, "deepstack_visual_embeds": deep})["logits"]
    np.testing.assert_allclose(found, expected, atol=2e-5 * np.abs(expected).max())
    request.reset_state()
    without = request.infer({**given, "deepstack_visual_embeds": deep * 0})["logits"]
    assert np.abs(without - expected).max() > 0.1 * np.abs(expected).max()


@pytest.mark.parametrize("is_used", [True, False])
def test_token_types_are_computed_from_tokens(is_used: bool) -> None:
    ops = ov.opset13
    embeddings = ops.parameter([-1, -1, 4], np.float32, "inputs_embeds")
    types = ops.parameter([-1, -1], np.int64, "token_type_ids")
    added = ops.unsqueeze(ops.convert(types, "f32"), np.int64(-1)) if is_used else np.float32(0)
    result = ops.result(ops.add(embeddings, added))
    for value, name in ((embeddings, "inputs_embeds"), (types, "token_type_ids"), (result, "logits")):
        value.output(0).set_names({name})
    model = convert(ov.Model([result], [embeddings, types]), None, adapt=lambda emitted: _take_embeddings(emitted, 3)).model
    assert [value.name for value in model.graph.input] == ["inputs_embeds", *(["input_ids"] if is_used else [])]
    if is_used:
        given = {"inputs_embeds": np.zeros((1, 3, 4), np.float32), "input_ids": np.array([[2, 3, 4]])}
        (found,) = ort.InferenceSession(model.SerializeToString()).run(None, given)
        assert found[0, :, 0].tolist() == [0, 1, 0]


@pytest.mark.parametrize("rows", [3, 4])
def test_positions_of_text_are_computed_from_the_mask(rows: int) -> None:
    """A decoder with four positions per token gets three of them."""
    ops = ov.opset13
    positions = ops.parameter([rows, -1, -1], np.int64, "position_ids")
    mask = ops.parameter([-1, -1], np.int64, "attention_mask")
    total = ops.reduce_sum(ops.reduce_sum(mask, np.int64(1)), np.int64(0))
    result = ops.result(ops.add(ops.convert(positions, "f32"), ops.convert(ops.multiply(total, np.int64(100)), "f32")))
    for value, name in ((positions, "position_ids"), (mask, "attention_mask"), (result, "logits")):
        value.output(0).set_names({name})
    model = convert(ov.Model([result], [positions, mask]), None, adapt=lambda emitted: _take_embeddings(emitted, 3)).model
    given = {"position_ids": np.full((3, 1, 2), 7), "attention_mask": np.ones((1, 6), np.int64)}
    (found,) = ort.InferenceSession(model.SerializeToString()).run(None, given)
    assert (found - 600)[:, 0].tolist() == [[4, 5]] * (rows - 3) + [[7, 7]] * 3


@pytest.mark.parametrize(
    ("name", "file", "change", "message"),
    [
        ("gemma3", "config.json", {"model_type": "llava"}, "no vision-language model of the type 'llava'"),
        ("gemma3", "config.json", {"image_token_index": None}, "it has no image_token_id"),
        ("gemma3", "config.json", {"image_token_index": 320}, "its image_token_id is 320, but the model has tokens"),
        ("gemma3", "config.json", {"image_token_index": 301}, "is 301, but <image_soft_token> is the token 300"),
        ("mistral3", "config.json", {"image_token_index": 5}, r"its image_token_id is 5, but \[IMG\] is the token 300"),
        ("mistral3", "config.json", {"spatial_merge_size": 1}, "a token has 128 numbers, not those of 1 x 1 patches of 32"),
        ("qwen2.5-vl", "config.json", {"image_token_id": 301}, "_id is 301, but <.image_pad.> is the token 300 of"),
        ("qwen2.5-vl", "config.json", {"video_token_id": 400}, "its video_token_id is 400, but the model has tokens from 0"),
        ("qwen3.5", "config.json", {"vision_start_token_id": 301}, "is 301, but <.vision_start.> is the token 302"),
        ("gemma3", "config.json", {"vision_config": None}, "it has no vision_config"),
        ("gemma3", "preprocessor_config.json", {"size": {"height": 32, "width": 32}}, "the model needs images of 64 x 64"),
        ("gemma3", "preprocessor_config.json", {"resample": 4}, "its resample is 4"),
        ("gemma3", "preprocessor_config.json", {"image_std": [1]}, "its image_std is .1.; expected three numbers"),
        ("gemma3", "tokenizer.json", {"added_tokens": [{"id": 400}]}, "it has tokens up to 400, but the model has 320"),
        ("gemma3", "preprocessor_config.json", None, "no settings of an image processor"),
        ("gemma3", "openvino_text_embeddings_model.xml", None, "it contains no openvino_text_embeddings_model.xml"),
        ("mistral3", "openvino_multi_modal_projector_model.xml", None, "it contains no openvino_multi_modal_proj"),
        ("mistral3", "preprocessor_config.json", {"patch_size": 16}, "has the patch_size 16, but the model needs 14"),
        ("mistral3", "preprocessor_config.json", {"size": {"longest_edge": 0}}, "its size.longest_edge is 0; expected"),
        ("qwen2.5-vl", "preprocessor_config.json", {"patch_size": 16}, "it has the patch_size 16, but the model needs 14"),
        ("qwen2.5-vl", "preprocessor_config.json", {"max_pixels": "x"}, "its max_pixels is 'x'; expected a positive"),
        ("qwen2.5-vl", "config.json", {"vision_start_token_id": None}, "it has no vision_start_token_id"),
        ("qwen2.5-vl", "openvino_vision_embeddings_merger_model.xml", None, "it contains no openvino_vision_emb"),
        ("qwen3-vl", "openvino_vision_embeddings_pos_model.xml", None, "it contains no openvino_vision_embeddings_pos"),
        ("qwen3-vl", "config.json", {"vision_config": {"patch_size": 16}}, "expected features and those of 3 layers"),
        ("qwen3.5", "openvino_vision_embeddings_pos_model.xml", None, "it contains no openvino_vision_embeddings_pos"),
        ("qwen3.5", "config.json", {"model_type": "qwen3_vl"}, "no type for the states of a model of the type 'qwen3_vl'"),
        ("qwen3-vl", "config.json", {"model_type": "qwen3_5"}, "expected features and those of 0 layers"),
    ],
)  # fmt: skip
def test_inconsistent_folders(name: str, file: str, change: dict[str, Any] | None, message: str, tmp_path: Path) -> None:
    folder = unpacked(name, tmp_path / name)
    path = folder / file
    if change is None:
        path.unlink()
    else:
        path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(ConversionError, match=message):
        write_genai(folder, tmp_path / "out", convert)
    assert not any((tmp_path / "out").glob("*"))


def test_exchanged_parts(tmp_path: Path) -> None:
    folder = unpacked("qwen2.5-vl", tmp_path / "model")
    parts = [folder / f"openvino_{part}_embeddings_model" for part in ("text", "vision")]
    for suffix in (".xml", ".bin"):
        one, other = (part.with_suffix(suffix) for part in parts)
        contents = one.read_bytes(), other.read_bytes()
        one.write_bytes(contents[1])
        other.write_bytes(contents[0])
    with pytest.raises(ConversionError, match=r"it does not compute the embeddings .* of tokens"):
        write_genai(folder, tmp_path / "out", convert)
    assert not (tmp_path / "out").exists()


def test_nothing_is_written_if_the_vision_encoder_cannot_be_converted(tmp_path: Path) -> None:
    folder = unpacked("qwen2.5-vl", tmp_path / "model")
    path = folder / "openvino_vision_embeddings_merger_model.xml"
    path.write_text(path.read_text().replace('type="Gelu"', 'type="Unknown"'))
    with pytest.raises(ConversionError, match="Unknown"):
        write_genai(folder, tmp_path / "out", convert)
    assert not (tmp_path / "out").exists()


def test_settings_that_are_not_applied_are_reported(tmp_path: Path) -> None:
    folder = unpacked("gemma3", tmp_path / "model")
    path = folder / "preprocessor_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "do_pan_and_scan": True}))
    written = write_genai(folder, tmp_path / "out", convert)
    assert any("does not apply do_pan_and_scan" in remark for remark in written.remarks)


@pytest.mark.parametrize("flat", [True, False])
def test_settings_in_the_file_of_transformers_5(flat: bool, tmp_path: Path) -> None:
    """transformers 5 writes the image processor into processor_config.json, and prefers it there."""
    folder = unpacked("gemma3", tmp_path / "model")
    path, nested = folder / "preprocessor_config.json", folder / "processor_config.json"
    settings = json.loads(path.read_text())
    before = json.loads(nested.read_text()) if nested.is_file() else {}
    assert "image_processor" not in before
    found = []
    for other in (
        {},
        {"feature_extractor": {"image_mean": [3]}},
        {"image_processor": {**settings, "image_mean": [0.1, 0.2, 0.3]}},
    ):
        if "image_processor" in other and not flat:
            path.unlink()
        nested.write_text(json.dumps({**before, **other}))
        out = tmp_path / str(len(found))
        write_genai(folder, out, convert)
        steps = json.loads((out / "image_processor_config.json").read_text())["processor"]["transforms"]
        (mean,) = [step["operation"]["attrs"]["mean"] for step in steps if step["operation"]["type"] == "Normalize"]
        found.append(mean)
    assert found == [settings["image_mean"], settings["image_mean"], [0.1, 0.2, 0.3]]


def test_the_end_token_is_not_padding(tmp_path: Path) -> None:
    """onnxruntime-genai masks tokens of a prompt that equal the padding."""
    folder = unpacked("qwen2.5-vl", tmp_path / "model")
    for name in ("config.json", "generation_config.json"):
        content = json.loads((folder / name).read_text())
        content.get("text_config", {}).pop("pad_token_id", None)
        content.pop("pad_token_id", None)
        (folder / name).write_text(json.dumps(content))
    write_genai(folder, tmp_path / "out", convert)
    model = json.loads((tmp_path / "out" / "genai_config.json").read_text())["model"]
    assert model["pad_token_id"] == model["video_token_id"] != model["eos_token_id"]
