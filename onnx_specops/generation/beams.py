"""Beam search, as in transformers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np

NONE = np.float32(-1e9)
"""The score of a text that does not exist yet."""

_LARGEST_PENALTY = 64
"""Powers of lengths with larger exponents would overflow."""


@dataclass(frozen=True)
class Hypothesis:
    """A complete text of a beam search.

    Attributes:
        tokens: its tokens without the end token.
        score: its log probability, divided by its length to the power of ``length_penalty``.
    """

    tokens: Sequence[int]
    score: float


@dataclass(frozen=True, kw_only=True)
class Beams:
    """The settings of beam search.

    Args:
        number: the number of beams, at least 1. A single beam is greedy search.
        length_penalty: the exponent of the length, from -64 to 64. The score of a text is divided by the power. Values
            greater than 0 favor long texts.
        early_stopping: when the search stops: ``True`` as soon as `number` texts are complete, ``False`` when a better text
            is unlikely, and ``"never"`` when no better text is possible.
        groups: the number of groups of equal size into which the beams are divided (diverse beam search). Each group
            searches separately.
        diversity_penalty: the number that is subtracted from the score of a token for each beam of an earlier group that has
            this token in the same step. With several groups, it is greater than 0.

    Raises:
        ValueError: a value is out of range.
    """

    number: int
    length_penalty: float = 1.0
    early_stopping: bool | Literal["never"] = False
    groups: int = 1
    diversity_penalty: float = 0.0

    def __post_init__(self) -> None:
        if self.number < 1:
            raise ValueError(f"the number of beams must be at least 1, not {self.number}")
        if not -_LARGEST_PENALTY <= self.length_penalty <= _LARGEST_PENALTY:
            bounds = f"from -{_LARGEST_PENALTY} to {_LARGEST_PENALTY}"
            raise ValueError(f"length_penalty must be {bounds}, not {self.length_penalty}")
        if self.early_stopping not in (True, False, "never"):
            raise ValueError(f"early_stopping must be true, false or never, not {self.early_stopping!r}")
        if self.groups < 1 or self.number % self.groups:
            raise ValueError(f"the number of beams must be a multiple of that of the groups: {self.number}, {self.groups}")
        if self.groups > 1 and not 0 < self.diversity_penalty < np.inf:
            raise ValueError(f"diversity_penalty must be finite and above 0, not {self.diversity_penalty}")

    @classmethod
    def of(
        cls, settings: Mapping[str, Any], number: int, groups: int | None = None, diversity_penalty: float | None = None
    ) -> Beams:
        """Return a beam search with the settings of generation_config.json.

        Args:
            settings: the settings.
            number: the number of beams. The groups of a single beam are ignored.
            groups, diversity_penalty: values instead of ``num_beam_groups`` and ``diversity_penalty``.

        Raises:
            TypeError, ValueError: a setting has an invalid type or value.
        """
        penalty, early = settings.get("length_penalty"), settings.get("early_stopping")
        apart = settings.get("num_beam_groups") if groups is None else groups
        less = settings.get("diversity_penalty") if diversity_penalty is None else diversity_penalty
        return cls(
            number=number,
            length_penalty=1.0 if penalty is None else float(penalty),
            early_stopping=False if early is None else early,
            groups=1 if apart is None or number == 1 else int(apart),
            diversity_penalty=0.0 if less is None else float(less),
        )


NextScores = Callable[[Sequence[Sequence[int]], Sequence[int]], np.ndarray]
"""A function of texts and, for each, the index of the previous text that it continues. It returns the logarithms of the
probabilities of the next token, ``[texts, vocabulary]``.
"""


class Allowed(Protocol):
    """Restricts the next tokens."""

    def __call__(self, scores: np.ndarray, texts: Sequence[Sequence[int]], less: np.ndarray | None = None, /) -> np.ndarray:
        """Return the scores ``[texts, vocabulary]`` of the tokens that may follow the texts, else -infinity.

        ``less`` are the numbers ``[vocabulary]`` that other groups subtract.
        """


def best_texts(
    beams: Beams,
    begin: Sequence[int],
    most: int,
    ends: Collection[int],
    scores_of: NextScores,
    allowed: Allowed = lambda scores, *_: scores,
    is_complete: Callable[[Sequence[int]], bool] = lambda _: False,
) -> list[Hypothesis]:
    """Return the complete texts of one group without ``begin``, the best one first: at most `Beams.number`.

    Args:
        beams: the settings.
        begin: the tokens with which each text begins.
        most: the maximum number of generated tokens.
        ends: the end tokens.
        scores_of: returns the scores of the next tokens.
        allowed: restricts them. By default, all tokens may follow.
        is_complete: a function of the generated tokens. It returns whether they complete a text without an end token, for
            example because they contain a stop word.
    """
    number, first = beams.number, len(begin)
    texts, rows = [list(begin)] * number, list(range(number))
    running = np.full(number, NONE)
    running[0] = 0  # at first, all texts are equal
    best, best_scores, complete = [list(begin)] * number, np.full(number, NONE), np.zeros(number, bool)
    hopeful = True
    for length in range(1, most + 1):
        scores = allowed(scores_of(texts, rows), texts).astype(np.float32) + running[:, None]
        found = largest(scores.ravel(), max(2, 1 + len(ends)) * number)
        tops = scores.ravel()[found]
        extended = [[*texts[place // scores.shape[1]], int(place % scores.shape[1])] for place in found]
        ended = np.array([text[-1] in ends or length == most or is_complete(text[first:]) for text in extended])
        # the most likely texts may be complete, the others only continue
        completed = ended & (np.arange(len(found)) < number)
        divided = tops / np.float32(length**beams.length_penalty)
        closed = not hopeful or (beams.early_stopping is True and complete.all())
        divided = divided + np.where(completed & (not closed), 0, NONE).astype(np.float32)

        continued = tops + ended * NONE
        chosen = largest(continued, number)
        texts, rows = [extended[k] for k in chosen], [int(found[k]) // scores.shape[1] for k in chosen]
        running = continued[chosen]

        merged, states = np.concatenate([best_scores, divided]), np.concatenate([complete, completed])
        kept = largest(merged, number)
        best, best_scores, complete = [[*best, *extended][k] for k in kept], merged[kept], states[kept]

        longest = most if beams.early_stopping == "never" and beams.length_penalty > 0 else length
        possible = running[0] / np.float32(longest**beams.length_penalty)
        hopeful = hopeful and bool((possible > np.where(complete, best_scores.min(), NONE)).any())
        if not hopeful or ended.all() or (beams.early_stopping is True and complete.all()):
            break
    return [
        Hypothesis(text[first : -1 if text[-1] in ends else None], float(score))
        for text, score, whole in zip(best, best_scores, complete, strict=True)
        if whole
    ]


def log_softmax(logits: np.ndarray) -> np.ndarray:
    """Return the log softmax along the last dimension, in float32."""
    shifted = logits.astype(np.float32) - logits.max(-1, keepdims=True)
    return np.asarray(shifted - np.log(np.exp(shifted).sum(-1, keepdims=True)), np.float32)


def largest(values: np.ndarray, count: int) -> np.ndarray:
    """Return the indices of the largest values in descending order. Equal values stay in input order."""
    return np.argsort(-values, kind="stable")[:count]
