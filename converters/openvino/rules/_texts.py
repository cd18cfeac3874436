"""Constants of tokenizers: patterns, vocabularies, and strings as begins, ends and symbols."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from converters.errors import Malformed, Unsupported
from onnx_specops.building import Builder, Value

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
    return [text[b:e] for b, e in zip(first, last, strict=True)]


def packed(op: Builder, tokens: Sequence[bytes]) -> Strings:
    """Return constants for strings."""
    edges = np.zeros(len(tokens) + 1, np.int32)
    np.cumsum([len(token) for token in tokens], out=edges[1:])
    symbols = np.frombuffer(b"".join(tokens), np.uint8)
    return op.const(edges[:-1].copy()), op.const(edges[1:].copy()), op.const(symbols.copy())


_WORD = r"\p{L}\p{N}\p{Mn}\p{Pc}"
_WORDS = {
    r"\w": f"[{_WORD}]",
    r"\W": f"[^{_WORD}]",
    r"\b": f"(?:(?<=[{_WORD}])(?![{_WORD}])|(?<![{_WORD}])(?=[{_WORD}]))",
    r"\B": f"(?:(?<=[{_WORD}])(?=[{_WORD}])|(?<![{_WORD}])(?![{_WORD}]))",
}
_TOKEN = re.compile(r"\[:\^?[a-z]+:\]|\\Q.*?(?:\\E|\Z)|\\.|\[\^?\]?|\]|[^\\\[\]]+", re.DOTALL)


def pattern_of(value: Value, what: str) -> str:
    """Return a pattern from a constant of bytes, in a form for kernels."""
    return portable(text_of(value, what))


def portable(pattern: str) -> str:
    """Adapt a pattern to older releases of PCRE2. OpenVINO's release (10.43 or later) defines words differently."""
    out, in_class = [], False
    for token in _TOKEN.findall(pattern):
        if in_class and token.startswith("[:"):
            out.append(token)
        elif in_class and token.startswith("["):
            out.append(token)
            in_class = not token.endswith("]")
        elif in_class:
            out.append(_WORD if token == r"\w" else token)
            in_class = token != "]"
        else:
            out.append(_WORDS.get(token, token))
            in_class = token.startswith("[")
    return "".join(out)


_NOT_CAPTURING = re.compile(r"\(\?(?:[ims]*[:)]|<?[=!]|>)")


def number_of_groups(pattern: str) -> int | None:
    """Return the number of a pattern's groups; ``None`` if it has names, branch resets, verbs, quotes or comments."""
    plain, in_class = "", False
    for token in _TOKEN.findall(pattern):
        if token.startswith(r"\Q"):
            return None
        if in_class:
            in_class = token != "]"
        elif token.startswith("["):
            in_class = True
        else:
            plain += "." if token.startswith("\\") else token
    plain = _NOT_CAPTURING.sub("", plain)
    return None if "(?" in plain or "(*" in plain else plain.count("(")
