"""Decoders of encoder-decoders, run token by token."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence, Set
from typing import Any, Protocol

import numpy as np
import onnxruntime as ort

from onnx_specops.generation.errors import GenerationError
from onnx_specops.generation.settings import MODEL
from onnx_specops.generation.states import contradiction
from onnx_specops.runtime.variables import variables_of

STATES, MASKS = "encoder_hidden_states", ("encoder_attention_mask", "attention_mask")

# The other inputs of a decoder.
_TOKENS, _OWN_MASK, _SLOTS = ("input_ids", "decoder_input_ids"), "decoder_attention_mask", "cache_position"
_BEAMS, _LOGITS = "beam_idx", "logits"
_KNOWN = frozenset((*_TOKENS, _OWN_MASK, _SLOTS, STATES, *MASKS, _BEAMS))

_LAYERS = ("decoder_layers", "num_decoder_layers", "num_layers")
"""The keys of the number of layers of a decoder. T5 states ``num_layers`` if the encoder has as many."""

_PAST, _PRESENT = "past_", "present_"


def names_of(session: Any, name: str, known: Set[str]) -> set[str]:
    """Return the names of a decoder's inputs.

    Args:
        session: its session.
        name: the file of the model, for messages.
        known: the inputs that decoders can have.

    Raises:
        GenerationError: the model has other inputs, or no logits.
    """
    names = {value.name for value in session.get_inputs()}
    if unknown := names - known:
        raise GenerationError(f"{name} has inputs that text decoders do not have: {', '.join(sorted(unknown))}")
    if _LOGITS not in {value.name for value in session.get_outputs()}:
        raise GenerationError(f"{name} has no output {_LOGITS}, so it is not a text decoder")
    return names


def check_vocabulary(session: Any, name: str, stated: Collection[int]) -> None:
    """Raise `GenerationError` if a decoder has logits of another number of tokens than the configuration states.

    Args:
        session: its session.
        name: the file of the model, for messages.
        stated: the numbers of tokens that the configuration may mean.
    """
    size = next((value.shape[-1] for value in session.get_outputs() if value.name == _LOGITS and value.shape), None)
    if isinstance(size, int) and size not in stated:
        message = f"{name} has logits of {size} tokens, but the configuration states {' or '.join(map(str, stated))}"
        raise GenerationError(f"{message}: use the configuration of the model")


def check_layers(session: Any, name: str, config: Mapping[str, Any]) -> None:
    """Raise `GenerationError` if the decoder of an encoder-decoder has caches of another number of layers than its
    configuration states. ``name`` is the file of the model.
    """
    layers = next((config[key] for key in _LAYERS if config.get(key) is not None), None)
    states: dict[str, Sequence[Any]] = {variable.name: () for variable in variables_of(session)}
    if found := contradiction({"num_hidden_layers": layers}, states):
        raise GenerationError(f"{MODEL} is not that of {name}: {found}; use the {MODEL} of the model")


class Decoder(Protocol):
    """A decoder of one text, or of several that have the same beginning."""

    def begin(self, given: Mapping[str, Any]) -> None:
        """Begin a text with the results of the encoder."""

    def run(self, ids: Sequence[int]) -> np.ndarray:
        """Append tokens to the text; return the logits ``[vocabulary]`` of the next token."""

    def run_beams(self, texts: Sequence[Sequence[int]], rows: Sequence[int]) -> np.ndarray:
        """Return the logits ``[texts, vocabulary]`` of the next tokens of several texts of equal length.

        Args:
            texts: their tokens, which extend those of the previous run.
            rows: for each text, the index of the text of the previous run that it continues.
        """


class StatefulDecoder:
    """A decoder that keeps its cache in variables. Without variables, each run receives all tokens.

    Args:
        session: its session.
        name: the file of the model, for messages.

    Raises:
        GenerationError: the model has unknown inputs, or no logits.
    """

    def __init__(self, session: Any, name: str) -> None:
        self._session = session
        self._has_cache = bool(variables_of(session))
        self._names = names_of(session, name, _KNOWN)
        self.begin({})

    def begin(self, given: Mapping[str, Any]) -> None:
        """Begin a text with the encoder's states and mask, by the names `STATES` and `MASKS`."""
        self._session.reset_state()
        self._given = self._taken({**given, _BEAMS: np.zeros(1, np.int32)})
        self._ids: list[int] = []

    def run(self, ids: Sequence[int]) -> np.ndarray:
        """Append tokens to the text; return the logits ``[vocabulary]`` of the next token."""
        past = len(self._ids) if self._has_cache else 0
        self._ids += ids
        feeds = {
            **dict.fromkeys(_TOKENS, np.array([self._ids[past:]], np.int64)),
            _OWN_MASK: np.ones((1, len(self._ids)), np.int64),
            _SLOTS: np.arange(past, len(self._ids), dtype=np.int64),
        }
        (logits,) = self._session.run(["logits"], {**self._given, **self._taken(feeds)})
        return np.asarray(logits[0, -1])

    def run_beams(self, texts: Sequence[Sequence[int]], rows: Sequence[int]) -> np.ndarray:
        """Return the logits ``[texts, vocabulary]`` of the next tokens of several texts; see `Decoder.run_beams`."""
        past = len(self._ids) if self._has_cache else 0
        self._ids = list(texts[0])  # only their number counts
        feeds = {
            **dict.fromkeys(_TOKENS, np.array([text[past:] for text in texts], np.int64)),
            _OWN_MASK: np.ones((len(texts), len(self._ids)), np.int64),
            _SLOTS: np.arange(past, len(self._ids), dtype=np.int64),
            _BEAMS: np.array(rows, np.int32),
        }
        given = {name: np.repeat(array, len(texts), axis=0) for name, array in self._given.items() if name != _BEAMS}
        (logits,) = self._session.run(["logits"], {**given, **self._taken(feeds)})
        return np.asarray(logits[:, -1])

    def _taken(self, feeds: Mapping[str, Any]) -> dict[str, Any]:
        """Return the feeds for which the decoder has inputs."""
        return {name: array for name, array in feeds.items() if name in self._names}


