"""A selective scan as OpenVINO layers, as optimum-intel exports them for Mamba."""

from __future__ import annotations

import numpy as np
import openvino as ov
from openvino import opset13 as ops

F = np.float32
NAMES = ("x", "time_step", "input_gate", "output_gate", "state")


def arrays(batch: int, tokens: int, channels: int, size: int, seed: int = 0, width: float = 0.5) -> dict[str, np.ndarray]:
    """Return inputs of the operator, with time steps up to ``width``."""
    draw = np.random.default_rng(seed)
    found = {
        "x": draw.standard_normal((batch, tokens, channels)),
        "time_step": draw.uniform(0, width, (batch, tokens, channels)),
        "decay": -draw.uniform(0.1, 2, (channels, size)),
        "input_gate": draw.standard_normal((batch, tokens, size)),
        "output_gate": draw.standard_normal((batch, tokens, size)),
        "state": draw.standard_normal((batch, channels, size)),
    }
    return {name: array.astype(F) for name, array in found.items()}


def layers(
    decay: np.ndarray,
    *,
    epsilon: float = 1e-12,
    turned: bool = True,
    token: int = -1,
    sliced: bool = False,
    summed: int = -1,
    all_states: bool = False,
    twice: bool = False,
    limit: float | None = None,
    rows: int = -1,
) -> ov.Model:
    """Build the layers; the keywords change the computation.

    Args:
        decay: [channels, N], a constant.
        epsilon: added before the division.
        turned: whether each token sums over later tokens; otherwise over earlier ones.
        token: the token whose state is the final state.
        sliced: whether a Slice takes it, which keeps the axis.
        summed: the axis over which the gated states are summed.
        all_states: whether the states of all tokens are an output.
        twice: whether the decay of the previous state is squared.
        limit: the largest magnitude of an addend of the state.
        rows: the batch of the previous state.
    """
    channels, size = decay.shape
    shapes = [[-1, -1, channels]] * 2 + [[-1, -1, size]] * 2 + [[rows, channels, size]]
    given = [ops.parameter(shape, F, name=name) for name, shape in zip(NAMES, shapes, strict=True)]
    x, time_step, input_gate, output_gate, state = given
    one, ends = np.array([1]), np.array([2**31 - 1])
    rate = ops.multiply(ops.unsqueeze(time_step, np.int64(3)), ops.constant(decay))
    added = ops.multiply(ops.unsqueeze(x, np.int64(3)), ops.unsqueeze(input_gate, np.int64(2)))

    if limit is not None:
        added = ops.clamp(added, -limit, limit)

    def flipped(value: ov.Node) -> ov.Node:
        return ops.slice(value, np.array([-1]), np.array([-(2**31)]), np.array([-1]), one)

    later = ops.slice(rate, one, ends, one, one)
    behind = ops.pad(later, np.array([0, 0, 0, 0]), np.array([0, 1, 0, 0]), "constant", F(0))
    sums = ops.cumsum(flipped(behind), np.int64(1)) if turned else ops.cumsum(behind, np.int64(1))
    e = ops.exp(sums)
    e = flipped(e) if turned else e
    first = ops.exp(ops.slice(rate, np.array([0]), one, one, one))
    first = ops.multiply(first, first) if twice else first
    whole = ops.add(ops.multiply(added, e), ops.multiply(ops.unsqueeze(state, np.int64(1)), first))
    states = ops.divide(ops.cumsum(whole, np.int64(1)), ops.add(e, F(epsilon)) if epsilon else e)
    y = ops.reduce_sum(ops.multiply(states, ops.unsqueeze(output_gate, np.int64(2))), np.array([summed]), False)
    last = ops.gather(states, np.int64(token), np.int64(1))
    if sliced:
        last = ops.slice(states, np.array([token]), np.array([token + 1]) if token + 1 else ends, one, one)
    results = [ops.result(value) for value in (y, last, *((states,) if all_states else ()))]
    return ov.Model(results, given)
