"""Encoder-decoder models of text, for translation, summarization and the tasks of T5."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import onnxruntime as ort

from onnx_specops.generation.beams import Beams
from onnx_specops.generation.constraints import Constraints
from onnx_specops.generation.decoders import MASKS, STATES, StatefulDecoder, check_layers, check_vocabulary
from onnx_specops.generation.errors import GenerationError
from onnx_specops.generation.sampling import GREEDY, Sampler, Sampling
from onnx_specops.generation.settings import MODEL, VOCABULARIES, read_json, tokens_of, with_generation
from onnx_specops.generation.text_model import TextModel
from onnx_specops.runtime.session import Kernels

ENCODER, DECODER = "openvino_encoder_model.onnx", "openvino_decoder_model.onnx"

_POSITIONS = ("max_position_embeddings", "max_target_positions")


class EncoderDecoder(TextModel):
    """An encoder-decoder model with its tokenizer.

    The settings of generation_config.json for forced, suppressed and repeated tokens apply.

    Args:
        folder: the output folder of ``specops convert FOLDER -o OUT``. It contains openvino_encoder_model.onnx,
            openvino_decoder_model.onnx, config.json, the tokenizer (see `TextModel`) and, optionally,
            generation_config.json.
        forced_bos_token_id: the first token of every text, which overrides the configured one. In multilingual translation
            models, it selects the target language.
        kernels, sess_options: see `onnx_specops.InferenceSession`.

    Attributes:
        constraints: the settings of generation_config.json that restrict the next token.
        start: the start token of the decoder.
        positions: the maximum number of tokens in a prompt or an answer, or ``None`` if it is unspecified.
        vocabulary: the number of tokens in the vocabulary.

    Raises:
        GenerationError: files are missing or inconsistent.
    """

    goes_on = False

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        forced_bos_token_id: int | None = None,
        kernels: Kernels = "auto",
        sess_options: ort.SessionOptions | None = None,
    ) -> None:
        super().__init__(Path(folder), kernels)
        self._encoder, decoder = (self._open(name, sess_options) for name in (ENCODER, DECODER))
        self._encoder_names = {value.name for value in self._encoder.get_inputs()}
        if "input_features" in self._encoder_names:
            message = f"{self.folder} contains a speech recognition model, which has no text prompt"
            raise GenerationError(f"{message}: load it with open_model, and with the config.json of a Whisper model")
        if unknown := self._encoder_names - {"input_ids", "attention_mask"}:
            raise GenerationError(f"{ENCODER} has inputs other than tokens and their mask: {', '.join(sorted(unknown))}")
        self._configure(forced_bos_token_id)
        self._decoder = StatefulDecoder(decoder, DECODER)
        check_vocabulary(decoder, DECODER, self._targets)
        check_layers(decoder, DECODER, self._config)

    def generate(
        self,
        prompt: Sequence[int],
        tokens: int,
        sampling: Sampling = GREEDY,
        *,
        stop: Sequence[str] = (),
        beams: Beams | int | None = None,
    ) -> Iterator[int]:
        """Generate the tokens that answer a prompt. The end token is not returned.

        Args:
            prompt: the tokens of the prompt.
            tokens: the maximum number of new tokens, limited to `positions`.
            sampling: the sampling settings, applied to the tokens that `constraints` allows. The default is greedy search.
                Penalties apply to the tokens of the answer only.
            stop, beams: see `TextModel.generate`.

        Raises:
            GenerationError: the prompt is empty or too long, or contains tokens outside the vocabulary.
        """
        if not prompt:
            raise GenerationError("the prompt has no tokens")
        self.check(prompt, self.vocabulary, self.positions)
        self._refuse_guidance(sampling)
        search = self._search(beams)
        given = {"input_ids": np.array([prompt], np.int64), "attention_mask": np.ones((1, len(prompt)), np.int64)}
        states = self._encoder.run(None, {name: given[name] for name in self._encoder_names})[0]
        self._decoder.begin({STATES: states, **dict.fromkeys(MASKS, given["attention_mask"])})
        self.given, self.hypotheses = [], []
        most = tokens if self.positions is None else min(tokens, self.positions - 1)
        if search is not None:
            constraints = self.constraints.for_beams(sampling)
            for token in self._best(search, [self.start], most, constraints, prompt, self._decoder.run_beams, stop):
                self.given.append(token)
                yield token
            return
        sampler = Sampler(sampling)
        fed = [self.start]
        constraints, is_stopped = self.constraints.beside(sampling), self._is_stopped(stop)
        for number in range(1, most + 1):
            logits = self._decoder.run(fed)
            allowed = constraints.applied(logits, [self.start, *self.given], prompt, last=number == most)
            token = sampler.choose(allowed)
            if token in constraints.ends:
                return
            self.given.append(token)
            fed = [token]
            yield token
            if is_stopped(self.given):
                return

    def _configure(self, forced: int | None) -> None:
        try:
            config = read_json(self.folder / MODEL)
        except FileNotFoundError:
            raise GenerationError(f"{self.folder} contains no {MODEL}, which specifies the first and last tokens") from None
        settings = with_generation(config, self.folder)
        try:
            start = settings.get("decoder_start_token_id")
            self.start = int(settings["bos_token_id"] if start is None else start)
            ends = tokens_of(settings["eos_token_id"])
            self.vocabulary = int(settings["vocab_size"])
            self._config = config
            self._targets = [int(config[name]) for name in VOCABULARIES if config.get(name) is not None]
            found = [int(config[name]) for name in _POSITIONS if config.get(name)]
        except (KeyError, OverflowError, TypeError, ValueError) as error:
            cause = f"{type(error).__name__} {error}"
            raise GenerationError(f"{self.folder / MODEL} does not specify the first and last tokens: {cause}") from error
        if start is None and config.get("is_encoder_decoder") is not True:
            kind = config.get("model_type")
            message = f"{self.folder / MODEL} is not that of an encoder-decoder: its model_type is {kind!r}"
            raise GenerationError(f"{message}, and it states no decoder_start_token_id; use the {MODEL} of the model")
        self.constraints = Constraints.of_folder(self.folder, ends, self.vocabulary, forced)
        self.positions = min(found, default=None)
        begin = [token for token in (self.start, self.constraints.forced_begin) if token is not None]
        if beyond := [token for token in begin if not 0 <= token < self.vocabulary]:
            raise GenerationError(
                f"the first token of a text is {beyond[0]}, but the vocabulary has {self.vocabulary} tokens"
            )