class StatelessDecoder:
    """A decoder whose cache is in inputs and outputs, as onnxruntime-genai runs it.

    Args:
        session: its session. The input ``past_X`` continues the output ``present_X``, of this model or of the encoder.
    """

    def __init__(self, session: Any) -> None:
        self._session = session
        shapes = {value.name: value.shape for value in session.get_inputs()}
        self._outputs = [value.name for value in session.get_outputs()]
        # [batch, heads, past tokens, size]
        own = [name for name in shapes if name.replace(_PAST, _PRESENT, 1) in self._outputs]
        self._empty = {name: np.zeros((1, shapes[name][1], 0, shapes[name][3]), np.float32) for name in own}
        self.begin({})

    def begin(self, given: Mapping[str, Any]) -> None:
        """Begin a text with the outputs of the encoder."""
        of_encoder = {name.replace(_PRESENT, _PAST, 1): v for name, v in given.items() if name.startswith(_PRESENT)}
        arrays = {**self._empty, **of_encoder}
        self._past = {name: _value(array) for name, array in arrays.items()}
        self._length = 0

    def run(self, ids: Sequence[int]) -> np.ndarray:
        """Append tokens to the text; return the logits ``[vocabulary]`` of the next token."""
        return np.asarray(self._logits([ids])[0])

    def run_beams(self, texts: Sequence[Sequence[int]], rows: Sequence[int]) -> np.ndarray:
        """Return the logits ``[texts, vocabulary]`` of the next tokens of several texts; see `Decoder.run_beams`."""
        if self._length == 0:  # equal texts have equal states
            first = self._logits(texts[:1])
            self._past = {name: _value(np.repeat(past.numpy(), len(texts), axis=0)) for name, past in self._past.items()}
            return np.repeat(first, len(texts), axis=0)
        if list(rows) != list(range(len(texts))):
            for name in self._empty:
                self._past[name] = _value(self._past[name].numpy()[rows])
        return self._logits([text[self._length :] for text in texts])

    def _logits(self, ids: Sequence[Sequence[int]]) -> np.ndarray:
        """Append tokens to each text; return the logits ``[texts, vocabulary]`` of the next tokens."""
        feeds = {**self._past, "input_ids": _value(np.array(ids, np.int64))}
        found = dict(zip(self._outputs, self._session.run_with_ort_values(self._outputs, feeds), strict=True))
        for name in self._empty:
            self._past[name] = found[name.replace(_PAST, _PRESENT, 1)]
        self._length += len(ids[0])
        return np.asarray(found["logits"].numpy()[:, -1])


def _value(array: np.ndarray) -> ort.OrtValue:
    return ort.OrtValue.ortvalue_from_numpy(np.ascontiguousarray(array))
