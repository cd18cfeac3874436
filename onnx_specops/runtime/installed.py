"""Find the native kernels of an installation from a checkout that shadows it.

Python started in the root of a clone imports the clone's packages. They have no library, because `pip install .` builds it
for the installation only.
"""

from __future__ import annotations

import ctypes
import functools
import json
import warnings
from importlib import metadata
from pathlib import Path
from typing import Any

DISTRIBUTION = "onnx-specops"


@functools.cache
def installed_package(own: Path, library: str) -> Path | None:
    """Return the folder of the installed package whose library the package in the folder ``own`` can use, or ``None``.

    The installation is the first one on ``sys.path`` outside the checkout. It must have the same version and declare the
    same operators. Otherwise a ``RuntimeWarning`` gives the reason.

    Args:
        own: the folder of the running package.
        library: the library's file, relative to the package's folder.
    """
    import onnx_specops

    for distribution in metadata.distributions(name=DISTRIBUTION):
        package = Path(str(distribution.locate_file("onnx_specops"))).resolve()
        if package.is_dir() and package != own.resolve():
            break
    else:
        return None
    if not (package / library).is_file():
        return None
    if distribution.version != onnx_specops.__version__:
        fault = f"has the version {distribution.version}"
    elif differing := _differing(describe(package / library)):
        fault = f"differs in {', '.join(differing)}"
    else:
        return package
    warnings.warn(
        f"the native kernels in {package} are not used, because that installation of onnx-specops {fault}, but {own} has "
        f"the version {onnx_specops.__version__}. To build the kernels of the checkout, run `pip install .` in it",
        RuntimeWarning,
        stacklevel=2,
    )
    return None


def describe(library: Path) -> dict[str, Any]:
    """Return the description of its operators that a library contains (see description.h)."""
    function = ctypes.CDLL(str(library)).OnnxSpecopsOperators
    function.restype = ctypes.c_char_p
    return json.loads(function())


def _differing(description: dict[str, Any]) -> list[str]:
    """Return the operators of a library that this package declares differently or not at all."""
    from onnx_specops.domain import operators

    declared = {o.name: (list(o.inputs), list(o.outputs), set(o.attributes)) for o in operators()}
    built = {
        o["name"]: (
            [i["name"] for i in o["inputs"]],
            [i["name"] for i in o["outputs"]],
            {a["name"] for a in o["attributes"]},
        )
        for o in description["operators"]
    }
    return sorted(name for name, signature in built.items() if declared.get(name) != signature)
