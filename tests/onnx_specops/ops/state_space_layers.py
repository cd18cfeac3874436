"""The loop over tokens that optimum-intel exports for Mamba 2, as OpenVINO layers."""

from __future__ import annotations

import numpy as np
import openvino as ov
from openvino import opset14 as ops

from tests.onnx_specops.ops.openvino_layers import TokenLoop

F = np.float32
NAMES = ("x", "time_step", "input_gate", "output_gate", "state")


def arrays(
    batch: int, tokens: int, heads: int, channels: int, groups: int, size: int, seed: int = 0
) -> dict[str, np.ndarray]:
    """Return inputs of the layers, and the decay, a constant for each head."""
    draw = np.random.default_rng(seed)
    found = {
        "x": draw.standard_normal((batch, tokens, heads, channels)),
        "time_step": draw.uniform(0, 1, (batch, tokens, heads)),
        "decay": -draw.uniform(0.1, 2, heads),
        "input_gate": draw.standard_normal((batch, tokens, groups, size)),
        "output_gate": draw.standard_normal((batch, tokens, groups, size)),
        "state": draw.standard_normal((batch, heads, channels, size)),
    }
    return {name: array.astype(F) for name, array in found.items()}


def operator_inputs(given: dict[str, np.ndarray]) -> list[np.ndarray]:
    """Return the inputs of the operator that computes the same as the layers."""
    steps = given["time_step"]
    decay = np.exp(steps * given["decay"])
    return [given["x"] * steps[..., None], decay, given["input_gate"], given["output_gate"], given["state"]]


def layers(
    given: dict[str, np.ndarray],
    *,
    repeated: str = "each",
    summed: int = -1,
    keeps: bool = True,
    added: str = "sum",
    limit: float | None = None,
    late: bool = False,
    first: bool = False,
    reverse: bool = False,
    trips: int = 0,
    joined: bool = True,
    more: bool = False,
    stops: bool = False,
    by_element: bool = False,
    offset: bool = False,
    rows: int = -1,
    routed: bool = False,
) -> ov.Model:
    """Build the layers; the keywords change the computation.

    Args:
        given: inputs of the model, whose sizes it has, except batch and tokens.
        repeated: whether ``"each"`` group is repeated for its heads, or ``"all"`` groups together.
        summed: the axis over which the gated state is summed.
        keeps: whether the state is carried; otherwise each token starts from the initial state.
        added: ``"sum"``: the update is added to the state; ``"difference"``: it is subtracted.
        limit: the largest magnitude of the state.
        late: whether the output is computed from the state before the token.
        first: whether all tokens write their output at the place of the first one.
        reverse: whether the loop goes from the last token to the first.
        trips: a number that is added to the number of iterations.
        joined: whether the outputs are concatenated and sliced, as by a module with one output.
        more: whether the state is also written out for each token.
        stops: whether the condition of the body is computed.
        by_element: whether the decay differs between the channels of a head.
        offset: whether the update is a product plus a number.
        rows: the batch of the state.
        routed: whether the shape of the input depends on data before it is reshaped.
    """
    heads, channels, size = given["state"].shape[1:]
    groups = given["input_gate"].shape[2]
    shapes = [[-1, -1, heads, channels], [-1, -1, heads], *([[-1, -1, groups, size]] * 2), [rows, heads, channels, size]]
    parameters = [ops.parameter(shape, F, name=name) for name, shape in zip(NAMES, shapes, strict=True)]
    x, steps, input_gate, output_gate, state = parameters
    x_shape = ops.shape_of(x)
    if routed:
        flat = ops.reshape(x, np.array([-1]), False)
        places = ops.squeeze(ops.non_zero(ops.greater(flat, F(-1e30)), "i64"), np.int64(0))
        x = ops.reshape(ops.gather(flat, places, np.int64(0)), x_shape, False)

    def for_heads(gate: ov.Node) -> ov.Node:
        each = repeated == "each"
        repeats = np.array([1, 1, 1, heads // groups, 1] if each else [1, 1, heads // groups, 1, 1])
        tiled = ops.tile(ops.unsqueeze(gate, np.int32(3 if each else 2)), repeats)
        return ops.reshape(tiled, np.array([0, 0, -1, size]), True)

    factor = ops.exp(ops.multiply(ops.constant(given["decay"]), steps))
    decay = ops.reshape(factor, np.array([0, 0, 0, 1, 1]), True)
    if by_element:
        decay = ops.multiply(decay, ops.constant(np.linspace(0.5, 1, channels, dtype=F).reshape(-1, 1)))
    scaled = ops.multiply(ops.unsqueeze(steps, np.int32(-1)), for_heads(input_gate))
    update = ops.multiply(ops.unsqueeze(scaled, np.int32(-2)), ops.unsqueeze(x, np.int32(-1)))
    if offset:
        update = ops.add(update, F(0.5))
    gate = ops.unsqueeze(for_heads(output_gate), np.int32(-2))

    one = np.int32(1)
    token = ops.parameter([], np.int32, "token")
    slices = [
        ops.parameter([-1, 1, heads, channels if by_element else 1, 1], F),
        ops.parameter([-1, 1, heads, channels, size], F),
        ops.parameter([-1, 1, heads, 1, size], F),
    ]
    before, written = ops.parameter([-1, heads, channels, size], F), ops.parameter([-1, -1, heads, channels], F)
    kept, change, weight = (ops.squeeze(value, one) for value in slices)
    combine = ops.add if added == "sum" else ops.subtract
    after = combine(ops.multiply(before, kept), change)
    if limit is not None:
        after = ops.clamp(after, -limit, limit)
    gated = ops.multiply(before if late else after, weight)
    row = ops.unsqueeze(ops.reduce_sum(gated, np.int32(summed), False), one)
    index = ops.unsqueeze(token, np.int32(0))
    index = ops.multiply(index, np.int32(0)) if first else index
    result = ops.scatter_update(written, index, row, one)
    next_state = after if keeps else ops.add(before, F(0))
    extra = ops.unsqueeze(after, one) if more else None
    values = zip(slices, (decay, update, gate), strict=True)
    loop = TokenLoop(token, list(values), 1, before, next_state, (heads, channels, size), written, result, extra)
    found = loop.outputs(state, x_shape, reverse=reverse, trips=trips, joined=joined, stops=stops)
    return ov.Model([ops.result(value) for value in found], parameters)
