"""The custom domain ``onnx_specops``, with operators that ONNX lacks: their schemas, bodies in standard ONNX and kernels."""

import importlib
from typing import TYPE_CHECKING, Any

from onnx_specops import contrib as _contrib
from onnx_specops import ops as _ops
from onnx_specops.domain import DOMAIN, OPSET_VERSION, register_schemas

if TYPE_CHECKING:
    from onnx_specops.bodies import add_bodies
    from onnx_specops.optimizing import optimize
    from onnx_specops.runtime.library import library_path
    from onnx_specops.runtime.session import InferenceSession, register

register_schemas()
del _contrib, _ops

__version__ = "0.1.0"

__all__ = ["DOMAIN", "OPSET_VERSION", "InferenceSession", "add_bodies", "library_path", "optimize", "register"]

# These modules load on first use. ONNX Runtime and the graph builder take longer to import than everything else.
_LAZY = {
    "InferenceSession": "onnx_specops.runtime.session",
    "add_bodies": "onnx_specops.bodies",
    "library_path": "onnx_specops.runtime.library",
    "optimize": "onnx_specops.optimizing",
    "register": "onnx_specops.runtime.session",
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'onnx_specops' has no attribute {name!r}")
    value = getattr(importlib.import_module(_LAZY[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})
