"""Decoder-only language models, either for onnxruntime-genai, or with variables for their states."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import onnxruntime as ort
from onnxruntime.capi import onnxruntime_pybind11_state as state

from onnx_specops.generation.beams import Beams, log_softmax
from onnx_specops.generation.constraints import Constraints
from onnx_specops.generation.decoders import check_vocabulary, names_of
from onnx_specops.generation.errors import GenerationError
from onnx_specops.generation.sampling import GREEDY, Sampler, Sampling
from onnx_specops.generation.sessions import open_session
from onnx_specops.generation.settings import MODEL, read_json, tokens_of, with_generation
from onnx_specops.generation.states import contradiction
from onnx_specops.generation.text_model import TextModel
from onnx_specops.runtime.session import InferenceSession, Kernels
from onnx_specops.runtime.variables import inputs_of, variables_of

CONFIG = "genai_config.json"
STATEFUL = "openvino_model.onnx"
"""The model of a folder that is converted without ``--genai``."""

_POSITIONS = ("max_position_embeddings", "n_positions", "n_ctx", "max_sequence_length", "seq_length", "max_seq_len")
_UNLIMITED = 1 << 31
"""The number of positions of a model that does not state it, such as a state space."""

_STATE_SPACES = ("mamba", "falcon_mamba", "zamba2")
"""The types of models that continue their states only by one token, with an attention_mask of the length of a run."""

_ROWS, _SLOTS, _PLACES = "beam_idx", "cache_position", "position_ids"
_SPACES = ".ssm."
"""A part of the names of the variables of state spaces."""

_PADDED = "padded_vocab_size"
_KERNELS = ("conv_kernel", "mamba_d_conv")
_USUAL_KERNEL = 4


class LanguageModel(TextModel):
    """A language model with its tokenizer.

    Args:
        folder: the output folder of ``specops convert FOLDER -o OUT``, with or without ``--genai``. It contains the model,
            its tokenizer (see `TextModel`), and genai_config.json or config.json.
        kernels, sess_options: see `onnx_specops.InferenceSession`.

    Attributes:
        positions: the maximum number of tokens in the prompt and the generated text together.
        vocabulary: the number of tokens in the vocabulary.
        ends: the end tokens.
        constraints: the settings of generation_config.json that restrict the next token.

    Raises:
        GenerationError: files are missing or inconsistent.
    """

    goes_on = True
    _known = frozenset({"input_ids", "attention_mask", _PLACES, _ROWS, _SLOTS})
    _guides = True
    """Whether the model supports classifier-free guidance."""
    _kernel: int | None = None
    """The length of the convolutions of a state space, see `_STATE_SPACES`."""
    _config: Mapping[str, Any] = MappingProxyType({})
    """The configuration of a model whose states are variables."""
    _padded: Sequence[int] = ()
    """The number of logits of models that pad the vocabulary, such as ChatGLM."""
    _least = 0
    """The smallest number in a prompt; negative numbers represent images."""

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        kernels: Kernels = "auto",
        sess_options: ort.SessionOptions | None = None,
    ) -> None:
        super().__init__(Path(folder), kernels)
        path = self._configure()
        self.constraints = Constraints.of_folder(self.folder, sorted(self.ends), self.vocabulary, guides=self._guides)
        if not path.is_file():
            raise GenerationError(f"{self.folder} contains no {path.name}, which its {CONFIG} names")
        self._session = open_session(path, sess_options, kernels)
        self._held: list[int] = []
        self._run = object()
        self._names = names_of(self._session, path.name, self._known)
        check_vocabulary(self._session, path.name, [self.vocabulary, *self._padded])
        self._check_type(path.name)

    def _check_type(self, name: str) -> None:
        """Raise `GenerationError` if the model in a file is not the one that the configuration describes.

        The type determines the lengths of inputs, so that of another model gives other texts, or fails in a run.
        """
        is_space = self._kernel is not None
        kind, remedy = self._config.get("model_type"), f"use the {MODEL} of the model"
        for other in {_SLOTS, _PLACES} & self._names - {_SLOTS if is_space else _PLACES}:
            raise GenerationError(f"{name} has the input {other}, which models of the type {kind!r} do not have: {remedy}")
        variables = variables_of(self._session)
        if is_space and not any(_SPACES in variable.name for variable in variables):
            raise GenerationError(f"{name} has no state space, but its type is {kind!r}: {remedy}")
        shapes = {value.name: value.shape for value in inputs_of(self._session)}
        if found := contradiction(self._config, {one.name: shapes[one.input] for one in variables}):
            raise GenerationError(f"{self.folder / MODEL} is not that of {name}: {found}; {remedy}")

    def generate(
        self,
        prompt: Sequence[int],
        tokens: int,
        sampling: Sampling = GREEDY,
        *,
        stop: Sequence[str] = (),
        beams: Beams | int | None = None,
    ) -> Iterator[int]:
        """Generate the tokens that continue a prompt. The end token is not returned.

        If a prompt begins with the complete previous text, as in the next turn of a conversation, the cache is reused.
        (After beam search, and with Mamba, Falcon Mamba and Zamba2, the complete prompt is recomputed.)

        Args:
            prompt: the tokens of the prompt. An empty prompt represents the begin token.
            tokens: the maximum number of new tokens. The prompt and the new tokens are at most `positions` tokens.
            sampling: the sampling settings, applied to the tokens that `constraints` allows. The default is greedy search.
            stop, beams: see `TextModel.generate`.

        Raises:
            GenerationError: the prompt or the negative prompt is too long, or contains tokens outside the vocabulary.
        """
        ids = list(prompt) or [self._begin]
        self.check(ids, self.vocabulary, self.positions - 1, self._least)
        search = self._search(beams)
        text = [token for token in ids if token >= 0]
        self.given, self.hypotheses = [], []
        past = len(self._held)
        if self._kernel is not None or not 0 < past < len(ids) or ids[:past] != self._held:
            self._session.reset_state()
            past = 0
        run = self._run = object()  # a generator that is resumed after another one started cannot use the session's cache
        self._held = []
        most = min(tokens, self.positions - len(ids))
        guide = self._guide(sampling, text)
        if guide is not None:
            most = min(most, self.positions - len(guide.prompt))
        if search is not None:
            constraints, rows = self.constraints.for_beams(sampling), _Rows(self._session, self._feeds, ids, past)
            guided: Any = {} if guide is None else {"guided": guide.guided}
            for token in self._best(search, text, most, constraints, text, rows.run, stop, **guided):
                self.given.append(token)
                yield token
            return
        sampler, constraints, is_stopped = Sampler(sampling, text), self.constraints.beside(sampling), self._is_stopped(stop)
        fed = ids[past:]
        for number in range(1, most + 1):
            if run is not self._run:
                raise GenerationError("another text was started before this one was finished")
            logits = _logits_of(self._session, self._feeds(np.array([fed], np.int64), past, [0]))
            past += len(fed)
            self._held = [*ids, *self.given]
            scores, whole = logits[0, -1], [*text, *self.given]
            if guide is not None:
                (scores,) = guide.guided(log_softmax(logits[:, -1]), [whole], [0])
            allowed = constraints.applied(scores, whole, text, len(text), last=number == most)
            token = sampler.choose(allowed)
            if token in self.ends:
                return
            self.given.append(token)
            yield token
            fed = [token]
            if is_stopped(self.given):
                return

    def _guide(self, sampling: Sampling, text: Sequence[int]) -> _Guide | None:
        """Return the guidance of a text, if any. Without a negative prompt, it is the last token of the prompt."""
        scale = self.constraints.guidance_scale if sampling.guidance_scale is None else sampling.guidance_scale
        if not self._guides:
            self._refuse_guidance(sampling)
        if not self._guides or scale == 1:
            return None
        other = list(sampling.negative_prompt) or list(text[-1:])
        self.check(other, self.vocabulary, self.positions - 1)
        return _Guide(self._session, self._feeds, other, scale)

    def _feeds(self, fed: np.ndarray, past: int, rows: Sequence[int]) -> dict[str, np.ndarray]:
        """Return the inputs of a run.

        Args:
            fed: the tokens ``[texts, tokens]``.
            past: the number of tokens before them.
            rows: for each text, the index of the text of the previous run that it continues.
        """
        texts, total = len(fed), past + fed.shape[1]
        feeds = {
            "input_ids": fed,
            "attention_mask": np.ones((texts, total if self._kernel is None else fed.shape[1]), np.int64),
            _PLACES: np.tile(np.arange(past, total, dtype=np.int64), (texts, 1)),
            _ROWS: np.array(rows, np.int32),
            # as in optimum-intel: the number of positions is the size of the convolution's kernel, for a prompt of any
            # length
            _SLOTS: np.array([past]) if past else np.arange(self._kernel or 1),
        }
        return {name: array for name, array in feeds.items() if name in self._names}

    def _configure(self) -> Path:
        """Read the configuration; return the path of the model."""
        path = self.folder / CONFIG
        if not self.folder.is_dir():
            raise GenerationError(f"{self.folder} is not a folder: specops generate requires the folder of a language model")
        if not path.is_file() and (self.folder / STATEFUL).is_file():
            return self._configure_stateful()
        try:
            settings = read_json(path)
        except FileNotFoundError:
            raise GenerationError(
                f"{self.folder} contains no {CONFIG}: create it with specops convert FOLDER -o OUT --genai"
            ) from None
        try:
            model = settings["model"]
            if isinstance(model, dict) and model.get("type") == "whisper":
                raise GenerationError(f"{self.folder} contains a Whisper model: load it with open_model")
            self.positions, self.vocabulary = int(model["context_length"]), int(model["vocab_size"])
            self.ends = frozenset(tokens_of(model["eos_token_id"]))
            self._begin = int(model["bos_token_id"])
            return self.folder / model["decoder"]["filename"]
        except (KeyError, OverflowError, TypeError, ValueError) as error:
            raise GenerationError(f"{path} is not a valid model configuration: {type(error).__name__} {error}") from error

    def _configure_stateful(self) -> Path:
        """Read the configuration of a folder that is converted without ``--genai``; return the path of the model."""
        path = self.folder / MODEL
        try:
            config = read_json(path)
        except FileNotFoundError:
            raise GenerationError(f"{self.folder} contains no {MODEL}; add the {MODEL} of the model") from None
        text = config.get("text_config")
        config = with_generation({**config, **text} if isinstance(text, dict) else config, self.folder)
        try:
            self._config = config
            if config.get("model_type") in _STATE_SPACES:
                stated = [int(config[name]) for name in _KERNELS if config.get(name) is not None]
                self._kernel = (*stated, _USUAL_KERNEL)[0]
            positions = [int(config[name]) for name in _POSITIONS if config.get(name) is not None]
            self.positions, self.vocabulary = (*positions, _UNLIMITED)[0], int(config["vocab_size"])
            padded = config.get(_PADDED)
            self._padded = () if padded is None else (int(padded),)
            ends = config.get("eos_token_id")
            self.ends = frozenset(() if ends is None else tokens_of(ends))
            begin = config.get("bos_token_id")
            self._begin = 1 if begin is None else int(begin)
        except (KeyError, OverflowError, TypeError, ValueError) as error:
            raise GenerationError(f"{path} is not a valid model configuration: {type(error).__name__} {error}") from error
        return self.folder / STATEFUL


def _logits_of(session: InferenceSession, feeds: Mapping[str, np.ndarray]) -> np.ndarray:
    """Return the logits ``[texts, tokens, vocabulary]`` of a run."""
    try:
        (logits,) = session.run(["logits"], feeds)
    except (state.Fail, state.InvalidArgument, state.RuntimeException) as error:
        # The inputs follow from the configuration, so that of another model can have this result.
        remedy = "check that its configuration files are those of the model"
        raise GenerationError(f"ONNX Runtime cannot run the model with these tokens: {error}; {remedy}") from error
    return np.asarray(logits)


class _Rows:
    """The texts of a beam search in a session of a single decoder.

    The first run computes the prompt once. Afterwards, ``beam_idx`` selects the rows of the states; in a model without that
    input, the session does.

    Args:
        session: its session, whose state has the tokens before ``past``.
        feeds: see `LanguageModel._feeds`.
        ids: the tokens of the prompt.
        past: the number of tokens in the state.
    """

    def __init__(
        self,
        session: InferenceSession,
        feeds: Callable[[np.ndarray, int, Sequence[int]], dict[str, np.ndarray]],
        ids: Sequence[int],
        past: int,
    ) -> None:
        self._session, self._feeds, self._ids, self._past = session, feeds, ids, past
        self._runs = 0
        self._selects = _ROWS in {value.name for value in session.get_inputs()}

    def run(self, texts: Sequence[Sequence[int]], rows: Sequence[int]) -> np.ndarray:
        """Return the logits ``[texts, vocabulary]`` of the next tokens; see `Decoder.run_beams`."""
        self._runs += 1
        if self._runs == 1:  # all texts are equal
            return np.repeat(self._logits(np.array([self._ids[self._past :]], np.int64), [0]), len(texts), axis=0)
        chosen = [0] * len(texts) if self._runs == 2 else rows
        if not self._selects:
            self._session.select_rows(chosen)
        return self._logits(np.array([text[-1:] for text in texts], np.int64), chosen)

    def _logits(self, fed: np.ndarray, rows: Sequence[int]) -> np.ndarray:
        logits = _logits_of(self._session, self._feeds(fed, self._past, rows))
        self._past += fed.shape[1]
        return np.asarray(logits[:, -1])


class _Guide:
    """Classifier-free guidance, as in transformers: the scores of a text in relation to those after another prompt.

    Both texts alternate in one session.

    Args:
        session, feeds: see `_Rows`.
        prompt: the tokens of the other prompt.
        scale: the weight of the difference of both scores. 1 has no effect.
    """

    def __init__(
        self,
        session: InferenceSession,
        feeds: Callable[[np.ndarray, int, Sequence[int]], dict[str, np.ndarray]],
        prompt: Sequence[int],
        scale: float,
    ) -> None:
        self._session, self.prompt, self._scale = session, prompt, np.float32(scale)
        self._rows = _Rows(session, feeds, prompt, 0)
        self._state: Any = None

    def guided(self, scores: np.ndarray, texts: Sequence[Sequence[int]], rows: Sequence[int]) -> np.ndarray:
        """Return the guided scores of the next tokens.

        Args:
            scores: the logarithms of the probabilities ``[texts, vocabulary]``.
            texts, rows: see `Decoder.run_beams`.
        """
        held = self._session.swap_state(self._state)
        try:
            other = log_softmax(self._rows.run(texts, rows))
        finally:
            self._state = self._session.swap_state(held)
        return np.asarray(self._scale * (scores - other) + other)
