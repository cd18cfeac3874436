"""Beam search in groups (diverse beam search), as in transformers 4.53.

transformers 4.57 loads this search from the repository ``transformers-community/group-beam-search``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import numpy as np

from onnx_specops.generation.beams import NONE, Allowed, Beams, Hypothesis, NextScores, largest


def best_texts_of_groups(
    beams: Beams,
    begin: Sequence[int],
    most: int,
    ends: Collection[int],
    scores_of: NextScores,
    allowed: Allowed = lambda scores, *_: scores,
    is_complete: Callable[[Sequence[int]], bool] = lambda _: False,
) -> list[Hypothesis]:
    """Return the complete texts of all groups without ``begin``, the best one first; see `best_texts`."""
    size, first = beams.number // beams.groups, len(begin)
    groups = [_Group(beams, size, most) for _ in range(beams.groups)]
    texts, rows = [list(begin)] * beams.number, list(range(beams.number))
    running = np.full(beams.number, NONE)
    running[::size] = 0  # at first, all texts of a group are equal
    for length in range(1, most + 1):
        scores = scores_of(texts, rows)
        following: list[list[int]] = []
        given: list[int] = []  # the tokens of earlier groups in this step
        for start, group in zip(range(0, beams.number, size), groups, strict=True):
            part = slice(start, start + size)
            if group.is_done:  # its rows remain, but nothing reads them
                following += [[*text, text[-1]] for text in texts[part]]
                rows[part] = range(start, start + size)
                continue
            counts = np.bincount(given, minlength=scores.shape[1]).astype(np.float32)
            less = np.float32(beams.diversity_penalty) * counts if given else None
            likely = allowed(scores[part], texts[part], less).astype(np.float32) + running[part, None]
            found = largest(likely.ravel(), max(2, 1 + len(ends)) * size)
            tops = likely.ravel()[found]
            extended = [[*texts[start + place // scores.shape[1]], int(place % scores.shape[1])] for place in found]
            ended = [text[-1] in ends or is_complete(text[first:]) for text in extended]
            for k in np.flatnonzero(ended[:size]):
                text = extended[k][first:]
                group.add(Hypothesis(text[:-1] if text[-1] in ends else text, group.divided(tops[k], length)))
            # those that end follow only if there are not enough others
            chosen = sorted(range(len(found)), key=lambda k: ended[k])[:size]
            following += [extended[k] for k in chosen]
            rows[part] = [start + int(found[k]) // scores.shape[1] for k in chosen]
            running[part] = [NONE if ended[k] else tops[k] for k in chosen]
            given += [extended[k][-1] for k in chosen]
            group.finish(tops[0], length)
        texts = following
        if all(group.is_done for group in groups):
            break
        if length == most:
            for number, (text, score) in enumerate(zip(texts, running, strict=True)):
                group = groups[number // size]
                if not group.is_done and score > NONE:
                    group.add(Hypothesis(text[first:], group.divided(score, length)))
    return sorted((one for group in groups for one in group.complete), key=lambda one: one.score)[::-1]


class _Group:
    """The complete texts of a group.

    Args:
        beams: the settings.
        size: the number of beams in the group.
        most: the maximum number of generated tokens.
    """

    def __init__(self, beams: Beams, size: int, most: int) -> None:
        self._beams, self._size, self._most = beams, size, most
        self.complete: list[Hypothesis] = []
        self.is_done = False

    def add(self, found: Hypothesis) -> None:
        """Add a complete text. Only the best ones remain."""
        if len(self.complete) < self._size or found.score > self._worst:
            self.complete.append(found)
            if len(self.complete) > self._size:
                self.complete.remove(min(self.complete, key=lambda one: one.score))

    def divided(self, score: np.floating, length: int) -> float:
        """Return the score of a text of a length."""
        return float(score) / length**self._beams.length_penalty

    def finish(self, best: np.floating, length: int) -> None:
        """End the search of the group if its complete texts are the best ones; see ``early_stopping`` of `Beams`."""
        if len(self.complete) < self._size:
            return
        early = self._beams.early_stopping
        longest = self._most if early == "never" and self._beams.length_penalty > 0 else length
        self.is_done = early is True or self._worst >= self.divided(best, longest)

    @property
    def _worst(self) -> float:
        return min(one.score for one in self.complete)
