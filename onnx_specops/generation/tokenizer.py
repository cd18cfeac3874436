"""The tokenizer in a folder: the converted OpenVINO tokenizer, or tokenizer.json."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from onnxruntime.capi import onnxruntime_pybind11_state as state

from onnx_specops.generation.errors import GenerationError
from onnx_specops.generation.sessions import open_session
from onnx_specops.runtime.session import InferenceSession, Kernels

TOKENIZER, DETOKENIZER = "openvino_tokenizer.onnx", "openvino_detokenizer.onnx"

_TEXTS, _IDS = "tensor(string)", "input_ids"


@dataclass(frozen=True)
class Tokenizer:
    """A tokenizer: functions from text to tokens and back.

    Attributes:
        encode: returns the tokens of a text. The second argument selects whether begin and end tokens are added.
        decode: returns the text of tokens.
    """

    encode: Callable[[str, bool], list[int]]
    decode: Callable[[Sequence[int]], str]


def open_tokenizer(folder: Path, kernels: Kernels) -> Tokenizer:
    """Open the tokenizer of a folder; see `onnx_specops.InferenceSession` for ``kernels``.

    Raises:
        GenerationError: the folder has no tokenizer, or a damaged one.
    """
    paths = [folder / name for name in (TOKENIZER, DETOKENIZER)]
    return _of_models(paths, kernels) if all(path.is_file() for path in paths) else _of_package(folder)


def _of_models(paths: Sequence[Path], kernels: Kernels) -> Tokenizer:
    encoder, decoder = (open_session(path, None, kernels) for path in paths)
    text, ids = encoder.get_inputs()[0], decoder.get_inputs()[0]
    dtype = np.int32 if ids.type == "tensor(int32)" else np.int64
    if text.type != _TEXTS or _IDS not in {value.name for value in encoder.get_outputs()}:
        raise GenerationError(f"{paths[0]} is not a tokenizer: it does not compute {_IDS} of texts")
    if ids.type == _TEXTS or decoder.get_outputs()[0].type != _TEXTS:
        raise GenerationError(f"{paths[1]} is not a detokenizer: it does not compute texts of tokens")

    def whole(prompt: str) -> list[int]:
        (found,) = _run(paths[0], encoder, [_IDS], {text.name: np.array([prompt], object)})
        return [int(token) for token in np.reshape(found, -1)]

    @cache
    def added() -> tuple[int, int]:
        return around(whole(""), whole("a"))

    def encode(prompt: str, special: bool) -> list[int]:
        found = whole(prompt)
        if special:
            return found
        begin, end = added()
        return found[begin : len(found) - end]

    def decode(tokens: Sequence[int]) -> str:
        found = _run(paths[1], decoder, None, {ids.name: np.array([tokens], dtype)})[0]
        said = np.reshape(found, -1)[0]
        return said.decode(errors="replace") if isinstance(said, bytes) else str(said)

    return Tokenizer(encode, decode)


def _run(path: Path, session: InferenceSession, outputs: list[str] | None, feeds: dict[str, np.ndarray]) -> list[Any]:
    """Run a tokenizer; its constants can be damaged, so that it fails for some texts only."""
    try:
        return list(session.run(outputs, feeds))
    except (state.Fail, state.InvalidArgument, state.RuntimeException) as error:
        raise GenerationError(f"{path} fails: {error}") from error


def around(empty: Sequence[int], some: Sequence[int]) -> tuple[int, int]:
    """Return the number of tokens that a tokenizer adds before and after those of a text.

    Args:
        empty: the tokens of an empty text.
        some: the tokens of another text.
    """
    before = next((k for k in range(len(empty), -1, -1) if list(empty[:k]) == list(some[:k])), 0)
    after = len(empty) - before
    return (before, after) if list(empty[before:]) == list(some[len(some) - after :]) else (0, 0)


def _of_package(folder: Path) -> Tokenizer:
    path = folder / "tokenizer.json"
    if not path.is_file():
        raise GenerationError(f"{folder} contains no tokenizer: neither {TOKENIZER} and {DETOKENIZER} nor {path.name}")
    try:
        from tokenizers import Tokenizer as Package
    except ImportError:
        raise GenerationError(f"{path.name} requires the package tokenizers: pip install tokenizers") from None
    try:
        tokenizer = Package.from_file(str(path))
    except Exception as error:  # of no other type
        raise GenerationError(f"{path} is not a tokenizer: {error}") from error
    return Tokenizer(
        lambda text, special: list(tokenizer.encode(text, add_special_tokens=special).ids),
        lambda ids: str(tokenizer.decode(list(ids))),
    )
