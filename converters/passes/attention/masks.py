"""What a mask lets be seen, found out by trying."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from converters.passes.attention.matching import MASKED, NoFit
from converters.passes.attention.probing import ProbeError
from converters.passes.attention.setting import Inputs, Setting


@dataclass(frozen=True)
class Sight:
    """What the tokens of a run see: those up to themselves that the attention_mask has.

    Attributes:
        window: how many of them, the last; -1 for all.
        padding: whether the attention_mask is heeded.
    """

    window: int
    padding: bool


class Masks:
    """Says what masks let be seen; each mask once.

    Args:
        inputs: the graph's inputs.
        positions: the most tokens that the model is made for, or ``None`` where that is unknown.
        most, least: where it is unknown, the numbers of tokens that masks are tried at: the most that a mask takes.
    """

    def __init__(self, inputs: Inputs, positions: int | None, *, most: int, least: int) -> None:
        self._inputs = inputs
        self._totals = [most >> shift for shift in range(most.bit_length()) if most >> shift >= least]
        if positions is not None:
            self._totals = [positions]
        self._found: dict[tuple[ir.Value, bool], Sight | NoFit] = {}

    def sight(self, mask: ir.Value | None, is_condition: bool) -> Sight:
        """What a mask lets be seen.

        Raises:
            NoFit: something else than tokens before, or not by hiding the others.
        """
        if mask is None:
            raise NoFit("it sees tokens that come later")
        key = (mask, is_condition)
        if key not in self._found:
            try:
                self._found[key] = self._probed(mask, is_condition)
            except ProbeError as error:
                self._found[key] = NoFit(f"its mask is not known: {error}")
            except NoFit as error:
                self._found[key] = error
        found = self._found[key]
        if isinstance(found, NoFit):
            raise found
        return found

    def _probed(self, mask: ir.Value, is_condition: bool) -> Sight:
        last = self._last(mask, is_condition)
        window = -1 if last.all() else int(last.sum())
        near = [Setting(2, 3, 5), Setting(2, 4, 0), Setting(1, 1, 2)]
        if window > 0:
            past = max(window - 2, 0)
            near += [Setting(1, 5, past), Setting(1, 1, past), Setting(1, 1, past + 1), Setting(1, 1, past + 2)]
            if window <= 4096:
                near.append(Setting(1, window + 3, 2))
        for setting in near:
            self._check(self._seen(mask, is_condition, setting), _seen(setting, window), setting, None)
        padding = False
        for rows in ([1, 1, 1, 0, 0, 1, 1, 1], [0, 0, 1, 1, 1, 1, 1, 1]):
            given = np.array([rows, [1] * 8], np.int64)
            setting = Setting(2, 3, 5, mask=given, positions=np.maximum(given.cumsum(1) - 1, 0)[:, -3:])
            seen = self._seen(mask, is_condition, setting)
            heeded = _seen(setting, window) & (given[:, None] > 0)
            if not np.array_equal(seen, _seen(setting, window)):
                padding = True
                self._check(seen, heeded, setting, given)
        return Sight(window, padding)

    def _last(self, mask: ir.Value, is_condition: bool) -> np.ndarray:
        """[total]: what one token sees after as many others as there may be, which shows a window."""
        *longer, shortest = self._totals
        for total in longer:
            try:
                return self._seen(mask, is_condition, Setting(sequence=1, past=total - 1))[0, 0]
            except (NoFit, ProbeError):
                continue  # a constant mask has a size of its own
        return self._seen(mask, is_condition, Setting(sequence=1, past=shortest - 1))[0, 0]

    @staticmethod
    def _check(seen: np.ndarray, wanted: np.ndarray, setting: Setting, given: np.ndarray | None) -> None:
        some = wanted.any(-1)  # a row that sees nothing gives numbers without meaning
        if not np.array_equal(seen[some], wanted[some]):
            raise NoFit("it sees others than the tokens before, all or those of a window")

    def _seen(self, mask: ir.Value, is_condition: bool, setting: Setting) -> np.ndarray:
        """[batch, sequence, total]: whether a key is seen."""
        array = self._inputs.probe(setting).array(mask)
        whole = (setting.batch, 1, setting.sequence, setting.total)
        if array.ndim > 4 or (array.ndim == 4 and array.shape[1] != 1 and not (array == array[:, :1]).all()):
            raise NoFit("its heads see differently")
        if array.ndim == 4:
            array = array[:, :1]
        try:
            array = np.broadcast_to(array, whole)[:, 0]
        except ValueError as error:
            raise NoFit(f"its mask has the shape {array.shape} where {whole} is wanted") from error
        if is_condition:
            return array.astype(bool)
        seen = array == 0
        if not (seen | (array <= MASKED)).all():
            raise NoFit("its mask adds values to visible positions")
        return seen


def _seen(setting: Setting, window: int) -> np.ndarray:
    """What tokens see that come before: [batch, sequence, total]."""
    slots = np.arange(setting.total)
    last = setting.past + np.arange(setting.sequence)[:, None]
    seen = slots <= last
    if window > 0:
        seen &= slots > last - window
    return np.broadcast_to(seen, (setting.batch, setting.sequence, setting.total))
