"""Extensions of OpenVINO for models with custom operations: shared libraries and Python files."""

from __future__ import annotations

import importlib.util
import inspect
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def new_core(extensions: Sequence[str] = ()) -> Any:
    """Create an ``openvino.Core`` with the extensions' operations.

    Args:
        extensions: shared libraries, and Python files (.py) with operations as classes derived from ``openvino.Op``.

    Raises:
        ValueError: a Python file fails or has no such class.
        RuntimeError: a library is not an extension (raised by OpenVINO).
    """
    import openvino as ov

    core = ov.Core()
    for extension in extensions:
        if extension.endswith(".py"):
            for operation in _operations(Path(extension)):
                core.add_extension(operation)
        else:
            core.add_extension(extension)
    return core


def _operations(path: Path) -> list[type]:
    import openvino as ov

    spec = importlib.util.spec_from_file_location(f"specops_extension_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise ValueError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise ValueError(f"the extension {path} fails: {type(error).__name__}: {error}") from error
    found = [
        kind
        for _, kind in inspect.getmembers(module, inspect.isclass)
        if issubclass(kind, ov.Op) and kind.__module__ == module.__name__
    ]
    if not found:
        raise ValueError(f"the extension {path} contains no class derived from openvino.Op")
    return found
