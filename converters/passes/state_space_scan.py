"""Fusion of state spaces with one decay for each head (Mamba 2), which an IR computes by a loop over tokens, into one node.

optimum-intel computes the update of the state, ``[batch, tokens, heads, channels, N]``, for all tokens. A Loop adds it to
the state token by token, and writes the outputs into a tensor. The body is recognized by evaluation on small inputs, so the
order and form of its nodes do not matter.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import permutations

import numpy as np
import onnx_ir as ir
from onnx_ir.passes import InPlacePass, PassResult

from converters.passes.attention.caches import detach
from converters.passes.attention.probe_shapes import Inputs, ProbeShapes
from converters.passes.attention.probing import Data, Probe, ProbeError, ShapeProbe, inputs_of, of_all_sizes
from converters.passes.loops import is_endless
from onnx_specops.building import Builder
from onnx_specops.graphs import nested
from onnx_specops.replacing import replace_value

_MAX_NODES = 60
_MAX_ELEMENTS = 1 << 24
"""The most elements of an update for the evaluation."""

_BATCH = 2
_TOKENS = 1, 3, 300
"""The numbers of rows and tokens of runs. Bodies are evaluated for the first ones only."""

_EVALUATED = 2

_LINEAR = frozenset((
    "Add", "Cast", "Concat", "Expand", "Gather", "Identity", "MatMul", "Mul", "ReduceProd", "ReduceSum", "Reshape",
    "ScatterElements", "ScatterND", "Shape", "Slice", "Squeeze", "Tile", "Transpose", "Unsqueeze",
))  # fmt: skip
"""Operators without limits, beyond which they would compute something else than at the numbers that are tried."""

_MOVING = frozenset(("Concat", "Expand", "Identity", "Reshape", "Slice", "Squeeze", "Tile", "Unsqueeze"))


class _Runs:
    """The shapes of the values of a graph in runs of several numbers of tokens."""

    def __init__(self, graph: ir.Graph) -> None:
        flags = [value for value in graph.inputs if value.dtype == ir.DataType.BOOL]
        inputs = Inputs(graph, {}, flags)
        self._probes = [ShapeProbe(inputs.given(ProbeShapes(_BATCH, tokens))) for tokens in _TOKENS]

    def shapes(self, value: ir.Value) -> list[tuple[int, ...]]:
        """Return the shape of a value in each run. Raise `ProbeError` if one cannot be determined."""
        return [probe.shape(value) for probe in self._probes]

    def probe(self, run: int, values: Iterable[ir.Value], given: Mapping[ir.Value, np.ndarray]) -> Probe:
        """Return a probe for values that depend on ``given`` and on the shapes of a run."""
        known: dict[ir.Value, np.ndarray | Data] = dict(given)
        for value in _measured(values, given):
            known[value] = Data(value.dtype or ir.DataType.FLOAT, self._probes[run].shape(value))
        return Probe(known)


@dataclass
class _Scan:
    """A loop over tokens.

    Attributes:
        loop: its node.
        place: the place of the state among the values that it carries.
        decay, update, gate, state: its inputs, of which the first three have the dimensions of the update, or 1.
        runs: the shapes of all values.
    """

    loop: ir.Node
    place: int
    decay: ir.Value
    update: ir.Value
    gate: ir.Value
    state: ir.Value
    runs: _Runs

    @property
    def y(self) -> ir.Value:
        """Its output, ``[batch, tokens, heads, channels]``."""
        return self.loop.outputs[1 - self.place]

    @property
    def present(self) -> ir.Value:
        """Its last state, ``[batch, heads, channels, N]``."""
        return self.loop.outputs[self.place]

    def has_shape(self, value: ir.Value | None, *dims: str | int) -> bool:
        """Return whether a value has certain dimensions in all runs, which are numbers, or letters of the update's."""
        if value is None or value.dtype != ir.DataType.FLOAT:
            return False
        for shape, sizes in zip(self.runs.shapes(value), self.runs.shapes(self.update), strict=True):
            letters: dict[str | int, int] = dict(zip("bthpn", sizes, strict=True))
            if shape != tuple(letters.get(dim, dim) for dim in dims):
                return False
        return True


class FuseStateSpaceScan(InPlacePass):
    """Replace loops over tokens that compute a state space by `onnx_specops.StateSpaceScan`.

    Conditions: the loop carries the state and the outputs, and runs once for each token. Its body multiplies the state by a
    number for each head, adds the token's update, and writes the sum of the gated state at the token's place. No operator of
    the body has limits. The update is a product of a value without N and a value without channels. All have the same batch
    and tokens in runs of several tokens.
    """

    def call(self, model: ir.Model) -> PassResult:
        root: Builder | None = None
        runs: _Runs | None = None
        modified = False
        for node in list(model.graph):
            if node.op_type != "Loop" or node.domain:
                continue
            runs = runs or _Runs(model.graph)
            try:
                if (scan := _scan(node, runs)) is not None:
                    root = root or Builder.of_existing(model.graph)
                    modified |= _replace(model.graph, scan, root)
            except ProbeError:
                continue
        return PassResult(model, modified=modified)


