"""Convolutions: plain, grouped, transposed, deformable, binary."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Literal

import numpy as np
import onnx_ir as ir

from converters.errors import Malformed
from converters.openvino.rule import Departure, rule
from converters.openvino.rules._onnxruntime import computes_padding
from converters.openvino.rules._precision import ZERO_WEIGHT, integers_in_float32
from converters.openvino.rules._windows import LARGER_WINDOWS, Dilated, Window, pad_spatial, spatial_shape
from onnx_specops.assertions import required
from onnx_specops.building import Builder, Value

_KERNEL_REJECTED = Departure(
    where="a kernel of unknown dimensions", cpu="rejects it", specification="allows it", follows="specification"
)
_SHAPE_REJECTED = Departure(
    where="an `output_shape` that is not constant", cpu="rejects it", specification="allows it", follows="specification"
)
_PADS_STAND = Departure(
    where="`output_shape` and explicit pads",
    cpu="crops `pads_begin` at the start and the rest at the end; also ignores the pads if a kernel of one element with "
    "strides of 1 gives the size of the data",
    specification="ignores the pads, and crops half at each side",
    follows="cpu",
)
_PADS_OVERLOOKED = Departure(
    where="a kernel of one element, strides of 1, `pads_begin`, and as much at the end through a negative `pads_end` or "
    "`output_padding`",
    cpu="ignores them",
    specification="shifts the data by the pads",
    follows="specification",
)


@rule(
    "Convolution",
    departs=[
        _KERNEL_REJECTED,
        LARGER_WINDOWS,
        Departure(
            where="data and weights with two levels of FakeQuantize, and with limits that differ between the channels of "
            "the data, or a number of channels that is not a multiple of 8",
            cpu="replaces it by a binary convolution, which ignores the differences, and adds further channels",
            specification="multiplies the numbers",
            follows="specification",
        ),
        Departure(
            where="data and weights with two levels of FakeQuantize, and with scalar limits of the weights",
            cpu="crashes",
            specification="multiplies the numbers",
            follows="specification",
        ),
    ],
)
def convolution(
    op: Builder,
    data: Value,
    kernel: Value,
    *,
    sliding: Dilated,
    output_padding: tuple[int, ...] = (),
):
    """Convolution-1. Old files may have an ``output_padding`` of zeros."""
    if any(output_padding):
        raise Malformed("a Convolution has no output_padding")
    at = sliding.window()
    return integers_in_float32(op, lambda x, w: _convolve(op, x, _with_elements(op, w), at, 1), data, kernel)


@rule("GroupConvolution", departs=[_KERNEL_REJECTED, LARGER_WINDOWS])
def group_convolution(
    op: Builder,
    data: Value,
    kernel: Value,
    *,
    sliding: Dilated,
    output_padding: tuple[int, ...] = (),
):
    """GroupConvolution-1: the kernel is ``[groups, outputs / groups, inputs / groups, ...]``."""
    if any(output_padding):
        raise Malformed("a GroupConvolution has no output_padding")
    at = sliding.window()
    return integers_in_float32(op, lambda x, w: _in_groups(op, x, w, at, _convolve), data, kernel)


@rule("ConvolutionBackpropData", departs=[_PADS_STAND, _PADS_OVERLOOKED, _SHAPE_REJECTED])
def convolution_backprop_data(
    op: Builder,
    data: Value,
    kernel: Value,
    output_shape: Value | None = None,
    *,
    sliding: Dilated,
    output_padding: tuple[int, ...] = (),
):
    """ConvolutionBackpropData-1. With ``output_shape`` and explicit pads, the pads usually apply."""
    at = sliding.window()
    transpose = partial(_transposed, output_shape=output_shape, output_padding=output_padding)
    return integers_in_float32(op, lambda x, w: transpose(op, x, w, at, 1), data, kernel)


@rule("GroupConvolutionBackpropData", departs=[_PADS_STAND, _PADS_OVERLOOKED])
def group_convolution_backprop_data(
    op: Builder,
    data: Value,
    kernel: Value,
    output_shape: Value | None = None,
    *,
    sliding: Dilated,
    output_padding: tuple[int, ...] = (),
):
    """GroupConvolutionBackpropData-1: the kernel is ``[groups, inputs / groups, outputs / groups, ...]``."""
    at = sliding.window()
    transpose = partial(_transposed, output_shape=output_shape, output_padding=output_padding)
    return integers_in_float32(op, lambda x, w: _in_groups(op, x, w, at, transpose), data, kernel)


@rule("BinaryConvolution")
def binary_convolution(
    op: Builder,
    data: Value,
    kernel: Value,
    *,
    sliding: Dilated,
    mode: Literal["xnor-popcount"],
    pad_value: float,
):
    """BinaryConvolution-1: 0 and 1 represent -1 and 1, and XNOR is their product. Data above 0 is 1, and other data 0.

    The bit order of its kernel is reversed from other u1 constants: the first bit is a byte's lowest. A ``pad_value`` of 0
    adds nothing to the sums, 1 represents 1, and any other number -1.
    """
    at = sliding.window()

    def compute(x: Value) -> Value:
        x = op.Where(op.Greater(x, 0), op.const(1, x.dtype), op.const(-1, x.dtype))
        w = _signs(op, kernel, x)
        if pad_value == 0:
            return _convolve(op, x, w, at, 1)
        begin, end = at.padding(op, x, spatial_shape(op, kernel, at.rank))
        x = pad_spatial(op, x, begin, end, 1.0 if pad_value == 1 else -1.0)
        return _convolve(op, x, w, replace(sliding, auto_pad="valid").window(), 1)

    return integers_in_float32(op, compute, data)


def _signs(op: Builder, bits: Value, like: Value) -> Value:
    """Return -1 and 1 for the kernel's bits, which are in reverse order in each byte."""
    if bits.constant is not None:
        flat = bits.constant.reshape(-1)
        eights = np.pad(flat, (0, -flat.size % 8)).reshape(-1, 8)
        ordered = eights[:, ::-1].reshape(-1)[: flat.size].reshape(bits.constant.shape)
        return op.const(2 * ordered.astype(np.float32) - 1, like.dtype)
    count = op.Size(bits)
    padded = op.Pad(op.Reshape(bits, [-1]), op.Concat([0], op.Reshape(op.Mod(op.Neg(count), 8), [1]), axis=0))
    mirrored = op.Slice(op.Reshape(padded, [-1, 8]), [7], [-9], [1], [-1])
    ordered = op.Reshape(op.Slice(op.Reshape(mirrored, [-1]), [0], op.Reshape(count, [1])), op.Shape(bits))
    return op.Sub(op.Mul(op.CastLike(ordered, like), 2), 1)


