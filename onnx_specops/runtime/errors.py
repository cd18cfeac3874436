"""Errors for missing parts of an installation or a model, with the remedy."""

from __future__ import annotations

# Module -> its package, and the extra of this project that installs it.
_EXTRAS = {
    "onnxruntime_extensions": ("onnxruntime-extensions", "python-kernels"),
    "openvino": ("openvino", "openvino"),
    "openvino_tokenizers": ("openvino-tokenizers", "openvino"),
    "jinja2": ("Jinja2", "report"),
    "markupsafe": ("MarkupSafe", "report"),
    "PIL": ("Pillow", "images"),
}


class MissingExtraError(ImportError):
    """An optional dependency is not installed; the message has the command that installs it."""

    def __init__(self, package: str, purpose: str, extra: str) -> None:
        super().__init__(f'{purpose} needs {package}, which is not installed: pip install "onnx-specops[{extra}]"')


class MissingKernelError(LookupError):
    """A model or a session requires kernels that are not available."""


def as_missing_extra(error: ImportError, purpose: str) -> MissingExtraError | None:
    """Return the error with the remedy if the missing module belongs to an optional dependency; otherwise ``None``."""
    if isinstance(error, MissingExtraError):
        return error
    known = _EXTRAS.get((error.name or "").partition(".")[0])
    return None if known is None else MissingExtraError(known[0], purpose, known[1])
