"""What the models that make text have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from pathlib import Path

from onnx_specops.generation.chat import ChatTemplate, Message
from onnx_specops.generation.errors import GenerationError
from onnx_specops.generation.sampling import GREEDY, Sampling, until
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
        given: the tokens of the last text so far.
        goes_on: whether what it writes follows the prompt, whose text it goes on with; else it answers it.
    """

    goes_on: bool

    def __init__(self, folder: Path, kernels: Kernels) -> None:
        self.folder, self._kernels = folder, kernels
        self.given: list[int] = []

    @property
    def generated(self) -> int:
        """How many tokens the last text has had so far."""
        return len(self.given)

    @abstractmethod
    def generate(self, prompt: Sequence[int], tokens: int, sampling: Sampling = GREEDY) -> Iterator[int]:
        """The tokens that a prompt leads to, up to one that ends the text, which is not given.

        Args:
            prompt: its tokens.
            tokens: the most tokens to give.
            sampling: how each token is chosen; the likeliest by default.

        Raises:
            GenerationError: the prompt has tokens that the model does not know, or more than it is made for.
        """

    def encode(self, text: str, *, special: bool = True) -> list[int]:
        """The tokens of a text; with those that the tokenizer adds to begin or end one, unless ``special`` is false."""
        return self._tokenizer.encode(text, special)

    def decode(self, ids: Sequence[int]) -> str:
        """The text of tokens."""
        return self._tokenizer.decode(ids)

    def write(
        self, prompt: str, tokens: int, sampling: Sampling = GREEDY, stop: Sequence[str] = (), *, special: bool = True
    ) -> Iterator[str]:
        """What a prompt leads to, piece by piece as it comes; whole characters only.

        Args:
            prompt: a text.
            tokens: the most tokens to give.
            sampling: how each token is chosen; the likeliest by default.
            stop: texts that end it, and are not given.
            special: whether the tokenizer adds the tokens that begin or end a text, as it does unless the prompt has them.
        """
        found = pieces(self.generate(self.encode(prompt, special=special), tokens, sampling), self.decode)
        return iter(until(found, stop)) if stop else found

    def chat(
        self, messages: Sequence[Message], tokens: int, sampling: Sampling = GREEDY, stop: Sequence[str] = ()
    ) -> Iterator[str]:
        """What the assistant answers, piece by piece, by the folder's chat template.

        Args:
            messages: the conversation so far: ``{"role": "user", "content": "..."}`` and so on.
            tokens, sampling, stop: as of `write`.

        Raises:
            GenerationError: the folder has no chat template, or it does not take these messages.
        """
        return self.write(self._template.render(messages), tokens, sampling, stop, special=False)

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
    def _template(self) -> ChatTemplate:
        return ChatTemplate(self.folder)

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
