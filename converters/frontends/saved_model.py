"""The signatures of a TensorFlow SavedModel, read and selected without TensorFlow.

Source: TensorFlow, ``saved_model.proto`` and ``meta_graph.proto``; the wire format of Protocol Buffers.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

FILE, DEFAULT = "saved_model.pb", "serving_default"
_INITIALIZER = "__saved_model_init_op"
_META_GRAPHS, _SIGNATURES, _KEY, _VALUE = 2, 5, 1, 2  # field numbers; the last two are those of a map's entry
_VARINT, _BYTES = 0, 2
_WIDTHS = {1: 8, 5: 4}


def signatures(folder: Path) -> list[str]:
    """Return the names of a SavedModel's signatures; empty for one that is stored as text.

    Raises:
        ValueError: the file is damaged.
    """
    path = folder / FILE
    if not path.is_file():
        return []
    return [_name(entry) for entry in _entries(path.read_bytes()) if _name(entry) != _INITIALIZER]


def write_only(folder: Path, signature: str, target: Path) -> None:
    """Write a copy of a SavedModel whose only signature, the default one, is the given one.

    Raises:
        ValueError: the file is damaged.
    """
    shutil.copytree(folder, target, ignore=shutil.ignore_patterns(FILE))
    content = b""
    for number, value, whole in _fields((folder / FILE).read_bytes()):
        content += _field(number, b"".join(_graph(value, signature))) if number == _META_GRAPHS else whole
    (target / FILE).write_bytes(content)


def _graph(graph: bytes, signature: str) -> Iterator[bytes]:
    """Yield the fields of a graph with one of its signatures."""
    for number, value, whole in _fields(graph):
        if number != _SIGNATURES:
            yield whole
        elif _name(value) == signature:
            kept = b"".join(field for key, _, field in _fields(value) if key == _VALUE)
            yield _field(_SIGNATURES, _field(_KEY, DEFAULT.encode()) + kept)
        elif _name(value) == _INITIALIZER:
            yield whole


def _entries(content: bytes) -> Iterator[bytes]:
    for number, graph, _ in _fields(content):
        if number == _META_GRAPHS:
            yield from (value for key, value, _ in _fields(graph) if key == _SIGNATURES)


def _name(entry: bytes) -> str:
    return next((value.decode(errors="replace") for key, value, _ in _fields(entry) if key == _KEY), "")


def _fields(message: bytes) -> Iterator[tuple[int, bytes, bytes]]:
    """Yield each field's number, its bytes (empty for a number), and its whole encoding."""
    at = 0
    while at < len(message):
        begin = at
        key, at = _varint(message, at)
        kind, value = key & 7, b""
        if kind == _VARINT:
            _, at = _varint(message, at)
        elif kind == _BYTES:
            size, at = _varint(message, at)
            value, at = message[at : at + size], at + size
        elif kind in _WIDTHS:
            at += _WIDTHS[kind]
        else:
            raise ValueError(f"{FILE} is damaged")
        if at > len(message):
            raise ValueError(f"{FILE} is damaged")
        yield key >> 3, value, message[begin:at]


def _varint(message: bytes, at: int) -> tuple[int, int]:
    """Return a number and the position after it."""
    number = 0
    for place, byte in enumerate(message[at : at + 10]):
        number |= (byte & 127) << (7 * place)
        if byte < 128:
            return number, at + place + 1
    raise ValueError(f"{FILE} is damaged")


def _field(number: int, value: bytes) -> bytes:
    """Return the encoding of a field with bytes."""
    return _encoded(number << 3 | _BYTES) + _encoded(len(value)) + value


def _encoded(number: int) -> bytes:
    found = bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    return bytes([*found, number])
