"""Errors that say what an installation or a model lacks, and what mends it."""

from __future__ import annotations


class MissingExtraError(ImportError):
    """An optional dependency is not installed; the message holds the command that installs it."""

    def __init__(self, package: str, purpose: str, extra: str) -> None:
        super().__init__(f'{purpose} needs {package}, which is not installed: pip install "onnx-specops[{extra}]"')


class MissingKernelError(LookupError):
    """A model, or a session, asks for kernels that are not there."""
