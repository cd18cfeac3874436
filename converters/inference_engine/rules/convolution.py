"""Convolutions: plain, grouped, transposed, deformable, binary."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Literal

from converters.errors import Malformed
from converters.inference_engine.rule import layer, shaped
from converters.inference_engine.rules._windows import Windows, same_padding, stated_sizes
from converters.openvino.rule import Context
from converters.openvino.rules import convolution as opset
from converters.openvino.rules._windows import Dilated, pad_spatial
from onnx_specops.building import Builder, Value


@layer("Convolution")
def convolution(
    op: Builder,
    data: Value,
    weights: Value,
    biases: Value | None = None,
    *,
    output: int,
    windows: Windows,
    group: int = 1,
    context: Context,
):
    """Convolution: the weights are ``[output, channels / group, ...]``."""
    kernel = windows.sizes()
    _check(data, len(kernel), group, output)
    each = _channels(weights, output * math.prod(kernel))
    data, sliding = _fitted(op, data, windows, context)
    if group == 1:
        result = opset.convolution(op, data, shaped(op, weights, [output, each, *kernel]), sliding=sliding)
    else:
        grouped = shaped(op, weights, [group, output // group, each, *kernel])
        result = opset.group_convolution(op, data, grouped, sliding=sliding)
    return _biased(op, result, biases, output, len(kernel))


@layer("Deconvolution")
def deconvolution(
    op: Builder,
    data: Value,
    weights: Value,
    biases: Value | None = None,
    *,
    output: int,
    windows: Windows,
    group: int = 1,
    context: Context,
):
    """Deconvolution: the weights are ``[channels, output / group, ...]``."""
    kernel = windows.sizes()
    _check(data, len(kernel), group, output)
    sliding = windows.sliding()
    at, extra = sliding.window(), [0] * len(kernel)
    sizes = stated_sizes(data, context)
    if sizes is None and at.same and data.dims is not None and None not in data.dims[2:]:
        known = [size or 0 for size in data.dims[2:]]
        sizes = known, [size * stride for size, stride in zip(known, at.strides, strict=True)]
    if sizes is not None:
        pads = same_padding(sliding, kernel, sizes[1])
        assert pads is not None
        begin, end = pads[0], []
        for k, (inside, outside) in enumerate(zip(*sizes, strict=True)):
            extent = (kernel[k] - 1) * at.dilations[k] + 1
            rest = (inside - 1) * at.strides[k] + extent - begin[k] - outside
            end.append(max(rest, 0))
            extra[k] = max(-rest, 0)
        sliding = replace(sliding, auto_pad="explicit", pads_begin=tuple(begin), pads_end=tuple(end))
    each = _channels(weights, output // group * math.prod(kernel))
    if group == 1:
        shape = [each, output, *kernel]
        result = opset.convolution_backprop_data(
            op, data, shaped(op, weights, shape), sliding=sliding, output_padding=tuple(extra)
        )
    else:
        if each % group:
            raise Malformed(f"its {each} channels are not a multiple of group={group}")
        shape = [group, each // group, output // group, *kernel]
        result = opset.group_convolution_backprop_data(
            op, data, shaped(op, weights, shape), sliding=sliding, output_padding=tuple(extra)
        )
    return _biased(op, result, biases, output, len(kernel))


@layer("DeformableConvolution")
def deformable_convolution(
    op: Builder,
    data: Value,
    offsets: Value,
    weights: Value,
    biases: Value | None = None,
    *,
    output: int,
    windows: Windows,
    group: int = 1,
    deformable_group: int = 1,
    context: Context,
):
    """DeformableConvolution: the second input has the offset of each element of the window."""
    kernel = windows.sizes()
    _check(data, len(kernel), group, output)
    each = _channels(weights, output * math.prod(kernel))
    shape = [output, each, *kernel]
    fitted, sliding = _fitted(op, data, windows, context)
    if fitted is not data:  # without its last elements, which the offsets may reach
        raise Malformed("its output in the file is smaller than that of its attributes", "check that the file is intact")
    result = opset.deformable_convolution_1(
        op,
        data,
        offsets,
        shaped(op, weights, shape),
        sliding=sliding,
        group=group,
        deformable_group=deformable_group,
    )
    _check_offsets(offsets, result)
    return _biased(op, result, biases, output, len(kernel))


@layer("BinaryConvolution")
def binary_convolution(
    op: Builder,
    data: Value,
    weights: Value,
    biases: Value | None = None,
    *,
    output: int,
    windows: Windows,
    mode: Literal["xnor-popcount"] = "xnor-popcount",
    pad_value: float = 0.0,
    input: int,
    group: int = 1,
):
    """BinaryConvolution: the weights are bits, ``[output, input, ...]``."""
    kernel = windows.sizes()
    _check(data, len(kernel), group, output)
    shape = [output, input // group, *kernel]
    bits = op.Reshape(op.Slice(weights, [0], [math.prod(shape)]), shape)
    result = opset.binary_convolution(op, data, bits, sliding=windows.sliding(), mode=mode, pad_value=pad_value)
    return _biased(op, result, biases, output, len(kernel))


def _check_offsets(offsets: Value, result: Value) -> None:
    if offsets.dims is None or result.dims is None:
        return
    if any(None not in pair and pair[0] != pair[1] for pair in zip(offsets.dims[2:], result.dims[2:], strict=True)):
        raise Malformed(f"its offsets have the shape {list(offsets.dims)} for an output of {list(result.dims)}")


def _check(data: Value, rank: int, group: int, output: int) -> None:
    if data.rank is not None and data.rank != rank + 2:
        raise Malformed(f"its input has {data.rank} dimensions for a kernel of {rank}")
    if group < 1 or output < 1 or output % group:
        raise Malformed(f"its {output} outputs are not a positive multiple of group={group}")


def _channels(weights: Value, rest: int) -> int:
    """Return the number of channels of the weights, whose other dimensions have ``rest`` elements together."""
    dims = weights.dims
    if dims is None or None in dims:
        raise Malformed("the dimensions of its weights are unknown")
    count = math.prod(dim for dim in dims if dim is not None)
    if rest < 1 or count % rest or count < rest:
        raise Malformed(f"its {count} weights are not a multiple of the {rest} elements of a kernel")
    return count // rest


def _fitted(op: Builder, data: Value, windows: Windows, context: Context) -> tuple[Value, Dilated]:
    """Return the data and a window that give the output's sizes in the file."""
    kernel, sliding = windows.sizes(), windows.sliding()
    at, sizes = sliding.window(), stated_sizes(data, context)
    pads = None if sizes is None else same_padding(sliding, kernel, sizes[0])
    if sizes is None or pads is None:
        return data, sliding
    begin, end, needed = *pads, []
    for k, (inside, outside) in enumerate(zip(*sizes, strict=True)):
        extent = (kernel[k] - 1) * at.dilations[k] + 1
        reached = (inside + begin[k] + end[k] - extent) // at.strides[k] + 1
        needed.append(end[k] if reached == outside else (outside - 1) * at.strides[k] + extent - inside - begin[k])
    if needed == end:
        return data, sliding
    if min(needed) >= 0:
        return data, replace(sliding, auto_pad="explicit", pads_begin=tuple(begin), pads_end=tuple(needed))
    data = pad_spatial(op, data, op.const(begin), op.const(needed))
    return data, replace(sliding, auto_pad="valid")


def _biased(op: Builder, result: Value, biases: Value | None, output: int, rank: int) -> Value:
    return result if biases is None else op.Add(result, shaped(op, biases, [output, *[1] * rank]))
