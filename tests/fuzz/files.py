"""Changed files of the conformance and language suites."""

from __future__ import annotations

import functools
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tests.fuzz import ir


@dataclass(frozen=True)
class ChangedFiles:
    """IR files with at most two changes, and the options of their conversion.

    With many layers, more changes would almost always include a rejected one.

    Attributes:
        choose: returns the name of a valid IR: its path, or ``ARCHIVE!NAME``.
        options: returns the conversion options of the other six files of ten.
    """

    choose: Callable[[np.random.Generator], str]
    options: Callable[[np.random.Generator], dict[str, Any]]

    def run(self, seed: int, number: int) -> str:
        """Create and convert the file with that number."""
        rng = np.random.default_rng([seed, number, 1])
        options = {} if rng.random() < 0.4 else self.options(rng)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.xml"
            self.write(seed, number, path)
            return ir.converted(path, **options)

    def write(self, seed: int, number: int, path: Path) -> None:
        """Write the file with that number and its .bin."""
        ir.write(seed, number, path, lambda rng: _contents(self.choose(rng)), most=2)


def archived(archive: Path) -> list[str]:
    """Return the names of the IR files in an archive."""
    return [f"{archive}!{name}" for name in zipfile.ZipFile(archive).namelist() if name.endswith(".xml")]


@functools.lru_cache(100)
def _contents(name: str) -> tuple[bytes, bytes]:
    archive, _, inner = name.partition("!")
    if not inner:
        return Path(name).read_bytes(), Path(name).with_suffix(".bin").read_bytes()
    with zipfile.ZipFile(archive) as file:
        return file.read(inner), file.read(f"{inner.removesuffix('.xml')}.bin")
