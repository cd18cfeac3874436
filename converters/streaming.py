"""ONNX models as bytes in a file, the weights straight from where they lie: never the whole message in memory.

A protobuf message is a sequence of fields, in any order: each a tag and its content, behind its length where that varies.
The model's fields but ``graph`` are written as protobuf writes them, then ``graph`` with its initializers one by one.
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
"""The most bytes that a protobuf message may have."""

_LENGTH_DELIMITED = 2
_GRAPH = onnx.ModelProto.DESCRIPTOR.fields_by_name["graph"].number
_INITIALIZER = onnx.GraphProto.DESCRIPTOR.fields_by_name["initializer"].number
_RAW_DATA = onnx.TensorProto.DESCRIPTOR.fields_by_name["raw_data"].number

# So many bytes are written at a time: interruptions are seen between.
_CHUNK = 1 << 24


class TooLargeError(ValueError):
    """A model of more bytes than one file in ONNX's format can have."""


def serialized(model: ir.Model, apart: Mapping[str, ir.TensorProtocol]) -> onnx.ModelProto:
    """The model as a message in which the initializers ``apart``, by name, have all but their data."""
    with _without_data(model, apart):
        proto = ir.to_proto(model)
    for tensor in proto.graph.initializer:
        if tensor.name in apart:
            tensor.ClearField("external_data")
            tensor.ClearField("data_location")
    return proto


@contextmanager
def _without_data(model: ir.Model, apart: Mapping[str, ir.TensorProtocol]) -> Iterator[None]:
    """Tensors that claim to lie in a file, of which serialization reads nothing, in the place of those that have data."""
    values = model.graph.initializers
    for name, tensor in apart.items():
        shape = ir.Shape(tensor.shape.numpy())
        values[name].const_value = ir.ExternalTensor("", None, None, tensor.dtype, shape=shape, name=name)
    try:
        yield
    finally:
        for name, tensor in apart.items():
            values[name].const_value = tensor


def write_model(file: IO[bytes], proto: onnx.ModelProto, apart: Mapping[str, ir.TensorProtocol]) -> None:
    """Writes the message of `serialized`, with the data of the initializers ``apart``.

    Raises:
        TooLargeError: it would have more bytes than a message may have; nothing is written then.
    """
    heads = [tensor.SerializeToString() for tensor in proto.graph.initializer]
    tensors = [apart.get(tensor.name) for tensor in proto.graph.initializer]
    shell = _shell(proto)
    graph = shell.graph.SerializeToString()
    shell.ClearField("graph")
    # Of each initializer: its bytes but for the data, with all lengths; then the data.
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
    """The message without initializers."""
    shell = onnx.ModelProto()
    shell.MergeFrom(proto)
    del shell.graph.initializer[:]
    return shell


def _head(head: bytes, size: int | None) -> bytes:
    """The bytes of an initializer in a graph that come before its data of ``size`` bytes."""
    data = b"" if size is None else _length_delimited(_RAW_DATA, size)
    return _length_delimited(_INITIALIZER, len(head) + len(data) + (size or 0)) + head + data


def _length_delimited(field: int, length: int) -> bytes:
    """The start of a field whose content has a length."""
    return _varint(field << 3 | _LENGTH_DELIMITED) + _varint(length)


def _varint(value: int) -> bytes:
    """A number, seven bits to a byte, the lowest first; the highest bit says that another byte follows."""
    parts = []
    while value > 127:
        parts.append(value & 127 | 128)
        value >>= 7
    return bytes((*parts, value))


def write_data(file: IO[bytes], tensor: ir.TensorProtocol) -> None:
    """Writes a tensor's data, of ``tensor.nbytes`` bytes, as ONNX lays them out."""
    content = _content(tensor)
    if len(content) != tensor.nbytes:
        raise AssertionError(f"{tensor.name} has {len(content)} bytes instead of {tensor.nbytes}")
    write_bytes(file, content)


def write_bytes(file: IO[bytes], content: memoryview) -> None:
    """Writes bytes, however many."""
    for start in range(0, len(content), _CHUNK):
        file.write(content[start : start + _CHUNK])


def _content(tensor: ir.TensorProtocol) -> memoryview:
    if isinstance(tensor, MappedTensor):
        return tensor.content
    if tensor.dtype.bitwidth < 8 or sys.byteorder == "big":
        return memoryview(tensor.tobytes())
    return np.ascontiguousarray(tensor.numpy()).reshape(-1).view(np.uint8).data  # the array's own bytes, not a copy


def fill(proto: onnx.ModelProto, apart: Mapping[str, ir.TensorProtocol]) -> None:
    """Gives the initializers ``apart`` their data."""
    for tensor in proto.graph.initializer:
        if tensor.name in apart:
            tensor.raw_data = apart[tensor.name].tobytes()