@rule("DeformableConvolution", departs=[ZERO_WEIGHT])
def deformable_convolution_1(
    op: Builder,
    data: Value,
    offsets: Value,
    kernel: Value,
    *,
    sliding: Dilated,
    group: int,
    deformable_group: int = 1,
):
    """DeformableConvolution-1."""
    at = sliding.window()
    return _deformable(op, data, offsets, kernel, None, at, group, deformable_group, False)


@rule("DeformableConvolution", since="opset8", departs=[ZERO_WEIGHT])
def deformable_convolution_8(
    op: Builder,
    data: Value,
    offsets: Value,
    kernel: Value,
    mask: Value | None = None,
    *,
    sliding: Dilated,
    group: int,
    deformable_group: int = 1,
    bilinear_interpolation_pad: bool = False,
):
    """DeformableConvolution-8."""
    at = sliding.window()
    return _deformable(op, data, offsets, kernel, mask, at, group, deformable_group, bilinear_interpolation_pad)


def _convolve(op: Builder, data: Value, kernel: Value, at: Window, groups: int) -> Value:
    """Emit a Conv. The kernel is ``[outputs, inputs / groups, ...]``."""
    if kernel.rank is not None and kernel.rank != at.rank + 2:
        raise Malformed(f"its kernel has {kernel.rank - 2} spatial dimensions, but strides has {at.rank}")
    _check_kernel(kernel)
    _check_channels(data, kernel, 1, groups)
    sizes = spatial_shape(op, kernel, at.rank)
    attributes = {"strides": at.strides, "dilations": at.dilations, "group": groups}
    if sizes.constant is not None and computes_padding(at.dilations) and at.padding(op, data, sizes)[0].constant is None:
        return op.Conv(data, kernel, auto_pad=at.auto_pad.upper(), **attributes)
    data, pads = at.pad(op, data, sizes)
    return op.Conv(data, kernel, pads=pads, **attributes)


def _check_kernel(kernel: Value) -> None:
    """Raise `Malformed` if the kernel has no elements for an output: OpenVINO's result is uninitialized memory."""
    if kernel.dims and 0 in kernel.dims[2:]:
        dims = ", ".join(map(str, kernel.dims))
        raise Malformed(f"its kernel [{dims}] has no elements")


