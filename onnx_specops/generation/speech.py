"""Speech recognition with Whisper, like OpenVINO GenAI's WhisperPipeline."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import onnxruntime as ort
from onnxruntime.capi import onnxruntime_pybind11_state as state

from onnx_specops.generation.audio import AudioLike, LogMel, read_audio
from onnx_specops.generation.beams import Beams
from onnx_specops.generation.constraints import Constraints
from onnx_specops.generation.decoders import (
    STATES,
    Decoder,
    StatefulDecoder,
    StatelessDecoder,
    check_layers,
    check_vocabulary,
)
from onnx_specops.generation.encoder_decoder import DECODER, ENCODER
from onnx_specops.generation.errors import GenerationError
from onnx_specops.generation.language_model import CONFIG
from onnx_specops.generation.languages import CODES
from onnx_specops.generation.sampling import GREEDY, Sampler, Sampling
from onnx_specops.generation.settings import (
    GENERATION,
    MODEL,
    read_json,
    read_optional_json,
    tokens_of,
    with_generation,
)
from onnx_specops.generation.text_model import TextModel
from onnx_specops.runtime.session import Kernels

Task = Literal["transcribe", "translate"]

_PROCESSOR, _FEATURES = "processor_config.json", "preprocessor_config.json"


@dataclass(frozen=True)
class Segment:
    """A segment of a recording.

    Attributes:
        start: the start of the segment, in seconds.
        end: the end of the segment, in seconds, or ``None`` if the model did not generate it.
        tokens: the tokens of the text.
        text: the text.
    """

    start: float
    end: float | None
    tokens: Sequence[int]
    text: str


@dataclass(frozen=True)
class _Special:
    """Special tokens and limits, with the names and defaults of OpenVINO GenAI."""

    start: int
    ends: frozenset[int]
    transcribe: int
    translate: int
    previous: int
    no_timestamps: int
    max_initial_timestamp: int
    multilingual: bool
    languages: Mapping[str, int]
    suppressed: Sequence[int]
    not_at_begin: Sequence[int]
    language: str | None
    task: str | None
    timestamps: bool

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> _Special:
        tasks = settings.get("task_to_id") or {}
        language, task = settings.get("language"), settings.get("task")
        if language is None and task is None:
            forced = {token: place for place, token in settings.get("forced_decoder_ids") or ()}
            of_language = {name: token for name, token in (settings.get("lang_to_id") or {}).items() if token in forced}
            of_task = {name: token for name, token in tasks.items() if token in forced}
            language, task = next(iter(of_language), None), next(iter(of_task), None)
        return cls(
            start=int(settings.get("decoder_start_token_id", 50258)),
            ends=frozenset(tokens_of(settings["eos_token_id"])),
            transcribe=int(tasks.get("transcribe", 50359)),
            translate=int(tasks.get("translate", 50358)),
            previous=int(settings.get("prev_sot_token_id", 50361)),
            no_timestamps=int(settings.get("no_timestamps_token_id", 50363)),
            max_initial_timestamp=int(settings.get("max_initial_timestamp_index", 50)),
            multilingual=bool(settings.get("is_multilingual", True)),
            languages={str(name): int(token) for name, token in sorted((settings.get("lang_to_id") or {}).items())},
            suppressed=[int(token) for token in settings.get("suppress_tokens") or ()],
            not_at_begin=[int(token) for token in settings.get("begin_suppress_tokens") or ()],
            language=None if language is None else str(language),
            task=None if task is None else str(task),
            timestamps=bool(settings.get("return_timestamps")),
        )

    def outside(self, vocabulary: int) -> int | None:
        """Return a token that a vocabulary does not have; ``None`` if it has all of them."""
        tasks = (self.transcribe, self.translate) if self.multilingual else ()
        many = (*self.ends, *self.languages.values(), *self.suppressed, *self.not_at_begin, *tasks)
        return next((token for token in (self.start, self.no_timestamps, *many) if not 0 <= token < vocabulary), None)


@dataclass
class _Window:
    """The timestamps in the tokens of a window.

    Attributes:
        segments: the parts with their tokens, and their times relative to the window in units of two frames.
        frames: the frames after which the next window begins.
    """

    frames: int
    segments: list[tuple[int, int | None, list[int]]] = field(default_factory=list)


class SpeechModel(TextModel):
    """A Whisper model with its tokenizer.

    The model processes a recording in windows of 30 seconds, which begin at the timestamps that it generates.

    Args:
        folder: the output folder of ``specops convert FOLDER -o OUT``, with or without ``--genai``. It contains the encoder,
            the decoder, config.json, generation_config.json, preprocessor_config.json or processor_config.json, and the
            tokenizer (see `TextModel`).
        kernels, sess_options: see `onnx_specops.InferenceSession`.

    Attributes:
        language: the specified or detected language of the last recording, such as ``en``.
        segments: the segments of the last recording, if timestamps were requested or the recording has several windows.
        positions: the maximum number of tokens per window.
        vocabulary: the number of tokens in the vocabulary.
        constraints: the tokens that may follow a sequence, according to generation_config.json.

    Raises:
        GenerationError: files are missing or inconsistent.
    """

    goes_on = False

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        kernels: Kernels = "auto",
        sess_options: ort.SessionOptions | None = None,
    ) -> None:
        super().__init__(Path(folder), kernels)
        self._configure()
        stateless = (self.folder / CONFIG).is_file()
        names = _genai_files(self.folder) if stateless else (ENCODER, DECODER)
        self._encoder, session = (self._open(name, sess_options) for name in names)
        self._decoder: Decoder = StatelessDecoder(session) if stateless else StatefulDecoder(session, DECODER)
        check_vocabulary(session, names[1], [self.vocabulary])
        check_layers(session, names[1], read_json(self.folder / MODEL))
        self._input = self._encoder.get_inputs()[0].name
        self._encoded = ["last_hidden_state"] if not stateless else [value.name for value in self._encoder.get_outputs()]
        self.language: str | None = None
        self.segments: list[Segment] = []

    @property
    def sampling_rate(self) -> int:
        """The sampling rate that the model requires, in samples per second."""
        return self._features.sampling_rate

    def write(
        self,
        prompt: str,
        tokens: int | None = None,
        sampling: Sampling = GREEDY,
        stop: Sequence[str] = (),
        *,
        special: bool = True,
        beams: Beams | int | None = None,
        audio: AudioLike | None = None,
        language: str | None = None,
        task: Task | None = None,
        timestamps: bool | None = None,
    ) -> Iterator[str]:
        """Transcribe or translate a recording. The iterator returns the text in pieces, as it is generated. With beam
        search, it returns the text of each window at its end.

        Args:
            prompt: a text that precedes the recording, for example with the spelling of names. It can be empty.
            tokens: the maximum number of tokens per window. The default is the limit of the model.
            sampling: the sampling settings. The default is greedy search.
            stop: the texts at which the generation stops, in addition to ``stop_strings`` in generation_config.json. They
                are not returned.
            special: ignored. ``language``, ``task`` and ``timestamps`` determine the first tokens.
            beams: the settings of beam search, or the number of beams; see `TextModel.generate`.
            audio: the path of a WAV file, or an array ``[samples]`` of values from -1 to 1 at `sampling_rate`.
            language: the language of the recording, such as ``en`` or ``english``. The default is that of
                generation_config.json (``language``, or ``forced_decoder_ids`` in older files). Otherwise, the model detects
                it.
            task: ``"transcribe"``, or ``"translate"`` to translate into English. The default is that of
                generation_config.json (``task``, or ``forced_decoder_ids``), or ``"transcribe"``.
            timestamps: whether the model generates timestamps; see `segments`. The default is ``return_timestamps`` in
                generation_config.json.

        Raises:
            GenerationError: the recording cannot be read, or the model does not support the language or the task.
        """
        before = self._before(prompt) if prompt else []
        how: Any = {"audio": audio, "language": language, "task": task, "timestamps": timestamps}
        return self._text(self.generate(before, tokens, sampling, beams=beams, **how), stop)

    def generate(
        self,
        prompt: Sequence[int],
        tokens: int | None = None,
        sampling: Sampling = GREEDY,
        *,
        stop: Sequence[str] = (),
        beams: Beams | int | None = None,
        audio: AudioLike | None = None,
        language: str | None = None,
        task: Task | None = None,
        timestamps: bool | None = None,
    ) -> Iterator[int]:
        """Generate the tokens of a recording, without timestamps and end tokens.

        Args:
            prompt: the tokens of the text that precedes the recording.
            tokens, sampling, audio, language, task, timestamps: see `write`.
            stop: texts that end each window.
            beams: see `TextModel.generate`. `hypotheses` are those of the last window.

        Raises:
            GenerationError: see `write`.
        """
        if audio is None:
            raise GenerationError(f"{self.folder} contains a speech recognition model: specify a recording")
        self.check(prompt, self.vocabulary, None)
        self._refuse_guidance(sampling)
        search = self._search(beams)
        self.given, self.hypotheses, self.segments = [], [], []
        features = self._features(read_audio(audio, self.sampling_rate))
        frames, size = features.shape[1], self._features.nb_max_frames
        split = (self._special.timestamps if timestamps is None else timestamps) or frames > size
        begin: list[int] = []
        offset = 0
        while offset < frames:
            window = features[:, offset : offset + size]
            window = np.pad(window, ((0, 0), (0, size - window.shape[1])))
            encoded = self._encode(window[None])
            begin = begin or self._begin(encoded, language, task)
            before = [self._special.previous, *prompt] if prompt and not offset else []
            ids = [*before, *begin, *([] if split else [self._special.no_timestamps])]
            self.check(ids, self.vocabulary, self.positions - 1)
            self._decoder.begin(encoded)
            if search is None:
                found = self._decoded(ids, tokens, sampling, split, stop)
            else:
                found = self._best_of_window(search, ids, tokens, sampling, split, stop)
            if not split:
                for token in found:
                    self.given.append(token)
                    yield token
                return
            parts = self._split(list(found))
            for start, end, part in parts.segments:
                part = [token for token in part if token not in self._special.ends]
                self.segments.append(self._segment(offset, start, end, part))
                for token in part:
                    self.given.append(token)
                    yield token
            offset += parts.frames

    def _decoded(
        self, ids: list[int], tokens: int | None, sampling: Sampling, timestamps: bool, stop: Sequence[str]
    ) -> Iterator[int]:
        """Generate the tokens of a window. With timestamps, the end token is one of them."""
        special, sampler, found, fed = self._special, Sampler(sampling, ids), list[int](), ids
        constraints, is_stopped = self.constraints.beside(sampling), self._is_stopped(stop)
        most = self._most(ids, tokens)
        for number in range(1, most + 1):
            logits = self._decoder.run(fed)
            logits = constraints.applied(logits, [*ids, *found], (), len(ids), last=number == most)
            if timestamps:
                self._allow_timestamps(logits, found)
            token = sampler.choose(logits)
            if token in special.ends and not timestamps:
                return
            yield token
            if token in special.ends:
                return
            found.append(token)
            fed = [token]
            if is_stopped(found):
                return

    def _best_of_window(
        self, beams: Beams, ids: list[int], tokens: int | None, sampling: Sampling, timestamps: bool, stop: Sequence[str]
    ) -> Iterator[int]:
        """Generate the tokens of a window by beam search. With timestamps, an end token is the last one."""
        constraints, most = self.constraints.for_beams(sampling), self._most(ids, tokens)
        more: Any = {"restrict": self._allow_timestamps} if timestamps else {}
        found = self._best(beams, ids, most, constraints, (), self._decoder.run_beams, stop, **more)
        yield from found
        if self.hypotheses and timestamps and len(found) < most:
            yield min(self._special.ends)

    def _most(self, ids: Sequence[int], tokens: int | None) -> int:
        """Return the maximum number of tokens of a window after those that begin it."""
        most = self.positions - len(ids)
        return most if tokens is None else min(tokens, most)

    def _allow_timestamps(self, logits: np.ndarray, found: Sequence[int]) -> None:
        """Set the logits of tokens that may not follow to -infinity: timestamps come in pairs, and never decrease."""
        first = self._special.no_timestamps + 1
        logits[first - 1] = -np.inf
        last = bool(found) and found[-1] >= first
        before_last = len(found) < 2 or found[-2] >= first
        if last and before_last:
            logits[first:] = -np.inf
        elif last:
            logits[: min(self._special.ends)] = -np.inf
        if times := [token for token in found if token >= first]:
            logits[first : times[-1] + (0 if last and not before_last else 1)] = -np.inf
        if not found:
            logits[:first] = -np.inf
            logits[first + self._special.max_initial_timestamp + 1 :] = -np.inf
        # A timestamp is chosen if all timestamps together are more likely than any other token.
        largest = logits.max()
        with np.errstate(divide="ignore"):
            if largest > -np.inf and np.log(np.exp(logits[first:] - largest).sum()) > logits[:first].max() - largest:
                logits[:first] = -np.inf

    def _split(self, found: Sequence[int]) -> _Window:
        """Return the segments of a window, which timestamps enclose."""
        first, size = self._special.no_timestamps + 1, self._features.nb_max_frames
        parts = _Window(0)
        begin: int | None = None
        place = 0
        for k, token in enumerate(found):
            if token < first or token == begin:
                continue
            if begin is None:
                begin, place = token, k
            else:
                parts.segments.append((begin - first, token - first, list(found[place + 1 : k])))
                parts.frames = (token - first) * 2
                begin = None
        if begin is None:
            parts.frames = size  # no speech follows
        elif not parts.segments:
            if place < len(found) - 1:
                parts.segments.append((begin - first, None, list(found[place + 1 :])))
            parts.frames = size
        return parts

    def _segment(self, offset: int, start: int, end: int | None, tokens: Sequence[int]) -> Segment:
        features = self._features
        unit, begin = features.chunk_length / self._source_positions, offset * features.hop_length / features.sampling_rate
        last = None if end is None else begin + end * unit
        return Segment(begin + start * unit, last, tokens, self.decode(tokens) if tokens else "")

    def _encode(self, features: np.ndarray) -> dict[str, np.ndarray]:
        try:
            found = self._encoder.run(self._encoded, {self._input: np.ascontiguousarray(features)})
        except (state.Fail, state.InvalidArgument, state.RuntimeException) as error:
            message = f"the encoder cannot process features {list(features.shape)}: the configuration is from another model"
            raise GenerationError(message) from error
        names = self._encoded if len(found) > 1 else [STATES]
        return dict(zip(names, found, strict=True))

    def _begin(self, encoded: Mapping[str, np.ndarray], language: str | None, task: str | None) -> list[int]:
        """Return the tokens that begin each window: the start, the language and the task."""
        special = self._special
        if not special.multilingual:
            if language is not None or task not in (None, "transcribe"):
                raise GenerationError(
                    f"{self.folder} contains an English-only model: it cannot select a language or translate"
                )
            self.language = "en"
            return [special.start]
        if not special.languages:
            raise GenerationError(f"{self.folder / GENERATION} has no lang_to_id, which contains the languages")
        task = task or special.task or "transcribe"
        if task not in ("transcribe", "translate"):
            raise GenerationError(f"the task is {task}; expected transcribe or translate")
        if language is None:
            language = special.language
        if language is None:
            self._decoder.begin(encoded)
            logits = self._decoder.run([special.start])
            name = max(special.languages, key=lambda name: logits[special.languages[name]])
        else:
            code = CODES.get(language.lower(), language)
            name = code if code in special.languages else f"<|{code}|>"
            if name not in special.languages:
                known = ", ".join(key.strip("<|>") for key in special.languages)
                raise GenerationError(f"the language {language} is unknown; expected one of {known}")
        self.language = name.strip("<|>")
        return [special.start, special.languages[name], special.translate if task == "translate" else special.transcribe]

    def _before(self, text: str) -> list[int]:
        special = self._special
        added = {special.start, special.no_timestamps, *special.ends}  # some tokenizers add them
        return [token for token in self.encode(f" {text}", special=False) if token not in added]

    def _configure(self) -> None:
        try:
            config = read_json(self.folder / MODEL)
        except FileNotFoundError:
            raise GenerationError(f"{self.folder} contains no {MODEL}, which describes the model") from None
        settings = with_generation(config, self.folder)
        file, stated = _features(self.folder)
        try:
            self._special = _Special.of(settings)
            self.positions, self.vocabulary = int(config["max_target_positions"]), int(config["vocab_size"])
            self._source_positions, bands = int(config["max_source_positions"]), int(config["num_mel_bins"])
        except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
            cause = f"{type(error).__name__} {error}"
            raise GenerationError(f"{self.folder / GENERATION} does not describe the tokens: {cause}") from error
        try:
            self._features = LogMel.of({"feature_size": bands, **stated})
        except (OverflowError, TypeError, ValueError) as error:
            raise GenerationError(f"{file} does not describe the features: {error}") from error
        if self._features.feature_size != bands:
            message = f"has {self._features.feature_size} features per frame, but the model needs {bands}"
            raise GenerationError(f"{file} {message}")
        if (frames := self._features.nb_max_frames) != 2 * self._source_positions:
            message = f"has windows of {frames} frames, but the model needs {2 * self._source_positions}"
            raise GenerationError(f"{file} {message}")
        if (token := self._special.outside(self.vocabulary)) is not None:
            message = f"has the token {token}, but the vocabulary has {self.vocabulary} tokens"
            raise GenerationError(f"{self.folder / GENERATION} {message}")
        self.constraints = Constraints.of_folder(self.folder, sorted(self._special.ends), self.vocabulary)


def _features(folder: Path) -> tuple[Path, dict[str, Any]]:
    """Return the file with the settings of the feature extraction, and the settings.

    transformers 5 writes them into processor_config.json, and reads them there first.
    """
    path = folder / _PROCESSOR
    found = read_optional_json(path)
    for name in ("feature_extractor", "audio_processor"):
        if isinstance(inner := found.get(name), dict):
            return path, inner
    return folder / _FEATURES, read_optional_json(folder / _FEATURES)


def _genai_files(folder: Path) -> tuple[str, str]:
    path = folder / CONFIG
    try:
        model = read_json(path)["model"]
        return str(model["encoder"]["filename"]), str(model["decoder"]["filename"])
    except (KeyError, TypeError) as error:
        raise GenerationError(f"{path} is not a valid model configuration: {type(error).__name__} {error}") from error
