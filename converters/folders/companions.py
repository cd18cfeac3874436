"""The files of a model's folder that go where its IRs go: configurations, tokenizer files, chat templates, ..."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from converters.outputs import Outputs

_MARKS = ("config.json", "model_index.json", "generation_config.json", "tokenizer_config.json", "openvino_tokenizer.xml")
"""A folder that holds one of these is a model's, not one that models happen to lie in."""

_WEIGHTS = {
    ".xml", ".bin", ".onnx", ".data", ".safetensors", ".pt", ".pth", ".ckpt", ".gguf", ".h5", ".msgpack", ".tflite", ".blob",
}  # fmt: skip
"""What holds a model's layers or weights, in this form or another."""


def is_model_folder(folder: Path) -> bool:
    """Whether all that lies in a folder belongs to one model."""
    return any((folder / name).is_file() for name in _MARKS)


def companions(folder: Path) -> list[Path]:
    """The files of a model's folder, those of its folders included, that hold neither layers nor weights."""
    found = sorted(path for path in folder.rglob("*") if path.is_file() and path.suffix.lower() not in _WEIGHTS)
    return [path for path in found if not any(part.startswith(".") for part in path.relative_to(folder).parts)]


def places(folder: Path, target: Path) -> dict[Path, Path]:
    """Where each of a folder's `companions` goes, without those that lie there already and what is in ``target`` besides."""
    inside = target.resolve() if target.resolve() != folder.resolve() else None
    found = {path: target / path.relative_to(folder) for path in companions(folder)}
    return {
        path: place
        for path, place in found.items()
        if not (place.exists() and place.samefile(path)) and (inside is None or inside not in path.resolve().parents)
    }


def copy_companions(copies: Mapping[Path, Path], contents: Mapping[Path, bytes] = MappingProxyType({})) -> None:
    """Copy files to their `places`; all of them appear together, or none.

    Args:
        copies: where each file goes.
        contents: what stands in further files.

    Raises:
        OverInputError: a place is that of another of the files.
        OSError: one cannot be read or written; what was there before is still there.
    """
    for place in (*copies.values(), *contents):
        place.parent.mkdir(parents=True, exist_ok=True)
    with Outputs(inputs=copies) as outputs:
        for path, place in copies.items():
            with path.open("rb") as source, outputs.open(place) as file:
                shutil.copyfileobj(source, file)
        for place, content in contents.items():
            with outputs.open(place) as file:
                file.write(content)
