"""``specops convert FOLDER`` and ``specops generate``."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

from converters.folders.companions import companions, is_model_folder
from tests.converters.cli.specops import as_json, specops

ARCHIVE = Path(__file__).parent / "models" / "llama.zip"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with zipfile.ZipFile(ARCHIVE) as file:
        file.extractall(tmp_path / "llama")
    return tmp_path / "llama"


def test_all_irs_and_companions_of_a_folder(folder: Path, tmp_path: Path) -> None:
    (folder / "chat_template.jinja").write_text("{{ messages }}")
    (folder / "model.safetensors").write_bytes(b"weights of another form")
    (folder / ".cache").mkdir()
    (folder / ".cache" / "lock").write_text("")
    part = folder / "text_encoder"
    part.mkdir()
    for name in ("openvino_tokenizer.xml", "openvino_tokenizer.bin", "config.json"):
        (part / name).write_bytes((folder / name).read_bytes())
    target = tmp_path / "out"
    document = as_json(specops("convert", folder, "-o", target, "--json"))
    assert document["converted"] == 4 and document["failed"] == 0
    written = {path.relative_to(target).as_posix() for path in target.rglob("*") if path.is_file()}
    assert {
        "openvino_model.onnx", "openvino_tokenizer.onnx", "openvino_detokenizer.onnx",
        "text_encoder/openvino_tokenizer.onnx", "config.json", "text_encoder/config.json",
        "tokenizer.json", "chat_template.jinja",
    } <= written  # fmt: skip
    assert (
        not {name for name in written if Path(name).suffix in (".xml", ".bin", ".safetensors")}
        and ".cache/lock" not in written
    )
    assert len(document["copied"]) == len(written) - 4


def test_unrelated_models_in_a_folder_have_no_companions(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("notes")
    assert not is_model_folder(tmp_path)
    assert companions(tmp_path) == [tmp_path / "notes.txt"]


def test_for_onnxruntime_genai(folder: Path, tmp_path: Path) -> None:
    target = tmp_path / "out"
    document = as_json(specops("convert", folder, "-o", target, "--genai", "--json"))
    assert document["output"] == str(target / "model.onnx") and document["nodes"]["com.microsoft.GroupQueryAttention"] == 2
    assert [Path(path).name for path in document["tokenizers"]] == ["openvino_tokenizer.onnx", "openvino_detokenizer.onnx"]
    assert document["remarks"] == []
    model = json.loads((target / "genai_config.json").read_text())["model"]
    assert (model["type"], model["context_length"], model["vocab_size"]) == ("llama", 128, 320)
    assert (target / "tokenizer.json").is_file()


@pytest.mark.parametrize("arguments", [["-o", "out", "--check"], []])
def test_genai_requires_a_folder_and_an_output(folder: Path, arguments: list[str]) -> None:
    assert specops("convert", folder, "--genai", *arguments).exit_code == 2
    assert specops("convert", folder / "openvino_model.xml", "-o", "x", "--genai").exit_code == 2


def test_generation_from_the_original_and_converted_folder(folder: Path, tmp_path: Path) -> None:
    expected = json.loads((folder / "expected.json").read_text())
    target = tmp_path / "out"
    assert specops("convert", folder, "-o", target, "--genai").exit_code == 0
    for place in (folder, target):
        document = as_json(specops("generate", place, expected["text"], "--tokens", 24, "--json"))
        assert document["ids"] == expected["answer"] and document["text"] == expected["answer_text"]
    result = specops("generate", target, expected["text"], "--tokens", 24)
    assert result.exit_code == 0 and result.stdout == f"{expected['text']}{expected['answer_text']}\n"
    assert "24 tokens" in result.stderr


def test_a_folder_without_a_model(tmp_path: Path) -> None:
    result = specops("generate", tmp_path, "text")
    assert result.exit_code == 2 and "contains no genai_config.json" in result.stderr


def test_the_cache_of_onnxruntime_genai(folder: Path, tmp_path: Path) -> None:
    target = tmp_path / "out"
    document = as_json(specops("convert", folder, "-o", target, "--genai", "--kv-cache", "uint8", "--json"))
    assert any("the cache is uint8" in remark for remark in document["remarks"])
    assert specops("convert", folder, "-o", target, "--kv-cache", "uint8").exit_code == 2


@pytest.mark.parametrize("genai", [True, False])
def test_into_its_own_folder(folder: Path, genai: bool) -> None:
    before = {path: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    for _ in range(2):
        result = specops("convert", folder, "-o", folder, *(["--genai"] if genai else []))
        assert result.exit_code == 0, result.output
    assert before == {path: path.read_bytes() for path in before}
    assert (folder / "genai_config.json").exists() == genai
    assert not list(folder.glob(".specops-*"))


def test_two_folders_with_colliding_files(folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "config.json").write_text("{}")
    for end in (".xml", ".bin"):
        (other / f"another{end}").write_bytes((folder / f"openvino_detokenizer{end}").read_bytes())
    document = as_json(specops("convert", folder, other, "-o", tmp_path / "out", "--json"))
    (problem,) = document["problems"]
    assert "config.json have the same output file" in problem["message"]
    assert not (tmp_path / "out").exists()
