"""Rotary embeddings, found out by trying: which value is turned, in which pairs of elements, by which angles."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from converters.passes.attention.probing import Dependence, Probe, ProbeError
from converters.passes.attention.setting import Inputs, Setting

_PARTS = 1 << 22  # elements that are turned at a time, where tables are made
_ERROR = 1e-4


@dataclass(frozen=True, eq=False)
class Table:
    """The cosines and sines of every position.

    Attributes:
        cosine, sine: [positions, pairs].
        interleaved: whether neighbours make a pair; else elements of the two halves.
    """

    cosine: np.ndarray
    sine: np.ndarray
    interleaved: bool

    def turn(self, x: np.ndarray, positions: np.ndarray) -> np.ndarray:
        """``x`` [batch, heads, sequence, size], turned by its positions [batch, sequence]."""
        cosine, sine = (table[positions][:, None] for table in (self.cosine, self.sine))
        pairs = cosine.shape[-1]
        first, second = _pairs(x, pairs, self.interleaved)
        result = x.copy()
        real, imaginary = _pairs(result, pairs, self.interleaved)
        real[...] = first * cosine - second * sine
        imaginary[...] = first * sine + second * cosine
        return result


def _pairs(x: np.ndarray, pairs: int, interleaved: bool) -> tuple[np.ndarray, np.ndarray]:
    if interleaved:
        return x[..., 0 : 2 * pairs : 2], x[..., 1 : 2 * pairs : 2]
    return x[..., :pairs], x[..., pairs : 2 * pairs]


@dataclass(frozen=True)
class Layout:
    """How a value holds [batch, heads, sequence, size].

    Attributes:
        name: ``"BNSH"``, ``"BSNH"`` or ``"BSD"``, the two last in one.
    """

    name: str

    def from_heads(self, array: np.ndarray) -> np.ndarray:
        if self.name == "BNSH":
            return array
        array = np.ascontiguousarray(array.transpose(0, 2, 1, 3))
        return array.reshape(*array.shape[:2], -1) if self.name == "BSD" else array


@dataclass(frozen=True)
class Source:
    """What a query, key or value is made of.

    Attributes:
        value: what it is made of.
        layout: how that holds it.
        table: how it is turned; ``None`` for not at all.
    """

    value: ir.Value
    layout: Layout
    table: Table | None


class Rotations:
    """Finds what queries and keys are made of.

    Args:
        inputs: the graph's inputs.
        dependence: what depends on data.
        positions: the most tokens that the model is made for.
    """

    def __init__(self, inputs: Inputs, dependence: Dependence, positions: int) -> None:
        self._inputs, self._dependence, self._positions = inputs, dependence, positions
        self._tables: list[Table] = []
        self._probe = inputs.probe(_SETTING)

    def source(self, value: ir.Value, heads: int, size: int, *, turned: bool) -> Source:
        """What ``value`` [batch, heads, sequence, size] is made of.

        Args:
            value: a query, key or value.
            heads, size: its dimensions.
            turned: whether it may be turned.
        """
        best = Source(value, Layout("BNSH"), None)
        narrows = self._dependence.narrows(value, most=60)
        for narrow in narrows[1:]:
            found = self._plain(value, narrow, heads, size)
            if found is None:
                break
            best = found
        if not turned or best.layout.name == "BSD":
            return best
        table, before = None, best
        for narrow in self._dependence.narrows(best.value, most=60)[1:]:
            found = self._turned(value, narrow, heads, size, table)
            if found is not None:
                table, before = found.table, found
            elif table is not None:
                break
        return before if table is not None else best

    def _layouts(self, value: ir.Value, heads: int, size: int) -> Layout | None:
        shape = self._probe.shape(value)
        b, s = _SETTING.batch, _SETTING.sequence
        shapes = {(b, s, heads * size): "BSD", (b, s, heads, size): "BSNH", (b, heads, s, size): "BNSH"}
        return Layout(shapes[shape]) if shape in shapes else None

    def _plain(self, value: ir.Value, source: ir.Value, heads: int, size: int) -> Source | None:
        """``source``, where it is ``value`` in whatever layout."""
        try:
            layout = self._layouts(source, heads, size)
            if layout is None:
                return None
            x = _random(_SETTING, heads, size)
            got = self._inputs.probe(_SETTING, {source: layout.from_heads(x)}).array(value)
        except ProbeError:
            return None
        return Source(source, layout, None) if np.array_equal(got, x) else None

    def _turned(self, value: ir.Value, source: ir.Value, heads: int, size: int, table: Table | None) -> Source | None:
        """``source``, where ``value`` is that, turned."""
        try:
            layout = self._layouts(source, heads, size)
            if layout is None:
                return None
            turn = _Turn(self._inputs, source, value, layout, heads, size)
            for known in [table] if table is not None else self._tables:
                if self._agrees(turn, known):
                    return Source(source, layout, known)
            if table is not None:
                return None
            made = self._made(turn)
            if made is None or not self._agrees(turn, made):
                return None
            self._tables.append(made)
            return Source(source, layout, made)
        except ProbeError:
            return None

    def _agrees(self, turn: _Turn, table: Table | None) -> bool:
        """Whether a table says how values are turned: at the first positions, at any, and at the last."""
        assert table is not None
        last = self._positions - 1
        settings = [_SETTING, Setting(2, 3, 0)]
        if self._inputs.positions is not None:
            settings += [
                Setting(2, 3, 5, positions=np.array([[0, 1, 2], [3, 1, 4]]) % (last + 1)),
                Setting(2, 3, 5, positions=np.array([[last, 0, last // 2], [1, last // 3, last]])),
                Setting(1, 1, last),
            ]
        else:
            settings.append(Setting(1, 1, last))
        for setting in settings:
            x = _random(setting, turn.heads, turn.size)
            wanted = table.turn(x, setting.given_positions)
            if not np.allclose(turn(x, setting), wanted, rtol=_ERROR, atol=_ERROR):
                return False
        return True

    def _made(self, turn: _Turn) -> Table | None:
        """The table by which values are turned, as far as one can say so."""
        # The first element of a pair shows its partner.
        setting = Setting(1, 1, min(3, self._positions - 1))
        x = np.zeros((1, turn.heads, 1, turn.size), np.float32)
        x[..., 0] = 1
        partners = np.flatnonzero(turn(x, setting)[0, 0, 0, 1:]) + 1
        if len(partners) != 1:
            return None
        interleaved = bool(partners[0] == 1) and turn.size > 2
        pairs = turn.size // 2 if interleaved else int(partners[0])
        if 2 * pairs > turn.size:
            return None
        parts = []
        step = max(1, _PARTS // (turn.heads * turn.size))
        for begin in range(0, self._positions, step):
            count = min(step, self._positions - begin)
            x = np.zeros((1, turn.heads, count, turn.size), np.float32)
            _pairs(x, pairs, interleaved)[0][...] = 1
            parts.append(turn(x, Setting(1, count, begin))[0, 0])
        whole = np.concatenate(parts)
        cosine, sine = _pairs(whole, pairs, interleaved)
        if interleaved and (still := np.flatnonzero((sine == 0).all(0))).size:
            pairs = int(still[0])  # those beyond are not turned
            cosine, sine = cosine[:, :pairs], sine[:, :pairs]
        return Table(np.ascontiguousarray(cosine), np.ascontiguousarray(sine), interleaved)


@dataclass(frozen=True)
class _Turn:
    """What a graph makes of a value on the way to another."""

    inputs: Inputs
    source: ir.Value
    result: ir.Value
    layout: Layout
    heads: int
    size: int

    def __call__(self, x: np.ndarray, setting: Setting) -> np.ndarray:
        probe: Probe = self.inputs.probe(setting, {self.source: self.layout.from_heads(x)})
        return probe.array(self.result)


_SETTING = Setting(batch=2, sequence=3, past=5)


def _random(setting: Setting, heads: int, size: int) -> np.ndarray:
    shape = (setting.batch, heads, setting.sequence, size)
    return np.random.default_rng(2).standard_normal(shape).astype(np.float32)
