"""Hybrids in onnxruntime-genai: the states of convolutions and recurrences are inputs and outputs."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import onnx
import pytest

from converters.errors import ConversionError
from converters.folders.genai import write_genai
from converters.openvino import convert
from onnx_specops.generation import LanguageModel
from onnx_specops.runtime.library import has_library
from tests.converters.cli.specops import as_json, specops
from tests.folders import hybrids

STATES = ("past_key_values.{}.conv_state", "past_key_values.{}.recurrent_state")


def unpacked(name: str, folder: Path) -> Path:
    with zipfile.ZipFile(hybrids.ARCHIVES / f"{name}.zip") as file:
        file.extractall(folder)
    return folder


@pytest.fixture(scope="module", params=hybrids.NAMES.values())
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the original model and, in OUT, its conversion."""
    place = unpacked(request.param, tmp_path_factory.mktemp(request.param) / request.param)
    write_genai(place, place / "OUT", convert)
    return place


def generated(folder: Path, prompts: list[list[int]], count: int, beams: int = 1) -> list[list[int]]:
    pytest.importorskip("onnxruntime_genai")
    return hybrids.generated(folder, prompts, count, beams)


def test_onnxruntime_genai_gives_openvinos_tokens(place: Path) -> None:
    expected = json.loads((place / "expected.json").read_text())
    for prompt, tokens in zip(expected["prompts"], expected["greedy"], strict=True):
        count = tokens.index(0) if 0 in tokens else len(tokens)  # the end token, which the search avoids
        assert generated(place / "OUT", [prompt], count) == [tokens[:count]]


def test_rows_are_independent(place: Path) -> None:
    prompt = json.loads((place / "expected.json").read_text())["prompts"][0]
    prompts = [prompt, prompt[::-1]]
    assert generated(place / "OUT", prompts, 8) == [
        *generated(place / "OUT", prompts[:1], 8),
        *generated(place / "OUT", prompts[1:], 8),
    ]


def test_beams_of_convolutions(place: Path) -> None:
    """onnxruntime-genai reorders the states of convolutions, and not those of recurrences."""
    if not place.name.startswith("lfm2"):
        pytest.skip("it has recurrences")
    expected = json.loads((place / "expected.json").read_text())
    assert generated(place / "OUT", [expected["prompts"][0]], 12, hybrids.BEAMS) == [expected["beams"]]


def test_states_are_inputs_and_outputs(place: Path) -> None:
    graph = onnx.load(place / "OUT" / "model.onnx").graph
    names = [value.name for value in graph.input]
    wanted = [name.format(number) for number in range(2) for name in STATES]
    if place.name.startswith("lfm2"):
        wanted = ["past.1.conv", "past.2.conv"]
    assert [name for name in names if "state" in name or "conv" in name] == wanted
    assert not {"beam_idx", *(name for name in names if name.endswith(".is_set"))} & set(names)
    assert [node.op_type for node in graph.node].count("GroupQueryAttention") == 1


@pytest.mark.parametrize("kernels", [*(["native"] if has_library() else []), "none"])
def test_a_session_starts_with_zeros(kernels: Any, place: Path) -> None:
    expected = json.loads((place / "expected.json").read_text())
    model = LanguageModel(place / "OUT", kernels=kernels)
    model.ends = frozenset()
    for prompt, tokens in zip(expected["prompts"], expected["greedy"], strict=True):
        assert list(model.generate(prompt, len(tokens))) == tokens
    prompt, tokens = expected["prompts"][0], expected["greedy"][0]
    list(model.generate(prompt, 5))
    assert list(model.generate([*prompt, *tokens[:8]], 6)) == tokens[8:14]


def test_the_command(place: Path) -> None:
    expected = json.loads((place / "expected.json").read_text())
    document = as_json(specops("generate", place / "OUT", expected["text"], "--tokens", 24, "--json"))
    assert document["ids"] == expected["answer"]


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("qwen3_next", {}, "no type for the states of a model of the type 'qwen3_next'"),
        ("lfm2", {"model_type": "bamba"}, "no type for the states of a model of the type 'bamba'"),
        ("lfm2", {"model_type": "granitemoehybrid"}, r"its model_type is 'granitemoehybrid', but .* conv\.in_proj, as"),
        ("granite_hybrid", {"model_type": "lfm2"}, r"its model_type is 'lfm2', but .* mamba\.in_proj, as"),
        ("lfm2", {"num_hidden_layers": 2}, "its num_hidden_layers is 2, but the model has 3 layers with a cache"),
        ("mamba", {}, "is not a cache"),
        ("zamba2", {}, "no type for the states of a model of the type 'zamba2'"),
    ],
)
def test_other_models_are_rejected(name: str, change: dict[str, Any], message: str, tmp_path: Path) -> None:
    folder = unpacked(name, tmp_path / "model")
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(ConversionError, match=message):
        write_genai(folder, tmp_path / "out", convert)
    assert not any((tmp_path / "out").glob("*"))
