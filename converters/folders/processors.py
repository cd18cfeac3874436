"""The settings of transformers' processors of images and sounds."""

from __future__ import annotations

from pathlib import Path

from converters.folders.layouts import read_object
from converters.folders.stated import Stated

FLAT, NESTED = "preprocessor_config.json", "processor_config.json"


def processor(folder: Path, *names: str) -> Stated | None:
    """Return the settings of a folder's processor; ``None`` if it has none.

    transformers 5 writes them into processor_config.json, and reads them there first.

    Args:
        folder: the folder of a model.
        names: the names of the processor in processor_config.json.

    Raises:
        ConversionError: a file is not a JSON object.
    """
    nested = stated_in(folder / NESTED, *names)
    return nested if nested is not None and nested.place else stated_in(folder / FLAT, *names)


def stated_in(path: Path, *names: str) -> Stated | None:
    """Return the settings in a file: the object of one of the names if it has one; ``None`` without the file.

    Raises:
        ConversionError: the file is not a JSON object.
    """
    if not path.is_file():
        return None
    found = read_object(path)
    for name in names:
        if isinstance(inner := found.get(name), dict):
            return Stated(path, inner, f"{name}.")
    return Stated(path, found)
