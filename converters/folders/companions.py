"""The files of a model's folder that go where its IRs go: configurations, tokenizer files, chat templates, ..."""

from __future__ import annotations

import shutil
from pathlib import Path

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


def copy_companions(folder: Path, target: Path) -> list[Path]:
    """Copy a model's `companions` to where its IRs go; returns them as they lie there."""
    copied = []
    for path in companions(folder):
        place = target / path.relative_to(folder)
        if place.resolve() != path.resolve():
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, place)
        copied.append(place)
    return copied
