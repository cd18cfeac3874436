"""A folder for onnxruntime-genai whose settings tests change."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

from converters.folders.genai import GenaiFolder, write_genai
from tests.language.recorder import Recorder

ARCHIVES = Path(__file__).parents[2] / "language"


class Folder:
    """A folder whose conversion is recorded, so that its settings can be changed."""

    def __init__(self, name: str, place: Path) -> None:
        self.source, self.out = place / "source", place / "out"
        with zipfile.ZipFile(ARCHIVES / f"{name}.zip") as file:
            file.extractall(self.source)
        self._recorder = Recorder.of(self.source, place / "recorded")
        self._texts = {path: path.read_text() for path in self.source.glob("*config.json")}

    def written(self, **changes: dict[str, Any]) -> GenaiFolder:
        """Write the folder after changes of its JSON files, by the names of the files without suffix."""
        for path, text in self._texts.items():
            document = {**json.loads(text), **changes.get(path.stem, {})}
            path.write_text(json.dumps({key: value for key, value in document.items() if value is not None}))
        return write_genai(self.source, self.out, self._recorder.replay)

    @property
    def config(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.out / "genai_config.json").read_text())
        return found
