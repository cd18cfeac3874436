"""The base class of models that generate text."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
import onnxruntime as ort

from onnx_specops.generation.beam_groups import best_texts_of_groups
from onnx_specops.generation.beams import Beams, Hypothesis, NextScores, best_texts, log_softmax
from onnx_specops.generation.chat import ChatTemplate, Message
from onnx_specops.generation.constraints import Constraints
from onnx_specops.generation.errors import GenerationError
from onnx_specops.generation.sampling import GREEDY, Sampling, until
from onnx_specops.generation.sessions import open_session
from onnx_specops.generation.settings import generation_file, read_optional_json, stop_texts
from onnx_specops.generation.tokenizer import Tokenizer, open_tokenizer
from onnx_specops.runtime.session import InferenceSession, Kernels

_UNFINISHED = "\ufffd"
"""The replacement character, which a detokenizer returns for an incomplete character."""


class TextModel(ABC):
    """A model that generates text, with its tokenizer.

    Args:
        folder: the folder that contains the model and its tokenizer. The tokenizer consists of openvino_tokenizer.onnx and
            openvino_detokenizer.onnx, or is a tokenizer.json, which requires the package ``tokenizers``.
        kernels: see `onnx_specops.InferenceSession`.

    Attributes:
        given: the tokens of the current text.
        goes_on: whether the output continues the prompt (true) or answers it (false).
        hypotheses: the complete texts of the last beam search, the best one first.
        constraints: the tokens that may follow a sequence, according to generation_config.json.
    """

    goes_on: bool
    constraints: Constraints

    def __init__(self, folder: Path, kernels: Kernels) -> None:
        self.folder, self._kernels = folder, kernels
        self.given: list[int] = []
        self.hypotheses: list[Hypothesis] = []

    @property
    def generated(self) -> int:
        """The number of generated tokens in the current text."""
        return len(self.given)

    @abstractmethod
    def generate(
        self,
        prompt: Sequence[int],
        tokens: int,
        sampling: Sampling = GREEDY,
        *,
        stop: Sequence[str] = (),
        beams: Beams | int | None = None,
    ) -> Iterator[int]:
        """Generate the tokens for a prompt. The end token is not returned.

        Args:
            prompt: the tokens of the prompt.
            tokens: the maximum number of new tokens.
            sampling: the sampling settings. The default is greedy search.
            stop: the texts at which the generation stops, in addition to ``stop_strings`` in generation_config.json. Their
                tokens are returned.
            beams: the settings of beam search, or the number of beams. With a number, the other settings come from
                generation_config.json. The iterator returns the tokens at the end; `hypotheses` contains the other texts.
                Beam search applies only the repetition penalty and the guidance of ``sampling``.

        Raises:
            GenerationError: the prompt is too long, or contains tokens outside the vocabulary.
        """

    def encode(self, text: str, *, special: bool = True) -> list[int]:
        """Tokenize a text. Unless ``special`` is false, the tokenizer adds its begin and end tokens."""
        return self._tokenizer.encode(text, special)

    def decode(self, ids: Sequence[int]) -> str:
        """Detokenize tokens."""
        return self._tokenizer.decode(ids)

    def write(
        self,
        prompt: str,
        tokens: int,
        sampling: Sampling = GREEDY,
        stop: Sequence[str] = (),
        *,
        special: bool = True,
        beams: Beams | int | None = None,
    ) -> Iterator[str]:
        """Generate text for a prompt. The iterator returns the text in pieces, as it is generated. With beam search, it
        returns the complete text at the end.

        Args:
            prompt: the text of the prompt.
            tokens: the maximum number of new tokens.
            sampling: the sampling settings. The default is greedy search.
            stop: the texts at which the generation stops, in addition to ``stop_strings`` in generation_config.json. They
                are not returned.
            special: whether the tokenizer adds its begin and end tokens. Disable this if the prompt already contains them.
            beams: the settings of beam search, or the number of beams; see `generate`.
        """
        ended = () if beams is None else stop  # `_text` stops at them; only beam search must know before
        return self._text(
            self.generate(self.encode(prompt, special=special), tokens, sampling, stop=ended, beams=beams), stop
        )

    def chat(
        self,
        messages: Sequence[Message],
        tokens: int,
        sampling: Sampling = GREEDY,
        stop: Sequence[str] = (),
        *,
        beams: Beams | int | None = None,
    ) -> Iterator[str]:
        """Generate the assistant's answer in a conversation, using the chat template in the folder.

        Args:
            messages: the messages so far, such as ``{"role": "user", "content": "..."}``.
            tokens, sampling, stop, beams: see `write`.

        Raises:
            GenerationError: the folder has no chat template, or the template rejects these messages.
        """
        return self.write(self._template.render(messages), tokens, sampling, stop, special=False, beams=beams)

    def beams(self, number: int, groups: int | None = None, diversity_penalty: float | None = None) -> Beams:
        """Return the settings of beam search from generation_config.json.

        Args:
            number: the number of beams.
            groups, diversity_penalty: values instead of those in the file, see `Beams`.

        Raises:
            GenerationError: a setting is invalid.
        """
        path = generation_file(self.folder)
        try:
            return Beams.of(read_optional_json(path), number, groups, diversity_penalty)
        except (OverflowError, TypeError, ValueError) as error:
            raise GenerationError(f"{path} has an invalid setting: {error}") from error

    def _text(self, tokens: Iterator[int], stop: Sequence[str]) -> Iterator[str]:
        """Return the text of generated tokens in pieces, up to the first of the texts at which the generation stops."""
        found, stops = pieces(tokens, self.decode), (*stop, *self._stops)
        return iter(until(found, stops)) if stops else found

    def _is_stopped(self, stop: Sequence[str]) -> Callable[[Sequence[int]], bool]:
        """Return a function that tells whether generated tokens contain a text that ends the output."""
        stops = (*stop, *self._stops)

        def found(tokens: Sequence[int]) -> bool:
            text = self.decode(tokens)
            return any(one in text for one in stops)

        return found if stops else lambda _: False

    def _search(self, beams: Beams | int | None) -> Beams | None:
        """Return the configuration of beam search; ``None`` for greedy search.

        Raises:
            GenerationError: generation_config.json has an invalid setting.
        """
        if isinstance(beams, int):
            beams = self.beams(beams)
        return None if beams is None or beams.number == 1 else beams

    def _best(
        self,
        beams: Beams,
        begin: Sequence[int],
        most: int,
        constraints: Constraints,
        prompt: Sequence[int],
        logits_of: NextScores,
        stop: Sequence[str] = (),
        restrict: Callable[[np.ndarray, Sequence[int]], None] = lambda *_: None,
        guided: Callable[[np.ndarray, Sequence[Sequence[int]], Sequence[int]], np.ndarray] = lambda scores, *_: scores,
    ) -> Sequence[int]:
        """Search for the `hypotheses`; return the tokens of the best one, or none without any.

        Args:
            beams: the configuration.
            begin: the tokens that begin each text.
            most: the maximum number of generated tokens.
            constraints: the tokens that may follow a sequence.
            prompt: the tokens of the prompt.
            logits_of: returns the logits ``[texts, vocabulary]`` of the next token; see `best_texts`.
            stop: the texts that complete a text.
            restrict: changes the logarithms of the probabilities ``[vocabulary]`` of the token after the generated tokens.
            guided: returns other scores of the next token, before the constraints apply.
        """

        def scores_of(texts: Sequence[Sequence[int]], rows: Sequence[int]) -> np.ndarray:
            return guided(log_softmax(logits_of(texts, rows)), texts, rows)

        def allowed(scores: np.ndarray, texts: Sequence[Sequence[int]], less: np.ndarray | None = None, /) -> np.ndarray:
            last = len(texts[0]) == len(begin) + most - 1
            found = [
                constraints.applied(row, text, prompt, len(begin), last=last, less=less)
                for row, text in zip(scores, texts, strict=True)
            ]
            for row, text in zip(found, texts, strict=True):
                restrict(row, text[len(begin) :])
            restricted = np.stack(found)
            return log_softmax(restricted) if constraints.normalized else restricted

        search = best_texts if beams.groups == 1 else best_texts_of_groups
        self.hypotheses = search(beams, begin, most, constraints.ends, scores_of, allowed, self._is_stopped(stop))
        return self.hypotheses[0].tokens if self.hypotheses else ()

    def _refuse_guidance(self, sampling: Sampling) -> None:
        """Raise `GenerationError` if guidance is requested: transformers defines it for decoder-only models of text."""
        if sampling.guidance_scale not in (None, 1) or sampling.negative_prompt:
            raise GenerationError(f"{self.folder} contains a model that does not support guidance")

    @cached_property
    def _stops(self) -> tuple[str, ...]:
        path = generation_file(self.folder)
        try:
            return stop_texts(read_optional_json(path))
        except ValueError as error:
            raise GenerationError(f"{path} has an invalid setting: {error}") from error

    @staticmethod
    def check(prompt: Sequence[int], vocabulary: int, most: int | None, least: int = 0) -> None:
        """Raise `GenerationError` if a prompt has tokens outside the vocabulary, or more than ``most`` tokens.

        ``least`` is the smallest number that the model accepts: negative if such numbers represent images.
        """
        if not all(least <= token < vocabulary for token in prompt):
            worst = max(prompt, key=lambda token: token if token >= 0 else vocabulary - token)
            raise GenerationError(
                f"the prompt has the token {worst}, but the vocabulary has {vocabulary} tokens: the tokenizer is from "
                "another model"
            )
        if most is not None and len(prompt) > most:
            raise GenerationError(f"the prompt has {len(prompt)} tokens, more than the {most} that the model supports")

    def _open(self, name: str, options: ort.SessionOptions | None) -> InferenceSession:
        """Create the session of a model in the folder. Raise `GenerationError` if it is missing or damaged."""
        path = self.folder / name
        if not path.is_file():
            raise GenerationError(f"{self.folder} contains no {name}: create it with specops convert FOLDER -o OUT")
        return open_session(path, options, self._kernels)

    @cached_property
    def _template(self) -> ChatTemplate:
        return ChatTemplate(self.folder)

    @cached_property
    def _tokenizer(self) -> Tokenizer:
        return open_tokenizer(self.folder, self._kernels)


def pieces(tokens: Iterator[int], decode: Callable[[Sequence[int]], str]) -> Iterator[str]:
    """Yield the text of tokens as they are generated. Each piece consists of complete characters."""
    ids: list[int] = []
    begin = shown = 0  # text before `begin` is complete; the tokens up to `shown` have been returned
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
