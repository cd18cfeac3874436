"""Change a model without its weights, which protobuf would copy several times."""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator
from contextlib import contextmanager

import onnx
from onnx import TensorProto

from onnx_specops.inlining import SMALL

_MOST_FIELDS = 256
"""The maximum number of fields of a tensor. Each element is a field if the elements are not packed."""

_GRAPH = onnx.ModelProto.DESCRIPTOR.fields_by_name["graph"].number
_INITIALIZER = onnx.GraphProto.DESCRIPTOR.fields_by_name["initializer"].number
_EXTERNAL = TensorProto(data_location=TensorProto.EXTERNAL).SerializeToString()
_VARINT, _LENGTH_DELIMITED = 0, 2
_FIXED = {1: 8, 5: 4}
"""Protobuf's wire type -> the number of bytes."""

_Data = bytes | mmap.mmap


def read_without_data(path_or_bytes: str | os.PathLike[str] | bytes) -> onnx.ModelProto:
    """Read a model without the elements of its large initializers, which are marked as external.

    Raises:
        ValueError: the file is empty, or a field does not end within its message.
        google.protobuf.message.DecodeError: the rest is not a model.
        OSError: the file cannot be read.
    """
    with _opened(path_or_bytes) as data:
        return onnx.ModelProto.FromString(_without_data(data))


def encoded_with_data(model: onnx.ModelProto, path_or_bytes: str | os.PathLike[str] | bytes) -> bytes:
    """Return the encoding of a model that `read_without_data` read, with the elements of its initializers.

    Args:
        model: the model, whose other fields may have changed. It loses its initializers.
        path_or_bytes: the original.
    """
    del model.graph.initializer[:]
    with _opened(path_or_bytes) as data:
        initializers = [
            data[start:stop]
            for field, _, content, end in _fields(data, 0, len(data))
            if field == _GRAPH
            for inner, start, _, stop in _fields(data, content, end)
            if inner == _INITIALIZER
        ]
    # Protobuf merges the two graphs.
    return b"".join([model.SerializeToString(), _head(_GRAPH, sum(map(len, initializers))), *initializers])


@contextmanager
def _opened(path_or_bytes: str | os.PathLike[str] | bytes) -> Iterator[_Data]:
    if isinstance(path_or_bytes, bytes):
        yield path_or_bytes
        return
    with open(path_or_bytes, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        yield data


def _without_data(data: _Data) -> bytes:
    """Return the encoding of the model without the elements of its large initializers."""
    model: list[bytes] = []
    for field, start, content, end in _fields(data, 0, len(data)):
        model.append(_encoded(_GRAPH, _graph_without_data(data, content, end)) if field == _GRAPH else data[start:end])
    return b"".join(model)


def _graph_without_data(data: _Data, begin: int, end: int) -> bytes:
    graph: list[bytes] = []
    for field, start, content, stop in _fields(data, begin, end):
        is_large = field == _INITIALIZER and stop - content > SMALL
        graph.append(_encoded(_INITIALIZER, _tensor_without_data(data, content, stop)) if is_large else data[start:stop])
    return b"".join(graph)


def _tensor_without_data(data: _Data, begin: int, end: int) -> bytes:
    tensor: list[bytes] = []
    for count, (_, start, _, stop) in enumerate(_fields(data, begin, end)):
        if count == _MOST_FIELDS:
            raise ValueError("a tensor has its elements as separate fields")
        if stop - start <= SMALL:
            tensor.append(data[start:stop])
    return b"".join([*tensor, _EXTERNAL])


def _fields(data: _Data, begin: int, end: int) -> Iterator[tuple[int, int, int, int]]:
    """Iterate over the fields of a message in protobuf's encoding: their number, start, start of the content, and end."""
    while begin < end:
        key, content = _number(data, begin)
        kind = key & 7
        if kind == _LENGTH_DELIMITED:
            size, content = _number(data, content)
        elif kind == _VARINT:
            size = _number(data, content)[1] - content
        elif kind in _FIXED:
            size = _FIXED[kind]
        else:
            raise ValueError(f"a field has the wire type {kind}")
        if content + size > end:
            raise ValueError("a field does not end within its message")
        yield key >> 3, begin, content, content + size
        begin = content + size


def _number(data: _Data, position: int) -> tuple[int, int]:
    """Return a number of variable length, and the position after it."""
    number = 0
    for index, byte in enumerate(data[position : position + 10]):
        number |= (byte & 0x7F) << 7 * index
        if byte < 0x80:
            return number, position + index + 1
    raise ValueError("a number does not end")


def _encoded(field: int, content: bytes) -> bytes:
    """Return the encoding of a field with bytes."""
    return _head(field, len(content)) + content


def _head(field: int, length: int) -> bytes:
    """Return the encoding of a field with bytes up to its content."""
    size = bytearray()
    while length >= 0x80:
        size.append(length & 0x7F | 0x80)
        length >>= 7
    return bytes([field << 3 | _LENGTH_DELIMITED, *size, length])
