"""The companion files in a model folder: configurations, tokenizer files, chat templates and others."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from converters.errors import ConversionError, Problem
from converters.folders.layouts import read_json
from converters.outputs import Outputs

_MODULES, _ROUTER = "modules.json", "router_config.json"
_MARKS = (
    "config.json", "model_index.json", "generation_config.json", "tokenizer_config.json", "openvino_tokenizer.xml", _MODULES,
)  # fmt: skip
"""Files that mark the folder of one model, rather than a folder that contains models."""

_WEIGHTS = {
    ".xml", ".bin", ".onnx", ".data", ".safetensors", ".pt", ".pth", ".ckpt", ".gguf", ".h5", ".msgpack", ".tflite", ".blob",
}  # fmt: skip
"""The suffixes of files with a model's layers or weights in any form."""


_OF_MODULES = (".safetensors", ".bin")
"""The suffixes of the weights of sentence-transformers' modules, and of pipelines' components, in PyTorch."""

_READ = (
    "added_tokens.json", "chat_template.json", "config.json", "generation_config.json", "model_index.json", "modules.json",
    "preprocessor_config.json", "processor_config.json", _ROUTER, "scheduler_config.json", "special_tokens_map.json",
    "tokenizer.json", "tokenizer_config.json", "vocab.json",
)  # fmt: skip
"""The JSON files that hosts read."""


def is_model_folder(folder: Path) -> bool:
    """Return whether a folder belongs to one model."""
    return any((folder / name).is_file() for name in _MARKS)


def companions(folder: Path) -> list[Path]:
    """Return the files of a model's folder and its subfolders without layers or weights, and the weights of `_modules` and
    `_components`.
    """
    modules = _modules(folder) | _components(folder)
    found = []
    for path in sorted(folder.rglob("*")):
        weights = path.suffix.lower() in _WEIGHTS and not (path.parent in modules and path.suffix.lower() in _OF_MODULES)
        if path.is_file() and not weights:
            found.append(path)
    return [path for path in found if not _is_hidden(path, folder)]


def _is_hidden(path: Path, folder: Path) -> bool:
    return any(part.startswith(".") for part in path.relative_to(folder).parts)


def _modules(folder: Path) -> set[Path]:
    """Return the folders of the modules that sentence-transformers runs itself, such as ``2_Dense`` after the model.

    A router has modules for queries and for documents.
    """
    listed = _read(folder / _MODULES)
    stated = [module.get("path") for module in listed if isinstance(module, dict)] if isinstance(listed, list) else []
    router = _read(folder / _ROUTER)
    types = router.get("types") if isinstance(router, dict) else None
    stated += list(types) if isinstance(types, dict) else []
    found = {folder / path for path in stated if isinstance(path, str)} - {folder}
    return {path for path in found if not any(path.rglob("*.xml"))}


def _components(folder: Path) -> set[Path]:
    """Return the folders of the components of a diffusion pipeline that are not IRs, such as the safety checker."""
    index = _read(folder / "model_index.json")
    named = {name for name, kind in index.items() if isinstance(kind, list)} if isinstance(index, dict) else set()
    found = {path for path in folder.iterdir() if path.name in named and path.is_dir()}
    return {path for path in found if not any(path.rglob("*.xml"))}


def _read(path: Path) -> Any:
    """Return the content of a JSON file; ``None`` if it cannot be read, which `check_companions` reports."""
    try:
        return read_json(path)
    except ConversionError:
        return None


def check_companions(folder: Path) -> None:
    """Raise `ConversionError` if the JSON files of a model folder that libraries read are invalid, or a link in it has
    no target. All such files are listed.
    """
    problems = [
        Problem("it is a link to a file that does not exist", str(path), remedy="get a new copy of the file")
        for path in sorted(folder.rglob("*"))
        if path.is_symlink() and not path.exists() and not _is_hidden(path, folder)
    ]
    for path in companions(folder):
        if path.name not in _READ:
            continue
        try:
            read_json(path)
        except ConversionError as error:
            problems += error.problems
    if problems:
        raise ConversionError.of(problems)


def places(folder: Path, target: Path) -> dict[Path, Path]:
    """Return the destinations of a folder's `companions`, without those that are already there and those in a ``target``
    inside the folder.
    """
    inside = target.resolve() if folder.resolve() in target.resolve().parents else None
    found = {path: target / path.relative_to(folder) for path in companions(folder)}
    return {
        path: place
        for path, place in found.items()
        if not (place.exists() and place.samefile(path)) and (inside is None or inside not in path.resolve().parents)
    }


def copy_companions(copies: Mapping[Path, Path], contents: Mapping[Path, bytes] = MappingProxyType({})) -> None:
    """Copy files to their `places`, either all of them or none.

    Args:
        copies: the destination of each file.
        contents: the content of additional files.

    Raises:
        OverInputError: a destination is one of the other files.
        OSError: a file cannot be read or written. The previous files are unchanged.
    """
    with Outputs(inputs=copies) as outputs:
        add_companions(outputs, copies, contents)


def add_companions(
    outputs: Outputs, copies: Mapping[Path, Path], contents: Mapping[Path, bytes] = MappingProxyType({})
) -> None:
    """Add the files of `copy_companions` to outputs that appear together."""
    for place in (*copies.values(), *contents):
        place.parent.mkdir(parents=True, exist_ok=True)
    for path, place in copies.items():
        with path.open("rb") as source, outputs.open(place) as file:
            shutil.copyfileobj(source, file)
    for place, content in contents.items():
        with outputs.open(place) as file:
            file.write(content)
