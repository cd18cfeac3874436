"""What other programs computed, with the scripts that asked them."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any


@cache
def tensorflow() -> dict[str, Any]:
    """TensorFlow's string hashes and lookup tables (make_tensorflow_hashes.py)."""
    text: dict[str, Any] = json.loads(Path(__file__).with_name("tensorflow_hashes.json").read_text(encoding="utf-8"))
    return text


def hashed_text(length: int) -> bytes:
    """The text of that length whose hashes tensorflow_hashes.json holds: every byte value occurs in the long ones."""
    return bytes((position * 37 + length * 101 + position * position // 5 + 11) % 256 for position in range(length))
