"""Each file and each key of a folder, missing or with another value: success, or one clear error and no output."""

from __future__ import annotations

import copy
import json
import shutil
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from converters.errors import ConversionError
from converters.folders.genai import write_genai
from onnx_specops.generation import GenerationError, open_model
from tests.converters.cli.specops import specops
from tests.language.recorder import Recorder

HERE = Path(__file__).parent
FOLDERS = ("vision/qwen3.5", "vision/gemma3", "vision/mistral3", "speech/whisper_speech", "hybrids/lfm2", "models/llama")
VALUES: list[Any] = ["x", "", -1, 0, 10**9, 2**70, 1.5, float("nan"), float("inf"), True, [], [1], [[]], {}, {"a": 1}]
"""Replacement values of a key, in addition to ``null`` and a missing key."""

_VOCABULARY = 50  # longer objects are those of a tokenizer


@pytest.fixture(scope="module", params=FOLDERS)
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("folder") / Path(request.param).name
    with zipfile.ZipFile(HERE / f"{request.param}.zip") as file:
        file.extractall(place)
    (place / "expected.json").unlink()
    return place


@pytest.fixture(scope="module")
def recorder(folder: Path) -> Recorder:
    return Recorder.of(folder, folder.with_name("out"))


def documents(folder: Path) -> Iterator[tuple[Path, Any]]:
    for path in sorted(folder.glob("*.json")):
        yield path, json.loads(path.read_text())


