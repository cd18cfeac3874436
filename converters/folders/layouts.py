"""Where a folder's models go, so that the programs that load such folders find them.

Programs look for ONNX models by their names. optimum-onnx, sentence-transformers and Transformers.js all load
`onnx/model.onnx` beside config.json, and the diffusion pipelines of optimum-onnx load `unet/model.onnx` and the like: one
file each serves them all.
"""

from __future__ import annotations

import json
import mmap
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath
from typing import Any, Literal

from converters.errors import ConversionError, Fault, Problem

Layout = Literal["hosts", "files"]
"""``"hosts"``: the names that programs look for; ``"files"``: each model's own name, at its own place."""

ONNX = "onnx"
MODEL = "model"
PIPELINE, CONFIG = "model_index.json", "config.json"

_EXPORTED = "openvino_model"
_OPENVINO = "openvino"
_VARIABLE = b'type="Assign"'


def places(folder: Path, models: Iterable[Path], layout: Layout) -> dict[Path, PurePosixPath]:
    """Where each IR of a folder goes, relative to the folder of what is written.

    Args:
        folder: as optimum-intel or sentence-transformers writes it.
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
    """The place of a pipeline's component."""
    return own.with_name(f"{MODEL}.onnx") if own.stem == _EXPORTED and len(own.parts) == 2 else None


def _of_transformers(folder: Path, own: PurePosixPath, model: Path) -> PurePosixPath | None:
    """The place of a model that config.json describes and that keeps nothing from run to run."""
    config = config_of(folder, model)
    if config is None:
        return None
    base = PurePosixPath(config.parent.relative_to(folder).as_posix())
    return base / ONNX / f"{MODEL}{own.stem.removeprefix(_EXPORTED)}.onnx"


def config_of(folder: Path, model: Path) -> Path | None:
    """The config.json of an IR that is a whole model by itself and keeps nothing from run to run; ``None`` of others.

    It is beside the IR, or beside the folder ``openvino`` that holds it.
    """
    base = model.parent.parent if model.parent.name == _OPENVINO and model.parent != folder else model.parent
    config = base / CONFIG
    if not model.stem.startswith(_EXPORTED) or not config.is_file() or has_variables(model):
        return None
    return config


def has_variables(model: Path) -> bool:
    """Whether an IR writes variables; ``False`` where it cannot be read."""
    try:
        with model.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            return content.find(_VARIABLE) >= 0
    except (OSError, ValueError):
        return False


def read_object(path: Path) -> Mapping[str, Any]:
    """The object in a JSON file.

    Raises:
        ConversionError: it cannot be read, or holds something else.
    """
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, OSError, RecursionError) as error:
        raise _damaged(path, f"it cannot be read: {error}") from error
    if not isinstance(found, dict):
        raise _damaged(path, "it is no JSON object")
    return found


def _damaged(path: Path, message: str) -> ConversionError:
    return ConversionError.of(Problem(message, str(path), remedy="get the file anew", fault=Fault.MALFORMED))
