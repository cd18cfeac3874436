"""Changed IR files of whole networks, converted with the options that select passes."""

from __future__ import annotations

import functools
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from tests.fuzz import ir
from tests.fuzz.engine import Target

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


def run(seed: int, number: int) -> str:
    """Create and convert the file with that number."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.xml"
        write(seed, number, path)
        return ir.converted(path, **options(seed, number))


def write(seed: int, number: int, path: Path) -> None:
    """Write the file with that number and its .bin."""
    ir.write(seed, number, path, _source, most=2)


def options(seed: int, number: int) -> dict[str, Any]:
    """Return the conversion options of the file with that number."""
    rng = np.random.default_rng([seed, number, 1])
    return {} if rng.random() < 0.4 else dict(_OPTIONS[rng.integers(len(_OPTIONS))])


def _source(rng: np.random.Generator) -> tuple[bytes, bytes]:
    """Return a valid IR."""
    names = _names()
    return _contents(*names[rng.integers(len(names))])


@functools.cache
def _names() -> list[tuple[Path, str]]:
    """Return the archives, and the .xml files in them."""
    archives = sorted(path for folder in _FOLDERS for path in (_CONFORMANCE / folder).glob("*.zip"))
    return [(path, name) for path in archives for name in zipfile.ZipFile(path).namelist() if name.endswith(".xml")]


@functools.lru_cache(100)
def _contents(archive: Path, name: str) -> tuple[bytes, bytes]:
    with zipfile.ZipFile(archive) as file:
        return file.read(name), file.read(f"{name.removesuffix('.xml')}.bin")


TARGET = Target("networks", run, _SECONDS, _MEMORY)
