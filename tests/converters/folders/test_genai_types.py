"""The type in genai_config.json, and the graphs and configurations that have none."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import pytest
from onnx import TensorProto, helper

from converters.errors import ConversionError
from converters.folders.genai_types import check_ports
from tests.converters.cli.specops import specops
from tests.converters.folders.genai_folder import ARCHIVES, Folder

CONFIG = "config.json"


@pytest.fixture(scope="module")
def lfm2(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    return Folder("hybrids/lfm2", tmp_path_factory.mktemp("lfm2"))


@pytest.mark.parametrize(
    ("change", "kind", "remark"),
    [
        ({}, "llama", None),
        ({"model_type": "mistral"}, "mistral", None),
        ({"model_type": "stablelm"}, "decoder", None),
        ({"model_type": "unheard_of"}, "decoder", "decoders of the model_type 'unheard_of' are unknown: from the graph"),
        ({"model_type": ""}, "decoder", "decoders of the model_type '' are unknown"),
        ({"model_type": None}, "decoder", "config.json states no model_type: from the graph"),
        ({"model_type": "bart", "is_encoder_decoder": False}, "decoder", "decoders of the model_type 'bart' are unknown"),
        ({"model_type": "granitemoehybrid", "layer_types": ["attention", "attention"]}, "decoder", None),
    ],
)
def test_types_of_decoders(change: dict[str, Any], kind: str, remark: str | None, llama: Folder) -> None:
    remarks = llama.written(config=change).remarks
    assert llama.config["model"]["type"] == kind
    said = [one for one in remarks if "its type in onnxruntime-genai is assumed to be 'decoder'" in one]
    assert len(said) == (remark is not None) and all(one.startswith(remark or "") for one in said)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model_type": "t5"}, "its model_type is 't5', an encoder-decoder, but the graph is a decoder of text"),
        ({"model_type": "bart"}, "its model_type is 'bart', an encoder-decoder, but"),
        ({"model_type": "whisper"}, "its model_type is 'whisper', a speech model, but"),
        ({"model_type": "nemotron_speech"}, "its model_type is 'nemotron_speech', a speech model, but"),
        ({"model_type": "llava_next"}, "its model_type is 'llava_next', a vision-language model, but"),
        ({"model_type": "phi3_v"}, "its model_type is 'phi3_v', a vision-language model, but"),
        ({"model_type": "qwen2_5_vl"}, "its model_type is 'qwen2_5_vl', a vision-language model, but"),
        ({"text_config": {"model_type": "t5"}}, "its text_config.model_type is 't5', an encoder-decoder, but"),
        (
            {"model_type": "lfm2"},
            "its model_type is 'lfm2', a model with states other than key-value caches, but the graph is a decoder of text"
            " whose only states are key-value caches",
        ),
        ({"model_type": "mamba"}, "its model_type is 'mamba', a model with states other than key-value caches, but"),
        (
            {"model_type": "granitemoehybrid", "layer_types": ["attention", "mamba"]},
            "its model_type is 'granitemoehybrid', a",
        ),
        (
            {"model_type": "unheard_of", "is_encoder_decoder": True},
            "its is_encoder_decoder is True, an encoder-decoder, but",
        ),
        ({"model_type": 7}, "its model_type is 7, no type, but"),
    ],
)
def test_types_of_other_structures(change: dict[str, Any], message: str, llama: Folder, tmp_path: Path) -> None:
    llama.out = tmp_path / "out"
    with pytest.raises(ConversionError) as raised:
        llama.written(config=change)
    (problem,) = raised.value.problems
    assert problem.message.startswith(message) and problem.file == str(llama.source / CONFIG)
    assert problem.remedy == "use the config.json of the model" and not llama.out.exists()


def test_states_of_an_unknown_type(lfm2: Folder, tmp_path: Path) -> None:
    """Only a decoder without other states can have an unknown type."""
    lfm2.out = tmp_path / "out"
    lfm2.written()
    assert lfm2.config["model"]["type"] == "lfm2"
    lfm2.out = tmp_path / "other"
    with pytest.raises(ConversionError, match="no type for the states of a model of the type 'unheard_of'"):
        lfm2.written(config={"model_type": "unheard_of"})
    assert not lfm2.out.exists()


def _model(inputs: dict[str, int], outputs: dict[str, int]) -> Any:
    ports = [
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, [f"{name}_{i}" for i in range(dims)]) for name, dims in one]
        for one in (inputs.items(), outputs.items())
    ]
    return helper.make_model(helper.make_graph([], "decoder", *ports))


_USUAL = {"input_ids": 2, "attention_mask": 2, "position_ids": 2, "past_key_values.0.key": 4, "past.1.conv": 3}
_RESULTS = {"logits": 3, "present.0.key": 4}


@pytest.mark.parametrize(
    ("inputs", "outputs", "message"),
    [
        ({}, {}, None),
        ({"position_ids": None, "attention_mask": None}, {"hidden_states": 3}, None),
        ({"token_type_ids": 2, "mask": 2}, {}, "onnxruntime-genai does not set its input mask, token_type_ids"),
        ({"inputs_embeds": 3}, {}, "onnxruntime-genai does not set its input inputs_embeds"),
        ({"input_ids": None}, {}, "it has no input input_ids, which onnxruntime-genai requires"),
        ({"position_ids": 3}, {}, "its position_ids have 3 dimensions; onnxruntime-genai requires 2 for this type"),
        ({}, {"logits": None, "scores": 3}, "it has no output logits, which onnxruntime-genai requires"),
        ({}, {"logits": 2}, "its logits have 2 dimensions; onnxruntime-genai requires 3 for this type"),
    ],
)
def test_inputs_and_outputs(inputs: dict[str, Any], outputs: dict[str, Any], message: str | None) -> None:
    model = _model(*({k: v for k, v in one.items() if v} for one in (_USUAL | inputs, _RESULTS | outputs)))
    if message is None:
        check_ports(Path("a.xml"), model, ["input_ids"])
        return
    with pytest.raises(ConversionError) as raised:
        check_ports(Path("a.xml"), model, ["input_ids"])
    (problem,) = raised.value.problems
    assert problem.message == message and problem.file == "a.xml" and problem.remedy == "convert it without --genai"


@pytest.mark.parametrize(
    ("name", "message", "without"),
    [
        (
            "input_ids",
            "onnxruntime-genai does not set its input tokens",
            "has inputs that text decoders do not have: tokens",
        ),
        ("logits", "it has no output logits, which onnxruntime-genai requires", "has no output logits, so it is not a"),
    ],
)
def test_other_names(name: str, message: str, without: str, tmp_path: Path) -> None:
    """They are an error of ``--genai``; without it, an error when text is generated."""
    with zipfile.ZipFile(ARCHIVES / "models/llama.zip") as file:
        file.extractall(tmp_path / "model")
    path = tmp_path / "model" / "openvino_model.xml"
    text = path.read_text()
    assert f'"{name}"' in text
    path.write_text(text.replace(f'"{name}"', '"tokens"'))
    result = specops("convert", tmp_path / "model", "-o", tmp_path / "out", "--genai")
    assert result.exit_code == 1 and message in " ".join(result.stderr.split()) and not (tmp_path / "out").exists()
    assert specops("convert", tmp_path / "model", "-o", tmp_path / "plain").exit_code == 0
    result = specops("generate", tmp_path / "plain", "Once", "--tokens", 2)
    assert result.exit_code == 2 and without in " ".join(result.stderr.split())


def test_the_command_names_the_assumed_type(tmp_path: Path) -> None:
    with zipfile.ZipFile(ARCHIVES / "models/llama.zip") as file:
        file.extractall(tmp_path / "model")
    path = tmp_path / "model" / CONFIG
    path.write_text(path.read_text().replace('"llama"', '"unheard_of"'))
    result = specops("convert", tmp_path / "model", "-o", tmp_path / "out", "--genai")
    assert result.exit_code == 0 and "decoders of the model_type 'unheard_of' are unknown" in " ".join(result.stderr.split())
