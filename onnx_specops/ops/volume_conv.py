"""VolumeConv: a convolution of one to three spatial dimensions."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Annotated

import numpy as np

from onnx_specops.attributes import Limits
from onnx_specops.domain import operator
from onnx_specops.ops._windows import Windows

_NAME, _MOST = "VolumeConv", 3


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
    """Computes ONNX's Conv in one to three dimensions, and multiplies negative results by ``slope``.

    With a slope of 1, the results do not change. A slope of 0 is Relu, and other slopes are LeakyRelu.

    Inputs:
        X: ``[N, C, D1, ..., Dn]``, with one to three spatial dimensions.
        W: ``[M, C / group, k1, ..., kn]``.
        bias: ``[M]``. 0 if omitted.

    Attributes:
        strides, dilations: one number for each spatial dimension, as a list such as ``"2,2,2"``. An empty list means 1.
        pads: the padding at the beginning of each dimension, then at the end of each, as a list. An empty list means 0.
        group: the number of groups of channels.
        slope: the factor of numbers below zero.

    Output: ``[N, M, E1, ..., En]``.

    Source: OpenVINO's Convolution and GroupConvolution.
    """
    windows = Windows(_NAME, _rank(X.shape, W.shape), strides, pads, dilations)
    sizes = _sizes(windows, X.shape, W.shape, group)
    if bias is not None and bias.shape != (W.shape[0],):
        raise ValueError(f"{_NAME}: bias has the shape {list(bias.shape)} instead of [{W.shape[0]}]")
    inside = np.pad(X, [(0, 0), (0, 0), *windows.pads])
    sums = np.zeros((X.shape[0], group, W.shape[0] // group, *sizes), np.float32)
    weights = W.reshape(group, W.shape[0] // group, *W.shape[1:])
    with np.errstate(all="ignore"):
        for offsets in itertools.product(*map(range, W.shape[2:])):
            taken = inside[(slice(None), slice(None), *windows.slices(offsets, sizes))]
            taken = taken.reshape(taken.shape[0], group, W.shape[1], *sizes)
            sums += np.einsum("ngc...,gmc->ngm...", taken, weights[(..., *offsets)])
        values = sums.reshape(X.shape[0], W.shape[0], *sizes)
        if bias is not None:
            values = values + bias.reshape(-1, *[1] * len(sizes))
        if slope == 0:
            return np.where(values < 0, np.float32(0), values)
        return values if slope == 1 else np.where(values < 0, values * np.float32(slope), values)


def _rank(x: Sequence[int | None], w: Sequence[int | None]) -> int:
    """Return the number of spatial dimensions. Raise ``ValueError`` if the kernel does not support it."""
    if not 3 <= len(x) <= _MOST + 2 or len(w) != len(x):
        raise ValueError(f"{_NAME}: X and W have the shapes {list(x)} and {list(w)}; expected three to five dimensions each")
    return len(x) - 2


def _sizes(windows: Windows, x: Sequence[int], w: Sequence[int], group: int) -> list[int]:
    """Return the output sizes. Raise ``ValueError`` if the shapes contradict each other."""
    if x[1] != w[1] * group or w[0] % group:
        raise ValueError(f"{_NAME}: W has the shape {list(w)}, but X has {x[1]} channels in {group} groups")
    return windows.sizes(x[2:], w[2:], 2, w)


@VolumeConv.infer_shapes
def _(node):
    x, w = node.shape(0), node.shape(1)
    if x is None or w is None:
        return [None]
    attributes = node.attributes
    windows = Windows(_NAME, _rank(x, w), attributes["strides"], attributes["pads"], attributes["dilations"])
    return [[x[0], w[0], *windows.known_sizes(x[2:], w[2:])]]


@VolumeConv.body_facts
def _(X, W, bias, *, strides, pads, dilations, group, slope):
    """Return the number of spatial dimensions, and whether the windows of a node are known to fit.

    Not every runtime reports windows that do not fit.
    """
    shapes = [value.shape for value in (X, W) if value.shape is not None]
    if not shapes:
        return {"rank": _MOST, "fits": False}
    rank = _rank(shapes[0], shapes[-1])
    return {
        "rank": rank,
        "fits": len(shapes) > 1
        and None not in Windows(_NAME, rank, strides, pads, dilations).known_sizes(shapes[0][2:], shapes[1][2:]),
    }


@VolumeConv.body
def _(op, X, W, bias, *, strides, pads, dilations, group, slope, rank, fits):
    windows = Windows(_NAME, rank, strides, pads, dilations)
    if not fits:
        X = windows.fitting(op, X, op.Shape(X, start=2), op.Shape(W, start=2))
    values = op.Conv(
        X, W, bias, strides=windows.strides, dilations=windows.dilations, pads=windows.all_pads, group=group
    )  # fmt: skip
    if slope == 1:
        return values
    return op.LeakyRelu(values, alpha=slope) if slope else op.Relu(values)
