"""Sampling of the next token, as in OpenVINO GenAI: penalties, temperature and filters.

The sampler applies the penalties, ``top_k``, the temperature, ``min_p`` and ``top_p``, in this order, and samples a token.
For a given seed, the sampled tokens are identical to those of OpenVINO GenAI: the generator is C++'s ``std::mt19937``, each
token uses one 32-bit number, and the candidates are in the same order.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """The sampling settings.

    Args:
        do_sample: whether to sample. If false, the most likely token is chosen (greedy search).
        temperature: the sampling temperature, greater than 0. It divides the logits.
        top_k: sample from the ``top_k`` most likely tokens. 0 means all tokens.
        top_p: sample from the smallest set of most likely tokens whose total probability exceeds ``top_p``, a value greater
            than 0 and at most 1.
        min_p: sample from the tokens whose probability is at least ``min_p`` times that of the most likely token. The value
            is at least 0 and less than 1.
        repetition_penalty: a factor greater than 0 that divides the positive logits of previous tokens and multiplies the
            negative ones. The default is the value in generation_config.json, or 1.
        presence_penalty: a number from -2 to 2 that is subtracted from the logits of generated tokens, or added to them if
            they are negative.
        frequency_penalty: like ``presence_penalty``, but applied once for each occurrence of the token.
        seed: the seed of the random number generator.
        guidance_scale: the scale of classifier-free guidance, for decoder-only models of text. The default is the value in
            generation_config.json, or 1. Each score becomes ``negative + guidance_scale * (score - negative)``, where
            ``negative`` is the score of the same token after the negative prompt and the generated text. Scores are
            logarithms of probabilities. Values above 1 strengthen the effect of the prompt.
        negative_prompt: the tokens of the negative prompt. The default is the last token of the prompt.

    Raises:
        ValueError: a value is out of range.
    """

    do_sample: bool = False
    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    repetition_penalty: float | None = None
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    seed: int = 0
    guidance_scale: float | None = None
    negative_prompt: Sequence[int] = ()

    def __post_init__(self) -> None:
        for name, fits, what in (
            ("temperature", self.temperature > 0, "above 0"),
            ("top_k", self.top_k >= 0, "0 or more"),
            ("top_p", 0 < self.top_p <= 1, "above 0 and at most 1"),
            ("min_p", 0 <= self.min_p < 1, "at least 0 and below 1"),
            ("repetition_penalty", self.repetition_penalty is None or self.repetition_penalty > 0, "above 0"),
            ("presence_penalty", abs(self.presence_penalty) <= 2, "from -2 to 2"),
            ("frequency_penalty", abs(self.frequency_penalty) <= 2, "from -2 to 2"),
            ("guidance_scale", self.guidance_scale is None or math.isfinite(self.guidance_scale), "finite"),
            ("seed", 0 <= self.seed < 2**32, "from 0 to 4294967295"),
        ):
            if not fits:
                raise ValueError(f"{name} must be {what}, not {getattr(self, name)}")


class Sampler:
    """Chooses the tokens of a text.

    Args:
        sampling: the sampling settings.
        prompt: the tokens of the prompt, to which the repetition penalty also applies.
    """

    def __init__(self, sampling: Sampling, prompt: Iterable[int] = ()) -> None:
        self._how = sampling
        self._prompt = frozenset(prompt)
        self._counts: Counter[int] = Counter()
        self._draws = np.random.MT19937()
        self._draws._legacy_seeding(sampling.seed)  # the seeding of std::mt19937

    def choose(self, logits: np.ndarray) -> int:
        """Choose the next token.

        Args:
            logits: ``[vocabulary]``, with -infinity for forbidden tokens.
        """
        scores = self._penalised(logits.astype(np.float32))
        token = self._sample(scores) if self._how.do_sample else int(scores.argmax())
        self._counts[token] += 1
        return token

    def _penalised(self, scores: np.ndarray) -> np.ndarray:
        how = self._how
        if how.repetition_penalty not in (None, 1.0):
            given = _indices(self._prompt | self._counts.keys())
            old = scores[given]
            penalty = np.float32(how.repetition_penalty)
            scores[given] = np.where(old >= 0, old / penalty, old * penalty)
        if self._counts and (how.presence_penalty or how.frequency_penalty):
            given = _indices(self._counts)
            often = np.array(list(self._counts.values()), np.float32)
            for less in (np.float32(how.presence_penalty), np.float32(how.frequency_penalty) * often):
                old = scores[given]
                scores[given] = np.where(old >= 0, old - less, old + less)
        return scores

    def _sample(self, scores: np.ndarray) -> int:
        how = self._how
        tokens = np.arange(len(scores))
        if 0 < how.top_k < len(scores):
            tokens = _top_k(scores, how.top_k)
        kept = scores[tokens]
        largest = kept.max()
        if not np.isfinite(largest):
            return int(scores.argmax())
        # outside the range of float32, the factor would be 0 or infinite, and products of both are NaN
        factor = np.float32(min(max(1 / how.temperature, 1e-30), 1e30))
        weights = np.exp((kept - largest) * factor, dtype=np.float32)
        if how.min_p or how.top_p != 1.0:
            weights /= _sum(weights)
        if how.min_p:
            fits = weights >= np.float32(how.min_p) * weights.max()
            tokens, weights = tokens[fits], weights[fits]
        if how.top_p != 1.0:
            order = np.argsort(-weights, kind="stable")
            reached = np.cumsum(weights[order], dtype=np.float32) > how.top_p
            count = int(reached.argmax()) + 1 if reached.any() else len(order)
            tokens, weights = tokens[order[:count]], weights[order[:count]]
        below = np.cumsum(weights, dtype=np.float32) > below_one(int(self._draws.random_raw())) * _sum(weights)
        return int(tokens[below.argmax() if below.any() else -1])


def below_one(bits: int) -> np.float32:
    """Convert a 32-bit number to a float32 in [0, 1), as ``std::uniform_real_distribution<float>`` does."""
    found = np.float32(bits) / np.float32(2**32)
    return found if found < 1 else np.nextafter(np.float32(1), np.float32(0))


def _sum(weights: np.ndarray) -> np.float32:
    """Add the elements in order, rounding to float32 after each addition."""
    return np.float32(np.cumsum(weights, dtype=np.float32)[-1])


def _indices(tokens: Iterable[int]) -> np.ndarray:
    return np.fromiter(tokens, np.int64)


def _top_k(scores: np.ndarray, count: int) -> np.ndarray:
    """Return the tokens with the largest scores, in the order of a heap in C++'s standard library.

    The heap starts with the first ``count`` tokens. Each later token that is larger than the smallest one replaces it.
    """
    heap = [(float(score), token) for token, score in enumerate(scores[:count])]
    for parent in range(count // 2 - 1, -1, -1):
        _sink(heap, parent, count, heap[parent])
    start = count
    while True:
        larger = np.flatnonzero(scores[start:] > heap[0][0])
        if not larger.size:
            return np.array([token for _, token in heap])
        token = start + int(larger[0])
        last = heap[-1]
        _sink(heap, 0, count - 1, last)
        _rise(heap, count - 1, 0, (float(scores[token]), token))
        start = token + 1


def _sink(heap: list[tuple[float, int]], hole: int, length: int, value: tuple[float, int]) -> None:
    """Move smaller children up until a leaf is free, and insert a value above it (``std::__adjust_heap``)."""
    top, child = hole, hole
    while child < (length - 1) // 2:
        child = 2 * (child + 1)
        if heap[child][0] > heap[child - 1][0]:
            child -= 1
        heap[hole] = heap[child]
        hole = child
    if length % 2 == 0 and child == (length - 2) // 2:
        child = 2 * (child + 1)
        heap[hole] = heap[child - 1]
        hole = child - 1
    _rise(heap, hole, top, value)


def _rise(heap: list[tuple[float, int]], hole: int, top: int, value: tuple[float, int]) -> None:
    """Move larger parents down, and insert a value in the free slot (``std::__push_heap``)."""
    parent = (hole - 1) // 2
    while hole > top and heap[parent][0] > value[0]:
        heap[hole] = heap[parent]
        hole, parent = parent, (parent - 1) // 2
    heap[hole] = value


GREEDY = Sampling()


def until(pieces: Iterable[str], stops: Sequence[str]) -> Iterable[str]:
    """Yield the pieces of a text up to the first stop word, which is not returned.

    Text that may be the beginning of a stop word is delayed.
    """
    held = ""
    for piece in pieces:
        held += piece
        found = [place for stop in stops if (place := held.find(stop)) >= 0]
        if found:
            if held[: min(found)]:
                yield held[: min(found)]
            return
        keep = max((_overlap(held, stop) for stop in stops), default=0)
        if len(held) > keep:
            yield held[: len(held) - keep]
            held = held[len(held) - keep :]
    if held:
        yield held


def _overlap(text: str, stop: str) -> int:
    """Return the number of characters at the end of a text that begin a stop word."""
    return next((size for size in range(min(len(text), len(stop) - 1), 0, -1) if text.endswith(stop[:size])), 0)
