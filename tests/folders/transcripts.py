"""A tiny Whisper model with languages and timestamps, recordings, and their texts in OpenVINO GenAI's WhisperPipeline."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from tests.folders import speech

RATE, TOKENS = 16000, 40
LANGUAGES = ("de", "en", "fr", "ja")
_BASE, _TIMES = 300, 1501  # tokens of texts; timestamps up to 30 seconds

Request = tuple[str, float, dict[str, Any]]

REQUESTS: tuple[Request, ...] = (
    ("short", 1.0, {}),
    ("medium", 12.5, {}),
    ("whole window", 30.0, {}),
    ("german", 4.0, {"language": "de"}),
    ("wrapped", 4.0, {"language": "<|fr|>"}),
    ("translated", 4.0, {"task": "translate", "language": "ja"}),
    ("prompted", 6.0, {"initial_prompt": "OpenVINO and ONNX"}),
    ("timestamps", 8.0, {"return_timestamps": True}),
    ("timestamps of a whole window", 30.0, {"return_timestamps": True, "language": "en"}),
    ("long", 47.0, {}),
    ("long with timestamps", 64.3, {"return_timestamps": True, "initial_prompt": "Whisper"}),
    ("sampled", 5.0, {"do_sample": True, "temperature": 0.7, "top_k": 20, "rng_seed": 7}),
    ("sampled in windows", 41.0, {"do_sample": True, "top_p": 0.9, "rng_seed": 3}),
    ("penalized", 5.0, {"repetition_penalty": 1.7}),
)
ENGLISH: tuple[Request, ...] = (("english", 3.0, {}), ("english in windows", 33.0, {"return_timestamps": True}))


def differing(expected: dict[str, dict[str, Any]], found: dict[str, dict[str, Any]]) -> list[str]:
    """Return the requests with other texts, tokens, languages or segments."""

    def same(one: dict[str, Any], other: dict[str, Any]) -> bool:
        times = [[part[:2] for part in given["segments"]] for given in (one, other)]
        texts = [
            (given["ids"], given["text"], given["language"], [p[2] for p in given["segments"]]) for given in (one, other)
        ]
        return texts[0] == texts[1] and bool(np.allclose(*times, atol=1e-4))

    return [name for name, given in expected.items() if not same(given, found[name])]


def recording(seconds: float) -> np.ndarray:
    """Return tones that change eight times a second, and noise, as samples of 16 bits."""
    draw = np.random.default_rng(int(seconds * 10))
    count = int(seconds * RATE)
    notes = np.repeat(draw.uniform(80, 4000, count // 2000 + 1), 2000)[:count]
    loud = np.repeat(draw.uniform(0, 0.5, count // 2000 + 1), 2000)[:count]
    samples = loud * np.sin(np.cumsum(2 * np.pi * notes / RATE)) + 0.01 * draw.standard_normal(count)
    return (np.round(samples * 2**15) / 2**15).astype(np.float32)


def make_transcriber(folder: Path) -> None:
    """Create the folder of a Whisper model, with OpenVINO's tokenizer."""
    import openvino as ov
    import openvino_tokenizers

    special = ["<|endoftext|>", "<|startoftranscript|>", *(f"<|{name}|>" for name in LANGUAGES)]
    special += ["<|translate|>", "<|transcribe|>", "<|startofprev|>", "<|notimestamps|>"]
    texts = speech.byte_tokenizer(_BASE, ["<pad>", "<s>"])
    texts.add_special_tokens({"additional_special_tokens": special})
    texts.add_tokens([f"<|{k * 0.02:.2f}|>" for k in range(_TIMES)])
    texts.eos_token = special[0]
    size = _BASE + len(special) + _TIMES
    ids = {name: texts.convert_tokens_to_ids(name) for name in special}
    speech.make_whisper(
        folder, texts=texts, vocab_size=size, eos_token_id=ids["<|endoftext|>"],
        decoder_start_token_id=ids["<|startoftranscript|>"], max_target_positions=96,
    )  # fmt: skip
    assert len(texts) == size
    settings = {
        "decoder_start_token_id": ids["<|startoftranscript|>"],
        "eos_token_id": ids["<|endoftext|>"],
        "no_timestamps_token_id": ids["<|notimestamps|>"],
        "prev_sot_token_id": ids["<|startofprev|>"],
        "max_initial_timestamp_index": 50,
        "is_multilingual": True,
        "suppress_tokens": [3, 4, 5],
        "begin_suppress_tokens": [220, ids["<|endoftext|>"]],
        "max_length": 96,
        "lang_to_id": {f"<|{name}|>": ids[f"<|{name}|>"] for name in LANGUAGES},
        "task_to_id": {name: ids[f"<|{name}|>"] for name in ("transcribe", "translate")},
    }
    (folder / "generation_config.json").write_text(json.dumps(settings))
    converted = openvino_tokenizers.convert_tokenizer(texts, with_detokenizer=True)
    for part, model in zip(("tokenizer", "detokenizer"), converted, strict=True):
        ov.save_model(model, folder / f"openvino_{part}.xml")


