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
    from onnx_specops.runtime.library import native_operators, unregistered_operators

    missing = ""
    if importlib.util.find_spec("onnxruntime_extensions") is None:
        missing = 'pip install "onnx-specops[python-kernels]"'
    try:
        native = dict.fromkeys(native_operators(), "")
        native |= dict.fromkeys(unregistered_operators(), "slower than the body on this processor")
        no_kernel = "none written"
    except MissingKernelError as error:
        native, no_kernel = {}, str(error)
    for operator in operators():
        yield Forms(
            operator.name,
            "" if operator.emit_body else operator.no_body,
            missing,
            native.get(operator.name, no_kernel),
        )
