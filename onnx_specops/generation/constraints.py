"""Token constraints of a model's generation_config.json, with the names and semantics of transformers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from onnx_specops.generation.errors import GenerationError
from onnx_specops.generation.sampling import Sampling
from onnx_specops.generation.settings import generation_file, read_optional_json


@dataclass(frozen=True)
class Constraints:
    """The tokens that may follow a sequence.

    Attributes:
        repetition_penalty: divides the logits of previous tokens, or multiplies them if they are negative.
        prompt_penalty: multiplies the logits of the prompt's tokens, or divides them if they are negative.
        no_repeat_ngram_size: no sequence of this many tokens occurs twice; 0 for no limit.
        no_prompt_ngram_size: no sequence of this many tokens is one of the prompt's; 0 for no limit.
        bad_words: sequences of tokens that are not generated.
        least: the minimum number of tokens before an end token, including those before the generated text.
        least_new: the minimum number of generated tokens before an end token. ``None`` if only `least` applies, otherwise
            only this applies.
        ends: the end tokens.
        forced_begin: the first token if it is fixed, such as the language of a translation.
        forced_end: the last token of a text that has the maximum number of tokens. Of several, transformers selects the
            smallest one.
        suppressed: tokens that are not generated.
        not_at_begin: tokens that are not generated first.
    """

    repetition_penalty: float = 1.0
    prompt_penalty: float = 1.0
    no_repeat_ngram_size: int = 0
    no_prompt_ngram_size: int = 0
    bad_words: Sequence[Sequence[int]] = ()
    least: int = 0
    least_new: int | None = None
    ends: Sequence[int] = ()
    forced_begin: int | None = None
    forced_end: int | None = None
    suppressed: Sequence[int] = ()
    not_at_begin: Sequence[int] = ()

    @classmethod
    def of(cls, settings: Mapping[str, Any], ends: Sequence[int]) -> Constraints:
        """Return the constraints of a configuration with the end tokens ``ends``.

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
            least=int(settings.get("min_length") or 0),
            least_new=None if least_new is None else int(least_new),
            ends=tuple(ends),
            forced_begin=None if forced is None else int(forced),
            forced_end=None if last is None else int(min(last) if isinstance(last, list) else last),
            suppressed=[int(token) for token in settings.get("suppress_tokens") or ()],
            not_at_begin=[int(token) for token in settings.get("begin_suppress_tokens") or ()],
        )

    @classmethod
    def of_folder(cls, folder: Path, ends: Sequence[int], forced_begin: int | None = None) -> Constraints:
        """Return the constraints of a folder's generation_config.json, or of config.json in a folder without that file.

        Args:
            folder: the folder of a model.
            ends: its end tokens.
            forced_begin: the first token, instead of the configured one.

        Raises:
            GenerationError: the file is not a JSON object, or a setting has an invalid type or value.
        """
        path = generation_file(folder)
        settings = read_optional_json(path)
        if forced_begin is not None:
            settings["forced_bos_token_id"] = forced_begin
        try:
            return cls.of(settings, ends)
        except (OverflowError, TypeError, ValueError) as error:
            raise GenerationError(f"{path} has an invalid setting: {type(error).__name__} {error}") from error

    def beside(self, sampling: Sampling) -> Constraints:
        """Return the constraints for a text with its own sampling: a repetition penalty there replaces the one here."""
        return self if sampling.repetition_penalty is None else replace(self, repetition_penalty=1.0)

    def applied(self, logits: np.ndarray, ids: Sequence[int], prompt: Sequence[int] = (), before: int = 1) -> np.ndarray:
        """Return the logits ``[vocabulary]`` of the next token, with -infinity for tokens that may not follow ``ids``.

        Args:
            logits: the logits of the model.
            ids: all previous tokens, beginning with the decoder's start token, or with the prompt of a single decoder.
            prompt: the tokens of the prompt.
            before: the number of tokens in ``ids`` before the generated text.
        """
        if self.forced_begin is not None and len(ids) == 1:
            only = np.full_like(logits, -np.inf)
            only[self.forced_begin] = 0
            return only
        scores = logits.copy()
        for penalty, tokens in ((1 / self.prompt_penalty, prompt), (self.repetition_penalty, ids)):
            if penalty != 1.0 and tokens:
                given = np.unique(np.asarray(tokens))
                old = scores[given]
                scores[given] = np.where(old < 0, old * penalty, old / penalty)
        begins = len(ids) == (before if before > 1 or self.forced_begin is None else before + 1)
        repeated = [*following(ids, ids, self.no_repeat_ngram_size), *following(prompt, ids, self.no_prompt_ngram_size)]
        banned = [*repeated, *self._bad(ids), *self.suppressed, *(self.not_at_begin if begins else ())]
        if len(ids) < (self.least if self.least_new is None else before + self.least_new):
            banned += self.ends
        scores[[token for token in banned if 0 <= token < len(scores)]] = -np.inf
        return scores

    def _bad(self, ids: Sequence[int]) -> list[int]:
        return [word[-1] for word in self.bad_words if list(ids[len(ids) - len(word) + 1 :]) == word[:-1] or len(word) == 1]


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
