"""Loops over tokens that carry a state and write an output for each token: the parts that recognize their computation.

optimum-intel exports the recurrences of hybrids as such Loops. Their inputs have one row for each token. A module of one
output concatenates the outputs and the last state, and slices them afterwards.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import onnx_ir as ir
from onnx_ir.passes import PassResult

from converters.passes.attention.caches import detach
from converters.passes.attention.probe_shapes import Inputs, ProbeShapes
from converters.passes.attention.probing import Data, Probe, ProbeError, ShapeProbe, inputs_of, of_all_sizes
from converters.passes.loops import is_endless
from converters.passes.running import Operators, SelectivePass
from onnx_specops.building import Builder
from onnx_specops.graphs import nested
from onnx_specops.replacing import replace_value

MAX_NODES = 60
MAX_ELEMENTS = 1 << 24
"""The maximum number of elements of an array in the evaluation."""

_BATCH = 2
TOKENS = 1, 3, 300
"""The numbers of tokens of runs. Bodies are evaluated for the first ones only."""

EVALUATED = 2

LINEAR = frozenset((
    "Add", "Cast", "Concat", "Expand", "Gather", "Identity", "MatMul", "Mul", "ReduceProd", "ReduceSum", "Reshape",
    "ScatterElements", "ScatterND", "Shape", "Slice", "Squeeze", "Tile", "Transpose", "Unsqueeze",
))  # fmt: skip
"""Operators without thresholds. They compute the same function beyond the tried numbers."""

_MOVING = frozenset(("Concat", "Expand", "Gather", "Identity", "Reshape", "Slice", "Squeeze", "Tile", "Unsqueeze"))


class Runs:
    """The shapes of the values of a graph in runs of several numbers of tokens."""

    def __init__(self, graph: ir.Graph) -> None:
        flags = [value for value in graph.inputs if value.dtype == ir.DataType.BOOL]
        inputs = Inputs(graph, {}, flags)
        self._probes = [ShapeProbe(inputs.given(ProbeShapes(_BATCH, tokens))) for tokens in TOKENS]

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
class TokenLoop:
    """A loop over tokens.

    Attributes:
        node: its node.
        place: the index of the state among the two values that it carries.
        sizes: for each run, the sizes of dimensions by their letters: ``b`` rows, ``t`` tokens, ``h`` heads and others.
        runs: the shapes of all values.
    """

    node: ir.Node
    place: int
    sizes: Sequence[Mapping[str, int]]
    runs: Runs

    @property
    def body(self) -> ir.Graph:
        return self.node.attributes["body"].as_graph()

    @property
    def state(self) -> ir.Value | None:
        """The state before the first token."""
        return self.node.inputs[2 + self.place]

    @property
    def written(self) -> ir.Value | None:
        """The tensor into which the outputs are written."""
        return self.node.inputs[3 - self.place]

    @property
    def y(self) -> ir.Value:
        """The outputs of all tokens."""
        return self.node.outputs[1 - self.place]

    @property
    def present(self) -> ir.Value:
        """The state after the last token."""
        return self.node.outputs[self.place]

    def has_shape(self, value: ir.Value | None, *dims: str | int) -> bool:
        """Return whether a float value has certain dimensions in all runs, which are numbers or letters."""
        if value is None or value.dtype != ir.DataType.FLOAT:
            return False
        shapes = zip(self.runs.shapes(value), self.sizes, strict=True)
        return all(shape == tuple(sizes[dim] if isinstance(dim, str) else dim for dim in dims) for shape, sizes in shapes)

    def has_fixed_state(self) -> bool:
        """Return whether the sizes of the state besides the batch are fixed: unknown sizes of inputs are 1 in all runs."""
        shape = None if self.state is None else self.state.shape
        return shape is not None and all(isinstance(size, int) for size in list(shape)[1:])

    def runs_once(self) -> bool:
        """Return whether the loop runs once for each token."""
        trips = self.node.inputs[0]
        if trips is None:
            return False
        counts = [self.runs.probe(run, [trips], {}).array(trips) for run in range(len(TOKENS))]
        return all(
            count.size == 1 and count.reshape(-1)[0] == sizes["t"] for count, sizes in zip(counts, self.sizes, strict=True)
        )

    def step(
        self, t: int, state: np.ndarray, written: np.ndarray, given: Mapping[ir.Value, np.ndarray]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the state and the outputs after the iteration for token ``t``, for values that the body reads."""
        body = self.body
        iteration, _, *carried = body.inputs
        known = {iteration: np.array(t), carried[self.place]: state, carried[1 - self.place]: written}
        probe = Probe({**known, **given})
        return probe.array(body.outputs[1 + self.place]), probe.array(body.outputs[2 - self.place])

    def grouped(self, value: ir.Value, letter: str) -> tuple[ir.Value, int]:
        """Return the value before its heads were repeated, with the fewest groups, and the number of groups.

        Args:
            value: a value of the dimensions ``bth`` and another one.
            letter: the letter of that dimension.
        """
        heads = self.runs.shapes(value)[0][2]
        found, fewest, current = value, heads, value
        for _ in range(MAX_NODES):
            node = current.producer()
            if node is None or node.domain or node.op_type not in _MOVING or (source := node.inputs[0]) is None:
                break
            current = source
            try:
                shape = self.runs.shapes(current)[0]
                if len(shape) != 4 or not self.has_shape(current, "b", "t", shape[2], letter):
                    continue
                if 0 < shape[2] <= fewest and heads % shape[2] == 0 and self._repeats(current, value):
                    found, fewest = current, shape[2]
            except ProbeError:
                break
        return found, fewest

    def _repeats(self, source: ir.Value, value: ir.Value) -> bool:
        """Return whether a value contains each group of another one, repeated for its heads."""
        for run, shape in enumerate(self.runs.shapes(source)[:EVALUATED]):
            array = of_all_sizes(shape)
            found = self.runs.probe(run, [value], {source: array}).array(value)
            heads = self.runs.shapes(value)[run][2]
            if not np.array_equal(found, np.repeat(array, heads // shape[2], axis=2)):
                return False
        return True

    def without(self, op: Builder, value: ir.Value, axes: Sequence[int], dims: str) -> ir.Value:
        """Return a value without axes of size 1; it has the dimensions ``dims`` then."""
        node = value.producer()
        if node is not None and not node.domain and node.op_type in ("Reshape", "Unsqueeze"):
            source = node.inputs[0]
            if source is not None and self.has_shape(source, *dims):
                return source
        return op.Squeeze(value, list(axes))

    def replace(self, y: ir.Value, present: ir.Value) -> None:
        """Replace its results, and the parts of their concatenation, which optimum-intel's modules return. Remove it."""
        replace_value(self.y, y, equal=False)
        replace_value(self.present, present, equal=False)
        graph = self.node.graph
        assert graph is not None
        detach(self.node)
        graph.remove(self.node, safe=True)
        pending, found = [y, present], dict.fromkeys((y, present))
        while pending and len(found) < MAX_NODES:
            for node, _ in pending.pop().uses():
                value = node.outputs[0]
                if node.domain or node.op_type not in _MOVING or value in found or node.graph is not y.graph:
                    continue
                found[value] = None
                pending.append(value)
        for value in list(found)[2:]:
            with suppress(ProbeError):
                for output in (y, present):
                    if self._equals(value, output, (y, present)):
                        replace_value(value, output, equal=False)
                        break

    def _equals(self, value: ir.Value, output: ir.Value, outputs: tuple[ir.Value, ir.Value]) -> bool:
        """Return whether a value that is computed from the outputs is one of them."""
        if self.runs.shapes(value) != self.runs.shapes(output):
            return False
        for run in range(EVALUATED):
            given = {one: of_all_sizes(self.runs.shapes(one)[run], seed) for seed, one in enumerate(outputs)}
            if not np.array_equal(self.runs.probe(run, [value], given).array(value), given[output]):
                return False
        return True


class FuseTokenLoops(SelectivePass):
    """Replaces the Loops over tokens that carry only a state and the outputs, and whose body has only some operators."""

    operators: ClassVar[frozenset[str]] = LINEAR

    @abstractmethod
    def recognized(self, loop: ir.Node, runs: Runs) -> Any:
        """Return the computation of a loop, or ``None``. Raise `ProbeError` if a shape cannot be determined."""

    @abstractmethod
    def replaced(self, graph: ir.Graph, found: Any, root: Builder) -> bool:
        """Replace a recognized loop; return whether it was possible. Raise `ProbeError` as `recognized` does."""

    def may_change(self, operators: Operators) -> bool:
        return ("", "Loop") in operators

    def call(self, model: ir.Model) -> PassResult:
        root: Builder | None = None
        runs: Runs | None = None
        modified = False
        for node in list(model.graph):
            if node.op_type != "Loop" or node.domain or not carries_two(node, self.operators):
                continue
            runs = runs or Runs(model.graph)
            try:
                if (found := self.recognized(node, runs)) is not None:
                    root = root or Builder.of_existing(model.graph)
                    modified |= self.replaced(model.graph, found, root)
            except ProbeError:
                continue
        return PassResult(model, modified=modified)


def carries_two(loop: ir.Node, operators: frozenset[str]) -> bool:
    """Return whether a Loop carries only two values, ends after its trip count, and its body has only some operators."""
    body = loop.attributes["body"].as_graph()
    if len(loop.inputs) != 4 or len(loop.outputs) != 2 or len(body.inputs) != 4 or len(body.outputs) != 3:
        return False
    if not is_endless(loop) or len(list(body)) > MAX_NODES:
        return False
    return not any(node.domain or node.op_type not in operators or nested(node) for node in body)


def captured(body: ir.Graph) -> list[ir.Value]:
    """Return the values of the outer graph that a body reads, without constants."""
    own = {*body.inputs, *(value for node in body for value in node.outputs)}
    read = [*(value for node in body for value in inputs_of(node)), *body.outputs]
    return list(dict.fromkeys(value for value in read if value not in own and value.const_value is None))


def varies(value: ir.Value, axis: int, runs: Runs) -> bool:
    """Return whether an axis of a value has a fixed size, or another one in each run.

    Otherwise, its size in other runs is unknown: all dimensions of inputs after the second are 1 in all runs.
    """
    size = None if value.shape is None else value.shape[axis]
    return isinstance(size, int) or len({shape[axis] for shape in runs.shapes(value)}) == len(TOKENS)


def close(one: np.ndarray, other: np.ndarray) -> bool:
    """Return whether two arrays are equal up to rounding, relative to the largest number."""
    return one.shape == other.shape and bool(np.abs(one - other).max(initial=0) <= 1e-5 * np.abs(other).max(initial=0))


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
