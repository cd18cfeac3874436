"""Fusion of selective state-space models (Mamba), which an IR computes with cumulative sums over all tokens, into one node.

optimum-intel writes the recurrence of Mamba as multiplications, cumulative sums and a division of ``[batch, tokens,
channels, N]``. These are about twenty nodes, and each one processes N times the size of inputs and outputs. The computation
is recognized by evaluation on small inputs, so the order and form of the nodes do not matter.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np
import onnx_ir as ir
from onnx_ir.passes import PassResult

from converters.passes.attention.probing import Probe, ProbeError, of_all_sizes
from converters.passes.running import OperatorPass
from onnx_specops.building import Builder
from onnx_specops.domain import find
from onnx_specops.graphs import nested, producer_of
from onnx_specops.replacing import replace_value

_MAX_NODES = 60
_LARGEST_EPSILON = 1e-3
_CHANNELS, _SIZE = 3, 5
"""The sizes of values for the evaluation."""

_SMOOTH = frozenset((
    "Add", "Cast", "Concat", "CumSum", "Div", "Exp", "Expand", "Gather", "Identity", "Mul", "Neg", "Pad", "Reshape", "Slice",
    "Squeeze", "Sub", "Transpose", "Unsqueeze",
))  # fmt: skip
"""Operators without thresholds. They compute the same function beyond the tried numbers."""


@dataclass
class _Scan:
    """A selective scan.

    Attributes:
        y: ``[batch, tokens, channels]``.
        states: ``[batch, tokens, channels, N]``.
        last: the values of the state after the last token, ``[batch, channels, N]``, or with an axis of one token.
        inputs: the inputs of the operator.
        epsilon: the operator's attribute.
    """

    y: ir.Value
    states: ir.Value
    last: list[ir.Value]
    inputs: dict[str, ir.Value]
    epsilon: float


class FuseSelectiveScan(OperatorPass):
    """Replace selective scans by `onnx_specops.SelectiveScan`.

    Conditions: the states after all tokens are multiplied by a gate and summed. They depend only on the previous state, two
    values of tokens and channels, a gate of the tokens, the decay and constants. They are equal to those of the operator for
    several numbers of tokens and sizes of time steps. Other consumers of the states use only those of the last token.
    """

    operators = frozenset(("ReduceSum",))

    def call(self, model: ir.Model) -> PassResult:
        root: Builder | None = None
        for node in list(model.graph):
            if node.op_type != "ReduceSum" or node.domain or node.graph is None:
                continue
            scan = _scan(node)
            if scan is None:
                continue
            root = root or Builder.of_existing(model.graph)
            _replace(model.graph, scan, root)
        if root is not None:
            model.graph.sort()  # the last state may have been computed before the outputs
        return PassResult(model, modified=root is not None)


def _scan(node: ir.Node) -> _Scan | None:
    """Return the scan whose gated states a node sums."""
    y, product = node.outputs[0], producer_of(node.inputs[0], "Mul")
    if product is None or product.outputs[0].is_graph_output() or len(list(product.outputs[0].uses())) != 1:
        return None
    for states, gate in (product.inputs, tuple(reversed(product.inputs))):
        if states is None or gate is None or producer_of(states, "Div") is None:
            continue
        region = _region(states)
        gates = None if region is None else _region(gate)
        if region is None or gates is None or len(gates.taken) != 1 or gates.matrices:
            continue
        found = _determined(y, states, region, gates.taken[0])
        if found is not None:
            return found
    return None


@dataclass
class _Region:
    """The nodes that compute a value from values of fewer dimensions.

    Attributes:
        nodes: the nodes.
        taken: the outer values of three dimensions.
        matrices: the outer values of two dimensions.
        constants: the other outer values that are constants.
    """

    nodes: list[ir.Node]
    taken: list[ir.Value]
    matrices: list[ir.Value]
    constants: list[ir.Value]


def _region(value: ir.Value) -> _Region | None:
    """Return the nodes that compute a four-dimensional value from three-dimensional ones; ``None`` if there are too many or
    others.
    """
    nodes: list[ir.Node] = []
    taken: list[ir.Value] = []
    matrices: list[ir.Value] = []
    constants: list[ir.Value] = []
    pending, seen = [value], {value}
    while pending:
        current = pending.pop()
        node = current.producer()
        if _rank(current) in (2, 3) and current.dtype == ir.DataType.FLOAT:
            (taken if _rank(current) == 3 else matrices).append(current)
            continue
        if current.const_value is not None:
            constants.append(current)
            continue
        if _rank(current) != 4:
            return None
        if node is None or node.domain or node.op_type not in _SMOOTH or len(node.outputs) != 1 or nested(node):
            return None
        nodes.append(node)
        if len(nodes) > _MAX_NODES:
            return None
        for one in node.inputs:
            if one is not None and one not in seen:
                seen.add(one)
                pending.append(one)
    return _Region(nodes, taken, matrices, constants)


def _determined(y: ir.Value, states: ir.Value, region: _Region, output_gate: ir.Value) -> _Scan | None:
    """Return the scan that a region computes, determined by evaluation."""
    if len(region.taken) != 4 or len(region.matrices) != 1 or _rank(y) != 3 or y.dtype != ir.DataType.FLOAT:
        return None
    (decay,) = region.matrices
    last = _last(states)
    if last is None:
        return None
    for order in permutations(region.taken):
        inputs = dict(zip(("x", "time_step", "input_gate", "state"), order, strict=True))
        inputs |= {"decay": decay, "output_gate": output_gate}
        if not _shapes_fit(inputs):
            continue
        for epsilon in _epsilons(region):
            scan = _Scan(y, states, last, inputs, epsilon)
            if all(_agrees(scan, tokens, width) for tokens, width in ((1, 1.0), (4, 0.3), (7, 3.0))):
                return scan
    return None


def _epsilons(region: _Region) -> Iterator[float]:
    """Yield the possible addends before the division: the constants of the region, and zero."""
    found = {0.0: None}
    for value in region.constants:
        tensor = value.const_value
        if tensor is not None and tensor.size == 1 and tensor.dtype == ir.DataType.FLOAT:
            number = float(tensor.numpy().reshape(-1)[0])
            if 0 < number < _LARGEST_EPSILON:
                found[number] = None
    return iter(reversed(found))


def _last(states: ir.Value) -> list[ir.Value] | None:
    """Return the values of the states of the last token; ``None`` if other states are used."""
    found: list[ir.Value] = []
    measured: list[ir.Value] = []
    gated = 0
    for node, _ in states.uses():
        value = node.outputs[0]
        if node.op_type == "Mul" and not node.domain:  # the gate that `_scan` found
            gated += 1
            continue
        if node.op_type == "Shape" and not node.domain:  # from which the index of the last token may be computed
            measured.append(value)
            continue
        if not all(_is_of_last(value, states, tokens) for tokens in (5, 7)):
            return None
        found.append(value)
    if gated != 1 or states.is_graph_output() or not all(_leads_to(value, found) for value in measured):
        return None
    return found


def _is_of_last(value: ir.Value, states: ir.Value, tokens: int) -> bool:
    """Return whether a value is the state of the last of some tokens."""
    held = of_all_sizes((2, tokens, 3, 4))
    try:
        got = Probe({states: held}).array(value)
    except (ProbeError, IndexError):
        return False
    return np.array_equal(got, held[:, -1]) or np.array_equal(got, held[:, -1:])


def _leads_to(value: ir.Value, ends: Sequence[ir.Value]) -> bool:
    """Return whether only ``ends`` are computed from a value."""
    pending, seen = [value], {value}
    while pending:
        current = pending.pop()
        if current in ends:
            continue
        if current.is_graph_output() or len(seen) > _MAX_NODES:
            return False
        following = [output for node, _ in current.uses() for output in node.outputs if output not in seen]
        seen.update(following)
        pending += following
    return True


def _shapes(batch: int, tokens: int, channels: int, size: int) -> dict[str, tuple[int, ...]]:
    return {
        "x": (batch, tokens, channels),
        "time_step": (batch, tokens, channels),
        "decay": (channels, size),
        "input_gate": (batch, tokens, size),
        "output_gate": (batch, tokens, size),
        "state": (batch, channels, size),
    }


def _shapes_fit(inputs: Mapping[str, ir.Value]) -> bool:
    """Return whether the known dimensions of the inputs fit the operator, without broadcasting."""
    letters = {"batch": -1, "tokens": -2, "channels": -3, "size": -4}
    found: dict[int, set[int | None]] = {letter: set() for letter in letters.values()}
    for name, shape in _shapes(**letters).items():
        for given, letter in zip(inputs[name].shape or (), shape, strict=True):
            found[letter].add(given if isinstance(given, int) else None)
    for sizes in found.values():
        if len(sizes - {None}) > 1 or sizes == {None, 1}:  # a 1 would be repeated
            return False
    return all(found[letters[name]] != {None} for name in ("channels", "size"))


def _agrees(scan: _Scan, tokens: int, width: float) -> bool:
    """Return whether the nodes and the operator agree, with time steps up to ``width``."""
    draw = np.random.default_rng(tokens)
    shapes = _shapes(2, tokens, _CHANNELS, _SIZE)
    given = {name: draw.uniform(-1, 1, shape).astype(np.float32) for name, shape in shapes.items()}
    given["time_step"] = np.abs(given["time_step"]) * np.float32(width)
    given["decay"] = -2 * np.abs(given["decay"])
    y, present = find("SelectiveScan").kernel(epsilon=scan.epsilon, **given)
    try:
        probe = Probe({value: given[name] for name, value in scan.inputs.items()})
        got, states = probe.array(scan.y), probe.array(scan.states)
    except ProbeError:
        return False
    return _close(got, y) and states.shape == (2, tokens, _CHANNELS, _SIZE) and _close(states[:, -1], present)


def _close(one: np.ndarray, other: np.ndarray) -> bool:
    if one.shape != other.shape or not np.isfinite(other).all():
        return False
    return bool(np.abs(one - other).max(initial=0) <= 1e-4 * (1 + np.abs(other).max(initial=0)))


def _replace(graph: ir.Graph, scan: _Scan, root: Builder) -> None:
    op = Builder(graph, root=root, before=scan.y.producer())
    op.scope = scan.states.name or "scan"
    given = (scan.inputs[name] for name in _shapes(0, 0, 0, 0))
    y, present = op.specops.SelectiveScan(*given, epsilon=scan.epsilon, outputs=2)
    for value in scan.last:
        replace_value(value, present if _rank(value) == 3 else op.Unsqueeze(present, [1]), equal=False)
    replace_value(scan.y, y, equal=False)


def _rank(value: ir.Value) -> int | None:
    return None if value.shape is None else len(value.shape)