def _with_elements(op: Builder, kernel: Value) -> Value:
    """Return a kernel with a run-time check of sizes that are unknown. ONNX Runtime's Conv does not return if one is 0."""
    if kernel.dims is not None and None not in kernel.dims[2:]:
        return kernel
    is_empty = op.Equal(op.Shape(kernel, start=2), 0)
    checked = op.Reshape(kernel, required(op, "Conv: the kernel has no elements", is_empty, op.Shape(kernel)))
    checked.shape = kernel.shape
    return checked


def _check_channels(data: Value, kernel: Value, axis: int, groups: int = 1) -> None:
    """Raise `Malformed` if the kernel and the data have different numbers of channels, as far as they are known."""
    if data.dims and kernel.dims:
        channels, taken = data.dims[1], kernel.dims[axis]
        if channels is not None and taken is not None and channels != taken * groups:
            raise Malformed(f"its input has {channels} channels, but its kernel has {taken * groups}")


def _in_groups(
    op: Builder, data: Value, kernel: Value, at: Window, convolve: Callable[[Builder, Value, Value, Window, int], Value]
) -> Value:
    """Apply ``convolve`` with the groups of the kernel ``[groups, a, b, ...]``, in ONNX ``[groups * a, b, ...]``."""
    if kernel.rank is not None and kernel.rank != at.rank + 3:
        raise Malformed(f"its kernel has the rank {kernel.rank} instead of {at.rank + 3}")
    groups = None if kernel.dims is None else kernel.dims[0]
    if groups is not None and groups < 1:
        raise Malformed(f"its kernel has {groups} groups; expected 1 or more")
    _check_kernel(kernel)
    kernel = _with_elements(op, kernel)  # -1 in the target of the Reshape has no meaning without elements
    merged = op.Reshape(kernel, op.Concat([-1], op.Shape(kernel, start=2), axis=0))
    if groups is not None:
        return convolve(op, data, merged, at, groups)

    # In ONNX, the number of groups is an attribute. If it is unknown, emit a convolution for each group.
    channels = op.Div(op.Shape(data, start=1, end=2), op.Shape(kernel, start=0, end=1))

    def one(op: Builder, group: Value, condition: Value):
        first = op.Mul(group, channels)
        part = op.Slice(data, first, op.Add(first, channels), [1])
        return condition, convolve(op, part, op.Gather(kernel, group, axis=0), at, 1)

    count = op.Reshape(op.Shape(kernel, start=0, end=1), [])
    each = op.loop(count, True, one)
    rank = at.rank + 2
    by_batch = op.Transpose(each, perm=[1, 0, *range(2, rank + 1)])
    return op.Reshape(by_batch, op.Concat(op.Shape(by_batch, start=0, end=1), [-1], op.Shape(by_batch, start=3), axis=0))


def _transposed(
    op: Builder,
    data: Value,
    kernel: Value,
    at: Window,
    groups: int,
    *,
    output_shape: Value | None,
    output_padding: tuple[int, ...],
) -> Value:
    """Emit a transposed convolution. The kernel is ``[inputs, outputs / groups, ...]``."""
    extra = list(output_padding) or [0] * at.rank
    if len(extra) != at.rank or min(extra) < 0:
        raise Malformed(f"its output_padding is {extra} for {at.rank} spatial dimensions")
    for value in (data, kernel):
        if value.rank is not None and value.rank != at.rank + 2:
            raise Malformed(f"an input has {value.rank - 2} spatial dimensions, but strides has {at.rank}")
    _check_kernel(kernel)
    _check_channels(data, kernel, 0)
    attributes = {"strides": at.strides, "dilations": at.dilations, "group": groups}
    sizes = spatial_shape(op, kernel, at.rank)
    # The size of the whole result, and the amounts to crop before and after it (negative for padding).
    whole = op.Add(op.Mul(op.Sub(spatial_shape(op, data, at.rank), 1), at.strides), at.extent(op, sizes))
    begin, end = op.const(np.array(at.pads_begin)), op.const(np.subtract(at.pads_end, extra))
    if output_shape is not None:
        wanted = op.Cast(output_shape, to=ir.DataType.INT64)
        if at.same:
            total = op.Max(op.Sub(op.Add(whole, extra), wanted), op.const([0]))
            begin = op.Div(total, 2)
            if at.auto_pad == "same_upper":
                begin = op.Sub(total, begin)
        elif any(at.pads_begin) and set(at.strides) == {1}:
            # If a kernel of one element does not change the size, OpenVINO and its specification ignore the pads.
            unlike = op.Concat(op.Sub(sizes, 1), op.Sub(wanted, whole), axis=0)
            begin = op.Mul(begin, op.Sign(op.ReduceMax(op.Abs(unlike))))
        end = op.Sub(op.Sub(whole, wanted), begin)
    if begin.constant is not None and end.constant is not None:
        before, after = begin.constant.tolist(), end.constant.tolist()
        filled = [max(-a, 0) for a in after]
        representable = min(before) >= 0 and all(f < s for f, s in zip(filled, at.strides, strict=True))
        if representable:
            pads = [*before, *(max(a, 0) for a in after)]
            return op.ConvTranspose(data, kernel, pads=pads, output_padding=filled, **attributes)
    result = op.ConvTranspose(data, kernel, **attributes)
    return pad_spatial(op, result, op.Neg(begin), op.Neg(end))


