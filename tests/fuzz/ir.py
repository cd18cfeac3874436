"""Changed IR files are converted to an ONNX model, or raise a `ConversionError` that is not internal."""

from __future__ import annotations

import contextlib
import functools
import os
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from converters.errors import ConversionError, InternalError
from converters.openvino import convert
from tests.fuzz.engine import Finding, Target
from tests.fuzz.mutations import Mutator

Source = Callable[[np.random.Generator], tuple[bytes, bytes]]
"""Returns a valid .xml and .bin."""

CORPUS = Path(__file__).parent / "corpus" / "ir"
_SECONDS = 30.0
_MEMORY = 600 * 2**20


def run(seed: int, number: int) -> str:
    """Create and convert the file with that number."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.xml"
        write(seed, number, path)
        return converted(path)


def write(seed: int, number: int, path: Path, source: Source | None = None, most: int = 5) -> None:
    """Write the file with that number and its .bin: those of ``source`` after at most ``most`` changes."""
    rng = np.random.default_rng([seed, number])
    xml, weights = (source or _source)(rng)
    xml, weights = Mutator(xml, weights, rng).mutated(int(rng.integers(1, most + 1)))
    path.write_bytes(xml)
    _weights(path.with_suffix(".bin"), weights, rng)


def converted(path: Path, **options: Any) -> str:
    """Convert a file; return the kind of error, or ``"converted"``. Raise `Finding` for a failure.

    Args:
        path: the .xml.
        options: the options of `convert`.
    """
    try:
        convert(path, path.with_suffix(".onnx"), **options)
    except InternalError as error:
        raise Finding(f"InternalError: {error}") from error
    except ConversionError as error:
        lines = str(error).splitlines()
        if not lines or not all(lines):
            raise Finding(f"an error without a message: {error!r}") from error
        return type(error).__name__
    except Exception as error:
        raise Finding(f"{type(error).__name__}: {error}") from error
    return "converted"


def _source(rng: np.random.Generator) -> tuple[bytes, bytes]:
    """Return a valid IR: of a conformance case, of an IR of version 2 to 7, or of a random model."""
    kind = rng.random()
    if kind < 0.6:
        return _case(int(rng.integers(10**9)))
    if kind < 0.8:
        return _old_case(int(rng.integers(10**9)))
    return _random(int(rng.integers(200)))


@functools.lru_cache(2000)
def _case(number: int) -> tuple[bytes, bytes]:
    from tests.conformance.operations.cases import CASES

    with tempfile.TemporaryDirectory() as folder:
        return _contents(CASES[number % len(CASES)].save(Path(folder)))


@functools.lru_cache(2000)
def _old_case(number: int) -> tuple[bytes, bytes]:
    from tests.conformance.inference_engine.case import cases

    found = list(cases().values())
    with tempfile.TemporaryDirectory() as folder:
        return _contents(found[number % len(found)].net().save(Path(folder))[0])


@functools.lru_cache(200)
def _random(number: int) -> tuple[bytes, bytes]:
    from tests.conformance.random.judge import save
    from tests.conformance.random.models import recipe

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.xml"
        save(recipe(1, number), str(path))
        return _contents(path)


def _contents(path: Path) -> tuple[bytes, bytes]:
    return path.read_bytes(), path.with_suffix(".bin").read_bytes()


# -- the .bin --------------------------------------------------------------------------------------------------------------


def _weights(path: Path, data: bytes, rng: np.random.Generator) -> None:
    """Write the .bin, sometimes as something other than a regular, constant file."""
    if rng.random() < 0.97:
        path.write_bytes(data)
        return
    kinds: list[Callable[[], object]] = [
        lambda: None,
        path.mkdir,
        lambda: path.symlink_to(path),
        lambda: path.symlink_to("/dev/zero"),
        lambda: path.write_bytes(b""),
        lambda: _unreadable(path, data),
        lambda: _changing(path, data),
    ]
    if hasattr(os, "mkfifo"):
        kinds.append(lambda: os.mkfifo(path))
    kinds[rng.integers(len(kinds))]()


def _unreadable(path: Path, data: bytes) -> None:
    path.write_bytes(data)
    path.chmod(0)


def _changing(path: Path, data: bytes) -> None:
    """Create a file that grows and shrinks while it is read, but keeps its mapped pages, whose loss would crash the
    reader.
    """
    size = len(data) % 4096 or 4096
    path.write_bytes(data)

    def change() -> None:
        with contextlib.suppress(OSError):
            for k in range(50):
                os.truncate(path, max(0, len(data) - size + 1) if k % 2 else len(data) + 1)

    threading.Thread(target=change).start()


TARGET = Target("ir", run, _SECONDS, _MEMORY)
