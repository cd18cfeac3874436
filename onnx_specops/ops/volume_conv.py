"""VolumeConv: a convolution of three spatial dimensions."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Annotated

import numpy as np

from onnx_specops.assertions import required
from onnx_specops.attributes import Limits
from onnx_specops.domain import operator
from onnx_specops.ops._integer_lists import parse_integers

_RANK = 3


@operator(
    inputs={"X": "T", "W": "T", "bias": "T"},
    outputs={"Y": "T"},
    types={"T": ("float",)},
)
def VolumeConv(
    X,
    W,
    bias=None,
    *,
    strides: str = "",
    pads: str = "",
    dilations: str = "",
    group: Annotated[int, Limits(1, 1 << 24)] = 1,
    slope: float = 1.0,
):
    """Convolves volumes as ONNX's Conv does, and multiplies numbers below zero by ``slope``.

    A slope of 1 changes nothing, 0 is Relu, and others are LeakyRelu.

    Inputs:
        X: ``[N, C, D, H, W]``.
        W: ``[M, C / group, k1, k2, k3]``.
        bias: ``[M]``. 0 if omitted.

    Attributes:
        strides, dilations: one number for each spatial dimension, as a list such as ``"2,2,2"``; empty: 1.
        pads: the padding at the beginnings, then at the ends, as a list; empty: 0.
        group: the number of groups of channels.
        slope: the factor of numbers below zero.

    Output: ``[N, M, E1, E2, E3]``.

    Source: OpenVINO's Convolution and GroupConvolution.
    """
    steps, spread, padding, sizes = _geometry(X.shape, W.shape, strides, pads, dilations, group)
    if bias is not None and bias.shape != (W.shape[0],):
        raise ValueError(f"VolumeConv: bias has the shape {list(bias.shape)} instead of [{W.shape[0]}]")
    inside = np.pad(X, [(0, 0), (0, 0), *padding])
    sums = np.zeros((X.shape[0], group, W.shape[0] // group, *sizes), np.float32)
    weights = W.reshape(group, W.shape[0] // group, *W.shape[1:])
    with np.errstate(all="ignore"):
        for offsets in itertools.product(*map(range, W.shape[2:])):
            windows = [
                slice(at * wide, at * wide + (size - 1) * step + 1, step)
                for at, wide, size, step in zip(offsets, spread, sizes, steps, strict=True)
            ]
            taken = inside[(slice(None), slice(None), *windows)]
            taken = taken.reshape(taken.shape[0], group, W.shape[1], *sizes)
            sums += np.einsum("ngcdhw,gmc->ngmdhw", taken, weights[(..., *offsets)])
        values = sums.reshape(X.shape[0], W.shape[0], *sizes)
        if bias is not None:
            values = values + bias[:, None, None, None]
        if slope == 0:
            return np.where(values < 0, np.float32(0), values)
        return values if slope == 1 else np.where(values < 0, values * np.float32(slope), values)


def _geometry(
    x: Sequence[int], w: Sequence[int], strides: str, pads: str, dilations: str, group: int
) -> tuple[list[int], list[int], list[tuple[int, int]], list[int]]:
    """Return strides, dilations, pads and output sizes. Raise ``ValueError`` for contradictions."""
    name = "VolumeConv"
    if len(x) != _RANK + 2 or len(w) != _RANK + 2:
        raise ValueError(f"{name}: X and W have the shapes {list(x)} and {list(w)}; expected five dimensions each")
    if x[1] != w[1] * group or w[0] % group:
        raise ValueError(f"{name}: W has the shape {list(w)}, but X has {x[1]} channels in {group} groups")
    steps, spread, padding = _attributes(strides, pads, dilations)
    sizes = []
    for axis, (size, kernel) in enumerate(zip(x[2:], w[2:], strict=True)):
        padded, extent = size + sum(padding[axis]), (kernel - 1) * spread[axis] + 1
        if kernel < 1 or padded < extent:
            raise ValueError(
                f"{name}: W has the shape {list(w)}, but X, padded, has {padded} pixels along axis {axis + 2}"
            )  # fmt: skip
        sizes.append((padded - extent) // steps[axis] + 1)
    return steps, spread, padding, sizes


def _attributes(strides: str, pads: str, dilations: str) -> tuple[list[int], list[int], list[tuple[int, int]]]:
    name = "VolumeConv"
    steps = parse_integers(name, "strides", strides, _RANK, 1)
    spread = parse_integers(name, "dilations", dilations, _RANK, 1)
    if min(*steps, *spread) < 1:
        raise ValueError(f"{name}: strides and dilations must be at least 1")
    both = parse_integers(name, "pads", pads, 2 * _RANK, 0)
    return steps, spread, list(zip(both[:_RANK], both[_RANK:], strict=True))


@VolumeConv.infer_shapes
def _(node):
    x, w = node.shape(0), node.shape(1)
    if x is None or w is None or len(x) != len(w) or len(w) != _RANK + 2:
        return [[None] * (_RANK + 2)]
    attributes = node.attributes
    steps, spread, padding = _attributes(attributes["strides"], attributes["pads"], attributes["dilations"])
    sizes: list[int | None] = []
    for size, kernel, step, wide, pad in zip(x[2:], w[2:], steps, spread, padding, strict=True):
        known = isinstance(size, int) and isinstance(kernel, int) and kernel > 0
        room = size + sum(pad) - (kernel - 1) * wide - 1 if known else -1
        sizes.append(room // step + 1 if room >= 0 else None)
    return [[x[0], w[0], *sizes]]


@VolumeConv.body_facts
def _(X, W, bias, *, strides, pads, dilations, group, slope):
    """Return whether the windows of a node are known to fit. Not every runtime reports those that do not."""
    shapes = [None if value.shape is None else list(value.shape) for value in (X, W)]
    known = [shape for shape in shapes if shape is not None and all(isinstance(size, int) for size in shape[2:])]
    if len(known) < 2 or any(len(shape) != _RANK + 2 for shape in known):
        return {"fits": False}
    _, spread, padding = _attributes(strides, pads, dilations)
    sizes = zip(known[0][2:], known[1][2:], spread, padding, strict=True)
    return {"fits": all(kernel > 0 and size + sum(pad) > (kernel - 1) * wide for size, kernel, wide, pad in sizes)}


@VolumeConv.body
def _(op, X, W, bias, *, strides, pads, dilations, group, slope, fits):
    steps, spread, padding = _attributes(strides, pads, dilations)
    begins, ends = zip(*padding, strict=True)
    if not fits:
        wide = np.array(spread, np.int64)
        window = op.Sub(op.Shape(W, start=2), [1])
        padded = op.Add(op.Shape(X, start=2), np.array(begins, np.int64) + np.array(ends, np.int64))
        few = op.LessOrEqual(padded, op.Mul(window, wide))
        X = op.Reshape(X, required(op, "pixels_of_X", op.Or(few, op.Less(window, [0])), op.Shape(X)), allowzero=1)
    values = op.Conv(X, W, bias, strides=steps, dilations=spread, pads=[*begins, *ends], group=group)
    if slope == 1:
        return values
    return op.LeakyRelu(values, alpha=slope) if slope else op.Relu(values)
