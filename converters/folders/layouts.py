"""The paths of the models in a folder, as the libraries that load such folders expect them.

Libraries find ONNX models by name. optimum-onnx, sentence-transformers and Transformers.js load `onnx/model.onnx` next to
config.json, and the diffusion pipelines of optimum-onnx load `unet/model.onnx` and others. The same file serves all of them.
"""

from __future__ import annotations

import json
import mmap
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path, PurePosixPath
from typing import Any, Literal, TypeVar

from converters.errors import ConversionError, Fault, Problem

T = TypeVar("T")
Layout = Literal["hosts", "files"]
"""``"hosts"``: the names that programs look for. ``"files"``: each model's own name and path."""

ONNX = "onnx"
MODEL = "model"
PIPELINE, CONFIG = "model_index.json", "config.json"

HOSTED = frozenset((MODEL, "vision_encoder", "prompt_encoder_mask_decoder"))
"""The names of models that Transformers.js loads: a complete model, or the two parts of Segment Anything."""

_EXPORTED = "openvino_model"
PREFIX = "openvino_"
_OPENVINO = "openvino"
_VARIABLE = b'type="Assign"'
_VARIABLE_NAME = re.compile(rb'variable_id="([^"]*)"')


def places(folder: Path, models: Iterable[Path], layout: Layout) -> dict[Path, PurePosixPath]:
    """Return the path of each IR's ONNX model, relative to the output folder.

    Args:
        folder: the folder that optimum-intel or sentence-transformers wrote.
        models: its IRs.
        layout: see `Layout`.
    """
    pipeline = (folder / PIPELINE).is_file()
    found = {}
    for model in models:
        own = PurePosixPath(model.relative_to(folder).as_posix()).with_suffix(".onnx")
        place = None if layout == "files" else _of_pipeline(own) if pipeline else _of_transformers(folder, own, model)
        found[model] = own if place is None else place
    return found


def _of_pipeline(own: PurePosixPath) -> PurePosixPath | None:
    """Return the path of a pipeline's component."""
    return own.with_name(f"{MODEL}.onnx") if own.stem == _EXPORTED and len(own.parts) == 2 else None


def _of_transformers(folder: Path, own: PurePosixPath, model: Path) -> PurePosixPath | None:
    """Return the path of a model without state that config.json describes, or of a part of Segment Anything."""
    part = own.stem.removeprefix(PREFIX)
    if part in HOSTED - {MODEL} and all((model.parent / f"{PREFIX}{one}.xml").is_file() for one in HOSTED - {MODEL}):
        return own.parent / ONNX / f"{part}.onnx" if (model.parent / CONFIG).is_file() else None
    config = config_of(folder, model)
    if config is None or has_variables(model):
        return None
    base = PurePosixPath(config.parent.relative_to(folder).as_posix())
    return base / ONNX / f"{MODEL}{own.stem.removeprefix(_EXPORTED)}.onnx"


def config_of(folder: Path, model: Path) -> Path | None:
    """Return the config.json of an IR that is a complete model; ``None`` for others.

    It is next to the IR, or next to the folder ``openvino`` that contains it.
    """
    base = model.parent.parent if model.parent.name == _OPENVINO and model.parent != folder else model.parent
    config = base / CONFIG
    return config if model.stem.startswith(_EXPORTED) and config.is_file() else None


def has_variables(model: Path) -> bool:
    """Return whether an IR writes variables; ``False`` if it cannot be read."""
    return _searched(model, lambda content: content.find(_VARIABLE) >= 0) or False


def variables(model: Path) -> list[str]:
    """Return the names of the variables of an IR, in the order of the file; none if it cannot be read."""
    found = _searched(model, lambda content: [match[1] for match in _VARIABLE_NAME.finditer(content)]) or []
    return list(dict.fromkeys(name.decode(errors="replace") for name in found))


def _searched(model: Path, search: Callable[[mmap.mmap], T]) -> T | None:
    """Search the content of an IR; return ``None`` if it cannot be read."""
    if not model.is_file():
        return None
    try:
        with model.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            return search(content)
    except (OSError, ValueError):
        return None


def read_json(path: Path) -> Any:
    """Read a JSON file.

    Raises:
        ConversionError: the file cannot be read.
    """
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, OSError, RecursionError) as error:
        raise _damaged(path, f"it cannot be read: {error}") from error


def read_object(path: Path) -> Mapping[str, Any]:
    """Read the object in a JSON file.

    Raises:
        ConversionError: the file cannot be read, or does not contain an object.
    """
    found = read_json(path)
    if not isinstance(found, dict):
        raise _damaged(path, "it is not a JSON object")
    return found


def _damaged(path: Path, message: str) -> ConversionError:
    return ConversionError.of(Problem(message, str(path), remedy="get a new copy of the file", fault=Fault.MALFORMED))
