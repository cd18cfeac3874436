"""OpenVINO IR to ONNX: `convert` and what its users need to handle its errors."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from converters.errors import ConversionError, MalformedError, Problem

if TYPE_CHECKING:
    from converters.openvino.conversion import Conversion, Report, convert
    from converters.validation.validate import validate

__all__ = ["Conversion", "ConversionError", "MalformedError", "Problem", "Report", "convert", "validate"]

# Imported at their first use: errors need none of ONNX.
_LAZY = {
    "Conversion": "converters.openvino.conversion",
    "Report": "converters.openvino.conversion",
    "convert": "converters.openvino.conversion",
    "validate": "converters.validation",
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        module = importlib.import_module(_LAZY[name])
    except ModuleNotFoundError as error:
        from onnx_specops.runtime.errors import as_missing_extra

        raise as_missing_extra(error, f"converters.openvino.{name}") or error from None
    value = getattr(module, name)
    globals()[name] = value
    return value
