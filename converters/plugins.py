"""Rules from outside the project: files and modules that a user names, and installed packages.

A package declares a module with rules as an entry point in the group ``onnx_specops.rules``. Importing the module registers
its rules. A rule for an operation and opset that already has one replaces it.
"""

from __future__ import annotations

import functools
import importlib
import importlib.metadata
import importlib.util
import sys
from collections.abc import Iterable
from pathlib import Path

from converters.formats import formats

GROUP = "onnx_specops.rules"


@functools.cache
def load_installed() -> None:
    """Register the rules of all installed packages that declare them.

    Raises:
        ValueError: a package's rules cannot be imported; the message names it.
    """
    for entry in importlib.metadata.entry_points(group=GROUP):
        try:
            entry.load()
        except (Exception, SystemExit) as error:
            source = "" if entry.dist is None else f" of {entry.dist.name}"
            raise ValueError(f"the rules {entry.value}{source} fail: {type(error).__name__}: {error}") from error


def load_all(sources: Iterable[str] | None) -> None:
    """Call `load_rules` for each source."""
    for source in sources or ():
        load_rules(source)


@functools.cache
def load_rules(source: str) -> None:
    """Register the rules of a Python file or an importable module, which replace the built-in ones. Loads each source once.

    Raises:
        ValueError: the file or module does not exist, or importing it fails.
    """
    for one in formats():
        one.load()
    try:
        if source.endswith(".py"):
            _import_file(Path(source))
        else:
            if not all(part.isidentifier() for part in source.split(".")):
                raise ImportError("it is neither a .py file nor the name of a module")
            importlib.import_module(source)
    except (Exception, SystemExit) as error:
        raise ValueError(f"the rules {source} fail: {type(error).__name__}: {error}") from error


def _import_file(path: Path) -> None:
    name = f"specops_rules_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError("it is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
