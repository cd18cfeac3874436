"""Token constraints of a model's generation_config.json, with the names and semantics of transformers."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from onnx_specops.generation.errors import GenerationError, SettingWarning
from onnx_specops.generation.sampling import Sampling
from onnx_specops.generation.settings import generation_file, not_applied, read_optional_json


@dataclass(frozen=True)
class Constraints:
    """The tokens that may follow a sequence.

    Attributes:
        repetition_penalty: divides the logits of previous tokens, or multiplies them if they are negative.
        prompt_penalty: multiplies the logits of the prompt's tokens, or divides them if they are negative.
        no_repeat_ngram_size: no sequence of this many tokens occurs twice; 0 for no limit.
        no_prompt_ngram_size: no sequence of this many tokens is one of the prompt's; 0 for no limit.
        bad_words: sequences of tokens that are not generated.
        biases: sequences of tokens with the number that is added to the logit of the last token after the others.
        least: the minimum number of tokens before an end token, including those before the generated text.
        least_new: the minimum number of generated tokens before an end token. ``None`` if only `least` applies, otherwise
            only this applies.
        ends: the end tokens.
        forced_begin: the first token if it is fixed, such as the language of a translation.
        forced_end: the last token of a text that has the maximum number of tokens. Of several, transformers selects the
            smallest one.
        suppressed: tokens that are never generated.
        not_at_begin: tokens that are not generated as the first token.
        decay: the number of generated tokens after which the logits of end tokens increase, and the base of the increase.
            ``None`` for no increase.
        finite: whether NaN becomes 0, and infinities become the largest and smallest numbers.
        normalized: whether beam search adds the logarithms of probabilities that sum to 1, of the tokens that may follow.
        guidance_scale: the scale of classifier-free guidance, see `Sampling`.
        not_applied: the settings that transformers applies and this package does not.
    """

    repetition_penalty: float = 1.0
    prompt_penalty: float = 1.0
    no_repeat_ngram_size: int = 0
    no_prompt_ngram_size: int = 0
    bad_words: Sequence[Sequence[int]] = ()
    biases: Sequence[tuple[Sequence[int], float]] = ()
    least: int = 0
    least_new: int | None = None
    ends: Sequence[int] = ()
    forced_begin: int | None = None
    forced_end: int | None = None
    suppressed: Sequence[int] = ()
    not_at_begin: Sequence[int] = ()
    decay: tuple[int, float] | None = None
    finite: bool = False
    normalized: bool = False
    guidance_scale: float = 1.0
    not_applied: Sequence[str] = ()

    @classmethod
    def of(cls, settings: Mapping[str, Any], ends: Sequence[int], *, guides: bool = False) -> Constraints:
        """Return the constraints of a configuration with the end tokens ``ends``, for a model that supports guidance or not.

        Raises:
            TypeError, ValueError: a setting has an invalid type or value.
        """
        least_new = settings.get("min_new_tokens")
        words = [[int(token) for token in word] for word in settings.get("bad_words_ids") or ()]
        forced, last = settings.get("forced_bos_token_id"), settings.get("forced_eos_token_id")
        return cls(
            repetition_penalty=_penalty(settings, "repetition_penalty"),
            prompt_penalty=_penalty(settings, "encoder_repetition_penalty"),
            no_repeat_ngram_size=int(settings.get("no_repeat_ngram_size") or 0),
            no_prompt_ngram_size=int(settings.get("encoder_no_repeat_ngram_size") or 0),
            bad_words=[word for word in words if word and word not in [[end] for end in ends]],
            biases=_biases(settings.get("sequence_bias")),
            least=int(settings.get("min_length") or 0),
            least_new=None if least_new is None else int(least_new),
            ends=tuple(ends),
            forced_begin=None if forced is None else int(forced),
            forced_end=None if last is None else int(min(last) if isinstance(last, list) else last),
            suppressed=[int(token) for token in settings.get("suppress_tokens") or ()],
            not_at_begin=[int(token) for token in settings.get("begin_suppress_tokens") or ()],
            decay=_decay(settings.get("exponential_decay_length_penalty")),
            finite=settings.get("remove_invalid_values") is True,
            normalized=settings.get("renormalize_logits") is True,
            guidance_scale=_scale(settings.get("guidance_scale")) if guides else 1.0,
            not_applied=not_applied(settings, guides=guides),
        )

    @classmethod
    def of_folder(
        cls, folder: Path, ends: Sequence[int], vocabulary: int, forced_begin: int | None = None, *, guides: bool = False
    ) -> Constraints:
        """Return the constraints of a folder's generation_config.json, or of config.json in a folder without that file.

        A `SettingWarning` names the settings of the file that are not applied.

        Args:
            folder: the folder of a model.
            ends: its end tokens.
            vocabulary: the number of tokens in its vocabulary.
            forced_begin: the first token, instead of the configured one.
            guides: whether the model supports classifier-free guidance.

        Raises:
            GenerationError: the file is not a JSON object, or a setting has an invalid type or value.
        """
        path = generation_file(folder)
        settings = read_optional_json(path)
        if forced_begin is not None:
            settings["forced_bos_token_id"] = forced_begin
        try:
            found = cls.of(settings, ends, guides=guides)
            (found if forced_begin is None else replace(found, forced_begin=None)).check(vocabulary)
        except (OverflowError, TypeError, ValueError) as error:
            raise GenerationError(f"{path} has an invalid setting: {type(error).__name__} {error}") from error
        if found.not_applied:
            what = ", ".join(found.not_applied)
            warnings.warn(f"{path} has settings that are not applied: {what}", SettingWarning, stacklevel=4)
        return found

    def check(self, vocabulary: int) -> None:
        """Raise `ValueError` if a token that is forced, or whose logit changes, is not in the vocabulary."""
        for name, tokens in (
            ("forced_bos_token_id", [self.forced_begin]),
            ("forced_eos_token_id", [self.forced_end]),
            ("sequence_bias", [word[-1] for word, _ in self.biases]),
        ):
            if beyond := [token for token in tokens if token is not None and not 0 <= token < vocabulary]:
                raise ValueError(f"{name} has the token {beyond[0]}, but the vocabulary has {vocabulary} tokens")

    def beside(self, sampling: Sampling) -> Constraints:
        """Return the constraints for a text with its own sampling: a repetition penalty there replaces the one here."""
        return self if sampling.repetition_penalty is None else replace(self, repetition_penalty=1.0)

    def for_beams(self, sampling: Sampling) -> Constraints:
        """Return the constraints for beam search: a repetition penalty of the sampling replaces the one here.

        Raises:
            GenerationError: beam search does not support the sampling.
        """
        if sampling.do_sample or sampling.presence_penalty or sampling.frequency_penalty:
            raise GenerationError("beam search does not support sampling, nor penalties other than the repetition penalty")
        penalty = sampling.repetition_penalty
        return self if penalty is None else replace(self, repetition_penalty=penalty)

    def applied(
        self,
        logits: np.ndarray,
        ids: Sequence[int],
        prompt: Sequence[int] = (),
        before: int = 1,
        *,
        last: bool = False,
        less: np.ndarray | None = None,
    ) -> np.ndarray:
        """Return the logits ``[vocabulary]`` of the next token, with -infinity for tokens that may not follow ``ids``.

        Args:
            logits: the logits of the model.
            ids: all previous tokens, beginning with the decoder's start token, or with the prompt of a single decoder.
            prompt: the tokens of the prompt.
            before: the number of tokens in ``ids`` before the generated text.
            last: whether the text has its maximum number of tokens after this one.
            less: the numbers ``[vocabulary]`` by which other groups of a beam search lower the logits.
        """
        scores = logits.astype(np.float32)
        for word, bias in self.biases:
            if _completes(word, ids):
                scores[word[-1]] += np.float32(bias)
        if less is not None:
            scores -= less
        for penalty, tokens in ((1 / self.prompt_penalty, prompt), (self.repetition_penalty, ids)):
            if penalty != 1.0 and tokens:
                given = np.unique(np.asarray(tokens))
                old = scores[given]
                scores[given] = np.where(old < 0, old * penalty, old / penalty)
        repeated = [*following(ids, ids, self.no_repeat_ngram_size), *following(prompt, ids, self.no_prompt_ngram_size)]
        _forbid(scores, [*repeated, *(word[-1] for word in self.bad_words if _completes(word, ids))])
        if len(ids) < (self.least if self.least_new is None else before + self.least_new):
            _forbid(scores, self.ends)
        for forced, applies in ((self.forced_begin, len(ids) == 1), (self.forced_end, last)):
            if forced is not None and applies:
                scores[:] = -np.inf
                scores[forced] = 0
        if self.finite:
            scores = np.nan_to_num(scores)
        if self.decay is not None and (over := len(ids) - before - self.decay[0]) > 0:
            given = np.array([end for end in self.ends if 0 <= end < len(scores) and np.isfinite(scores[end])], np.int64)
            scores[given] += np.abs(scores[given]) * np.float32(self.decay[1] ** over - 1)
        begins = len(ids) == (before if before > 1 or self.forced_begin is None else before + 1)
        _forbid(scores, [*self.suppressed, *(self.not_at_begin if begins else ())])
        return scores


def _forbid(scores: np.ndarray, tokens: Sequence[int]) -> None:
    scores[[token for token in tokens if 0 <= token < len(scores)]] = -np.inf


def _completes(word: Sequence[int], ids: Sequence[int]) -> bool:
    """Whether all tokens of a word but the last one precede the next token; as in transformers, never all of the text."""
    size = len(word) - 1
    return size == 0 or (size < len(ids) and list(ids[len(ids) - size :]) == list(word[:-1]))


def _biases(stated: Any) -> list[tuple[list[int], float]]:
    if stated is None:
        return []
    if not isinstance(stated, list) or not all(isinstance(one, list) and len(one) == 2 and one[0] for one in stated):
        raise ValueError("sequence_bias is no list of tokens with a number each")
    found = [([int(token) for token in word], float(bias)) for word, bias in stated]
    if any(token < 0 for word, _ in found for token in word):
        raise ValueError("sequence_bias has a negative token")
    return list({tuple(word): (word, bias) for word, bias in found}.values())  # the last one of equal words


def _decay(stated: Any) -> tuple[int, float] | None:
    if stated is None:
        return None
    start, factor = stated
    return int(start), float(factor)


def _scale(stated: Any) -> float:
    found = 1.0 if stated is None else float(stated)
    if not math.isfinite(found):
        raise ValueError(f"guidance_scale is {found}; expected a finite number")
    return found


def _penalty(settings: Mapping[str, Any], name: str) -> float:
    stated = settings.get(name)
    found = 1.0 if stated is None else float(stated)
    if not 0 < found < math.inf:
        raise ValueError(f"{name} is {found}; expected a positive number")
    return found


def following(text: Sequence[int], ids: Sequence[int], size: int) -> list[int]:
    """Return the tokens that, after ``ids``, complete a sequence of ``size`` tokens of ``text``; none for a size of 0."""
    if not 0 < size <= len(ids) + 1:
        return []
    last = list(ids[len(ids) - size + 1 :])
    return [text[k + size - 1] for k in range(len(text) - size + 1) if list(text[k : k + size - 1]) == last]
