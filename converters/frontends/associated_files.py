"""The files that TensorFlow Lite's metadata associates with a model, such as lists of labels and vocabularies.

Source: TensorFlow Lite Metadata, "Pack metadata and associated files into the model": a ZIP archive after the model.
"""

from __future__ import annotations

import zipfile
import zlib
from pathlib import Path

_MAX_SIZE, _MAX_COUNT = 2**20, 64
_PREFIX = "associated_files "


def associated_texts(path: Path) -> dict[str, str]:
    """Return the texts in UTF-8 of up to 1 MiB as metadata: ``associated_files NAME`` -> text."""
    if not zipfile.is_zipfile(path):
        return {}
    try:
        with zipfile.ZipFile(path) as archive:
            entries = [entry for entry in archive.infolist() if not entry.is_dir() and entry.file_size <= _MAX_SIZE]
            texts = {_PREFIX + entry.filename: _text(archive, entry) for entry in entries[:_MAX_COUNT]}
    except (zipfile.BadZipFile, OSError):
        return {}
    return {name: text for name, text in texts.items() if text is not None}


def _text(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> str | None:
    """Return an entry's text; ``None`` if it is damaged, encrypted or not a text."""
    try:
        with archive.open(entry) as file:
            content = file.read(_MAX_SIZE + 1)
        return None if len(content) > _MAX_SIZE or b"\0" in content else content.decode()
    except (zipfile.BadZipFile, zlib.error, UnicodeDecodeError, NotImplementedError, RuntimeError, OSError, EOFError):
        return None
