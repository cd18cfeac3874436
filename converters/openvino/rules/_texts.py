"""Constants of tokenizers: regular expressions, vocabularies, and strings as begins, ends and symbols."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from converters.errors import Malformed, Unsupported
from converters.openvino.rules._patterns import portable
from onnx_specops.attributes import LimitError
from onnx_specops.building import Builder, Value
from onnx_specops.domain import check_size

Strings = tuple[Value, Value, Value]


def constant_of(value: Value, what: str) -> np.ndarray:
    """Return the elements of a constant."""
    if value.constant is None:
        raise Unsupported(f"its {what} is computed at run time", "convert a tokenizer whose constants are in the file")
    return value.constant


def text_of(value: Value, what: str) -> str:
    """Return a string from a constant of bytes."""
    data = constant_of(value, what)
    encoded = data.tobytes() if data.dtype == np.uint8 else bytes(data.reshape(-1)[0])
    try:
        return encoded.decode()
    except UnicodeDecodeError as error:
        raise Malformed(f"its {what} is not UTF-8: {error}") from None


def tokens_of(strings: Sequence[Value], what: str) -> list[bytes]:
    """Return the strings of three constants."""
    begins, ends, symbols = (constant_of(value, what) for value in strings)
    first, last, text = begins.reshape(-1).tolist(), ends.reshape(-1).tolist(), symbols.tobytes()
    if len(first) != len(last) or not all(0 <= b <= e <= len(text) for b, e in zip(first, last, strict=True)):
        raise Malformed(f"its {what} reaches beyond its symbols")
    try:
        check_size(f"its {what}", sum(last) - sum(first), (begins, ends, symbols))  # many may be the same symbols
    except LimitError as error:
        raise Malformed(str(error)) from None
    return [text[b:e] for b, e in zip(first, last, strict=True)]


def packed(op: Builder, tokens: Sequence[bytes]) -> Strings:
    """Return constants for strings."""
    edges = np.zeros(len(tokens) + 1, np.int32)
    np.cumsum([len(token) for token in tokens], out=edges[1:])
    symbols = np.frombuffer(b"".join(tokens), np.uint8)
    return op.const(edges[:-1].copy()), op.const(edges[1:].copy()), op.const(symbols.copy())


def pattern_of(value: Value, what: str) -> str:
    """Return a pattern from a constant of bytes, in a form for kernels."""
    return portable(text_of(value, what))
