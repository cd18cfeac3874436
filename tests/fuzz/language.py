"""Changed IR files of language models and tokenizers, converted with their variables or with explicit caches."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import numpy as np

from tests.fuzz.engine import Target
from tests.fuzz.files import ChangedFiles, archived

LANGUAGE = Path(__file__).parents[1] / "language"
_SECONDS = 60.0
_MEMORY = 800 * 2**20


@functools.cache
def _names() -> tuple[list[str], list[str]]:
    """Return the names of the models and of the tokenizers."""
    names = [name for path in sorted(LANGUAGE.glob("*/*.zip")) for name in archived(path)]
    names += [str(path) for path in sorted((LANGUAGE / "files").glob("*/*.xml"))]
    return [name for name in names if "tokenizer" not in name], [name for name in names if "tokenizer" in name]


def _choose(rng: np.random.Generator) -> str:
    """Return a model in two of three cases, otherwise a tokenizer."""
    models, tokenizers = _names()
    return str(rng.choice(models if rng.random() < 2 / 3 else tokenizers))


def _options(rng: np.random.Generator) -> dict[str, Any]:
    cache, positions = rng.choice(["float32", "float16", "uint8"]), [None, 1, 128, 10**6, 10**9][rng.integers(5)]
    return {"form": "genai", "positions": positions, "kv_cache": str(cache), "contrib": bool(rng.random() < 0.8)}


FILES = ChangedFiles(_choose, _options)
TARGET = Target("language", FILES.run, _SECONDS, _MEMORY)
