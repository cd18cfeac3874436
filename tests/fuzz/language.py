"""Changed IR files of language models and tokenizers, converted with their variables or with explicit caches."""

from __future__ import annotations

import functools
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from tests.fuzz import ir
from tests.fuzz.engine import Target

LANGUAGE = Path(__file__).parents[1] / "language"
_SECONDS = 60.0
_MEMORY = 800 * 2**20


def run(seed: int, number: int) -> str:
    """Create and convert the file with that number."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.xml"
        write(seed, number, path)
        return ir.converted(path, **options(seed, number))


def write(seed: int, number: int, path: Path) -> None:
    """Write the file with that number and its .bin."""
    # with many layers, more changes would almost always include a rejected one
    ir.write(seed, number, path, _source, most=2)


def options(seed: int, number: int) -> dict[str, Any]:
    """Return the conversion options of the file with that number."""
    rng = np.random.default_rng([seed, number, 1])
    if rng.random() < 0.4:
        return {}
    cache, positions = rng.choice(["float32", "float16", "uint8"]), [None, 1, 128, 10**6, 10**9][rng.integers(5)]
    return {"form": "genai", "positions": positions, "kv_cache": str(cache), "contrib": bool(rng.random() < 0.8)}


def _source(rng: np.random.Generator) -> tuple[bytes, bytes]:
    """Return a valid IR: a model in two of three cases, otherwise a tokenizer."""
    models, tokenizers = _sources()
    return _contents(str(rng.choice(models if rng.random() < 2 / 3 else tokenizers)))


@functools.cache
def _sources() -> tuple[list[str], list[str]]:
    """Return the paths of the models and tokenizers, ``ARCHIVE!NAME`` for those in an archive."""
    archived = [f"{path}!{name}" for path in sorted(LANGUAGE.glob("*/*.zip")) for name in zipfile.ZipFile(path).namelist()]
    files = [name for name in archived if name.endswith(".xml")]
    files += [str(path) for path in sorted((LANGUAGE / "files").glob("*/*.xml"))]
    return [name for name in files if "tokenizer" not in name], [name for name in files if "tokenizer" in name]


@functools.lru_cache(100)
def _contents(name: str) -> tuple[bytes, bytes]:
    archive, _, inner = name.partition("!")
    if not inner:
        return Path(name).read_bytes(), Path(name).with_suffix(".bin").read_bytes()
    with zipfile.ZipFile(archive) as file:
        return file.read(inner), file.read(f"{inner.removesuffix('.xml')}.bin")


TARGET = Target("language", run, _SECONDS, _MEMORY)
