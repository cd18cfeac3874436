"""Recorded models of frameworks: their files, inputs, and the framework's results."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

FILES = Path(__file__).with_name("files")
FORMATS = ("saved_model", "frozen", "meta", "tflite", "paddle", "pt2", "onnx")

Arrays = dict[str, np.ndarray]


@dataclass(frozen=True)
class Recorded:
    """A recorded model.

    Attributes:
        format: one of `FORMATS`.
        name: a description.
        path: the model within its folder; empty for the folder itself.
        inputs, outputs: by the framework's names, in its order.
    """

    format: str
    name: str
    path: str
    inputs: Arrays
    outputs: Arrays

    def extract(self, folder: Path) -> Path:
        """Write the model's files into a folder; return the path to convert."""
        with zipfile.ZipFile(FILES / f"{self.format}.zip") as stored:
            for entry in stored.namelist():
                if entry.startswith(f"{self.name}/"):
                    stored.extract(entry, folder)
        return folder / self.name / self.path if self.path else folder / self.name


def recorded(kind: str) -> Iterator[Recorded]:
    """Iterate over the models of a format."""
    with zipfile.ZipFile(FILES / f"{kind}.zip") as stored:
        for entry in stored.namelist():
            if entry.endswith(".npz") and "/" not in entry:
                with np.load(io.BytesIO(stored.read(entry))) as arrays:
                    sides = [
                        {key.partition("/")[2]: arrays[key] for key in arrays.files if key.startswith(f"{side}/")}
                        for side in ("in", "out")
                    ]
                    yield Recorded(kind, entry.removesuffix(".npz"), str(arrays["path"]), *sides)


def store(kind: str, models: list[tuple[str, Path, str, Arrays, Arrays]]) -> None:
    """Write the models of a format: name, folder of its files, path of the model in it, inputs, outputs."""
    FILES.mkdir(exist_ok=True)
    with zipfile.ZipFile(FILES / f"{kind}.zip", "w", zipfile.ZIP_DEFLATED) as stored:
        for name, folder, path, inputs, outputs in models:
            for file in sorted(folder.rglob("*")):
                if file.is_file():
                    _write(stored, f"{name}/{file.relative_to(folder).as_posix()}", file.read_bytes())
            content = io.BytesIO()
            named = {f"in/{key}": value for key, value in inputs.items()}
            named |= {f"out/{key}": value for key, value in outputs.items()}
            np.savez_compressed(content, path=np.array(path), **named)  # type: ignore[arg-type]
            _write(stored, f"{name}.npz", content.getvalue())


def _write(stored: zipfile.ZipFile, name: str, content: bytes) -> None:
    # no time stamps: the same files give the same archive
    stored.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)
