"""Fusion of state spaces with one decay for each head (Mamba 2), which an IR computes by a loop over tokens, into one node.

optimum-intel computes the update of the state, ``[batch, tokens, heads, channels, N]``, for all tokens. A Loop adds it to
the state token by token, and writes the outputs into a tensor. The body is recognized by evaluation on small inputs, so the
order and form of its nodes do not matter.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import permutations

import numpy as np
import onnx_ir as ir

from converters.passes.token_loops import (
    EVALUATED,
    MAX_ELEMENTS,
    FuseTokenLoops,
    Runs,
    TokenLoop,
    captured,
    close,
    varies,
)
from onnx_specops.building import Builder


@dataclass
class _Scan(TokenLoop):
    """A loop over tokens.

    Attributes:
        decay, update, gate: its inputs, which have the dimensions of the update, ``bthpn``, or 1.
    """

    decay: ir.Value
    update: ir.Value
    gate: ir.Value


class FuseStateSpaceScan(FuseTokenLoops):
    """Replace loops over tokens that compute a state space by `onnx_specops.StateSpaceScan`.

    Conditions: the loop carries the state and the outputs, and runs once for each token. Its body multiplies the state by a
    number for each head, adds the token's update, and writes the sum of the gated state at the token's place. No operator of
    the body has limits. The update is a product of a value without N and a value without channels. All have the same batch
    and tokens in runs of several tokens.
    """

    def recognized(self, loop: ir.Node, runs: Runs) -> _Scan | None:
        return _scan(loop, runs)

    def replaced(self, graph: ir.Graph, found: _Scan, root: Builder) -> bool:
        return _replace(graph, found, root)


def _scan(loop: ir.Node, runs: Runs) -> _Scan | None:
    """Return the state space that a loop computes. Raise `ProbeError` if a shape cannot be determined."""
    read = captured(loop.attributes["body"].as_graph())
    if len(read) != 3 or any(len(shape) != 5 for value in read for shape in runs.shapes(value)):
        return None
    for place, (decay, update, gate) in ((i, roles) for i in (0, 1) for roles in permutations(read)):
        sizes = [dict(zip("bthpn", shape, strict=True)) for shape in runs.shapes(update)]
        scan = _Scan(loop, place, sizes, runs, decay, update, gate)
        if (
            varies(update, 1, runs)
            and scan.has_fixed_state()
            and scan.has_shape(decay, "b", "t", "h", 1, 1)
            and scan.has_shape(update, *"bthpn")
            and scan.has_shape(gate, "b", "t", "h", 1, "n")
            and scan.has_shape(scan.state, *"bhpn")
            and scan.has_shape(scan.written, *"bthp")
            and scan.runs_once()
            and _computes(scan)
        ):
            return scan
    return None


def _computes(scan: _Scan) -> bool:
    """Return whether a body computes the operator's state and output of a token."""
    for shape in scan.runs.shapes(scan.update)[:EVALUATED]:
        if math.prod(shape) > MAX_ELEMENTS or not all(_agrees(scan, shape, t) for t in {0, shape[1] - 1}):
            return False
    return True


def _agrees(scan: _Scan, shape: tuple[int, ...], t: int) -> bool:
    """Return whether the body computes the operator's state and output of token ``t``."""
    batch, tokens, heads, channels, size = shape
    draw = np.random.default_rng(t)

    def numbers(*shape: int) -> np.ndarray:
        return draw.uniform(-1, 1, shape).astype(np.float32)

    decay, update = numbers(batch, tokens, heads, 1, 1), numbers(*shape)
    gate, state = numbers(batch, tokens, heads, 1, size), numbers(batch, heads, channels, size)
    written = numbers(batch, tokens, heads, channels)
    found = scan.step(t, state, written.copy(), {scan.decay: decay, scan.update: update, scan.gate: gate})
    after = state * decay[:, t] + update[:, t]
    written[:, t] = (after * gate[:, t]).sum(-1)
    return close(found[0], after) and close(found[1], written)


def _replace(graph: ir.Graph, scan: _Scan, root: Builder) -> bool:
    """Replace a loop, if its update is a product."""
    factors = _factors(scan)
    if factors is None:
        return False
    op = Builder(graph, root=root, before=scan.node)
    op.scope = scan.node.name or "scan"
    x = scan.without(op, factors[0], (4,), "bthp")
    into, out = (scan.without(op, gate, (3,), "bthn") for gate in (factors[1], scan.gate))
    steps, gate = _steps(scan, into)
    grouped = scan.grouped(gate, "n"), scan.grouped(out, "n")
    if grouped[0][1] == grouped[1][1]:
        x = x if steps is None else op.Mul(x, steps)
        (into, _), (out, _) = grouped
    decay = scan.without(op, scan.decay, (3, 4), "bth")
    y, present = op.specops.StateSpaceScan(x, decay, into, out, scan.state, outputs=2)
    scan.replace(y, present)
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


def _steps(scan: _Scan, gate: ir.Value) -> tuple[ir.Value | None, ir.Value]:
    """Return the factor of a gate that has one number for each head, and the other factor."""
    for steps, rest in _factor_pairs(gate):
        if scan.has_shape(steps, "b", "t", "h", 1) and scan.has_shape(rest, *"bthn"):
            return steps, rest
    return None, gate
