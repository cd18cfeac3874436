"""Check whether an ONNX model can be the conversion of a source, by the names and shapes of its inputs and outputs."""

from __future__ import annotations

import re
from collections.abc import Sequence

from converters.source import Source
from converters.validation.onnx_model import OnnxModel

_PRODUCER = "onnx_specops"


def check_interface(source: Source, model: OnnxModel) -> list[str]:
    """Compare the inputs and outputs of an ONNX model with those of a source, in order, and return notes.

    Conversions have the source's names. Other models, such as the one that the source was made from, may have other names.

    Raises:
        ValueError: the model cannot be the source's conversion.
    """
    sides = (
        ("input", [spec.name for spec in model.inputs], [port.names for port in source.inputs]),
        ("output", model.outputs, [port.names for port in source.outputs]),
    )
    for kind, names, known in sides:
        if len(names) != len(known):
            count = f"{len(names)} {kind}s, but {source.path} has {len(known)}"
            raise ValueError(f"{model.path} has {count}: it is not the conversion of this IR")
    notes = []
    for kind, names, known in sides:
        if all(_is(name, ours) for name, ours in zip(names, known, strict=True)):
            continue
        should = ", ".join(ours[0] for ours in known)
        text = f"{model.path} has the {kind}{'s' * (len(names) > 1)} {', '.join(names)}, but {source.path} has {should}"
        if model.proto.producer_name == _PRODUCER:
            raise ValueError(f"{text}: it is not the conversion of this IR")
        notes.append(f"{text}; they are matched in this order")
    for spec, port in zip(model.inputs, source.inputs, strict=True):
        sizes = zip(spec.dims or (), port.dims or (), strict=False)
        unlike = spec.dims is not None and port.dims is not None and len(spec.dims) != len(port.dims)
        if unlike or any(a is not None and b is not None and a != b for a, b in sizes):
            raise ValueError(
                f"the input {spec.name} of {model.path} has the shape {_shown(spec.dims)}, but {_shown(port.dims)} in "
                f"{source.path}: it is not the conversion of this IR"
            )
    return notes


def _is(name: str, known: Sequence[str]) -> bool:
    """Return whether a value has one of the names, ignoring the number that makes a name unique (``Result_12``)."""
    return _without_number(name) in map(_without_number, known)


def _without_number(name: str) -> str:
    return re.sub(r"_\d+$", "", name)


def _shown(dims: Sequence[int | None] | None) -> str:
    return "of any rank" if dims is None else f"[{', '.join('?' if size is None else str(size) for size in dims)}]"