def as_english(folder: Path) -> None:
    """Change the settings of a folder to those of an English model."""
    path = folder / "generation_config.json"
    settings = json.loads(path.read_text())
    del settings["lang_to_id"], settings["task_to_id"]
    path.write_text(json.dumps({**settings, "is_multilingual": False}))


def in_openvino(folder: Path, requests: tuple[Request, ...] = REQUESTS) -> dict[str, dict[str, Any]]:
    """Return the text of each recording in OpenVINO GenAI, its tokens, the language and the segments."""
    import openvino_genai as genai

    class Tokens(genai.StreamerBase):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.found: list[int] = []

        def write(self, tokens: Any) -> Any:
            self.found += tokens if isinstance(tokens, list) else [tokens]
            return genai.StreamingStatus.RUNNING

        def end(self) -> None:
            pass

    pipeline = genai.WhisperPipeline(folder, "CPU", **speech.CPU)
    found = {}
    for name, seconds, settings in requests:
        streamer = Tokens()
        config = pipeline.get_generation_config()
        config.max_new_tokens = TOKENS
        for key, value in settings.items():
            setattr(config, key, value)
        result = pipeline.generate(recording(seconds).tolist(), config, streamer)
        end = json.loads((folder / "generation_config.json").read_text())["eos_token_id"]
        found[name] = {
            "ids": [token for token in streamer.found if token != end],
            "text": result.texts[0],
            "language": result.language,
            "segments": [[part.start_ts, part.end_ts, part.text] for part in result.chunks or []],
        }
    return found


def in_onnx(folder: Path, requests: tuple[Request, ...] = REQUESTS) -> dict[str, dict[str, Any]]:
    """Return the same of a converted folder without OpenVINO."""
    from onnx_specops.generation import Sampling, SpeechModel, open_model

    model = open_model(folder)
    assert isinstance(model, SpeechModel)
    found = {}
    for name, seconds, given in requests:
        drawn = {
            key: given[key] for key in ("do_sample", "temperature", "top_k", "top_p", "repetition_penalty") if key in given
        }
        how = {key: given[key] for key in ("language", "task") if key in given}
        sampling = Sampling(**drawn, seed=given.get("rng_seed", 0))
        timestamps = given.get("return_timestamps", False)
        pieces = model.write(
            given.get("initial_prompt", ""), TOKENS, sampling, audio=recording(seconds), timestamps=timestamps, **how
        )
        text = "".join(pieces)
        segments = [[part.start, -1.0 if part.end is None else part.end, part.text] for part in model.segments]
        found[name] = {
            "ids": model.given, "text": text, "language": model.language, "segments": segments if timestamps else []
        }  # fmt: skip
    return found
