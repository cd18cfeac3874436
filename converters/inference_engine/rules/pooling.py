"""Poolings."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np

from converters.errors import Malformed
from converters.inference_engine.rule import layer
from converters.inference_engine.rules._windows import Windows, same_padding, stated_sizes
from converters.openvino.rule import Context
from converters.openvino.rules import pooling as opset
from converters.openvino.rules._windows import Dilated, pad_spatial
from onnx_specops.building import Builder, Value


@layer("Pooling")
def pooling(
    op: Builder,
    data: Value,
    *,
    windows: Windows,
    pool_method: Literal["max", "avg"] = "max",
    exclude_pad: bool = False,
    rounding_type: str = "ceil",
    kernel_size: int = 0,
    kernel_w: int = 0,
    kernel_h: int = 0,
    stride: tuple[int, ...] = (),
    stride_w: int = 0,
    stride_h: int = 0,
    pad: int = 0,
    pad_w: int = 0,
    pad_h: int = 0,
    pool: str = "caffe.PoolingParameter.MAX",
    context: Context,
):
    """Pooling, including Caffe's spelling (``kernel_size``, ``pool``).

    The output's sizes in the file determine how far the last windows extend. For inputs of other shapes, the sizes are
    rounded up by default. If means include the padding, they include as much at the end as at the beginning, regardless of
    ``pads_end``.
    """
    if not windows.kernel and windows.kernel_x is None:
        step = stride[0] if stride else 1
        windows = replace(
            windows,
            kernel=(kernel_h or kernel_size, kernel_w or kernel_size),
            strides=(stride_h or step, stride_w or step),
            pads_begin=(pad_h or pad, pad_w or pad),
            pads_end=(0, 0),
        )
        pool_method, exclude_pad = "max" if pool == "caffe.PoolingParameter.MAX" else "avg", False
    kernel, sliding = windows.sizes(), windows.sliding()
    if data.rank is not None and data.rank != len(kernel) + 2:
        raise Malformed(f"its input has {data.rank} dimensions for a kernel of {len(kernel)}")
    sizes = stated_sizes(data, context) or _inferred_sizes(data, kernel, sliding, rounding_type != "floor")
    pads = None if sizes is None else same_padding(sliding, kernel, sizes[0])
    rounding: Literal["floor", "ceil"] = "floor" if rounding_type == "floor" else "ceil"
    # Padding only at the end is never included in a mean, regardless of the attribute.
    exclude_pad = exclude_pad or not any(sliding.pads_begin or () if pads is None else pads[0])
    if sizes is not None and pads is not None:
        fitting = [r for r in (rounding, "floor", "ceil") if _sizes(sizes[0], kernel, sliding, *pads, r) == sizes[1]]
        reach = _overhang(kernel, sliding, pads[0], sizes)
        counted = pool_method == "max" or exclude_pad or all(r <= b for r, b in zip(reach, pads[0], strict=True))
        if not fitting or not counted:
            return _pooled_with_overhang(op, data, kernel, sliding, pads[0], sizes, pool_method, exclude_pad)
        if pool_method == "avg" and not exclude_pad:
            sliding = replace(
                sliding, auto_pad="explicit", pads_begin=tuple(pads[0]), pads_end=tuple(max(r, 0) for r in reach)
            )
            fitting = ["floor"]
        rounding = fitting[0]
    plain = opset.Sliding(**{name: getattr(sliding, name) for name in ("strides", "pads_begin", "pads_end", "auto_pad")})
    if pool_method == "max":
        return opset.max_pool_1(op, data, sliding=plain, kernel=tuple(kernel), rounding_type=rounding)
    return opset.avg_pool_1(op, data, sliding=plain, kernel=tuple(kernel), exclude_pad=exclude_pad, rounding_type=rounding)


def _inferred_sizes(data: Value, kernel: list[int], sliding: Dilated, round_up: bool) -> tuple[list[int], list[int]] | None:
    """Return the spatial sizes of the data and the output, as the Inference Engine infers them; ``None`` if unknown."""
    if data.dims is None or None in data.dims[2:]:
        return None
    at, inside = sliding.window(), [size or 0 for size in data.dims[2:]]
    outside = []
    for size, k, stride, begin, end in zip(inside, kernel, at.strides, at.pads_begin, at.pads_end, strict=True):
        if at.same:
            count = -(-size // stride) if at.auto_pad == "same_upper" else size // stride
        else:
            count = (size + begin + end - k + (stride - 1 if round_up else 0)) // stride + 1
            count -= (count - 1) * stride >= size + begin  # no window starts after the data
        outside.append(count)
    return (inside, outside) if min(outside, default=0) > 0 else None


def _overhang(kernel: list[int], sliding: Dilated, begin: list[int], sizes: tuple[list[int], list[int]]) -> list[int]:
    """Return how far the last windows extend beyond the data."""
    rows = zip(*sizes, kernel, sliding.window().strides, begin, strict=True)
    return [(outside - 1) * s + k - inside - b for inside, outside, k, s, b in rows]


def _sizes(
    inside: list[int], kernel: list[int], sliding: Dilated, begin: list[int], end: list[int], rounding: str
) -> list[int]:
    strides = sliding.window().strides
    up = [stride - 1 if rounding == "ceil" else 0 for stride in strides]
    rows = zip(inside, kernel, strides, begin, end, up, strict=True)
    return [(size + b + e - k + u) // s + 1 for size, k, s, b, e, u in rows]


def _pooled_with_overhang(
    op: Builder,
    data: Value,
    kernel: list[int],
    sliding: Dilated,
    begin: list[int],
    sizes: tuple[list[int], list[int]],
    method: str,
    exclude_pad: bool,
) -> Value:
    """Emit windows that extend as far as the file states."""
    strides, reach = sliding.window().strides, _overhang(kernel, sliding, begin, sizes)
    window = {"kernel_shape": kernel, "strides": strides}
    if method == "max":
        lowest = float(np.finfo(np.float32).min)
        return op.MaxPool(pad_spatial(op, data, op.const(begin), op.const(reach), lowest), **window)
    counted = op.const(np.ones([1, 1, *sizes[0]], np.float32))
    if not exclude_pad:
        rest = [r - b for r, b in zip(reach, begin, strict=True)]
        counted = pad_spatial(op, counted, op.const(begin), op.const(begin), 1.0)
        counted = pad_spatial(op, counted, op.const([0] * len(rest)), op.const(rest))
    else:
        counted = pad_spatial(op, counted, op.const(begin), op.const(reach))
    total = op.AveragePool(pad_spatial(op, data, op.const(begin), op.const(reach)), **window)
    return op.Div(total, op.AveragePool(counted, **window))
