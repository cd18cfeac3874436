"""Rules from outside: files and modules that a user names, and packages that are installed.

A package announces a module of rules as an entry point of the group ``onnx_specops.rules``. Importing the module registers
its rules; one for an operation and opset that has a rule already takes that one's place.
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
    """Register the rules of every installed package that announces some.

    Raises:
        ValueError: naming the package whose rules fail to be imported.
    """
    for entry in importlib.metadata.entry_points(group=GROUP):
        try:
            entry.load()
        except (Exception, SystemExit) as error:
            source = "" if entry.dist is None else f" of {entry.dist.name}"
            raise ValueError(f"the rules {entry.value}{source} fail: {type(error).__name__}: {error}") from error


def load_all(sources: Iterable[str] | None) -> None:
    """`load_rules` for each of some."""
    for source in sources or ():
        load_rules(source)


@functools.cache
def load_rules(source: str) -> None:
    """Register the rules in a Python file, or in a module that can be imported, in the places of ours; once for each.

    Raises:
        ValueError: where there is no such file or module, or it fails.
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
        raise ImportError("it is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
