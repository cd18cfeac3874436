"""Changed IR files of whole networks, converted with the options that select passes."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import numpy as np

from tests.fuzz.engine import Target
from tests.fuzz.files import ChangedFiles, archived

_CONFORMANCE = Path(__file__).parents[1] / "conformance"
_FOLDERS = ("models/files", "quantized/files", "compressed")
_OPTIONS: tuple[dict[str, Any], ...] = (
    {},
    {"opset": 13},
    {"opset": 23},
    {"precision": "float16"},
    {"precision": "float32"},
    {"quantized": "float"},
    *({"target": name} for name in ("standard", "cuda", "qnn", "webgpu", "coreml", "opencv4", "mnn", "jax")),
)
_SECONDS = 20.0
_MEMORY = 800 * 2**20


@functools.cache
def _names() -> list[str]:
    """Return the names of the IR files."""
    return [name for folder in _FOLDERS for path in sorted((_CONFORMANCE / folder).glob("*.zip")) for name in archived(path)]


def _choose(rng: np.random.Generator) -> str:
    names = _names()
    return names[rng.integers(len(names))]


def _options(rng: np.random.Generator) -> dict[str, Any]:
    return dict(_OPTIONS[rng.integers(len(_OPTIONS))])


FILES = ChangedFiles(_choose, _options)
TARGET = Target("networks", FILES.run, _SECONDS, _MEMORY)