def _scan(loop: ir.Node, runs: _Runs) -> _Scan | None:
    """Return the state space that a loop computes. Raise `ProbeError` if a shape cannot be determined."""
    body = loop.attributes["body"].as_graph()
    if len(loop.inputs) != 4 or len(loop.outputs) != 2 or len(body.inputs) != 4 or len(body.outputs) != 3:
        return None
    trips, _, *starts = loop.inputs
    if trips is None or not is_endless(loop):
        return None
    if len(list(body)) > _MAX_NODES or any(node.domain or node.op_type not in _LINEAR or nested(node) for node in body):
        return None
    captured = _captured(body)
    if len(captured) != 3 or any(len(shape) != 5 for value in captured for shape in runs.shapes(value)):
        return None
    for place, (decay, update, gate) in ((i, roles) for i in (0, 1) for roles in permutations(captured)):
        state, before = starts[place], starts[1 - place]
        if state is None:
            continue
        scan = _Scan(loop, place, decay, update, gate, state, runs)
        if not (
            scan.has_shape(decay, "b", "t", "h", 1, 1)
            and scan.has_shape(update, "b", "t", "h", "p", "n")
            and scan.has_shape(gate, "b", "t", "h", 1, "n")
            and scan.has_shape(state, "b", "h", "p", "n")
            and scan.has_shape(before, "b", "t", "h", "p")
        ):
            continue
        if all(_runs_once(scan, trips, run) for run in range(len(_TOKENS))) and _computes(scan, body):
            return scan
    return None


def _captured(body: ir.Graph) -> list[ir.Value]:
    """Return the values of the outer graph that a body reads, without constants."""
    own = {*body.inputs, *(value for node in body for value in node.outputs)}
    read = [*(value for node in body for value in inputs_of(node)), *body.outputs]
    return list(dict.fromkeys(value for value in read if value not in own and value.const_value is None))


def _measured(values: Iterable[ir.Value], given: Mapping[ir.Value, np.ndarray]) -> Iterator[ir.Value]:
    """Yield the values whose shape determines ``values``."""
    pending = list(values)
    seen = {*pending, *given}
    while pending:
        node = pending.pop().producer()
        if node is None:
            continue
        for value in node.inputs:
            if value is None or value in seen:
                continue
            seen.add(value)
            if node.op_type == "Shape" and not node.domain:
                yield value
            else:
                pending.append(value)


def _runs_once(scan: _Scan, trips: ir.Value, run: int) -> bool:
    """Return whether the loop runs once for each token."""
    count = scan.runs.probe(run, [trips], {}).array(trips)
    return bool(count.size == 1 and count.reshape(-1)[0] == scan.runs.shapes(scan.update)[run][1])


def _computes(scan: _Scan, body: ir.Graph) -> bool:
    """Return whether a body computes the operator's state and output of a token."""
    for shape in scan.runs.shapes(scan.update)[:_EVALUATED]:
        if math.prod(shape) > _MAX_ELEMENTS or not all(_agrees(scan, body, shape, t) for t in {0, shape[1] - 1}):
            return False
    return True


def _agrees(scan: _Scan, body: ir.Graph, shape: tuple[int, ...], t: int) -> bool:
    """Return whether the body computes the operator's state and output of token ``t``."""
    batch, tokens, heads, channels, size = shape
    draw = np.random.default_rng(t)

    def numbers(*shape: int) -> np.ndarray:
        return draw.uniform(-1, 1, shape).astype(np.float32)

    decay, update = numbers(batch, tokens, heads, 1, 1), numbers(*shape)
    gate, state = numbers(batch, tokens, heads, 1, size), numbers(batch, heads, channels, size)
    written = numbers(batch, tokens, heads, channels)
    iteration, _, *carried = body.inputs
    given = {iteration: np.array(t), carried[scan.place]: state, carried[1 - scan.place]: written.copy()}
    probe = Probe({**given, scan.decay: decay, scan.update: update, scan.gate: gate})
    after = state * decay[:, t] + update[:, t]
    written[:, t] = (after * gate[:, t]).sum(-1)
    found = probe.array(body.outputs[1 + scan.place]), probe.array(body.outputs[2 - scan.place])
    return _close(found[0], after) and _close(found[1], written)


def _close(one: np.ndarray, other: np.ndarray) -> bool:
    return one.shape == other.shape and bool(np.abs(one - other).max(initial=0) <= 1e-5 * (1 + np.abs(other).max(initial=0)))


