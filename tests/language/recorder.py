"""Conversions that tests of configurations share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from converters.convert import Conversion, convert_with
from converters.folders.genai import write_genai
from converters.options import Options


class Recorder:
    """Converts the models of a folder once. ``replay`` returns the results again, without another conversion."""

    def __init__(self) -> None:
        self._found: dict[str, Conversion] = {}

    @classmethod
    def of(cls, folder: Path, out: Path) -> Recorder:
        """Convert a folder for onnxruntime-genai, and record its models."""
        recorder = cls()
        write_genai(folder, out, recorder.record)
        return recorder

    def record(self, model: Path, target: Path | None, *, adapt: Any = None, **more: Any) -> Conversion:
        self._found[model.name] = convert_with(model, target, Options(**more), adapt=adapt)
        return self._found[model.name]

    def replay(self, model: Path, target: Path, *, adapt: Any = None, **more: Any) -> Conversion:
        target.write_bytes(b"model")
        return self._found[model.name]
