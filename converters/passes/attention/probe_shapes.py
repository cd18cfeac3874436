"""The inputs of a language model, and shapes for probing it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
import onnx_ir as ir

from converters.passes.attention.probing import Data, Probe, ProbeError

MASK, POSITIONS, SLOTS, BEAMS = "attention_mask", "position_ids", "cache_position", "beam_idx"
"""The inputs that are not data, by their names in OpenVINO's form."""

_OWN_MASK = "decoder_attention_mask"
"""The mask of a decoder's own tokens, if the other name is that of the encoder's mask."""


_TOKENS = ("input_ids", "inputs_embeds", "decoder_input_ids")
"""The names of the input of the tokens."""

_LATER = (1 << 13, 1 << 17, 1 << 20)
"""Numbers of past tokens for which a value is compared with its value after a few tokens."""


@dataclass(frozen=True)
class ProbeShapes:
    """The number of tokens of a run, and their positions.

    Attributes:
        batch, sequence, past: the number of rows, new tokens and cached tokens.
        mask: ``[batch, past + sequence]``, the valid tokens; all by default.
        positions: ``[batch, sequence]``; by default those of a run without padding.
    """

    batch: int = 1
    sequence: int = 1
    past: int = 0
    mask: np.ndarray | None = None
    positions: np.ndarray | None = None

    @property
    def total(self) -> int:
        return self.past + self.sequence

    @property
    def given_mask(self) -> np.ndarray:
        return np.broadcast_to(np.int64(1), (self.batch, self.total)) if self.mask is None else self.mask

    @property
    def given_positions(self) -> np.ndarray:
        if self.positions is not None:
            return self.positions
        return np.tile(np.arange(self.past, self.total, dtype=np.int64), (self.batch, 1))


