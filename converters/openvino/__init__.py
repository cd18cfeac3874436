"""Conversion of OpenVINO IR to ONNX: `convert`, its report, and its errors."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from converters.errors import ConversionError, MalformedError, Problem

if TYPE_CHECKING:
    from converters.convert import Conversion, convert
    from converters.report import Report

__all__ = ["Conversion", "ConversionError", "MalformedError", "Problem", "Report", "convert"]

# Imported on first use, because errors do not need ONNX.
_LAZY = {
    "Conversion": "converters.convert",
    "Report": "converters.report",
    "convert": "converters.convert",
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(_LAZY[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})
