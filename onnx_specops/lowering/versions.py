"""Opsets and what belongs to each: the version of the file format, and of ai.onnx.ml, that ONNX's release of it had."""

from __future__ import annotations

import onnx

from onnx_specops.building import ML_DOMAIN, OPSET_IMPORTS

OLDEST = 11
"""The oldest opset that a model can be lowered to."""


def newest() -> int:
    """The newest opset that the installed onnx knows."""
    return onnx.defs.onnx_opset_version()


def check_opset(opset: int) -> None:
    """Raises ``ValueError`` for an opset that a model cannot be made for."""
    if not OLDEST <= opset <= newest():
        raise ValueError(
            f"opset must be {OLDEST} to {newest()} (the newest of the installed onnx {onnx.__version__}), not {opset}"
        )


def ir_version(opset: int) -> int:
    """The version of the file format that the first release of ONNX with the opset wrote."""
    return _release(opset)[0]


def opset_imports(opset: int) -> dict[str, int]:
    """The standard domains' versions of one release of ONNX, no newer than what the builder emits by itself."""
    return {"": opset, ML_DOMAIN: min(_release(opset)[2], OPSET_IMPORTS[ML_DOMAIN])}


def _release(opset: int) -> tuple[int, ...]:
    return next(row[1:] for row in onnx.helper.VERSION_TABLE if row[2] >= opset)
