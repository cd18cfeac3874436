"""Opsets with the versions of the file format and of ai.onnx.ml of the same ONNX release."""

from __future__ import annotations

import onnx

from onnx_specops.building import ML_DOMAIN, OPSET_IMPORTS

OLDEST = 11
"""The oldest opset that a model can be lowered to."""


def newest() -> int:
    """Return the newest opset of the installed onnx."""
    return onnx.defs.onnx_opset_version()


def check_opset(opset: int) -> None:
    """Raise ``ValueError`` for an opset that is not supported as a target."""
    if not OLDEST <= opset <= newest():
        raise ValueError(
            f"opset must be {OLDEST} to {newest()} (the newest of the installed onnx {onnx.__version__}), not {opset}"
        )


def ir_version(opset: int) -> int:
    """Return the version of the file format of the first ONNX release with the opset."""
    return _release(opset)[0]


def opset_imports(opset: int) -> dict[str, int]:
    """Return the versions of the standard domains in one ONNX release, no newer than those that the builder emits."""
    return {"": opset, ML_DOMAIN: min(_release(opset)[2], OPSET_IMPORTS[ML_DOMAIN])}


def _release(opset: int) -> tuple[int, ...]:
    return next(row[1:] for row in onnx.helper.VERSION_TABLE if row[2] >= opset)
