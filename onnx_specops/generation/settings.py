"""JSON files with settings, with the names of transformers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from onnx_specops.generation.errors import GenerationError

MODEL, GENERATION = "config.json", "generation_config.json"

VOCABULARIES = ("vocab_size", "decoder_vocab_size", "tgt_vocab_size")
"""The keys of the number of tokens in the answers of an encoder-decoder: in most models, that in prompts."""

_NEUTRAL: dict[str, Any] = {
    "constraints": None, "diversity_penalty": 0.0, "dola_layers": None, "force_words_ids": None, "guidance_scale": 1.0,
    "max_time": None, "num_beam_groups": 1, "num_beams": 1, "num_return_sequences": 1, "penalty_alpha": 0.0,
    "token_healing": False, "watermarking_config": None,
}  # fmt: skip
_OF_SAMPLING: dict[str, Any] = {
    "do_sample": False, "temperature": 1.0, "top_k": 0, "top_p": 1.0, "min_p": 0.0, "top_h": 1.0, "typical_p": 1.0,
    "epsilon_cutoff": 0.0, "eta_cutoff": 0.0,
}  # fmt: skip
_OF_SPEECH: dict[str, Any] = {
    "compression_ratio_threshold": None, "condition_on_prev_tokens": False, "logprob_threshold": None,
    "no_speech_threshold": None, "prompt_condition_type": "first-segment",
}  # fmt: skip
"""Settings that transformers applies and this package does not, with their values without effect."""


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON file.

    Raises:
        FileNotFoundError: the file does not exist.
        GenerationError: the file is not a JSON object.
    """
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise
    except (OSError, ValueError, RecursionError) as error:
        raise GenerationError(f"{path} cannot be read: {type(error).__name__} {error}") from error
    if not isinstance(found, dict):
        raise GenerationError(f"{path} contains {type(found).__name__} instead of a JSON object")
    return found


def read_optional_json(path: Path) -> dict[str, Any]:
    """Read a JSON file as `read_json` does; without the file, return no settings."""
    try:
        return read_json(path)
    except FileNotFoundError:
        return {}


def with_generation(config: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Return a model's settings, which generation_config.json, if it exists, overrides except with null.

    Raises:
        GenerationError: the file is not a JSON object.
    """
    stated = read_optional_json(folder / GENERATION)
    return {**config, **{name: value for name, value in stated.items() if value is not None}}


def generation_file(folder: Path) -> Path:
    """Return the file with a folder's settings for generation: config.json in older folders."""
    path = folder / GENERATION
    return path if path.is_file() else folder / MODEL


def tokens_of(stated: Any) -> list[int]:
    """Return the tokens of a setting, which is a token or a list of them.

    Raises:
        TypeError, ValueError: it is neither.
    """
    return [int(token) for token in (stated if isinstance(stated, list) else [stated])]


def stop_texts(settings: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the texts that end the output by ``stop_strings`` of generation_config.json.

    Raises:
        ValueError: the setting is neither a text nor a list of texts.
    """
    stated = settings.get("stop_strings") or []
    found = [stated] if isinstance(stated, str) else stated
    if not isinstance(found, list) or not all(isinstance(text, str) and text for text in found):
        raise ValueError(f"stop_strings is {stated}; expected texts")
    return tuple(found)


def not_applied(settings: Mapping[str, Any], *, guides: bool = False) -> list[str]:
    """Return the settings of generation_config.json that transformers applies and this package does not.

    Those for sampling only count if the file selects sampling, and ``guidance_scale`` unless the model ``guides``.
    """
    neutral = {**_NEUTRAL, **(_OF_SAMPLING if settings.get("do_sample") else {}), **_OF_SPEECH}
    applied = {"guidance_scale"} if guides else set()
    return [name for name, value in neutral.items() if name not in applied and settings.get(name) not in (None, value)]
