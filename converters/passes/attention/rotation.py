"""Rotary embeddings, determined by evaluation: the rotated value, the pairs of elements, and the angles."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import onnx_ir as ir

from converters.passes.attention.probe_shapes import Inputs, ProbeShapes
from converters.passes.attention.probing import Dependence, Probe, ProbeError, of_all_sizes

_PARTS = 1 << 22  # elements that are rotated at a time to compute tables
_ERROR = 1e-4
_TURN_ERROR = 0.05
"""The allowed error of the rotation from a position to the next one. Angles of 100,000 radians are rounded by 0.004."""

_LARGE = 1e30
"""Numbers of this size are rotated too, to find limits that clip numbers before or after the rotation."""


@dataclass(frozen=True, eq=False)
class Table:
    """The cosines and sines of all positions.

    Attributes:
        cosine, sine: ``[positions, pairs]``.
        interleaved: whether adjacent elements are a pair, rather than elements of the two halves.
    """

    cosine: np.ndarray
    sine: np.ndarray
    interleaved: bool

    def rotate(self, x: np.ndarray, positions: np.ndarray) -> np.ndarray:
        """Rotate ``x`` ``[batch, heads, sequence, size]`` by its positions ``[batch, sequence]``."""
        cosine, sine = (table[positions][:, None] for table in (self.cosine, self.sine))
        pairs = cosine.shape[-1]
        first, second = _pairs(x, pairs, self.interleaved)
        result = x.copy()
        real, imaginary = _pairs(result, pairs, self.interleaved)
        real[...] = first * cosine - second * sine
        imaginary[...] = first * sine + second * cosine
        return result

    def is_regular(self) -> bool:
        """Whether the rotation from each position to the next one is the same.

        It is not if the positions are parts of several tables, because the angles depend on the number of tokens (LongRoPE).
        """
        numbers = self.cosine + 1j * self.sine
        turns = numbers[1:] * numbers[:-1].conj()
        return bool(np.allclose(turns, turns[:1], rtol=0, atol=_TURN_ERROR))


def _pairs(x: np.ndarray, pairs: int, interleaved: bool) -> tuple[np.ndarray, np.ndarray]:
    if interleaved:
        return x[..., 0 : 2 * pairs : 2], x[..., 1 : 2 * pairs : 2]
    return x[..., :pairs], x[..., pairs : 2 * pairs]


@dataclass(frozen=True)
class Layout:
    """The layout of a value for ``[batch, heads, sequence, size]``.

    Attributes:
        name: ``"BNSH"``, ``"BSNH"``, or ``"BSD"`` with the last two merged.
    """

    name: str

    def from_heads(self, array: np.ndarray) -> np.ndarray:
        if self.name == "BNSH":
            return array
        array = np.ascontiguousarray(array.transpose(0, 2, 1, 3))
        return array.reshape(*array.shape[:2], -1) if self.name == "BSD" else array


@dataclass(frozen=True)
class Source:
    """The source of a query, key or value.

    Attributes:
        value: the source.
        layout: its layout.
        table: the table of its rotation; ``None`` if it is not rotated.
    """

    value: ir.Value
    layout: Layout
    table: Table | None


class Rotations:
    """Finds the sources of queries and keys before their rotation.

    Args:
        inputs: the graph's inputs.
        dependence: the values that depend on data.
        positions: the maximum number of tokens of the model.
    """

    def __init__(self, inputs: Inputs, dependence: Dependence, positions: int) -> None:
        self._inputs, self._dependence, self._positions = inputs, dependence, positions
        self._tables: list[Table] = []
        self._probe = inputs.probe(_PROBE_SHAPES)

    def source(self, value: ir.Value, heads: int, size: int, *, rotated: bool, padding: bool) -> Source:
        """Return the source of ``value`` ``[batch, heads, sequence, size]``.

        Args:
            value: a query, key or value.
            heads, size: its dimensions.
            rotated: whether it may be rotated.
            padding: whether the attention uses the attention_mask. Padding then has no positions.
        """
        best = Source(value, Layout("BNSH"), None)
        dominators = self._dependence.dominators(value, most=60)
        for dominator in dominators[1:]:
            found = self._plain(value, dominator, heads, size)
            if found is None:
                break
            best = found
        if not rotated or best.layout.name == "BSD":
            return best
        table, before = None, best
        for dominator in self._dependence.dominators(best.value, most=60)[1:]:
            found = self._rotated(value, dominator, heads, size, table, padding=padding)
            if found is not None:
                table, before = found.table, found
            elif table is not None:
                break
        return before if table is not None else best

    def _layouts(self, value: ir.Value, heads: int, size: int) -> Layout | None:
        shape = self._probe.shape(value)
        b, s = _PROBE_SHAPES.batch, _PROBE_SHAPES.sequence
        shapes = {(b, s, heads * size): "BSD", (b, s, heads, size): "BSNH", (b, heads, s, size): "BNSH"}
        return Layout(shapes[shape]) if shape in shapes else None

    def _plain(self, value: ir.Value, source: ir.Value, heads: int, size: int) -> Source | None:
        """Return ``source`` if it is ``value`` in any layout."""
        try:
            layout = self._layouts(source, heads, size)
            if layout is None:
                return None
            for shapes in (_PROBE_SHAPES, replace(_PROBE_SHAPES, sequence=1)):
                x = of_all_sizes((shapes.batch, heads, shapes.sequence, size), seed=2)
                given = {source: layout.from_heads(x)}
                got = self._inputs.probe(shapes, given).array(value)
                if not np.array_equal(got, x) or not self._inputs.stays(shapes, value, x, given):
                    return None
        except ProbeError:
            return None
        return Source(source, layout, None)

    def _rotated(
        self, value: ir.Value, source: ir.Value, heads: int, size: int, table: Table | None, *, padding: bool
    ) -> Source | None:
        """Return ``source`` if ``value`` is a rotation of it."""
        try:
            layout = self._layouts(source, heads, size)
            if layout is None:
                return None
            rotation = _Rotation(self._inputs, source, value, layout, heads, size)
            for known in [table] if table is not None else self._tables:
                if self._agrees(rotation, known, padding=padding):
                    return Source(source, layout, known)
            if table is not None:
                return None
            made = self._made(rotation)
            if made is None or not self._agrees(rotation, made, padding=padding):
                return None
            self._tables.append(made)
            return Source(source, layout, made)
        except ProbeError:
            return None

    def _agrees(self, rotation: _Rotation, table: Table | None, *, padding: bool) -> bool:
        """Return whether a table gives the rotation at the first, at any, and at the last positions, and after padding.

        GroupQueryAttention counts the positions of a row. Without position_ids, the graph must count them in the same way,
        and the table must be regular: the first positions of a long prompt would take too much memory.
        """
        assert table is not None
        last = self._positions - 1
        tried = [_PROBE_SHAPES, ProbeShapes(2, 3, 0)]
        if self._inputs.positions is not None:
            tried += [
                ProbeShapes(2, 3, 5, positions=np.array([[0, 1, 2], [3, 1, 4]]) % (last + 1)),
                ProbeShapes(2, 3, 5, positions=np.array([[last, 0, last // 2], [1, last // 3, last]])),
                ProbeShapes(1, 1, last),
            ]
        elif not table.is_regular():
            return False
        else:
            tried.append(ProbeShapes(1, 1, last))
        if last >= _PROBE_SHAPES.total:
            tried.append(_after_padding(padding))
        return self._agrees_for(rotation, table, _PROBE_SHAPES, _LARGE) and all(
            self._agrees_for(rotation, table, probe_shapes, 1.0) for probe_shapes in tried
        )

    def _agrees_for(self, rotation: _Rotation, table: Table, probe_shapes: ProbeShapes, factor: float) -> bool:
        """Whether a table describes how numbers of some size are rotated."""
        x = _random(probe_shapes, rotation.heads, rotation.size)
        wanted = table.rotate(x, probe_shapes.given_positions)
        got = rotation(x * np.float32(factor), probe_shapes) / np.float32(factor)
        return np.allclose(got, wanted, rtol=_ERROR, atol=_ERROR)

    def _made(self, rotation: _Rotation) -> Table | None:
        """Return the table of a rotation; ``None`` if it is not a rotary embedding."""
        # The first element of a pair reveals its partner.
        probe_shapes = ProbeShapes(1, 1, min(3, self._positions - 1))
        x = np.zeros((1, rotation.heads, 1, rotation.size), np.float32)
        x[..., 0] = 1
        partners = np.flatnonzero(rotation(x, probe_shapes)[0, 0, 0, 1:]) + 1
        if len(partners) != 1:
            return None
        interleaved = bool(partners[0] == 1) and rotation.size > 2
        pairs = rotation.size // 2 if interleaved else int(partners[0])
        if 2 * pairs > rotation.size:
            return None
        parts = []
        step = max(1, _PARTS // (rotation.heads * rotation.size))
        for begin in range(0, self._positions, step):
            count = min(step, self._positions - begin)
            x = np.zeros((1, rotation.heads, count, rotation.size), np.float32)
            _pairs(x, pairs, interleaved)[0][...] = 1
            parts.append(rotation(x, ProbeShapes(1, count, begin))[0, 0])
        whole = np.concatenate(parts)
        cosine, sine = _pairs(whole, pairs, interleaved)
        if interleaved and (still := np.flatnonzero((sine == 0).all(0))).size:
            pairs = int(still[0])  # the following elements are not rotated
            cosine, sine = cosine[:, :pairs], sine[:, :pairs]
        return Table(np.ascontiguousarray(cosine), np.ascontiguousarray(sine), interleaved)


@dataclass(frozen=True)
class _Rotation:
    """The computation of one value from another."""

    inputs: Inputs
    source: ir.Value
    result: ir.Value
    layout: Layout
    heads: int
    size: int

    def __call__(self, x: np.ndarray, probe_shapes: ProbeShapes) -> np.ndarray:
        probe: Probe = self.inputs.probe(probe_shapes, {self.source: self.layout.from_heads(x)})
        return probe.array(self.result)


_PROBE_SHAPES = ProbeShapes(batch=2, sequence=3, past=5)


def _after_padding(padding: bool) -> ProbeShapes:
    """Return tokens after padding that has no positions, or that has positions like other tokens."""
    mask = np.ones((_PROBE_SHAPES.batch, _PROBE_SHAPES.total), np.int64)
    mask[0, 3:5] = 0
    positions = (mask if padding else np.ones_like(mask)).cumsum(1) - 1
    return replace(_PROBE_SHAPES, mask=mask, positions=positions[:, -_PROBE_SHAPES.sequence :])


def _random(probe_shapes: ProbeShapes, heads: int, size: int) -> np.ndarray:
    shape = (probe_shapes.batch, heads, probe_shapes.sequence, size)
    return np.random.default_rng(2).standard_normal(shape).astype(np.float32)