class Inputs:
    """The inputs of a language model's graph.

    Args:
        graph: the graph.
        pasts: the inputs for the model's state, with the axis of the tokens of each.
        unset: the flags that are false because their variables have no value yet. Other flags are true.
    """

    def __init__(self, graph: ir.Graph, pasts: Mapping[ir.Value, int], unset: Collection[ir.Value | None] = ()) -> None:
        by_name = {value.name: value for value in graph.inputs}
        self.mask, self.positions, self.slots, self.beams = (by_name.get(name) for name in (MASK, POSITIONS, SLOTS, BEAMS))
        self.mask = by_name.get(_OWN_MASK, self.mask)
        self.pasts, self.unset = dict(pasts), frozenset(unset)
        known = {*self.pasts, self.mask, self.positions, self.slots, self.beams}
        self.data = [value for value in graph.inputs if value not in known and value.dtype != ir.DataType.BOOL]
        self.flags = [value for value in graph.inputs if value not in known and value.dtype == ir.DataType.BOOL]

    @property
    def tokens(self) -> ir.Value:
        """The input of the tokens, ``[batch, sequence, ...]``: by its name, or the first whose second dimension varies."""
        named = [value for value in self.data if value.name in _TOKENS]
        varying = [value for value in self.data if len(dims := list(value.shape or ())) > 1 and not isinstance(dims[1], int)]
        return [*named, *varying, *self.data][0]

    @property
    def has_several_positions(self) -> bool:
        """Whether a token has several positions, ``[positions, batch, sequence]``, as in Qwen2-VL (M-RoPE)."""
        return self.positions is not None and self.positions.shape is not None and len(self.positions.shape) == 3

    @property
    def sources(self) -> Sequence[ir.Value]:
        """All inputs that are data."""
        return [*self.data, *self.pasts]

    def probe(self, probe_shapes: ProbeShapes, more: Mapping[ir.Value, np.ndarray | Data] | None = None) -> Probe:
        """Return the graph's values for probe shapes. ``more`` sets further values."""
        return Probe(self.given(probe_shapes, more))

    def given(
        self, probe_shapes: ProbeShapes, more: Mapping[ir.Value, np.ndarray | Data] | None = None
    ) -> dict[ir.Value, np.ndarray | Data]:
        """Return the values of the inputs for probe shapes. ``more`` sets further values."""
        given: dict[ir.Value, np.ndarray | Data] = {}
        for value in self.data:
            given[value] = Data(
                value.dtype or ir.DataType.INT64, self._shape(value, (probe_shapes.batch, probe_shapes.sequence))
            )
        for value, axis in self.pasts.items():
            sizes = [probe_shapes.batch] + [probe_shapes.past if i == axis else 1 for i in range(1, len(value.shape or ()))]
            given[value] = Data(value.dtype or ir.DataType.FLOAT, self._shape(value, sizes))
        for flag in self.flags:
            given[flag] = np.array(flag not in self.unset)
        if self.mask is not None:
            given[self.mask] = probe_shapes.given_mask.astype(_numpy(self.mask), copy=False)
        if self.positions is not None:
            given[self.positions] = self._positions(probe_shapes.given_positions.astype(_numpy(self.positions)))
        if self.slots is not None:  # for all rows
            given[self.slots] = np.arange(probe_shapes.past, probe_shapes.total).astype(_numpy(self.slots))
        if self.beams is not None:
            given[self.beams] = np.arange(probe_shapes.batch).astype(_numpy(self.beams))
        return {**given, **(more or {})}

    def _positions(self, given: np.ndarray) -> np.ndarray:
        """Return the positions with the dimensions of their input. All positions of a token are equal, as in a text."""
        if not self.has_several_positions:
            return given
        assert self.positions is not None
        (count,) = self._shape(self.positions, ())[:1]
        return np.broadcast_to(given, (count, *given.shape))

    def stays(
        self,
        probe_shapes: ProbeShapes,
        value: ir.Value,
        array: np.ndarray,
        more: Mapping[ir.Value, np.ndarray | Data] | None = None,
        *,
        broadcasts: bool = False,
    ) -> bool:
        """Return whether a value is the same array after no and after thousands of tokens, in a run of one token, with
        padding, and at other positions, if it can be computed for them.

        Some models scale queries by a factor that is 1 for the first thousands of tokens, and grows from there on. Others
        multiply keys or values by the attention_mask. With ``broadcasts``, the value may be the array for more elements.
        """
        first = replace(probe_shapes, past=0, mask=None, positions=None)
        one = replace(first, sequence=1, past=probe_shapes.total - 1)
        for later in (first, one, *_later(probe_shapes), *_padded(probe_shapes)):
            with suppress(ProbeError):  # more tokens than the model supports
                found = self.probe(later, more).array(value)
                if not (bool((found == array).all()) if broadcasts else np.array_equal(found, array)):
                    return False
        return True

    def grows(self, probe_shapes: ProbeShapes, value: ir.Value, axis: int, *, past: bool = False) -> bool:
        """Return whether an axis has the size of all tokens for any number of them. It does not for a window, for example.

        Args:
            probe_shapes, value, axis: the axis of a value, and the shapes of the first evaluation.
            past: whether it has the size of the past tokens instead.
        """
        for shapes in (probe_shapes, replace(probe_shapes, past=0, mask=None, positions=None), *_later(probe_shapes)):
            with suppress(ProbeError):
                if self.probe(shapes).shape(value)[axis] != (shapes.past if past else shapes.total):
                    return False
        return True

    @staticmethod
    def _shape(value: ir.Value, sizes: Sequence[int]) -> tuple[int, ...]:
        """Return the dimensions of an input, with those of the probe for dynamic ones."""
        dims = list(value.shape or ())
        return tuple(d if isinstance(d, int) else sizes[i] if i < len(sizes) else 1 for i, d in enumerate(dims))


def _numpy(value: ir.Value) -> np.dtype:
    assert value.dtype is not None
    return value.dtype.numpy()


def _padded(probe_shapes: ProbeShapes) -> list[ProbeShapes]:
    """Return the same numbers of tokens with masks that hide every second token, and other positions."""
    found = []
    for first in (0, 1):
        mask = np.tile((np.arange(probe_shapes.total) + first) % 2, (probe_shapes.batch, 1))
        positions = np.maximum(mask.cumsum(1) - 1, 0)[:, probe_shapes.past :]
        found.append(replace(probe_shapes, mask=mask, positions=positions))
    return found


def _later(probe_shapes: ProbeShapes) -> list[ProbeShapes]:
    return [replace(probe_shapes, past=past, mask=None, positions=None) for past in _LATER]
