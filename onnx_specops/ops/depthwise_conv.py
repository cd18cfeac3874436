"""DepthwiseConv: a convolution of each channel, with channels last."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Annotated

import numpy as np

from onnx_specops.attributes import Limits
from onnx_specops.domain import operator
from onnx_specops.ops._integer_lists import parse_integers
from onnx_specops.ops._windows import Windows

_NAME = "DepthwiseConv"


@operator(
    inputs={"X": "T", "W": "T", "bias": "T"},
    outputs={"Y": "T"},
    types={"T": ("float",)},
)
def DepthwiseConv(
    X,
    W,
    bias=None,
    *,
    channels: Annotated[int, Limits(1, 1 << 24)],
    kernel: str,
    strides: str = "",
    pads: str = "",
    dilations: str = "",
):
    """Convolves each channel with a separate kernel, in channels-last layout.

    This is ONNX's Conv with one group per channel, except that the channels are the last dimension of each tensor.

    Inputs:
        X: ``[N, S1, ..., C]`` with one to three spatial dimensions.
        W: ``[k1, ..., C]``.
        bias: ``[C]``. 0 if omitted.

    Attributes:
        channels: ``C``.
        kernel: ``k1, ...``, as a list such as ``"3,3"``.
        strides, dilations: one number for each spatial dimension, as a list. An empty list means 1.
        pads: the padding at the beginning of each dimension, then at the end of each, as a list. An empty list means 0.

    Output: ``[N, E1, ..., C]``.

    Source: OpenVINO's GroupConvolution, between layers in channels-last layout.
    """
    window = _window(kernel)
    windows = Windows(_NAME, len(window), strides, pads, dilations)
    sizes = _sizes(windows, X.shape, W.shape, [*window, channels])
    if bias is not None and bias.shape != (channels,):
        raise ValueError(f"{_NAME}: bias has the shape {list(bias.shape)} instead of [{channels}]")
    inside = np.pad(X, [(0, 0), *windows.pads, (0, 0)])
    sums = np.zeros((X.shape[0], *sizes, channels), np.float32)
    with np.errstate(all="ignore"):
        for offsets in itertools.product(*map(range, window)):
            sums += inside[(slice(None), *windows.slices(offsets, sizes))] * W[offsets]
        return sums if bias is None else sums + bias


def _window(kernel: str) -> list[int]:
    rank = kernel.count(",") + 1
    if rank > 3:
        raise ValueError(f"{_NAME}: kernel = {kernel!r} has {rank} numbers; expected one to three")
    return parse_integers(_NAME, "kernel", kernel, rank, 1)


def _sizes(windows: Windows, x: Sequence[int], w: Sequence[int], stated: Sequence[int]) -> list[int]:
    """Return the output sizes. Raise ``ValueError`` if the shapes contradict each other or the attributes."""
    if list(w) != list(stated):
        raise ValueError(f"{_NAME}: W has the shape {list(w)} instead of {list(stated)}")
    if len(x) != len(w) + 1 or x[-1] != w[-1]:
        raise ValueError(f"{_NAME}: X has the shape {list(x)}; expected {len(w) + 1} dimensions, the last of {w[-1]}")
    return windows.sizes(x[1:-1], w[:-1], 1, w)


@DepthwiseConv.infer_shapes
def _(node):
    attributes, x = node.attributes, node.shape(0)
    window, channels = _window(attributes["kernel"]), attributes["channels"]
    windows = Windows(_NAME, len(window), attributes["strides"], attributes["pads"], attributes["dilations"])
    if x is None or len(x) != len(window) + 2:
        return [[None] * (len(window) + 1) + [channels]]
    return [[x[0], *windows.known_sizes(x[1:-1], window), channels]]


@DepthwiseConv.body_facts
def _(X, W, bias, *, channels, kernel, strides, pads, dilations):
    """Return whether the windows of a node are known to fit. Not every runtime reports windows that do not fit."""
    window = _window(kernel)
    if X.shape is None or len(X.shape) != len(window) + 2:
        return {"fits": False}
    return {
        "fits": None not in Windows(_NAME, len(window), strides, pads, dilations).known_sizes(list(X.shape)[1:-1], window)
    }


@DepthwiseConv.body
def _(op, X, W, bias, *, channels, kernel, strides, pads, dilations, fits):
    window = _window(kernel)
    rank = len(window)
    windows = Windows(_NAME, rank, strides, pads, dilations)
    if not fits:
        X = windows.fitting(op, X, op.Shape(X, start=1, end=rank + 1), np.array(window, np.int64))
    weights = op.Unsqueeze(op.Transpose(W, perm=[rank, *range(rank)]), [1])
    values = op.Conv(
        op.Transpose(X, perm=[0, rank + 1, *range(1, rank + 1)]), weights, bias, kernel_shape=window, group=channels,
        strides=windows.strides, dilations=windows.dilations, pads=windows.all_pads,
    )  # fmt: skip
    return op.Transpose(values, perm=[0, *range(2, rank + 2), 1])