def _deformable(
    op: Builder,
    data: Value,
    offsets: Value,
    kernel: Value,
    mask: Value | None,
    at: Window,
    group: int,
    deformable_group: int,
    bilinear_interpolation_pad: bool,
) -> Value:
    """Emit ONNX's DeformConv, which samples as ``bilinear_interpolation_pad`` does, with zeros around the data.

    Without that attribute, a location outside the data is zero, and one after the last row or column is clamped. The offsets
    and the mask emulate this.
    """
    if at.rank != 2 or group < 1 or deformable_group < 1:
        raise Malformed(f"its group {group} or deformable_group {deformable_group} is out of range, or it is not 2D")

    def compute(data: Value, offsets: Value, kernel: Value, mask: Value | None = None) -> Value:
        if not bilinear_interpolation_pad:
            offsets, mask = _sampled_inside(op, data, offsets, kernel, mask, at, deformable_group)
        _check_kernel(kernel)
        padded, pads = at.pad(op, data, spatial_shape(op, kernel, 2))
        return op.DeformConv(
            padded, kernel, offsets, None, mask,
            strides=at.strides, dilations=at.dilations, pads=pads, group=group, offset_group=deformable_group,
        )  # fmt: skip

    return integers_in_float32(op, compute, data, offsets, kernel, *([] if mask is None else [mask]))


def _sampled_inside(
    op: Builder, data: Value, offsets: Value, kernel: Value, mask: Value | None, at: Window, deformable_group: int
) -> tuple[Value, Value]:
    """Return the offsets and mask with which DeformConv does not sample beyond the borders of the data."""
    sizes, spots = spatial_shape(op, kernel, 2), spatial_shape(op, offsets, 2)
    begin, _ = at.padding(op, data, sizes)
    batch = op.Shape(offsets, start=0, end=1)
    each = op.Concat(batch, [deformable_group], sizes, spots, axis=0)
    pairs = op.Reshape(offsets, op.Concat(batch, [deformable_group], sizes, [2], spots, axis=0), allowzero=1)
    moved, inside = [], None
    for k in range(2):

        def pick(x: Value, k: int = k) -> Value:
            return op.Gather(x, k, axis=0)

        # The positions of tap i of window j without an offset. The window's dimensions are 2 + k and 4 + k of `each`.
        taps = op.Mul(op.Range(0, pick(sizes), 1), at.dilations[k])
        starts = op.Sub(op.Mul(op.Range(0, pick(spots), 1), at.strides[k]), pick(begin))
        base = op.Add(op.Unsqueeze(taps, [1 - k, 2, 3]), op.Unsqueeze(starts, [0, 1, 3 - k]))
        base = op.CastLike(base, offsets)
        offset = op.Gather(pairs, k, axis=4)
        place = op.Add(base, offset)
        size = op.CastLike(pick(spatial_shape(op, data, 2)), offsets)
        last = op.Sub(size, 1)
        ok = op.And(op.GreaterOrEqual(place, 0), op.Less(place, size))
        inside = ok if inside is None else op.And(inside, ok)
        moved.append(op.Unsqueeze(op.Where(op.Greater(place, last), op.Sub(last, base), offset), [4]))
    counted = op.CastLike(inside, offsets)
    if mask is not None:
        counted = op.Mul(counted, op.Reshape(mask, each, allowzero=1))
    channels = op.Div(op.Shape(offsets, start=1, end=2), 2)
    counted = op.Reshape(counted, op.Concat(batch, channels, spots, axis=0), allowzero=1)
    return op.Reshape(op.Concat(*moved, axis=4), op.Shape(offsets), allowzero=1), counted
