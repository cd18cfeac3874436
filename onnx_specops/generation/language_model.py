"""A decoder that goes on with a text, in the form that onnxruntime-genai loads."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import onnxruntime as ort

from onnx_specops.generation.errors import GenerationError
from onnx_specops.generation.sampling import GREEDY, Sampler, Sampling
from onnx_specops.generation.settings import read_json
from onnx_specops.generation.text_model import TextModel
from onnx_specops.runtime.session import InferenceSession, Kernels

CONFIG = "genai_config.json"


class LanguageModel(TextModel):
    """A language model with its tokenizer, as ``specops convert FOLDER -o OUT --genai`` writes it.

    Args:
        folder: it holds genai_config.json, the model, and its tokenizer, as of `TextModel`.
        kernels, sess_options: as of `onnx_specops.InferenceSession`.

    Attributes:
        positions: the most tokens that prompt and text have together.
        vocabulary: how many tokens the model knows.
        ends: the tokens that end a text.

    Raises:
        GenerationError: what is missing in the folder, or does not belong together.
    """

    goes_on = True

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        kernels: Kernels = "auto",
        sess_options: ort.SessionOptions | None = None,
    ) -> None:
        super().__init__(Path(folder), kernels)
        path = self._configure()
        if not path.is_file():
            raise GenerationError(f"{self.folder} holds no {path.name}, which its {CONFIG} names")
        self._session = InferenceSession(path, sess_options, kernels=kernels)
        self._held: list[int] = []
        self._run = object()
        self._names = {value.name for value in self._session.get_inputs()}
        if unknown := self._names - {"input_ids", "attention_mask", "position_ids"}:
            raise GenerationError(f"{path.name} takes inputs that no decoder of text has: {', '.join(sorted(unknown))}")

    def generate(self, prompt: Sequence[int], tokens: int, sampling: Sampling = GREEDY) -> Iterator[int]:
        """The tokens that follow a prompt; up to one that ends the text, which is not given.

        A prompt that goes on from all tokens of the last text, as the next turn of a conversation does, is computed from
        there.

        Args:
            prompt: tokens; none stands for the one that begins texts.
            tokens: the most tokens to add; no more than `positions` in all.
            sampling: how each token is chosen; the likeliest by default.

        Raises:
            GenerationError: the prompt has tokens that the model does not know, or more than it is made for.
        """
        ids = list(prompt) or [self._begin]
        self.check(ids, self.vocabulary, self.positions - 1)
        sampler = Sampler(sampling, ids)
        self.given: list[int] = []
        past = len(self._held)
        if not 0 < past < len(ids) or ids[:past] != self._held:
            self._session.reset_state()
            past = 0
        run = self._run = object()  # a text that is left and gone on with later does not know what the session holds
        self._held = []
        fed = ids[past:]
        for _ in range(min(tokens, self.positions - len(ids))):
            if run is not self._run:
                raise GenerationError("another text was begun before this one was done with")
            (logits,) = self._session.run(["logits"], self._feeds(np.array([fed], np.int64), past))
            past += len(fed)
            self._held = [*ids, *self.given]
            token = sampler.choose(logits[0, -1])
            if token in self.ends:
                return
            self.given.append(token)
            yield token
            fed = [token]

    def _feeds(self, fed: np.ndarray, past: int) -> dict[str, np.ndarray]:
        total = past + fed.shape[1]
        feeds = {
            "input_ids": fed,
            "attention_mask": np.ones((1, total), np.int64),
            "position_ids": np.arange(past, total, dtype=np.int64)[None],
        }
        return {name: feeds[name] for name in self._names}

    def _configure(self) -> Path:
        """Read what the model is; returns where it lies."""
        path = self.folder / CONFIG
        if not self.folder.is_dir():
            raise GenerationError(f"{self.folder} is not a folder: specops generate takes the folder of a language model")
        try:
            settings = read_json(path)
        except FileNotFoundError:
            raise GenerationError(
                f"{self.folder} holds no {CONFIG}: specops convert FOLDER -o OUT --genai writes it"
            ) from None
        try:
            model = settings["model"]
            self.positions, self.vocabulary = int(model["context_length"]), int(model["vocab_size"])
            end = model["eos_token_id"]
            self.ends = frozenset(int(token) for token in (end if isinstance(end, list) else [end]))
            self._begin = int(model["bos_token_id"])
            return self.folder / model["decoder"]["filename"]
        except (KeyError, TypeError, ValueError) as error:
            raise GenerationError(f"{path} does not describe the model: {type(error).__name__} {error}") from error
