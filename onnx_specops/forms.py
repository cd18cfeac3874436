"""The implementations of each operator that are available in this installation."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from dataclasses import dataclass

from onnx_specops.domain import operators
from onnx_specops.runtime.errors import MissingKernelError


@dataclass(frozen=True)
class Forms:
    """The forms of an operator: for each form the reason why it is missing, or ``""`` if it is available."""

    operator: str
    body: str
    python: str
    native: str


def forms() -> Iterator[Forms]:
    """Iterate over the forms of every operator of the domain, by name. Schema and NumPy kernel are always available."""
    from onnx_specops.runtime.library import native_operators

    missing = ""
    if importlib.util.find_spec("onnxruntime_extensions") is None:
        missing = 'pip install "onnx-specops[python-kernels]"'
    try:
        native = native_operators()
        not_built = "none written"
    except MissingKernelError as error:
        native, not_built = frozenset(), str(error)
    for operator in operators():
        yield Forms(
            operator.name,
            "" if operator.emit_body else operator.no_body,
            missing,
            "" if operator.name in native else not_built,
        )
