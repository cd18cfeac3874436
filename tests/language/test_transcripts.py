"""Recordings to text, without onnxruntime-genai: the texts of OpenVINO GenAI's WhisperPipeline."""

from __future__ import annotations

import json
import shutil
import wave
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from converters.errors import ConversionError
from converters.folders.encoder_decoder import write_encoder_decoder
from converters.folders.genai import write_genai
from converters.folders.tokenizers import write_tokenizers
from onnx_specops.generation import EncoderDecoder, GenerationError, LanguageModel, SpeechModel, open_model
from onnx_specops.generation.audio import LogMel
from tests.converters.cli.specops import as_json, specops
from tests.folders import transcripts
from tests.language.test_speech import convert
from tests.native import needs_pcre2

ARCHIVE = Path(__file__).parent / "speech" / "whisper_transcripts.zip"
SECONDS = {name: seconds for name, seconds, _ in transcripts.REQUESTS}

pytestmark = needs_pcre2


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("transcripts") / "whisper"
    with zipfile.ZipFile(ARCHIVE) as file:
        file.extractall(folder)
    return folder


@pytest.fixture(scope="module", params=["genai", "files"])
def place(request: pytest.FixtureRequest, source: Path) -> Path:
    """Return the converted folder, in the form of onnxruntime-genai and with the names of the IRs."""
    target = source.parent / request.param
    if not target.is_dir():
        (write_genai if request.param == "genai" else write_encoder_decoder)(source, target, convert)
        write_tokenizers(source, target, convert)
    return target


@pytest.fixture(scope="module")
def expected(source: Path) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = json.loads((source / "expected.json").read_text())
    return found


def write_wav(path: Path, samples: np.ndarray, rate: int = transcripts.RATE) -> Path:
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes((samples * 2**15).astype("<i2").tobytes())
    return path


def test_texts_equal_openvinos(place: Path, expected: dict[str, dict[str, Any]]) -> None:
    found = transcripts.in_onnx(place)
    assert transcripts.differing({name: expected[name] for name in found}, found) == []
    assert len({given["text"] for given in found.values()}) > 10
    assert {given["language"] for given in found.values()} == {"de", "en", "fr", "ja"}


def test_an_english_model(place: Path, tmp_path: Path, expected: dict[str, dict[str, Any]]) -> None:
    shutil.copytree(place, tmp_path / "out")
    transcripts.as_english(tmp_path / "out")
    found = transcripts.in_onnx(tmp_path / "out", transcripts.ENGLISH)
    assert transcripts.differing({name: expected[name] for name in found}, found) == []
    model = open_model(tmp_path / "out")
    for how in ({"language": "en"}, {"task": "translate"}):
        with pytest.raises(GenerationError, match="contains an English-only model"):
            list(model.write("", 4, audio=transcripts.recording(1.0), **how))  # type: ignore[call-arg]


@pytest.fixture(scope="module")
def model(place: Path) -> SpeechModel:
    found = open_model(place)
    assert isinstance(found, SpeechModel)
    return found


def test_the_number_of_tokens(model: SpeechModel) -> None:
    audio = transcripts.recording(1.0)
    assert len(list(model.generate([], 5, audio=audio))) == 5
    # By default the limit is that of the model: its positions without the start, the language, the task and the timestamps.
    assert len(list(model.generate([], audio=audio))) <= model.positions - 4
    text = "".join(model.write("", 9, audio=audio))
    assert "".join(model.write("", 9, audio=audio, stop=[text[3:5]])) == text[:3]


def test_a_suppressed_token(model: SpeechModel, place: Path, tmp_path: Path) -> None:
    audio = transcripts.recording(1.0)
    (first,) = model.generate([], 1, audio=audio)
    for name in ("suppress_tokens", "begin_suppress_tokens"):
        target = tmp_path / name
        shutil.copytree(place, target)
        path = target / "generation_config.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), name: [first]}))
        assert next(open_model(target).generate([], 1, audio=audio)) != first  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({}, "specify a recording"),
        ({"audio": np.zeros(200, np.float32)}, "the audio has 200 samples; expected more than 200"),
        ({"audio": np.zeros((2, 900), np.float32)}, r"the audio is float32 \[2, 900\]"),
        ({"audio": np.zeros(900, np.int16)}, r"the audio is int16 \[900\]"),
        ({"audio": "missing.wav"}, "missing.wav cannot be read: No such file or directory"),
        (
            {"audio": transcripts.recording(1.0), "language": "xx"},
            "the language xx is unknown; expected one of de, en, fr, ja",
        ),
        ({"audio": transcripts.recording(1.0), "task": "sing"}, "the task is sing"),
    ],
)
def test_invalid_arguments(model: SpeechModel, how: Any, message: str) -> None:
    with pytest.raises(GenerationError, match=message):
        list(model.write("", 4, **how))


