"""Results of other programs, with the scripts that recorded them."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any


@cache
def tensorflow() -> dict[str, Any]:
    """Return TensorFlow's string hashes and lookup tables (make_tensorflow_hashes.py)."""
    text: dict[str, Any] = json.loads(Path(__file__).with_name("tensorflow_hashes.json").read_text(encoding="utf-8"))
    return text


def hashed_text(length: int) -> bytes:
    """Return the text of a length in tensorflow_hashes.json. Long texts contain every byte value."""
    return bytes((position * 37 + length * 101 + position * position // 5 + 11) % 256 for position in range(length))
