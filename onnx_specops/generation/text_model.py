"""What the models that make text have in common."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from onnx_specops.generation.errors import GenerationError
from onnx_specops.generation.tokenizer import Tokenizer, open_tokenizer
from onnx_specops.runtime.session import Kernels

_UNFINISHED = "\ufffd"
"""What a detokenizer gives for the bytes of a character whose rest is not there yet."""


class TextModel(ABC):
    """A model with its tokenizer: text in, text out.

    Args:
        folder: it holds the model, and its tokenizer: openvino_tokenizer.onnx and openvino_detokenizer.onnx, else
            tokenizer.json (which takes the package ``tokenizers``).
        kernels: as of `onnx_specops.InferenceSession`.

    Attributes:
        generated: how many tokens the last text has had so far.
        goes_on: whether what it writes follows the prompt, whose text it goes on with; else it answers it.
    """

    goes_on: bool

    def __init__(self, folder: Path, kernels: Kernels) -> None:
        self.folder, self._kernels = folder, kernels
        self.generated = 0

    @abstractmethod
    def generate(self, prompt: Sequence[int], tokens: int) -> Iterator[int]:
        """The tokens that a prompt leads to, up to one that ends the text, which is not given.

        Args:
            prompt: its tokens.
            tokens: the most tokens to give.

        Raises:
            GenerationError: the prompt has tokens that the model does not know, or more than it is made for.
        """

    def encode(self, text: str) -> list[int]:
        """The tokens of a text."""
        return self._tokenizer.encode(text)

    def decode(self, ids: Sequence[int]) -> str:
        """The text of tokens."""
        return self._tokenizer.decode(ids)

    def write(self, prompt: str, tokens: int) -> Iterator[str]:
        """What a prompt leads to, piece by piece as it comes; whole characters only.

        Args:
            prompt: a text.
            tokens: the most tokens to give.
        """
        return pieces(self.generate(self.encode(prompt), tokens), self.decode)

    @staticmethod
    def check(prompt: Sequence[int], vocabulary: int, most: int | None) -> None:
        """Raises `GenerationError` where a prompt has tokens beyond a vocabulary, or more than ``most``."""
        if not all(0 <= token < vocabulary for token in prompt):
            worst = max(prompt, key=lambda token: token if token >= 0 else vocabulary - token)
            raise GenerationError(
                f"the prompt has the token {worst}, the model knows {vocabulary}: it is the tokenizer of another model"
            )
        if most is not None and len(prompt) > most:
            raise GenerationError(f"the prompt has {len(prompt)} tokens, more than the {most} that the model takes")

    @cached_property
    def _tokenizer(self) -> Tokenizer:
        return open_tokenizer(self.folder, self._kernels)


def pieces(tokens: Iterator[int], decode: Callable[[Sequence[int]], str]) -> Iterator[str]:
    """The text of tokens as they come, whole characters only."""
    ids: list[int] = []
    begin = shown = 0  # text before `begin` is done with; that of the tokens up to `shown` has been given
    before = ""
    for token in tokens:
        ids.append(token)
        text = decode(ids[begin:])
        if len(text) > len(before) and not text.endswith(_UNFINISHED):
            yield text[len(before) :]
            begin, shown = shown, len(ids)
            before = decode(ids[begin:shown])
    rest = decode(ids[begin:])[len(before) :]
    if rest:
        yield rest


def read_json(path: Path) -> dict[str, Any]:
    """A file of settings.

    Raises:
        FileNotFoundError: there is none.
        GenerationError: it holds none.
    """
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise
    except (OSError, ValueError) as error:
        raise GenerationError(f"{path} cannot be read: {type(error).__name__} {error}") from error
    if not isinstance(found, dict):
        raise GenerationError(f"{path} holds no settings, but {type(found).__name__}")
    return found