def test_a_text_that_leaves_no_capacity(model: SpeechModel) -> None:
    with pytest.raises(GenerationError, match="more than the 95 that the model supports"):
        list(model.write("word " * 60, 4, audio=transcripts.recording(1.0)))


# -- the command ------------------------------------------------------------------------------------------------------------


def test_the_command(source: Path, place: Path, tmp_path: Path, expected: dict[str, dict[str, Any]]) -> None:
    path = write_wav(tmp_path / "sound.wav", transcripts.recording(SECONDS["timestamps"]))
    given = expected["timestamps"]
    for folder in (source, place):
        document = as_json(
            specops("generate", folder, "--audio", path, "--timestamps", "--tokens", transcripts.TOKENS, "--json")
        )
        assert (document["ids"], document["text"], document["language"]) == (given["ids"], given["text"], given["language"])
        assert [part["text"] for part in document["segments"]] == [part[2] for part in given["segments"]]
    result = specops("generate", place, "--audio", path, "--timestamps", "--tokens", transcripts.TOKENS)
    lines = [f"[{start:.2f} - {end:.2f}] {text.strip()}" for start, end, text in given["segments"]]
    assert result.exit_code == 0 and result.stdout == "\n".join(lines) + "\n" and "tokens/s" in result.stderr


def test_the_command_with_a_language_and_a_text(place: Path, tmp_path: Path, expected: dict[str, dict[str, Any]]) -> None:
    for name, options in (("translated", ["--translate", "--language", "ja"]), ("prompted", ["OpenVINO and ONNX"])):
        path = write_wav(tmp_path / "sound.wav", transcripts.recording(SECONDS[name]))
        document = as_json(specops("generate", place, *options, "--audio", path, "--tokens", transcripts.TOKENS, "--json"))
        assert document["ids"] == expected[name]["ids"] and "segments" not in document


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "specify a text, - for standard input, --chat, or --audio"),
        (["Once"], "a Whisper model requires --audio"),
        (["--language", "en", "Once"], "it requires --audio"),
        (["--translate", "Once"], "it requires --audio"),
        (["--timestamps", "Once"], "it requires --audio"),
        (["--audio", "{wav}", "--chat"], "a Whisper model does not support it"),
        (["--audio", "{wav}", "--image", "x.png"], "the model does not support images"),
        (["--audio", "{wav}", "--language", "xx"], "the language xx is unknown"),
        (["--audio", "{slow}"], "has a sampling rate of 8000 Hz; expected 16000 Hz"),
        (["--audio", "{text}"], "cannot be read as a WAV file"),
        (["--audio", "missing.wav"], "missing.wav cannot be read"),
    ],
)
def test_errors_of_the_command(place: Path, tmp_path: Path, options: list[str], message: str) -> None:
    (tmp_path / "text.wav").write_text("no recording")
    paths = {
        "wav": write_wav(tmp_path / "sound.wav", transcripts.recording(1.0)),
        "slow": write_wav(tmp_path / "slow.wav", transcripts.recording(1.0), 8000),
        "text": tmp_path / "text.wav",
    }
    result = specops("generate", place, *[option.format(**paths) for option in options])
    assert result.exit_code == 2 and message in " ".join(result.stderr.replace("│", "").split()) and not result.stdout


# -- inconsistent folders ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("generation_config.json", {"eos_token_id": None}, "does not describe the tokens"),
        ("config.json", {"max_target_positions": None}, "does not describe the tokens"),
        ("generation_config.json", {"no_timestamps_token_id": 99999}, "has the token 99999, but the vocabulary has"),
        ("generation_config.json", {"lang_to_id": {}}, "has no lang_to_id"),
        ("generation_config.json", {"task_to_id": ["transcribe"]}, "does not describe the tokens"),
        ("preprocessor_config.json", {"feature_size": 128}, "has 128 features per frame, but the model needs 80"),
        ("preprocessor_config.json", {"hop_length": 0}, "does not describe the features: hop_length is 0"),
    ],
)
def test_inconsistent_folders(place: Path, tmp_path: Path, name: str, change: dict[str, Any], message: str) -> None:
    target = tmp_path / "out"
    shutil.copytree(place, target)
    for path in {target / name, *([target / "config.json"] if "eos_token_id" in change else ())}:
        path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(GenerationError, match=message):
        list(open_model(target).write("", 4, audio=transcripts.recording(1.0)))  # type: ignore[call-arg]


