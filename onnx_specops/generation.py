"""Text out of a language model's folder, as ``specops convert FOLDER -o OUT --genai`` writes it: ONNX Runtime alone.

    model = LanguageModel("OUT")
    for piece in model.write("Once upon a time", tokens=64):
        print(piece, end="", flush=True)

The next token is always the likeliest. What onnxruntime-genai does besides (sampling, beams, chats) is left to it: it loads
the same folder.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort

from onnx_specops.runtime.session import InferenceSession, Kernels

CONFIG, TOKENIZER, DETOKENIZER = "genai_config.json", "openvino_tokenizer.onnx", "openvino_detokenizer.onnx"

_UNFINISHED = "\ufffd"
"""What a detokenizer gives for the bytes of a character whose rest is not there yet."""


class GenerationError(ValueError):
    """A folder that no text can be made with, or a prompt that does not fit the model."""


class LanguageModel:
    """A language model with its tokenizer.

    Args:
        folder: it holds genai_config.json, the model, and its tokenizer: openvino_tokenizer.onnx and
            openvino_detokenizer.onnx, else tokenizer.json (which takes the package ``tokenizers``).
        kernels, sess_options: as of `onnx_specops.InferenceSession`.

    Attributes:
        positions: the most tokens that prompt and text have together.
        vocabulary: how many tokens the model knows.
        ends: the tokens that end a text.
        generated: how many tokens the last text has had so far.

    Raises:
        GenerationError: what is missing in the folder, or does not belong together.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        kernels: Kernels = "auto",
        sess_options: ort.SessionOptions | None = None,
    ) -> None:
        self.folder, self._kernels = Path(folder), kernels
        model = self._configuration()
        self.positions, self.vocabulary = int(model["context_length"]), int(model["vocab_size"])
        end = model["eos_token_id"]
        self.ends = frozenset(end if isinstance(end, list) else [end])
        self._begin = int(model["bos_token_id"])
        path = self.folder / model["decoder"]["filename"]
        if not path.is_file():
            raise GenerationError(f"{self.folder} holds no {path.name}, which its {CONFIG} names")
        self._session = InferenceSession(path, sess_options, kernels=kernels)
        self._names = {value.name for value in self._session.get_inputs()}
        if unknown := self._names - {"input_ids", "attention_mask", "position_ids"}:
            raise GenerationError(f"{path.name} takes inputs that no decoder of text has: {', '.join(sorted(unknown))}")
        self.generated = 0
        self._coders: tuple[Callable[[str], list[int]], Callable[[Sequence[int]], str]] | None = None

    def encode(self, text: str) -> list[int]:
        """The tokens of a text."""
        return self._tokenizer()[0](text)

    def decode(self, ids: Sequence[int]) -> str:
        """The text of tokens."""
        return self._tokenizer()[1](ids)

    def write(self, prompt: str, tokens: int) -> Iterator[str]:
        """What follows a prompt, piece by piece as it comes; whole characters only.

        Args:
            prompt: the text to go on with.
            tokens: the most tokens to add.
        """
        ids: list[int] = []
        begin = shown = 0  # text before `begin` is done with; that of the tokens up to `shown` has been given
        before = ""
        for token in self.generate(self.encode(prompt), tokens):
            ids.append(token)
            text = self.decode(ids[begin:])
            if len(text) > len(before) and not text.endswith(_UNFINISHED):
                yield text[len(before) :]
                begin, shown = shown, len(ids)
                before = self.decode(ids[begin:shown])
        rest = self.decode(ids[begin:])[len(before) :]
        if rest:
            yield rest

    def generate(self, prompt: Sequence[int], tokens: int) -> Iterator[int]:
        """The tokens that follow a prompt, each the likeliest; up to one that ends the text, which is not given.

        Args:
            prompt: tokens; none stands for the one that begins texts.
            tokens: the most tokens to add; no more than `positions` in all.

        Raises:
            GenerationError: the prompt has tokens that the model does not know, or more than it is made for.
        """
        ids = list(prompt) or [self._begin]
        if not all(0 <= token < self.vocabulary for token in ids):
            worst = max(ids, key=lambda token: token if token >= 0 else self.vocabulary - token)
            raise GenerationError(
                f"the prompt has the token {worst}, the model knows {self.vocabulary}: it is the tokenizer of another model"
            )
        if len(ids) >= self.positions:
            raise GenerationError(
                f"the prompt has {len(ids)} tokens, the model is made for {self.positions} with the answer"
            )
        self._session.reset_state()
        self.generated = 0
        past, fed = 0, np.array([ids], np.int64)
        for _ in range(min(tokens, self.positions - len(ids))):
            (logits,) = self._session.run(["logits"], self._feeds(fed, past))
            past += fed.shape[1]
            token = int(logits[0, -1].argmax())
            if token in self.ends:
                return
            self.generated += 1
            yield token
            fed = np.array([[token]], np.int64)

    def _feeds(self, fed: np.ndarray, past: int) -> dict[str, np.ndarray]:
        total = past + fed.shape[1]
        feeds = {
            "input_ids": fed,
            "attention_mask": np.ones((1, total), np.int64),
            "position_ids": np.arange(past, total, dtype=np.int64)[None],
        }
        return {name: feeds[name] for name in self._names}

    def _configuration(self) -> dict[str, Any]:
        path = self.folder / CONFIG
        try:
            model = json.loads(path.read_text(encoding="utf-8"))["model"]
            for name in ("context_length", "vocab_size", "eos_token_id", "bos_token_id", "decoder"):
                model[name]
        except FileNotFoundError:
            raise GenerationError(
                f"{self.folder} holds no {CONFIG}: specops convert FOLDER -o OUT --genai writes it"
            ) from None
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise GenerationError(f"{path} does not say what the model is: {type(error).__name__} {error}") from error
        return model

    def _tokenizer(self) -> tuple[Callable[[str], list[int]], Callable[[Sequence[int]], str]]:
        if self._coders is None:
            self._coders = self._tokenizer_models() or self._tokenizer_package()
        return self._coders

    def _tokenizer_models(self) -> tuple[Callable[[str], list[int]], Callable[[Sequence[int]], str]] | None:
        paths = [self.folder / name for name in (TOKENIZER, DETOKENIZER)]
        if not all(path.is_file() for path in paths):
            return None
        options = [ort.SessionOptions() for _ in paths]
        for each in options:
            each.log_severity_level = 3  # a default that an input has is not worth a warning
        encoder, decoder = (
            InferenceSession(path, each, kernels=self._kernels) for path, each in zip(paths, options, strict=True)
        )
        text, ids = encoder.get_inputs()[0].name, decoder.get_inputs()[0]
        dtype = np.int32 if ids.type == "tensor(int32)" else np.int64

        def encode(prompt: str) -> list[int]:
            (found,) = encoder.run(["input_ids"], {text: np.array([prompt], object)})
            return [int(token) for token in np.reshape(found, -1)]

        def decode(tokens: Sequence[int]) -> str:
            found = decoder.run(None, {ids.name: np.array([tokens], dtype)})[0]
            whole = np.reshape(found, -1)[0]
            return whole.decode(errors="replace") if isinstance(whole, bytes) else str(whole)

        return encode, decode

    def _tokenizer_package(self) -> tuple[Callable[[str], list[int]], Callable[[Sequence[int]], str]]:
        path = self.folder / "tokenizer.json"
        if not path.is_file():
            raise GenerationError(f"{self.folder} holds no tokenizer: neither {TOKENIZER} and {DETOKENIZER} nor {path.name}")
        try:
            from tokenizers import Tokenizer
        except ImportError:
            raise GenerationError(f"{path.name} takes the package tokenizers: pip install tokenizers") from None
        tokenizer = Tokenizer.from_file(str(path))
        return lambda text: list(tokenizer.encode(text).ids), lambda ids: str(tokenizer.decode(list(ids)))
