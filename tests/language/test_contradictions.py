"""A configuration that contradicts the graph is an error of --genai, with all contradictions at once."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from converters.errors import ConversionError
from converters.folders.genai import write_genai
from tests.language.recorder import Recorder

HERE = Path(__file__).parent
CONFIG, GENERATION = "config.json", "generation_config.json"


@pytest.fixture(scope="module")
def recorder(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Recorder]:
    """Return a function of the name of a folder. The files that the tests change do not affect the recorded conversions."""

    @cache
    def recorded(name: str) -> Recorder:
        place = tmp_path_factory.mktemp("recorded")
        return Recorder.of(unpacked(name, place / "source"), place / "out")

    return recorded


def unpacked(name: str, folder: Path) -> Path:
    with zipfile.ZipFile(HERE / f"{name}.zip") as file:
        file.extractall(folder)
    return folder


def converted(tmp_path: Path, name: str, changes: dict[str, dict[str, Any]], recorder: Callable[[str], Recorder]) -> Path:
    """Write the folder of a model whose configurations are changed. A key with the value ``None`` is removed."""
    source, target = unpacked(name, tmp_path / "source"), tmp_path / "out"
    for file_name, values in changes.items():
        content = json.loads((source / file_name).read_text())
        for place, value in values.items():
            *parts, key = place.split(".")
            part = content
            for each in parts:
                part = part[each]
            part[key] = value
        (source / file_name).write_text(json.dumps({key: value for key, value in content.items() if value is not None}))
    write_genai(source, target, recorder(name).replay)
    return target


@pytest.mark.parametrize(
    ("name", "file", "change", "message"),
    [
        (
            "models/llama",
            CONFIG,
            {"num_hidden_layers": 3},
            "num_hidden_layers is 3, but the model has 2 layers with a cache",
        ),
        ("models/gpt2", CONFIG, {"n_layer": 3}, "n_layer is 3, but the model has 2 layers with a cache"),
        ("models/llama", CONFIG, {"num_attention_heads": 8}, "num_attention_heads is 8, but the model has 4 query heads"),
        ("models/llama", CONFIG, {"hidden_size": 48}, "hidden_size is 48, but the model has hidden states of size 32"),
        ("models/gpt2", CONFIG, {"n_embd": 48}, "n_embd is 48, but the model has hidden states of size 32"),
        ("models/llama", CONFIG, {"eos_token_id": 320}, "eos_token_id is 320, but the model has tokens from 0 to 319"),
        ("models/llama", GENERATION, {"eos_token_id": [0, 999]}, "eos_token_id is 999, but the model has tokens from 0 to"),
        ("models/llama", CONFIG, {"eos_token_id": "</s>"}, "eos_token_id is '</s>', but the model has tokens from 0 to 319"),
        (
            "models/llama",
            CONFIG,
            {"model_type": "gpt2"},
            "model_type is 'gpt2', but the model's layers have self_attn.q_proj, as in the types gpt_oss, llama,",
        ),
        (
            "models/llama",
            CONFIG,
            {"model_type": "qwen3"},
            "model_type is 'qwen3', but the model's layers have self_attn.q_proj, as in",
        ),
        (
            "models/phi3",
            CONFIG,
            {"model_type": "llama"},
            "model_type is 'llama', but the model's layers have self_attn.qkv_proj, as in the type phi3",
        ),
        (
            "models/qwen3",
            CONFIG,
            {"model_type": "mistral"},
            "model_type is 'mistral', but the model's layers have self_attn.q_proj and self_attn.q_norm, as in",
        ),
        ("vision/gemma3", CONFIG, {"text_config.num_hidden_layers": 9}, "text_config.num_hidden_layers is 9, but the model"),
        ("vision/gemma3", CONFIG, {"text_config.hidden_size": 9}, "text_config.hidden_size is 9, but the model"),
        ("vision/gemma3", CONFIG, {"text_config.eos_token_id": 9999}, "text_config.eos_token_id is 9999, but the model"),
        ("vision/gemma3", CONFIG, {"text_config.model_type": "llama"}, "text_config.model_type is 'llama', but the model's"),
        ("speech/whisper_speech", CONFIG, {"decoder_layers": 7}, "decoder_layers is 7, but the model has"),
        ("speech/whisper_speech", CONFIG, {"decoder_attention_heads": 7}, "decoder_attention_heads is 7, but the model has"),
        ("speech/whisper_speech", CONFIG, {"d_model": 7}, "d_model is 7, but the model has"),
    ],
)
def test_contradictions(name: str, file: str, change: dict[str, Any], message: str, tmp_path: Path, recorder: Any) -> None:
    with pytest.raises(ConversionError) as raised:
        converted(tmp_path, name, {file: change}, recorder)
    (problem,) = raised.value.problems
    assert problem.message.startswith(f"its {message}")
    assert problem.file == str(tmp_path / "source" / file) and problem.remedy == f"use the {file} of the model"
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("name", "file", "change"),
    [
        ("models/llama", CONFIG, {"num_hidden_layers": None, "hidden_size": None, "num_attention_heads": None}),
        ("models/llama", CONFIG, {"n_layer": 2, "num_hidden_layers": 3}),  # one of the names has the right number
        ("models/llama", CONFIG, {"num_hidden_layers": 3, "num_kv_shared_layers": 1}),
        ("models/llama", CONFIG, {"hidden_size": 48, "word_embed_proj_dim": 32}),
        ("models/bloom", CONFIG, {"num_attention_heads": 8, "n_head": 8}),  # not determined
        ("models/llama", CONFIG, {"eos_token_id": [0, 319]}),
        ("models/llama", GENERATION, {"eos_token_id": None}),
        ("models/llama", CONFIG, {"model_type": "mistral"}),  # with the same modules
        ("models/llama", CONFIG, {"model_type": "unheard_of"}),
        ("models/llama", CONFIG, {"model_type": None}),
    ],
)
def test_no_contradictions(name: str, file: str, change: dict[str, Any], tmp_path: Path, recorder: Any) -> None:
    assert (converted(tmp_path, name, {file: change}, recorder) / "genai_config.json").is_file()


def test_all_contradictions_at_once(tmp_path: Path, recorder: Any) -> None:
    sizes = {"vocab_size": 7, "num_hidden_layers": 3, "num_attention_heads": 8, "hidden_size": 48}
    others = {"eos_token_id": -1, "model_type": "gpt2"}
    with pytest.raises(ConversionError) as raised:
        converted(tmp_path, "models/llama", {CONFIG: sizes | others, GENERATION: {"eos_token_id": 320}}, recorder)
    found = [(Path(problem.file or "").name, problem.message.split()[1]) for problem in raised.value.problems]
    assert found == [
        *((CONFIG, name) for name in (*sizes, "eos_token_id")),
        (GENERATION, "eos_token_id"),
        (CONFIG, "model_type"),
    ]
