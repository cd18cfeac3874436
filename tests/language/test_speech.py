"""Whisper in onnxruntime-genai gives the tokens that transformers generates with OpenVINO."""

from __future__ import annotations

import json
import wave
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from converters.convert import Conversion, convert_with
from converters.errors import ConversionError
from converters.folders.genai import GenaiFolder, write_genai
from converters.folders.genai_speech import DECODER, ENCODER
from converters.options import Options
from tests.converters.cli.specops import as_json, specops
from tests.folders import speech

ARCHIVE = Path(__file__).parent / "speech" / "whisper_speech.zip"


def convert(model: Path, target: Path, *, adapt: Any = None, **more: Any) -> Conversion:
    return convert_with(model, target, Options(**more), adapt=adapt)


def unpacked(folder: Path) -> Path:
    with zipfile.ZipFile(ARCHIVE) as file:
        file.extractall(folder)
    return folder


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("speech")


@pytest.fixture(scope="module")
def source(place: Path) -> Path:
    return unpacked(place / "whisper")


@pytest.fixture(scope="module")
def written(place: Path, source: Path) -> GenaiFolder:
    return write_genai(source, place / "genai", convert)


def test_onnxruntime_genai_gives_openvinos_tokens(place: Path, source: Path, written: GenaiFolder) -> None:
    pytest.importorskip("onnxruntime_genai")
    expected = json.loads((source / "expected.json").read_text())
    # all are different, for features and for beams
    assert len({tuple(row) for rows in expected.values() for row in rows}) == 4
    assert speech.in_genai(place / "genai") == expected


def test_the_encoder_projects_once_for_all_tokens(place: Path, written: GenaiFolder) -> None:
    assert written.models == [DECODER, ENCODER]
    encoder, decoder = (onnx.load(place / "genai" / name).graph for name in (ENCODER, DECODER))
    crossed = [f"{kind}_cross_{layer}" for layer in range(3) for kind in ("key", "value")]
    own = [f"{kind}_self_{layer}" for layer in range(3) for kind in ("key", "value")]
    assert [value.name for value in encoder.output] == ["hidden_states", *(f"present_{name}" for name in crossed)]
    assert {value.name for value in decoder.input} == {"input_ids", *(f"past_{name}" for name in [*crossed, *own])}
    assert [value.name for value in decoder.output] == ["logits", *(f"present_{name}" for name in own)]


def test_a_recording_becomes_tokens(place: Path, written: GenaiFolder) -> None:
    genai = pytest.importorskip("onnxruntime_genai")
    time = np.arange(16000) / 16000
    with wave.open(str(place / "sound.wav"), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(16000)
        file.writeframes((np.sin(2 * np.pi * 440 * time) * 20000).astype(np.int16).tobytes())
    model = genai.Model(str(place / "genai"))
    processor = model.create_multimodal_processor()
    inputs = processor(["Once"], audios=genai.Audios.open(str(place / "sound.wav")))
    features = inputs["audio_features"].as_numpy()
    assert features.shape == (1, 80, 3000)
    spectrum = features[0, :, 10:90]  # of the 100 frames of a second, without the ends
    assert (spectrum.argmax(0) == spectrum[:, 0].argmax()).all() and (features[0, :, 110:] == features.min()).all()
    parameters = genai.GeneratorParams(model)
    parameters.set_search_options(max_length=12, min_length=12)
    generator = genai.Generator(model, parameters)
    generator.set_inputs(inputs)
    while not generator.is_done():
        generator.generate_next_token()
    assert len(generator.get_sequence(0)) == 12


def test_the_command(source: Path, tmp_path: Path) -> None:
    document = as_json(specops("convert", source, "-o", tmp_path, "--genai", "--json"))
    assert [Path(path).name for path in document["models"]] == [DECODER, ENCODER]
    assert {"genai_config.json", "audio_processor_config.json", "tokenizer.json"} <= {p.name for p in tmp_path.iterdir()}


@pytest.mark.parametrize(
    ("file", "change", "message"),
    [
        ("config.json", {"model_type": "bart"}, "does not support encoder-decoders of the type 'bart'"),
        ("config.json", {"max_source_positions": 750}, "its encoder has 750 positions"),
        ("config.json", {"num_mel_bins": 128}, "it computes 80 features per frame, but the model needs 128"),
        ("preprocessor_config.json", {"sampling_rate": 8000}, "its sampling_rate is 8000; onnxruntime-genai requires 16000"),
        ("preprocessor_config.json", {"hop_length": 320}, "it computes 1500 frames, but the model needs 3000"),
        ("preprocessor_config.json", {"chunk_length": 10}, "it computes 1000 frames, but the model needs 3000"),
        ("config.json", {"vocab_size": 7}, "its vocab_size is 7, but the model has logits of 320 tokens"),
        ("tokenizer.json", {"added_tokens": [{"id": 400}]}, "it has tokens up to 400, but the model has 320"),
    ],
)
def test_inconsistent_folders(file: str, change: dict[str, Any], message: str, tmp_path: Path) -> None:
    folder = unpacked(tmp_path / "whisper")
    path = folder / file
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(ConversionError, match=message):
        write_genai(folder, tmp_path / "out", convert)
    assert not any((tmp_path / "out").glob("*"))


def test_nothing_is_written_if_the_encoder_cannot_be_converted(tmp_path: Path) -> None:
    folder = unpacked(tmp_path / "whisper")
    path = folder / "openvino_encoder_model.xml"
    path.write_text(path.read_text().replace('type="Gelu"', 'type="Unknown"'))
    with pytest.raises(ConversionError, match="Unknown"):
        write_genai(folder, tmp_path / "out", convert)
    assert not (tmp_path / "out").exists()


def test_ignored_settings_are_reported(tmp_path: Path) -> None:
    folder = unpacked(tmp_path / "whisper")
    path = folder / "generation_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "suppress_tokens": [7]}))
    written = write_genai(folder, tmp_path / "out", convert, logits="last")
    assert any("does not apply suppress_tokens" in remark for remark in written.remarks)
    assert any("all tokens have logits" in remark for remark in written.remarks)
    with pytest.raises(ConversionError, match="cache of a Whisper model is float32"):
        write_genai(folder, tmp_path / "out", convert, kv_cache="uint8")
