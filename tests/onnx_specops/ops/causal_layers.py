"""The short convolution that optimum-intel exports for hybrids, as OpenVINO layers."""

from __future__ import annotations

import numpy as np
import openvino as ov
from openvino import opset14 as ops

F = np.float32
NAMES = ("x", "past_state")


def arrays(batch: int, tokens: int, channels: int, kernel: int, length: int, seed: int = 0) -> dict[str, np.ndarray]:
    """Return inputs of the operator."""
    draw = np.random.default_rng(seed)
    shapes = {"x": (batch, tokens, channels), "weight": (kernel, channels), "past_state": (batch, channels, length)}
    return {name: draw.standard_normal(shape).astype(F) for name, shape in shapes.items()}


def layers(
    given: dict[str, np.ndarray],
    *,
    transposed: bool = True,
    gated: bool = True,
    bias: bool = False,
    grouped: bool = False,
    stride: int = 1,
    dilation: int = 1,
    pads: tuple[int, int] = (0, 0),
    swapped: bool = False,
    earlier: int = 0,
    longer: int = 0,
    state: str = "last",
    squared: bool = False,
    more: bool = False,
    shared: bool = False,
    between: bool = False,
    known: bool = True,
) -> ov.Model:
    """Build the layers; the keywords change the computation.

    Args:
        given: inputs of the model, whose sizes it has, except batch and tokens.
        transposed: whether tokens come before channels in the input and the output.
        gated: whether SiLU follows.
        bias: whether a number is added to each channel.
        grouped: whether pairs of channels are convolved together.
        stride, dilation, pads: the attributes of the convolution.
        swapped: whether the state follows the new values.
        earlier: the number of last tokens that the output omits.
        longer: a number that is added to the number of output tokens.
        state: ``"last"`` or ``"first"`` values, or the last ``"fewer"``.
        squared: whether the output is squared before it is transposed back.
        more: whether the joined values are a result, too.
        shared: whether the output is also a result before it is transposed back.
        between: whether the channels come before the tokens in the model's input, and after them before the convolution.
        known: whether the length of the state is known.
    """
    channels = given["x"].shape[2]
    length, kernel = given["past_state"].shape[2], len(given["weight"])
    x = ops.parameter([-1, channels, -1] if between or not transposed else [-1, -1, channels], F, name="x")
    past = ops.parameter([-1, channels, length if known else -1], F, name="past_state")
    order = np.array([0, 2, 1])
    new = ops.transpose(ops.transpose(x, order) if between else x, order) if transposed else x
    joined = ops.concat([new, past] if swapped else [past, new], -1)
    weight = given["weight"].T.reshape(channels, 1, 1, kernel)
    if grouped:
        weight = weight.reshape(channels // 2, 2, 1, kernel).repeat(2, 2)
    y = ops.group_convolution(joined, ops.constant(weight), [stride], [pads[0]], [pads[1]], [dilation])
    if bias:
        y = ops.add(y, ops.constant(np.linspace(0, 1, channels, dtype=F).reshape(1, -1, 1)))
    one, big = np.array([1]), np.array([2**31 - 1])
    tokens = ops.unsqueeze(ops.gather(ops.shape_of(new), np.int64(2), np.int64(0)), np.int64(0))
    start = ops.multiply(ops.add(tokens, np.array([longer + earlier])), np.array([-1]))
    y = ops.slice(y, start, np.array([-earlier]) if earlier else big, one, np.array([2]))
    bounds = {"last": (-length, 2**31 - 1), "first": (0, length), "fewer": (1 - length, 2**31 - 1)}[state]
    present = ops.slice(joined, np.array([bounds[0]]), np.array([bounds[1]]), one, np.array([2]))
    inner = y
    y = ops.swish(y) if gated else y
    y = ops.multiply(y, y) if squared else y
    y = ops.transpose(y, order) if transposed else y
    extra = [joined] * more + [inner] * shared
    return ov.Model([ops.result(value) for value in (y, present, *extra)], [x, past])


def feeds(given: dict[str, np.ndarray], *, transposed: bool = True) -> dict[str, np.ndarray]:
    """Return the inputs of the model."""
    x = given["x"] if transposed else np.ascontiguousarray(given["x"].transpose(0, 2, 1))
    return {"x": x, "past_state": given["past_state"]}
