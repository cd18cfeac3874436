"""Writing ONNX models with weights directly from their source. The complete message is never in memory.

A protobuf message is a sequence of fields in any order. Each field is a tag, a length if it varies, and the content.
Protobuf writes all fields of the model except ``graph``. Then the graph is written, one initializer at a time.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import IO

import numpy as np
import onnx
import onnx_ir as ir

from onnx_specops.mapped import MappedTensor

MESSAGE_BYTES = (1 << 31) - 1
"""The maximum size of a protobuf message."""

_LENGTH_DELIMITED = 2
_GRAPH = onnx.ModelProto.DESCRIPTOR.fields_by_name["graph"].number
_INITIALIZER = onnx.GraphProto.DESCRIPTOR.fields_by_name["initializer"].number
_RAW_DATA = onnx.TensorProto.DESCRIPTOR.fields_by_name["raw_data"].number

# Bytes per write. Interruptions are handled between writes.
_CHUNK = 1 << 24


class TooLargeError(ValueError):
    """A model is larger than one file in ONNX's format can be."""


def serialized(model: ir.Model, streamed: Mapping[str, ir.TensorProtocol]) -> onnx.ModelProto:
    """Return the model as a message in which the initializers ``streamed``, by name, have no data."""
    with _without_data(model, streamed):
        proto = ir.to_proto(model)
    for tensor in proto.graph.initializer:
        if tensor.name in streamed:
            tensor.ClearField("external_data")
            tensor.ClearField("data_location")
    return proto


@contextmanager
def _without_data(model: ir.Model, streamed: Mapping[str, ir.TensorProtocol]) -> Iterator[None]:
    """Replace tensors by external tensors, whose data serialization does not read."""
    values = model.graph.initializers
    for name, tensor in streamed.items():
        shape = ir.Shape(tensor.shape.numpy())
        values[name].const_value = ir.ExternalTensor("", None, None, tensor.dtype, shape=shape, name=name)
    try:
        yield
    finally:
        for name, tensor in streamed.items():
            values[name].const_value = tensor


def write_model(file: IO[bytes], proto: onnx.ModelProto, streamed: Mapping[str, ir.TensorProtocol]) -> None:
    """Write the message of `serialized` and the data of the initializers ``streamed``.

    Raises:
        TooLargeError: the message would be too large. Nothing is written.
    """
    heads = [tensor.SerializeToString() for tensor in proto.graph.initializer]
    tensors = [streamed.get(tensor.name) for tensor in proto.graph.initializer]
    shell = _shell(proto)
    graph = shell.graph.SerializeToString()
    shell.ClearField("graph")
    # For each initializer, the bytes before its data, with all lengths, and then the data.
    parts = [_head(head, None if tensor is None else tensor.nbytes) for head, tensor in zip(heads, tensors, strict=True)]
    size = len(graph) + sum(map(len, parts)) + sum(tensor.nbytes for tensor in tensors if tensor is not None)
    start = shell.SerializeToString() + _length_delimited(_GRAPH, size) + graph
    if len(start) - len(graph) + size > MESSAGE_BYTES:
        raise TooLargeError(f"{len(start) - len(graph) + size:,} bytes do not fit into one ONNX file")
    file.write(start)
    for part, tensor in zip(parts, tensors, strict=True):
        file.write(part)
        if tensor is not None:
            write_data(file, tensor)


def _shell(proto: onnx.ModelProto) -> onnx.ModelProto:
    """Return the message without initializers."""
    shell = onnx.ModelProto()
    shell.MergeFrom(proto)
    del shell.graph.initializer[:]
    return shell


def _head(head: bytes, size: int | None) -> bytes:
    """Return the bytes of an initializer in a graph that precede its data of ``size`` bytes."""
    data = b"" if size is None else _length_delimited(_RAW_DATA, size)
    return _length_delimited(_INITIALIZER, len(head) + len(data) + (size or 0)) + head + data


def _length_delimited(field: int, length: int) -> bytes:
    """Return the start of a field with a length."""
    return _varint(field << 3 | _LENGTH_DELIMITED) + _varint(length)


def _varint(value: int) -> bytes:
    """Return a number as a varint: seven bits per byte, lowest first. The highest bit marks that another byte follows."""
    parts = []
    while value > 127:
        parts.append(value & 127 | 128)
        value >>= 7
    return bytes((*parts, value))


def write_data(file: IO[bytes], tensor: ir.TensorProtocol) -> None:
    """Write the ``tensor.nbytes`` bytes of a tensor's data in ONNX's layout."""
    content = _content(tensor)
    if len(content) != tensor.nbytes:
        raise AssertionError(f"{tensor.name} has {len(content)} bytes instead of {tensor.nbytes}")
    write_bytes(file, content)


def write_bytes(file: IO[bytes], content: memoryview) -> None:
    """Write any number of bytes."""
    for start in range(0, len(content), _CHUNK):
        file.write(content[start : start + _CHUNK])


def _content(tensor: ir.TensorProtocol) -> memoryview:
    if isinstance(tensor, MappedTensor):
        return tensor.content
    if tensor.dtype.bitwidth < 8 or sys.byteorder == "big":
        return memoryview(tensor.tobytes())
    return np.ascontiguousarray(tensor.numpy()).reshape(-1).view(np.uint8).data  # a view of the array, not a copy


def fill(proto: onnx.ModelProto, streamed: Mapping[str, ir.TensorProtocol]) -> None:
    """Set the data of the initializers ``streamed``."""
    for tensor in proto.graph.initializer:
        if tensor.name in streamed:
            tensor.raw_data = streamed[tensor.name].tobytes()
