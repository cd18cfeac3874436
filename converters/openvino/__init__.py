"""OpenVINO IR to ONNX: `convert` and what its users need to handle its errors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from converters.openvino.errors import ConversionError, IRError, Problem

if TYPE_CHECKING:
    from converters.openvino.conversion import Conversion, Report, convert

__all__ = ["Conversion", "ConversionError", "IRError", "Problem", "Report", "convert"]


def __getattr__(name: str) -> Any:
    # Loaded on first use: the command's help and errors need none of ONNX.
    if name in ("Conversion", "Report", "convert"):
        import converters.openvino.conversion as module

        return getattr(module, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
