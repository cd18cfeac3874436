"""Models in memory, in a form that ONNX Runtime loads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx
from onnx import TensorProto

LARGEST = 2**31 - 1
"""The maximum number of bytes that protobuf can serialize."""

_SMALL = 1024  # bytes; larger initializers are written to a file
_WEIGHTS = "weights.bin"


def is_serializable(model: onnx.ModelProto) -> bool:
    """Return whether protobuf can serialize the whole model."""
    return _size(model) <= LARGEST


def write(model: onnx.ModelProto, folder: Path) -> Path:
    """Write a model of any size into ``folder``, with its large initializers in a separate file; return its path.

    Raises:
        ValueError: the model is too large even without the initializers of the outermost graph.
    """
    rest = _copy(model, "graph")
    rest.graph.CopyFrom(_copy(model.graph, "initializer"))
    with (folder / _WEIGHTS).open("wb") as file:
        for tensor in model.graph.initializer:
            kept = rest.graph.initializer.add()
            if tensor.data_location == TensorProto.EXTERNAL or len(tensor.raw_data) <= _SMALL:
                kept.CopyFrom(tensor)
                continue
            kept.name, kept.data_type, kept.data_location = tensor.name, tensor.data_type, TensorProto.EXTERNAL
            kept.dims.extend(tensor.dims)
            place = {"location": _WEIGHTS, "offset": str(file.tell()), "length": str(file.write(tensor.raw_data))}
            for key, value in place.items():
                kept.external_data.add(key=key, value=value)
    if not is_serializable(rest):
        raise ValueError("the model has more than 2 GiB in addition to its initializers; no runtime can load it")
    path = folder / "model.onnx"
    path.write_bytes(rest.SerializeToString())
    return path


def _size(message: Any) -> int:
    try:
        return message.ByteSize()
    except Exception:  # protobuf's error for messages beyond its size limit
        return LARGEST + 1


def _copy(message: Any, without: str) -> Any:
    """Copy a message without one of its fields."""
    copy = type(message)()
    for field, value in message.ListFields():
        if field.name == without:
            continue
        if hasattr(value, "extend"):
            getattr(copy, field.name).extend(value)
        elif field.message_type is not None:
            getattr(copy, field.name).CopyFrom(value)
        else:
            setattr(copy, field.name, value)
    return copy
