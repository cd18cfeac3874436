"""JSON files with settings, with the names of transformers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from onnx_specops.generation.errors import GenerationError

MODEL, GENERATION = "config.json", "generation_config.json"


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
