"""A configuration of a model of another structure than that of the folder is an error."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from converters.folders.structure import other_structure
from tests.converters.cli.specops import as_json, specops

ARCHIVES = Path(__file__).parents[2] / "language"
PAIR = ("openvino_encoder_model.xml", "openvino_decoder_model.xml")
IMAGES = ("openvino_language_model.xml", "openvino_text_embeddings_model.xml")
DECODER = ("openvino_model.xml",)
CACHES = ("past_key_values.0.keypresent.0.key", "past_key_values.1.keypresent.1.key")
HYBRID = ("cache_params.past.conv.0cache_params.present.conv.0", "cache_params.past.ssm.0cache_params.present.ssm.0")
TEXT, SOUND = ("input_ids", "attention_mask"), ("input_features",)


def folder_of(place: Path, files: Sequence[str], names: Sequence[str] = ()) -> Path:
    for file in files:
        (place / file).write_text("".join(f'<data variable_id="{name}"/>' for name in names))
    return place


@pytest.mark.parametrize(
    ("files", "names", "inputs", "config"),
    [
        (PAIR, CACHES, TEXT, {"model_type": "t5"}),
        (PAIR, CACHES, SOUND, {"model_type": "whisper"}),
        (PAIR, CACHES, TEXT, {"model_type": "speecht5"}),
        (PAIR, CACHES, ("pixel_values",), {"model_type": "vision-encoder-decoder", "is_encoder_decoder": True}),
        (PAIR, CACHES, TEXT, {"model_type": "unheard_of"}),
        (PAIR, CACHES, (), {}),
        (IMAGES, CACHES, (), {"model_type": "llava", "text_config": {"model_type": "llama", "num_hidden_layers": 2}}),
        (IMAGES, CACHES, (), {"model_type": "qwen3_5", "vision_config": {"depth": 2}}),
        (IMAGES, CACHES, (), {"model_type": "qwen2_audio"}),
        (DECODER, CACHES, (), {"model_type": "llama", "num_hidden_layers": 2}),
        (DECODER, CACHES, (), {"model_type": "bart", "is_encoder_decoder": False}),
        (DECODER, CACHES, (), {"model_type": "unheard_of"}),
        (DECODER, HYBRID, (), {"model_type": "unheard_of"}),
        (DECODER, HYBRID, (), {"model_type": "mamba", "num_hidden_layers": 1}),
        (DECODER, (), (), {"model_type": "bart"}),  # a model without states, such as a classifier
        (DECODER, ("kept",), (), {"model_type": "llama"}),
    ],
)
def test_structures_that_agree(
    files: Sequence[str], names: Sequence[str], inputs: Sequence[str], config: dict[str, Any], tmp_path: Path
) -> None:
    assert other_structure(folder_of(tmp_path, files, names), config, inputs) == ""


@pytest.mark.parametrize(
    ("files", "names", "inputs", "config", "message"),
    [
        (
            PAIR,
            CACHES,
            TEXT,
            {"model_type": "llama"},
            "'llama', a decoder of text, but the folder contains an encoder and a",
        ),
        (
            PAIR[1:],
            CACHES,
            (),
            {"model_type": "mamba"},
            "'mamba', a decoder of text, but the folder contains an encoder and",
        ),
        (
            PAIR,
            CACHES,
            TEXT,
            {"model_type": "qwen3_5", "vision_config": {"depth": 2}},
            "'qwen3_5', a decoder of text, but t",
        ),
        (PAIR, CACHES, TEXT, {"model_type": "gemma3"}, "'gemma3', a vision-language model, but the folder contains an enc"),
        (PAIR, CACHES, TEXT, {"model_type": "whisper"}, "'whisper', a speech model, but the encoder takes tokens"),
        (PAIR, CACHES, SOUND, {"model_type": "t5"}, "'t5', an encoder-decoder, but the encoder has the inputs input_feat"),
        (
            PAIR,
            CACHES,
            TEXT,
            {"model_type": "gpt2", "is_encoder_decoder": True},
            "'gpt2', a decoder of text, but the folder",
        ),
        (IMAGES, CACHES, (), {"model_type": "llama"}, "'llama', a decoder of text, but the folder contains a decoder of em"),
        (IMAGES[1:], (), (), {"model_type": "t5"}, "'t5', an encoder-decoder, but the folder contains a decoder of embedd"),
        (IMAGES, CACHES, (), {"model_type": "whisper"}, "'whisper', a speech model, but the folder contains a decoder of "),
        (IMAGES, CACHES, (), {"model_type": "llava", "text_config": {"num_hidden_layers": 3}}, "it describes 3 layers, but"),
        (DECODER, CACHES, (), {"model_type": "t5"}, "'t5', an encoder-decoder, but the model is a decoder of text"),
        (DECODER, CACHES, (), {"model_type": "whisper"}, "'whisper', a speech model, but the model is a decoder of text"),
        (DECODER, CACHES, (), {"model_type": "llava"}, "'llava', a vision-language model, but the model is a decoder of t"),
        (
            DECODER,
            CACHES,
            (),
            {"is_encoder_decoder": True},
            "its is_encoder_decoder is True, an encoder-decoder, but the mod",
        ),
        (DECODER, CACHES, (), {"model_type": "mamba", "num_hidden_layers": 2}, "it describes 2 convolutions and 2 state sp"),
        (DECODER, HYBRID, (), {"model_type": "cohere"}, "'cohere' have only key-value caches, but this model has 1 conv"),
    ],
)
def test_other_structures(
    files: Sequence[str], names: Sequence[str], inputs: Sequence[str], config: dict[str, Any], message: str, tmp_path: Path
) -> None:
    assert message in other_structure(folder_of(tmp_path, files, names), config, inputs)


@pytest.mark.parametrize("layout", ["hosts", "files"])
@pytest.mark.parametrize(
    ("name", "other", "messages"),
    [
        (
            "text2text/t5_text",
            "models/llama",
            ["'llama', a decoder of text, but the folder contains an encoder and a decoder"],
        ),
        ("text2text/t5_text", "text2text/bart_text", ["its model_type is 'bart', but the layers of openvino_enc", "_dec"]),
        ("models/llama", "text2text/bart_text", ["'bart', an encoder-decoder, but the model is a decoder of text"]),
        ("hybrids/lfm2", "hybrids/zamba2", ["it describes 4 conv", "its model_type is 'zamba2', but the layers of"]),
    ],
)
def test_the_command_leaves_nothing(name: str, other: str, messages: list[str], layout: str, tmp_path: Path) -> None:
    source = tmp_path / "source"
    with zipfile.ZipFile(ARCHIVES / f"{name}.zip") as file:
        file.extractall(source)
    with zipfile.ZipFile(ARCHIVES / f"{other}.zip") as file:
        (source / "config.json").write_bytes(file.read("config.json"))
    result = specops("convert", source, "-o", tmp_path / "out", "--layout", layout, "--json")
    assert result.exit_code == 2 and not (tmp_path / "out").exists()
    found = [problem["message"] for problem in as_json(result)["problems"]]
    assert len(found) == len(messages) and all(part in one for part, one in zip(messages, found, strict=True))


def test_the_sizes_of_a_pair(tmp_path: Path) -> None:
    source = tmp_path / "source"
    with zipfile.ZipFile(ARCHIVES / "text2text/t5_text.zip") as file:
        file.extractall(source)
    config = json.loads((source / "config.json").read_text())
    (source / "config.json").write_text(json.dumps(config | {"d_model": 48, "vocab_size": 7}))
    result = specops("convert", source, "-o", tmp_path / "out", "--json")
    first, second = (problem["message"] for problem in as_json(result)["problems"])
    assert first.startswith("d_model is 48, but last_hidden_state of openvino_encoder_model.xml has 32")
    assert second.startswith("vocab_size is 7, but logits of openvino_decoder_model.xml has 320")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("name", "missing", "there"),
    [
        ("text2text/t5_text", "openvino_decoder_model.xml", "openvino_encoder_model.xml"),
        ("text2text/t5_text", "openvino_encoder_model.xml", "openvino_decoder_model.xml"),
        ("vision/llava", "openvino_text_embeddings_model.xml", "openvino_language_model.xml"),
        ("models/llama", "openvino_model.xml", "openvino_model.bin"),
    ],
)
def test_a_missing_part(name: str, missing: str, there: str, tmp_path: Path) -> None:
    source = tmp_path / "source"
    with zipfile.ZipFile(ARCHIVES / f"{name}.zip") as file:
        file.extractall(source)
    for path in (source / missing, *([] if there.endswith(".bin") else [(source / missing).with_suffix(".bin")])):
        path.unlink()
    result = specops("convert", source, "-o", tmp_path / "out", "--json")
    (problem,) = as_json(result)["problems"]
    assert problem["message"] == f"it contains {there}, but no {missing}" and not (tmp_path / "out").exists()