def keys(document: Any, before: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Iterate over the keys of an object, and of the objects and the first elements of lists in it."""
    if isinstance(document, dict) and len(document) <= _VOCABULARY:
        for key, value in document.items():
            yield (*before, key)
            yield from keys(value, (*before, key))
    elif isinstance(document, list) and document:
        yield (*before, 0)
        yield from keys(document[0], (*before, 0))


def changed(document: Any) -> Iterator[tuple[str, Any]]:
    """Iterate over changed documents, with a description."""
    yield from ((f"whole: {value!r}", value) for value in VALUES)
    for place in keys(document):
        for value in (..., None, *VALUES):
            made = copy.deepcopy(document)
            inner = made
            for key in place[:-1]:
                inner = inner[key]
            if value is ...:
                del inner[place[-1]]
            else:
                inner[place[-1]] = value
            yield f"{place}: {value!r}", made


@pytest.fixture
def step(request: pytest.FixtureRequest) -> int:
    """Return the distance of the changes that are tested: all of them with ``--conformance=all``."""
    return 1 if request.config.getoption("--conformance") == "all" else 23


def test_every_key_of_every_file(folder: Path, recorder: Recorder, step: int, tmp_path: Path) -> None:
    wrong = []
    for path, document in documents(folder):
        original = path.read_bytes()
        for text, made in [*changed(document)][::step]:
            path.write_text(json.dumps(made))
            out = tmp_path / "out"
            try:
                write_genai(folder, out, recorder.replay)
            except ConversionError as error:
                files = {problem.file for problem in error.problems}
                if any(not problem.remedy or not problem.message for problem in error.problems):
                    wrong.append(f"{path.name} {text}: {error}")
                if not all(file is not None and Path(file).is_relative_to(folder) for file in files):
                    wrong.append(f"{path.name} {text}: {files}")
                if out.exists():
                    wrong.append(f"{path.name} {text}: {[one.name for one in out.iterdir()]} remain")
            except Exception as error:
                wrong.append(f"{path.name} {text}: {type(error).__name__} {error}")
            shutil.rmtree(out, ignore_errors=True)
        path.write_bytes(original)
    assert not wrong, "\n".join(wrong[:40])


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def _as_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


DAMAGES: dict[str, Callable[[Path], object]] = {
    "missing": Path.unlink,
    "empty": lambda path: path.write_bytes(b""),
    "cut": _cut,
    "other bytes": lambda path: path.write_bytes(bytes(range(256)) * 4),
    "nested": lambda path: path.write_text("[" * 100000),
    "a folder": _as_folder,
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_files(damage: str, folder: Path, recorder: Recorder, tmp_path: Path) -> None:
    """Configurations and tokenizers. IRs are changed by tests/fuzz/ir.py."""
    for path, _ in documents(folder):
        changed = shutil.copytree(folder, tmp_path / "changed")
        DAMAGES[damage](changed / path.name)
        try:
            write_genai(changed, tmp_path / "out", recorder.replay)
        except ConversionError as error:
            assert all(problem.remedy and problem.file for problem in error.problems), error
            assert not (tmp_path / "out").exists()
        shutil.rmtree(tmp_path / "out", ignore_errors=True)
        shutil.rmtree(changed)


def test_every_key_of_the_output(folder: Path, recorder: Recorder, step: int) -> None:
    """`open_model` either succeeds, or raises `GenerationError`."""
    out = folder.with_name("out")
    wrong = []
    for name in ("genai_config.json", "image_processor_config.json", "generation_config.json"):
        path = out / name
        if not path.is_file():
            continue
        original = path.read_bytes()
        for text, made in [*changed(json.loads(original))][:: 4 * step]:
            path.write_text(json.dumps(made))
            try:
                open_model(out)
            except GenerationError:
                pass
            except Exception as error:
                wrong.append(f"{name} {text}: {type(error).__name__} {error}")
        path.write_bytes(original)
    assert not wrong, "\n".join(wrong[:40])


@pytest.mark.parametrize(
    ("archive", "missing"),
    [
        ("speech/whisper_speech", "openvino_encoder_model.xml"),
        ("speech/whisper_speech", "openvino_decoder_model.xml"),
        ("vision/qwen3.5", "openvino_language_model.xml"),
        ("vision/qwen3.5", "openvino_vision_embeddings_model.xml"),
    ],
)
@pytest.mark.parametrize("command", ["generate", "convert"])
def test_a_missing_part_is_named(command: str, archive: str, missing: str, tmp_path: Path) -> None:
    with zipfile.ZipFile(HERE / f"{archive}.zip") as file:
        file.extractall(tmp_path / "model")
    (tmp_path / "model" / missing).unlink()
    more = ["-o", tmp_path / "out", "--genai"] if command == "convert" else ["What?", "--tokens", 2]
    if archive.startswith("speech") and command == "generate":
        more = ["--audio", tmp_path / "sound.wav"]
    result = specops(command, tmp_path / "model", *more)
    assert result.exit_code == 1 and f"it contains no {missing}" in " ".join(result.stderr.split())
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", ["tokenizer.json", "tokenizer_config.json"])
@pytest.mark.parametrize("arguments", [["--genai"], []])
def test_a_damaged_companion_is_an_error(arguments: list[str], name: str, tmp_path: Path) -> None:
    with zipfile.ZipFile(HERE / "models" / "llama.zip") as file:
        file.extractall(tmp_path / "model")
    (tmp_path / "model" / name).write_text('{"model": {')
    result = specops("convert", tmp_path / "model", "-o", tmp_path / "out", *arguments)
    assert result.exit_code == 2 and name in result.stderr and "it cannot be read" in " ".join(result.stderr.split())
    assert not (tmp_path / "out").exists()


def test_other_json_files_are_copied(tmp_path: Path) -> None:
    with zipfile.ZipFile(HERE / "models" / "llama.zip") as file:
        file.extractall(tmp_path / "model")
    (tmp_path / "model" / "notes.json").write_text("{} {}")
    assert specops("convert", tmp_path / "model", "-o", tmp_path / "out").exit_code == 0
    assert (tmp_path / "out" / "notes.json").read_text() == "{} {}"


@pytest.mark.parametrize("part", ["openvino_tokenizer.xml", "openvino_detokenizer.bin"])
def test_a_damaged_tokenizer_is_an_error(part: str, tmp_path: Path) -> None:
    with zipfile.ZipFile(HERE / "models" / "llama.zip") as file:
        file.extractall(tmp_path / "model")
    _cut(tmp_path / "model" / part)
    result = specops("convert", tmp_path / "model", "-o", tmp_path / "out", "--genai")
    assert result.exit_code == 2 and part.split(".")[0] in result.stderr and not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("sources", "message"),
    [
        (("openvino_detokenizer", "openvino_tokenizer"), "is not a tokenizer: it does not compute input_ids of texts"),
        (("openvino_tokenizer", "openvino_tokenizer"), "is not a detokenizer: it does not compute texts of tokens"),
        (("openvino_detokenizer", "openvino_detokenizer"), "is not a tokenizer"),
    ],
)
def test_exchanged_tokenizers(sources: tuple[str, str], message: str, tmp_path: Path) -> None:
    with zipfile.ZipFile(HERE / "models" / "llama.zip") as file:
        file.extractall(tmp_path / "model")
    for suffix in (".xml", ".bin"):
        contents = [(tmp_path / "model" / f"{name}{suffix}").read_bytes() for name in sources]
        for name, content in zip(("openvino_tokenizer", "openvino_detokenizer"), contents, strict=True):
            (tmp_path / "model" / f"{name}{suffix}").write_bytes(content)
    result = specops("generate", tmp_path / "model", "Once", "--tokens", 2)
    assert result.exit_code == 2 and message in " ".join(result.stderr.split())


def test_the_constants_of_another_model(tmp_path: Path) -> None:
    """The detokenizer can be loaded, but not run."""
    with zipfile.ZipFile(HERE / "models" / "llama.zip") as file:
        file.extractall(tmp_path / "model")
    (tmp_path / "model/openvino_detokenizer.bin").write_bytes((tmp_path / "model/openvino_model.bin").read_bytes())
    result = specops("generate", tmp_path / "model", "Once", "--tokens", 2)
    assert result.exit_code == 2 and "openvino_detokenizer.onnx fails: " in " ".join(result.stderr.split())
