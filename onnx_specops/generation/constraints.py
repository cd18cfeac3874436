"""What a model's generation_config.json lets it say, by the names and rules of transformers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Constraints:
    """Which tokens may follow others.

    Attributes:
        repetition_penalty: what the logits of tokens that were given are divided by, or multiplied where they are negative.
        no_repeat_ngram_size: so many tokens stand in that order once; 0 for no limit.
        bad_words: sequences of tokens that do not occur.
        least: how many tokens there are before one ends the text.
        ends: those that end it.
        forced_begin: the first one, where it is always the same: the language of a translation.
        suppressed: tokens that do not occur.
        not_at_begin: tokens that the text does not begin with.
    """

    repetition_penalty: float = 1.0
    no_repeat_ngram_size: int = 0
    bad_words: Sequence[Sequence[int]] = ()
    least: int = 0
    ends: Sequence[int] = ()
    forced_begin: int | None = None
    suppressed: Sequence[int] = ()
    not_at_begin: Sequence[int] = ()

    @classmethod
    def of(cls, settings: Mapping[str, Any], ends: Sequence[int]) -> Constraints:
        """Those of a configuration, in which tokens end a text.

        Raises:
            TypeError, ValueError: a setting is not what it should be.
        """
        # The token that generation starts with counts as one of `min_length`, not of `min_new_tokens`.
        least = max(int(settings.get("min_length") or 0), int(settings.get("min_new_tokens") or -1) + 1)
        words = [[int(token) for token in word] for word in settings.get("bad_words_ids") or ()]
        forced = settings.get("forced_bos_token_id")
        return cls(
            repetition_penalty=float(settings.get("repetition_penalty") or 1.0),
            no_repeat_ngram_size=int(settings.get("no_repeat_ngram_size") or 0),
            bad_words=[word for word in words if word and word not in [[end] for end in ends]],
            least=least,
            ends=tuple(ends),
            forced_begin=None if forced is None else int(forced),
            suppressed=[int(token) for token in settings.get("suppress_tokens") or ()],
            not_at_begin=[int(token) for token in settings.get("begin_suppress_tokens") or ()],
        )

    def applied(self, logits: np.ndarray, ids: Sequence[int]) -> np.ndarray:
        """The logits ``[vocabulary]`` of the next token, those of tokens that may not follow ``ids`` -infinity.

        Args:
            logits: what the model says.
            ids: all tokens before, of which the first is the one that generation starts with.
        """
        if self.forced_begin is not None and len(ids) == 1:
            only = np.full_like(logits, -np.inf)
            only[self.forced_begin] = 0
            return only
        scores = logits.copy()
        if self.repetition_penalty != 1.0:
            given = np.unique(np.asarray(ids))
            old = scores[given]
            scores[given] = np.where(old < 0, old * self.repetition_penalty, old / self.repetition_penalty)
        begins = len(ids) == (1 if self.forced_begin is None else 2)
        banned = [*self._repeating(ids), *self._bad(ids), *self.suppressed, *(self.not_at_begin if begins else ())]
        if len(ids) < self.least:
            banned += self.ends
        scores[[token for token in banned if 0 <= token < len(scores)]] = -np.inf
        return scores

    def _repeating(self, ids: Sequence[int]) -> list[int]:
        size = self.no_repeat_ngram_size
        if not 0 < size <= len(ids):
            return []
        last = list(ids[len(ids) - size + 1 :])
        return [ids[k + size - 1] for k in range(len(ids) - size + 1) if list(ids[k : k + size - 1]) == last]

    def _bad(self, ids: Sequence[int]) -> list[int]:
        return [word[-1] for word in self.bad_words if list(ids[len(ids) - len(word) + 1 :]) == word[:-1] or len(word) == 1]