def _replace(graph: ir.Graph, scan: _Scan, root: Builder) -> bool:
    """Replace a loop, if its update is a product."""
    factors = _factors(scan)
    if factors is None:
        return False
    op = Builder(graph, root=root, before=scan.loop)
    op.scope = scan.loop.name or "scan"
    x = _without(scan, op, factors[0], (4,), "bthp")
    into, out = (_without(scan, op, gate, (3,), "bthn") for gate in (factors[1], scan.gate))
    steps, gate = _steps(scan, into)
    grouped = _grouped(scan, gate), _grouped(scan, out)
    if grouped[0][1] == grouped[1][1]:
        x = x if steps is None else op.Mul(x, steps)
        (into, _), (out, _) = grouped
    decay = _without(scan, op, scan.decay, (3, 4), "bth")
    y, present = op.specops.StateSpaceScan(x, decay, into, out, scan.state, outputs=2)
    replace_value(scan.y, y, equal=False)
    replace_value(scan.present, present, equal=False)
    _separate(scan, y, present)
    detach(scan.loop)
    return True


def _factors(scan: _Scan) -> tuple[ir.Value, ir.Value] | None:
    """Return the factors of the update: one without N, and one without channels."""
    for x, gate in _factor_pairs(scan.update):
        if scan.has_shape(x, "b", "t", "h", "p", 1) and scan.has_shape(gate, "b", "t", "h", 1, "n"):
            return x, gate
    return None


def _factor_pairs(value: ir.Value) -> Iterator[tuple[ir.Value, ir.Value]]:
    """Yield the two factors of a product in both orders; nothing for another value."""
    node = value.producer()
    if node is not None and (node.op_type, node.domain) == ("Mul", ""):
        one, other = node.inputs
        assert one is not None and other is not None
        yield one, other
        yield other, one


def _without(scan: _Scan, op: Builder, value: ir.Value, axes: Sequence[int], dims: str) -> ir.Value:
    """Return a value without axes of size 1; it has the dimensions ``dims`` then."""
    node = value.producer()
    if node is not None and not node.domain and node.op_type in ("Reshape", "Unsqueeze"):
        source = node.inputs[0]
        if source is not None and scan.has_shape(source, *dims):
            return source
    return op.Squeeze(value, list(axes))


def _steps(scan: _Scan, gate: ir.Value) -> tuple[ir.Value | None, ir.Value]:
    """Return the factor of a gate that has one number for each head, and the other factor."""
    for steps, rest in _factor_pairs(gate):
        if scan.has_shape(steps, "b", "t", "h", 1) and scan.has_shape(rest, "b", "t", "h", "n"):
            return steps, rest
    return None, gate


def _grouped(scan: _Scan, gate: ir.Value) -> tuple[ir.Value, int]:
    """Return the value with the fewest groups of heads whose repetition a gate is, and their number."""
    heads = scan.runs.shapes(gate)[0][2]
    found, fewest, current = gate, heads, gate
    for _ in range(_MAX_NODES):
        node = current.producer()
        if node is None or node.domain or node.op_type not in _MOVING or (source := node.inputs[0]) is None:
            break
        current = source
        shape = scan.runs.shapes(current)[0]
        if len(shape) != 4 or not scan.has_shape(current, "b", "t", shape[2], "n"):
            continue
        if 0 < shape[2] <= fewest and heads % shape[2] == 0 and _repeats(scan, current, gate):
            found, fewest = current, shape[2]
    return found, fewest


def _repeats(scan: _Scan, source: ir.Value, gate: ir.Value) -> bool:
    """Return whether a gate contains each group of another one, repeated for its heads."""
    for run, shape in enumerate(scan.runs.shapes(source)[:_EVALUATED]):
        array = of_all_sizes(shape)
        found = scan.runs.probe(run, [gate], {source: array}).array(gate)
        heads = scan.runs.shapes(gate)[run][2]
        if not np.array_equal(found, np.repeat(array, heads // shape[2], axis=2)):
            return False
    return True


def _separate(scan: _Scan, y: ir.Value, present: ir.Value) -> None:
    """Replace the parts of a concatenation of the outputs, which optimum-intel's modules return, by the outputs."""
    pending, found = [y, present], dict.fromkeys((y, present))
    while pending and len(found) < _MAX_NODES:
        for node, _ in pending.pop().uses():
            value = node.outputs[0]
            if node.domain or node.op_type not in _MOVING or value in found or node.graph is not y.graph:
                continue
            found[value] = None
            pending.append(value)
    for value in list(found)[2:]:
        with suppress(ProbeError):
            for output in (y, present):
                if _equals(scan, value, output, (y, present)):
                    replace_value(value, output, equal=False)
                    break


def _equals(scan: _Scan, value: ir.Value, output: ir.Value, outputs: tuple[ir.Value, ir.Value]) -> bool:
    """Return whether a value that is computed from the outputs is one of them."""
    if scan.runs.shapes(value) != scan.runs.shapes(output):
        return False
    for run in range(_EVALUATED):
        given = {one: of_all_sizes(scan.runs.shapes(one)[run], seed) for seed, one in enumerate(outputs)}
        if not np.array_equal(scan.runs.probe(run, [value], given).array(value), given[output]):
            return False
    return True
