"""The registry of source formats. No other module refers to individual formats."""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from converters.source import FormatWithSignatures

if TYPE_CHECKING:
    from converters.source import Format, Inspection, Source

_MODULES = {
    "converters.frontends.format": "TensorFlow, TensorFlow Lite, PaddlePaddle, PyTorch and ONNX models",
    "converters.openvino.format": "OpenVINO IR (.xml, with the .bin in the same folder)",
}
"""Modules with a `Format` named ``FORMAT``, and its name, which the command's help shows without loading the module.

The first format that recognizes a model opens it; the last one is the fallback.
"""


def formats() -> Iterator[Format]:
    """Yield all formats."""
    for module in _MODULES:
        yield importlib.import_module(module).FORMAT


def format_names() -> str:
    """Return the names of all formats, the fallback first."""
    return "; ".join(reversed(_MODULES.values()))


def recognized(model: object) -> Format | None:
    """Return the format that recognizes a model, if any. Pipes and devices, whose content may never end, are not opened."""
    if isinstance(model, (str, Path)) and os.path.exists(model) and not (os.path.isfile(model) or os.path.isdir(model)):
        return None
    return next((one for one in formats() if one.recognizes(model)), None)


def format_of(model: object) -> Format:
    """Return the format that opens a model. For an unknown model it is the one that raises the error."""
    found = recognized(model)
    if found is None:
        *_, found = formats()
    return found


def open_model(
    model: Any, bin: str | Path | bytes | None = None, signature: str | None = None
) -> AbstractContextManager[Source]:
    """Open a model in the format that recognizes it.

    Args:
        model: a path or an object in memory.
        bin: the separate file of its weights, if any.
        signature: the signature of the model, for formats that have several in a file.

    Raises:
        ValueError: the model's format has no signatures.
    """
    if signature is None:
        return format_of(model).open(model, bin)
    return _with_signatures(model).open(model, bin, signature=signature)


def inspect_model(path: Path, bin: str | Path | None = None, signature: str | None = None) -> Inspection:
    """Inspect how a model's layers would be converted, in the format that recognizes it.

    Args:
        path: the model.
        bin, signature: see `open_model`.

    Raises:
        ValueError: the model's format has no signatures.
    """
    if signature is None:
        return format_of(path).inspect(path, bin)
    return _with_signatures(path).inspect(path, bin, signature=signature)


def _with_signatures(model: Any) -> FormatWithSignatures:
    found = format_of(model)
    if not isinstance(found, FormatWithSignatures):
        named = model if isinstance(model, (str, Path)) else "a model in memory"
        raise ValueError(f"a signature belongs to a TensorFlow SavedModel, not to {named}")
    return found


def find_models(folder: Path) -> list[Path]:
    """Return the models in a folder and its subfolders, sorted by path."""
    found = {path for one in formats() for suffix in one.suffixes for path in folder.rglob(f"*{suffix}")}
    return sorted(path for path in found if recognized(path) is not None)
