"""The loop over tokens that optimum-intel exports for the gated delta rule (Qwen3-Next, Qwen3.5), as OpenVINO layers."""

from __future__ import annotations

import numpy as np
import openvino as ov
from openvino import opset14 as ops

from tests.onnx_specops.ops.openvino_layers import TokenLoop

F = np.float32
NAMES = ("query", "key", "value", "past_state", "decay", "beta")


def arrays(
    batch: int, tokens: int, heads: int, groups: int, rows: int, columns: int, seed: int = 0
) -> dict[str, np.ndarray]:
    """Return inputs of the layers, which are those of the operator. Keys have the length 1."""
    draw = np.random.default_rng(seed)
    key = draw.standard_normal((batch, tokens, groups, rows))
    found = {
        "query": draw.standard_normal((batch, tokens, groups, rows)) / max(rows, 1) ** 0.5,
        "key": key / np.sqrt((key**2).sum(-1, keepdims=True) + 1e-6),
        "value": draw.standard_normal((batch, tokens, heads, columns)),
        "past_state": draw.standard_normal((batch, heads, rows, columns)),
        "decay": -draw.uniform(0, 2, (batch, tokens, heads)),
        "beta": draw.uniform(0, 1, (batch, tokens, heads)),
    }
    return {name: array.astype(F) for name, array in found.items()}


