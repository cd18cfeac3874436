"""JSON files of settings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from onnx_specops.generation.errors import GenerationError


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
    except (OSError, ValueError) as error:
        raise GenerationError(f"{path} cannot be read: {type(error).__name__} {error}") from error
    if not isinstance(found, dict):
        raise GenerationError(f"{path} contains {type(found).__name__} instead of a JSON object")
    return found