def test_settings_in_the_file_of_transformers_5(place: Path, source: Path, tmp_path: Path) -> None:
    """transformers 5 writes the feature extraction into processor_config.json, and prefers it there."""
    target = tmp_path / "out"
    shutil.copytree(place, target)
    audio = transcripts.recording(1.0)
    text = list(open_model(place).generate([], 6, audio=audio))  # type: ignore[call-arg]
    path, nested = target / "preprocessor_config.json", target / "processor_config.json"
    settings = json.loads(path.read_text())
    nested.write_text(json.dumps({"feature_extractor": settings}))
    path.write_text(json.dumps({**settings, "feature_size": 128}))
    assert list(open_model(target).generate([], 6, audio=audio)) == text  # type: ignore[call-arg]
    path.unlink()
    assert list(open_model(target).generate([], 6, audio=audio)) == text  # type: ignore[call-arg]
    nested.write_text(json.dumps({"audio_processor": {**settings, "feature_size": 128}}))
    with pytest.raises(GenerationError, match=r"processor_config\.json has 128 features per frame"):
        open_model(target)
    shutil.copytree(source, tmp_path / "source")
    shutil.copy(nested, tmp_path / "source")
    with pytest.raises(ConversionError, match=r"processor_config\.json: it computes 128 features per frame"):
        write_genai(tmp_path / "source", tmp_path / "genai", convert)


def test_missing_files(place: Path, tmp_path: Path) -> None:
    models = sorted(path.name for path in place.glob("*coder*.onnx"))
    assert len(models) == 2
    for name in (*models, "config.json"):
        target = tmp_path / name
        shutil.copytree(place, target)
        (target / name).unlink()
        with pytest.raises(GenerationError, match=f"contains no ({name}|genai_config.json)"):
            open_model(target)


def test_errors_of_other_classes_name_open_model(source: Path, place: Path) -> None:
    other = LanguageModel if place.name == "genai" else EncoderDecoder
    with pytest.raises(GenerationError, match="load it with open_model"):
        other(place)


# -- features ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bands", [80, 128])
def test_features_equal_transformers(bands: int) -> None:
    transformers = pytest.importorskip("transformers")
    expected = transformers.WhisperFeatureExtractor(feature_size=bands)
    for seconds in (0.02, 1.0, 7.3, 29.9):
        samples = transcripts.recording(seconds)
        given = expected(samples, sampling_rate=transcripts.RATE, return_tensors="np")["input_features"][0]
        np.testing.assert_allclose(LogMel(feature_size=bands)(samples), given, atol=2e-4)


def test_a_tone_is_in_its_band() -> None:
    tones = [np.sin(2 * np.pi * hertz * np.arange(transcripts.RATE) / transcripts.RATE) for hertz in (440, 1500, 5000)]
    found = [LogMel()(tone)[:, 20:80] for tone in tones]
    bands = [features.mean(1).argmax() for features in found]
    assert bands == sorted(bands) and len(set(bands)) == 3 and all(features.shape == (80, 60) for features in found)


@pytest.mark.parametrize(
    ("file", "key", "value", "message"),
    [
        ("preprocessor_config.json", "feature_size", 128, "its feature_size is 128, but the model needs 80"),
        ("preprocessor_config.json", "nb_max_frames", 1500, "its nb_max_frames is 1500, but the model needs 3000"),
        ("config.json", "num_mel_bins", 128, "num_mel_bins is 128, but conv1.weight of openvino_encoder_model.xml has 80"),
        ("config.json", "max_target_positions", 97, "max_target_positions is 97, but decoder.embed_positions.weight of"),
        ("config.json", "max_source_positions", 750, "max_source_positions is 750, but last_hidden_state of"),
    ],
)
def test_features_that_contradict_the_model(
    source: Path, file: str, key: str, value: int, message: str, tmp_path: Path
) -> None:
    """The default conversion copies the configuration, so it checks it, too."""
    folder, out = shutil.copytree(source, tmp_path / "model"), tmp_path / "out"
    document = json.loads((folder / file).read_text())
    (folder / file).write_text(json.dumps(document | {key: value}))
    result = specops("convert", folder, "-o", out)
    assert result.exit_code == 2 and message in " ".join(result.output.split()), result.output
    assert not out.exists()


def test_errors_name_the_files_of_the_users_folder(source: Path, tmp_path: Path) -> None:
    """A folder from OpenVINO is converted to a temporary one."""
    folder = shutil.copytree(source, tmp_path / "model")
    settings = json.loads((folder / "preprocessor_config.json").read_text())
    (folder / "preprocessor_config.json").write_text(json.dumps(settings | {"n_fft": 20}))
    result = specops("generate", folder, "--audio", write_wav(tmp_path / "sound.wav", np.zeros(16000, np.float32)))
    assert result.exit_code == 2
    message = f"{folder}/preprocessor_config.json does not describe the features: n_fft is 20"
    assert message in result.output.replace("\n", " "), result.output


@pytest.mark.parametrize("damage", [b"", b"<!DOCTYPE html>", None])
def test_damaged_models_are_one_error(place: Path, damage: bytes | None, tmp_path: Path) -> None:
    """Each model of the folder, empty, a web page and cut."""
    for path in sorted(place.glob("*.onnx")):
        folder = shutil.copytree(place, tmp_path / path.stem)
        content = path.read_bytes()[: path.stat().st_size // 2] if damage is None else damage
        (folder / path.name).write_bytes(content)
        with pytest.raises(GenerationError, match=rf"{path.name} cannot be loaded: .*; create it again"):
            open_model(folder).encode("a")
