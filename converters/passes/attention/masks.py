"""The keys that a mask leaves visible, determined by evaluation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from converters.passes.attention.canonical import MASKED, UnsupportedAttention
from converters.passes.attention.probe_shapes import Inputs, ProbeShapes
from converters.passes.attention.probing import ProbeError

_ROWS = 512
"""The number of tokens of a run whose visible keys are all compared."""


@dataclass(frozen=True)
class VisibleKeys:
    """The keys that a token of a run attends to: its own and previous ones that the attention_mask includes.

    Attributes:
        window: the number of last keys; -1 for all.
        padding: whether the attention_mask is used.
    """

    window: int
    padding: bool


class Masks:
    """Determines the visible keys of masks, once for each mask.

    Args:
        inputs: the graph's inputs.
        positions: the maximum number of tokens of the model; ``None`` if unknown.
        most, least: the range of numbers of tokens to try if ``positions`` is unknown. The largest that a mask supports is
            used.
    """

    def __init__(self, inputs: Inputs, positions: int | None, *, most: int, least: int) -> None:
        self._inputs = inputs
        self._totals = [most >> shift for shift in range(most.bit_length()) if most >> shift >= least]
        if positions is not None:
            self._totals = [positions]
        self._found: dict[tuple[ir.Value, bool], VisibleKeys | UnsupportedAttention] = {}

    def visible_keys(self, mask: ir.Value | None, is_boolean: bool) -> VisibleKeys:
        """Return the keys that a mask leaves visible.

        Raises:
            UnsupportedAttention: the mask shows something other than previous tokens, or does not hide the others.
        """
        if mask is None:
            raise UnsupportedAttention("it attends to later tokens")
        key = (mask, is_boolean)
        if key not in self._found:
            try:
                self._found[key] = self._probed(mask, is_boolean)
            except ProbeError as error:
                self._found[key] = UnsupportedAttention(f"its mask is unknown: {error}")
            except UnsupportedAttention as error:
                self._found[key] = error
        found = self._found[key]
        if isinstance(found, UnsupportedAttention):
            raise found
        return found

    def _probed(self, mask: ir.Value, is_boolean: bool) -> VisibleKeys:
        last = self._last(mask, is_boolean)
        window = -1 if last.all() else int(last.sum())
        near = [ProbeShapes(2, 3, 5), ProbeShapes(2, 4, 0), ProbeShapes(1, 1, 2)]
        if window > 0:
            past = max(window - 2, 0)
            near += [
                ProbeShapes(1, 5, past),
                ProbeShapes(1, 1, past),
                ProbeShapes(1, 1, past + 1),
                ProbeShapes(1, 1, past + 2),
            ]
            if window <= 4096:
                near.append(ProbeShapes(1, window + 3, 2))
        # Chunks of tokens may limit a window. Their borders are far from the first tokens.
        near.append(ProbeShapes(1, min(_ROWS, len(last)), 0))
        near += [ProbeShapes(1, 1, 1 << power) for power in range((len(last) - 1).bit_length()) if 1 << power < len(last)]
        for probe_shapes in near:
            self._check(self._visible(mask, is_boolean, probe_shapes), _visible(probe_shapes, window), probe_shapes, None)
        padding = False
        for rows in ([1, 1, 1, 0, 0, 1, 1, 1], [0, 0, 1, 1, 1, 1, 1, 1]):
            given = np.array([rows, [1] * 8], np.int64)
            probe_shapes = ProbeShapes(2, 3, 5, mask=given, positions=np.maximum(given.cumsum(1) - 1, 0)[:, -3:])
            visible = self._visible(mask, is_boolean, probe_shapes)
            heeded = _visible(probe_shapes, window) & (given[:, None] > 0)
            if not np.array_equal(visible, _visible(probe_shapes, window)):
                padding = True
                self._check(visible, heeded, probe_shapes, given)
        return VisibleKeys(window, padding)

    def _last(self, mask: ir.Value, is_boolean: bool) -> np.ndarray:
        """Return the keys that a token attends to after the maximum number of tokens, ``[total]``, to find a window."""
        *longer, shortest = self._totals
        for total in longer:
            try:
                return self._visible(mask, is_boolean, ProbeShapes(sequence=1, past=total - 1))[0, 0]
            except (UnsupportedAttention, ProbeError):
                continue  # a constant mask has a fixed size
        return self._visible(mask, is_boolean, ProbeShapes(sequence=1, past=shortest - 1))[0, 0]

    @staticmethod
    def _check(visible: np.ndarray, wanted: np.ndarray, probe_shapes: ProbeShapes, given: np.ndarray | None) -> None:
        some = wanted.any(-1)  # the values of a row without visible keys do not matter
        if not np.array_equal(visible[some], wanted[some]):
            raise UnsupportedAttention("its mask does not select all previous tokens or a window of them")

    def _visible(self, mask: ir.Value, is_boolean: bool, probe_shapes: ProbeShapes) -> np.ndarray:
        """Return whether each key is visible, ``[batch, sequence, total]``."""
        array = self._inputs.probe(probe_shapes).array(mask)
        whole = (probe_shapes.batch, 1, probe_shapes.sequence, probe_shapes.total)
        if array.ndim > 4 or (array.ndim == 4 and array.shape[1] != 1 and not (array == array[:, :1]).all()):
            raise UnsupportedAttention("its mask differs between heads")
        if array.ndim == 4:
            array = array[:, :1]
        try:
            array = np.broadcast_to(array, whole)[:, 0]
        except ValueError as error:
            raise UnsupportedAttention(f"its mask has the shape {array.shape} instead of {whole}") from error
        if is_boolean:
            return array.astype(bool)
        visible = array == 0
        if not (visible | (array <= MASKED)).all():
            raise UnsupportedAttention("its mask adds values to visible positions")
        return visible


def _visible(probe_shapes: ProbeShapes, window: int) -> np.ndarray:
    """Return the previous keys that tokens attend to, ``[batch, sequence, total]``."""
    slots = np.arange(probe_shapes.total)
    last = probe_shapes.past + np.arange(probe_shapes.sequence)[:, None]
    visible = slots <= last
    if window > 0:
        visible &= slots > last - window
    return np.broadcast_to(visible, (probe_shapes.batch, probe_shapes.sequence, probe_shapes.total))