def layers(
    given: dict[str, np.ndarray],
    *,
    repeated: str = "each",
    transposed: bool = True,
    joined: bool = True,
    early: bool = False,
    late: bool = False,
    added: str = "sum",
    error: str = "difference",
    rate: str = "error",
    factor: str = "exp",
    forgets: bool = True,
    limit: float | None = None,
    summed: int = -2,
    keeps: bool = True,
    swapped: bool = False,
    first: bool = False,
    reverse: bool = False,
    trips: int = 0,
    more: bool = False,
    stops: bool = False,
    by_row: bool = False,
    rows: int = -1,
    prepared: str = "",
    given_in_order: bool = False,
    known: bool = True,
) -> ov.Model:
    """Build the layers; the keywords change the computation.

    Args:
        given: inputs of the model, whose sizes it has, except batch and tokens.
        repeated: whether ``"each"`` group is repeated for its heads, or ``"all"`` groups together.
        transposed: whether heads come before tokens in the loop.
        joined: whether the outputs are concatenated and sliced, as by a module with one output.
        early: whether the values of the key are read from the state before it decays.
        late: whether the output is computed from the state before the update.
        added: ``"sum"``: the update is added to the state; ``"difference"``: it is subtracted.
        error: ``"difference"``: of the value and the value that is found; ``"sum"``: of both; ``"value"``: the value only.
        rate: whether the rate is a factor of the ``"error"``, or of the ``"value"`` only.
        factor: the function of the decay: ``"exp"``, or ``"sigmoid"``.
        forgets: whether the state decays.
        limit: the largest magnitude of the state.
        summed: the axis over which the gated state is summed.
        keeps: whether the state is carried; otherwise each token starts from the initial state.
        swapped: whether query and key are exchanged.
        first: whether all tokens write their output at the place of the first one.
        reverse: whether the loop goes from the last token to the first.
        trips: a number that is added to the number of iterations.
        more: whether the state is also written out for each token.
        stops: whether the condition of the body is computed.
        by_row: whether the decay differs between the rows of a state.
        rows: the batch of the state.
        prepared: the change of queries and keys after their repetition: ``"normalized"`` by their lengths, ``"scaled"`` by a
            number after the Transpose, or ``"shifted"`` by a number for each head.
        given_in_order: whether the heads come before the tokens in the model's inputs already.
        known: whether the sizes of heads are known.
    """
    heads, height, width = given["past_state"].shape[1:]
    groups = heads if given_in_order else given["key"].shape[2]
    shapes = [
        *([[-1, -1, groups, height]] * 2), [-1, -1, heads, width], [rows, heads, height, width], *([[-1, -1, heads]] * 2),
    ]  # fmt: skip
    if given_in_order:
        shapes = [shape if i == 3 else [-1, shape[2], -1, *shape[3:]] for i, shape in enumerate(shapes)]
    shapes = shapes if known else [[-1] * len(shape) for shape in shapes]
    parameters = [ops.parameter(shape, F, name=name) for name, shape in zip(NAMES, shapes, strict=True)]
    query, key, value, state, decay, beta = parameters
    axis = 2 if transposed else 1
    at = np.int32(axis)

    def for_heads(array: ov.Node) -> ov.Node:
        if given_in_order:
            return array
        each = repeated == "each"
        repeats = np.array([1, 1, 1, heads // groups, 1] if each else [1, 1, heads // groups, 1, 1])
        tiled = ops.tile(ops.unsqueeze(array, np.int32(3 if each else 2)), repeats)
        found = ops.reshape(tiled, np.array([0, 0, -1, height]), True)
        if prepared == "normalized":
            length = ops.sqrt(ops.add(ops.reduce_sum(ops.multiply(found, found), np.int32(-1), True), F(1e-6)))
            return ops.multiply(found, ops.divide(F(1), length))
        if prepared == "shifted":
            return ops.add(found, ops.constant(np.linspace(0, 1, heads, dtype=F).reshape(-1, 1)))
        return found

    def in_order(array: ov.Node, rank: int) -> ov.Node:
        return ops.transpose(array, np.array([0, 2, 1, 3][:rank])) if transposed and not given_in_order else array

    if swapped:
        query, key = key, query
    q, k, v = in_order(for_heads(query), 4), in_order(for_heads(key), 4), in_order(value, 4)
    if prepared == "scaled":
        q, k = ops.multiply(q, F(0.5)), ops.divide(k, F(2))
    if by_row:
        decay = ops.multiply(ops.unsqueeze(decay, np.int32(-1)), ops.constant(np.linspace(0.5, 1, height, dtype=F)))
    g, b = in_order(decay, 4 if by_row else 3), in_order(beta, 3)

    def slice_of(*sizes: int) -> ov.Node:
        sizes = sizes if known else (-1,) * len(sizes)
        heads_or_any = heads if known else -1
        return ops.parameter([-1, heads_or_any, 1, *sizes] if transposed else [-1, 1, heads_or_any, *sizes], F)

    token = ops.parameter([], np.int32, "token")
    slices = [slice_of(height), slice_of(height), slice_of(width), slice_of(*[height] * by_row), slice_of()]
    before, written = (
        ops.parameter([-1, *sizes] if known else [-1] * 4, F) for sizes in ((heads, height, width), (-1, -1, width))
    )
    last, second = np.int32(-1), np.int32(-2)
    qt, kt, vt = (ops.unsqueeze(ops.squeeze(slices[i], at), last) for i in range(3))
    vt = ops.squeeze(vt, last)
    function = ops.exp if factor == "exp" else ops.sigmoid
    gt = ops.unsqueeze(function(ops.squeeze(slices[3], at) if by_row or not transposed else slices[3]), last)
    bt = slices[4] if transposed else ops.unsqueeze(ops.squeeze(slices[4], at), last)
    if not by_row and not transposed:
        gt = ops.unsqueeze(gt, last)
    decayed = ops.multiply(before, gt) if forgets else ops.add(before, ops.multiply(F(0), gt))
    found = ops.reduce_sum(ops.multiply(before if early else decayed, kt), second, False)
    if error == "value":
        found = ops.multiply(found, F(0))
    combine = ops.add if error == "sum" else ops.subtract
    scaled = ops.multiply(combine(vt, found), bt) if rate == "error" else combine(ops.multiply(vt, bt), found)
    update = ops.multiply(kt, ops.unsqueeze(scaled, second))
    after = (ops.add if added == "sum" else ops.subtract)(decayed, update)
    if limit is not None:
        after = ops.clamp(after, -limit, limit)
    gated = ops.multiply(decayed if late else after, qt)
    row = ops.unsqueeze(ops.reduce_sum(gated, np.int32(summed), False), at)
    index = ops.unsqueeze(token, np.int32(0))
    index = ops.multiply(index, np.int32(0)) if first else index
    result = ops.scatter_update(written, index, row, at)
    next_state = after if keeps else ops.add(before, F(0))
    extra = ops.unsqueeze(after, np.int32(1)) if more else None
    values = zip(slices, (q, k, v, g, b), strict=True)
    loop = TokenLoop(token, list(values), axis, before, next_state, (heads, height, width), written, result, extra)
    y, *others = loop.outputs(state, ops.shape_of(v), reverse=reverse, trips=trips, joined=joined, stops=stops)
    if transposed:
        y = ops.transpose(y, np.array([0, 2, 1, 3])).output(0)
    return ov.Model([ops.result(array) for array in (y, *others)], parameters)
