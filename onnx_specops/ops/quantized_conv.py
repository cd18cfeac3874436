"""QuantizedConv: a convolution of 8-bit integers with a fused activation and quantized output."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from typing import Annotated, Literal

import numpy as np

from onnx_specops.assertions import required
from onnx_specops.attributes import Limits
from onnx_specops.domain import NoBodyError, operator
from onnx_specops.ops._checks import require_shapes
from onnx_specops.ops._functions import applied, applied_body
from onnx_specops.ops._integer_lists import parse_integers
from onnx_specops.ops._windows import Windows

MOST_CHANNELS = 1 << 24

_parsed = functools.partial(parse_integers, "QuantizedConv")

MAX_PRODUCTS = 1 << 16
"""Sums of more products may overflow 32 bits."""

_EXACT = 2**24 // (255 * 128)
"""The maximum number of products whose sum float32 represents exactly."""

Function = Literal[
    "none", "clip", "prelu", "hard_sigmoid", "hard_swish", "sigmoid", "swish", "gelu", "elu", "mish",
    "gelu_tanh",
]  # fmt: skip


@operator(
    inputs={
        "X": "tensor(uint8)",
        "W": "tensor(int8)",
        "scale": "tensor(float)",
        "bias": "tensor(float)",
        "x_zero_point": "tensor(uint8)",
        "y_zero_point": "T",
        "factor": "tensor(float)",
        "slope": "tensor(float)",
        "addend": "tensor(uint8)",
        "addend_scale": "tensor(float)",
        "addend_zero_point": "tensor(uint8)",
        "sum_scale": "tensor(float)",
        "sum_zero_point": "tensor(uint8)",
        "sum_slope": "tensor(float)",
        "sum_bias": "tensor(float)",
        "x_offset": "tensor(float)",
        "y_offset": "tensor(float)",
        "residual": "tensor(float)",
    },
    outputs={"Y": "T"},
    types={"T": ("uint8", "float")},
)
def QuantizedConv(
    X,
    W,
    scale,
    bias,
    x_zero_point,
    y_zero_point,
    factor=None,
    slope=None,
    addend=None,
    addend_scale=None,
    addend_zero_point=None,
    sum_scale=None,
    sum_zero_point=None,
    sum_slope=None,
    sum_bias=None,
    x_offset=None,
    y_offset=None,
    residual=None,
    *,
    channels: Annotated[int, Limits(0, MOST_CHANNELS)],
    kernel: str,
    strides: str = "",
    pads: str = "",
    dilations: str = "",
    group: Annotated[int, Limits(1, 1 << 24)] = 1,
    function: Function = "none",
    alpha: float = 0.0,
    beta: float = 0.0,
):
    """Convolves integers (channels-last) and applies a function: ``function(sums * scale + bias) * factor + y_offset``,
    where ``sums`` is the convolution of ``X - x_zero_point`` with ``W``.

    The sums are exact 32-bit integers. All other operations are computed in float32, one after the other. The result is
    rounded to the nearest integer (ties to even), ``y_zero_point`` is added, and the sum is clipped to [0, 255].

    With ``x_offset``, the pixels are ``X - x_zero_point + x_offset``; the padding stays zero. ``bias`` becomes
    ``bias + scale * offsets``, where ``offsets`` is the convolution of ``x_offset``, for each pixel, with ``W``.

    With ``addend``, these integers are not the output. The output is the quantization, with ``sum_zero_point``, of
    ``(integers - y_zero_point) * sum_scale + (addend - addend_zero_point) * addend_scale + sum_bias``. Numbers below zero
    are first multiplied by ``sum_slope``.

    ``residual`` is added to the floating-point output. Then, numbers below zero are multiplied by ``sum_slope``. With a
    slope of 0, the result for -infinity is also 0.

    Inputs:
        X: ``[N, D1, ..., C]``, with one to three spatial dimensions. A dimension may be 0 if the kernel size is 1.
        W: ``[M, C / group, k1, ...]``, with at most 65,536 products per sum.
        scale, bias: ``[M]``, one number for each output channel.
        x_zero_point: ``[]`` or ``[C]``, the integer in ``X`` that represents zero. The padding has this value.
        y_zero_point: ``[]`` or ``[M]``, the integer in ``Y`` that represents zero. If its type is float, ``Y`` is not
            rounded, and the value is ignored.
        factor: ``[M]``. 1 if omitted.
        slope: ``[M]``, the slope of ``"prelu"``.
        addend: integers in the shape of ``Y``. With them, ``y_zero_point`` must be an integer.
        addend_scale, sum_scale: ``[]`` or ``[M]``, in units of the output. Required with ``addend``.
        addend_zero_point: ``[]``, the integer in ``addend`` that represents zero. Required with ``addend``.
        sum_zero_point: ``[]`` or ``[M]``, the integer in ``Y`` that represents zero. Required with ``addend``.
        sum_slope: ``[M]``. 1 if omitted. Only with ``addend`` or ``residual``.
        sum_bias: ``[M]``, in units of the output. 0 if omitted.
        x_offset: ``[]`` or ``[C]``, the offset of the integers of ``X``, if no integer represents zero. 0 if omitted.
        y_offset: ``[]`` or ``[M]``, the offset of the results before they are rounded. 0 if omitted.
        residual: floats in the shape of ``Y``. With them, the type of ``y_zero_point`` must be float.

    Attributes:
        channels: ``C``.
        kernel: ``k1, ...`` as a list, such as ``"3,3"``.
        strides, dilations: one number for each spatial dimension, as a list such as ``"2,2"``. An empty list means 1.
        pads: the padding at the beginning of each dimension, then at the end of each, as a list. An empty list means 0.
        group: the number of groups of channels.
        function: ``"clip"`` to ``alpha`` and ``beta``, ``"prelu"`` (``x * slope`` below zero), ``"hard_sigmoid"``
            (``x * alpha + beta`` clipped to 0 and 1), ``"hard_swish"`` (``x`` times that), ``"sigmoid"``, ``"swish"``
            (``x * sigmoid(x * alpha)``), ``"gelu"`` (``x * (1 + erf(x / sqrt(2))) / 2``), ``"gelu_tanh"``
            (``x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x**3))) / 2``), ``"elu"`` or ``"mish"``.
        alpha, beta: the parameters of the function.

    Output: ``[N, E1, ..., M]``, of the type of ``y_zero_point``.

    Source: OpenVINO's low-precision convolutions with post-operations.
    """
    expected = [W.shape[0] if W.ndim else 0, channels // group, *_parsed("kernel", kernel, max(X.ndim - 2, 0), 1)]
    if list(W.shape) != expected:
        raise ValueError(
            f"QuantizedConv: W has the shape {list(W.shape)} instead of {['M', *expected[1:]]}".replace("'", "")
        )
    geometry = _Geometry(X.shape, W.shape, strides, pads, dilations, group)
    per_channel = {"scale": scale, "bias": bias, "factor": factor, "slope": slope}
    require_shapes("QuantizedConv", {name: (array, [W.shape[0]]) for name, array in per_channel.items()})
    for name, array, count in (
        ("x_zero_point", x_zero_point, channels),
        ("y_zero_point", y_zero_point, W.shape[0]),
        ("x_offset", x_offset, channels),
        ("y_offset", y_offset, W.shape[0]),
    ):
        if array is not None and array.size != 1 and array.shape != (count,):
            raise ValueError(f"QuantizedConv: {name} has the shape {list(array.shape)} instead of [] or [{count}]")
    if function == "prelu" and slope is None:
        raise ValueError("QuantizedConv: function = 'prelu' needs a slope")
    expected = [X.shape[0], *geometry.counts, W.shape[0]]
    require_shapes("QuantizedConv", {"addend": (addend, expected), "residual": (residual, expected)})
    if addend is not None:
        _check_sum(y_zero_point, addend_scale, addend_zero_point, sum_scale, sum_zero_point, W.shape[0])
    if residual is not None and y_zero_point.dtype != np.float32:
        raise ValueError(f"QuantizedConv: {_NO_INTEGERS}")
    if addend is not None or residual is not None:
        summed = {"sum_slope": (sum_slope, [W.shape[0]]), "sum_bias": (sum_bias, [W.shape[0]])}
        require_shapes("QuantizedConv", summed)
    integers = X.astype(np.int32) - x_zero_point.reshape(-1).astype(np.int32)
    sums = _convolved(integers, W.astype(np.int32), geometry, group)
    if x_offset is not None:
        added = np.broadcast_to(x_offset.reshape(-1).astype(np.float64), (1, *X.shape[1:]))
        bias = (bias + scale * _convolved(added, W.astype(np.float64), geometry, group)).astype(np.float32)
    values = sums.astype(np.float32) * scale + bias
    values = applied(values, slope, function, np.float32(alpha), np.float32(beta)).astype(np.float32)
    if factor is not None:
        values = values * factor
    if y_offset is not None:
        values = values + y_offset.reshape(-1)
    if y_zero_point.dtype == np.float32:
        if residual is not None:
            values = values + residual
        if residual is None or sum_slope is None:
            return values
        least = np.where(sum_slope == 0, np.float32(0), np.float32(-np.inf))
        return np.where(values < 0, np.clip(values, least, 0) * sum_slope, values)
    if addend is None:
        return _rounded(values, y_zero_point)
    zeros = y_zero_point.reshape(-1).astype(np.float32)
    values = np.clip(np.rint(values), -zeros, 255 - zeros) * sum_scale.reshape(-1)
    values += (addend.astype(np.float32) - addend_zero_point.astype(np.float32).reshape(-1)) * addend_scale.reshape(-1)
    if sum_bias is not None:
        values += sum_bias
    return _rounded(values if sum_slope is None else np.where(values < 0, values * sum_slope, values), sum_zero_point)


def _convolved(x, w, geometry: _Geometry, group: int):
    """Return the convolution with zeros as padding, in the type of ``x``."""
    inside = np.pad(x, [(0, 0), *geometry.pads, (0, 0)])
    sums = np.zeros((x.shape[0], *geometry.counts, w.shape[0]), x.dtype)
    grouped = sums.reshape(*sums.shape[:-1], group, w.shape[0] // group)
    weights = w.reshape(group, w.shape[0] // group, *w.shape[1:])
    for offsets in itertools.product(*map(range, w.shape[2:])):
        taken = inside[(slice(None), *geometry.slices(offsets, geometry.counts))]
        parts = taken.reshape(*taken.shape[:-1], group, w.shape[1])
        grouped += np.einsum("...gc,gmc->...gm", parts, weights[(..., *offsets)], dtype=x.dtype)
    return sums


def _rounded(values: np.ndarray, zero_point: np.ndarray) -> np.ndarray:
    with np.errstate(invalid="ignore"):
        return np.clip(np.rint(values) + zero_point.reshape(-1).astype(np.float32), 0, 255).astype(np.uint8)


def _check_sum(y_zero_point, addend_scale, addend_zero_point, sum_scale, sum_zero_point, columns) -> None:
    """Check the inputs that ``addend`` requires."""
    given = {
        "addend_scale": addend_scale,
        "addend_zero_point": addend_zero_point,
        "sum_scale": sum_scale,
        "sum_zero_point": sum_zero_point,
    }
    if y_zero_point.dtype == np.float32 or any(array is None for array in given.values()):
        raise ValueError(f"QuantizedConv: addend needs {_LISTED}, and an integer as y_zero_point")
    for name, array in given.items():
        may_be_vector = name != "addend_zero_point"
        if array.size != 1 and not (may_be_vector and array.shape == (columns,)):
            allowed = f"[] or [{columns}]" if may_be_vector else "[]"
            raise ValueError(f"QuantizedConv: {name} has the shape {list(array.shape)} instead of {allowed}")


_NO_INTEGERS = "residual needs floats as y_zero_point"
_LISTED = "addend_scale, addend_zero_point, sum_scale and sum_zero_point"


class _Geometry(Windows):
    """The geometry of a node from its attributes and shapes. The constructor raises ``ValueError`` if they contradict each
    other.

    Attributes:
        counts: the numbers of windows; none unless ``sized``.
    """

    def __init__(
        self, x: Sequence[int], w: Sequence[int], strides: str, pads: str, dilations: str, group: int, *, sized: bool = True
    ) -> None:
        rank = len(w) - 2
        if not 1 <= rank <= 3 or len(x) != len(w):
            raise ValueError(
                f"QuantizedConv: X and W have the shapes {list(x)} and {list(w)}; expected three to five dimensions each"
            )
        if x[-1] != w[1] * group or w[0] % group:
            raise ValueError(
                f"QuantizedConv: W has the shape {list(w)}, but X has {x[-1]} channels in {group} groups"
            )  # fmt: skip
        super().__init__("QuantizedConv", rank, strides, pads, dilations, may_be_none=True)
        if math.prod(w[2:]) * max(w[1], 1) > MAX_PRODUCTS:
            raise ValueError(f"QuantizedConv: a sum has more than {MAX_PRODUCTS} products")
        self.counts = self.sizes(x[1:-1], w[2:], 1, w) if sized else []


@QuantizedConv.infer_shapes
def _(node):
    x, w = node.shape(0), node.shape(1)
    if x is None or w is None or len(x) != len(w) or not 3 <= len(w) <= 5:
        return [None if w is None else [None] * len(w)]
    if not all(isinstance(size, int) for size in w):
        return [[x[0], *[None] * (len(w) - 2), w[0]]]
    attributes, rank = node.attributes, len(w) - 2
    strides, pads, dilations = (attributes[name] for name in ("strides", "pads", "dilations"))
    windows = Windows("QuantizedConv", rank, strides, pads, dilations, may_be_none=True)
    return [[x[0], *windows.known_sizes(x[1:-1], w[2:]), w[0]]]


@QuantizedConv.body_facts
def _(
    X, W, scale, bias, x_zero_point, y_zero_point, factor, slope,
    addend, addend_scale, addend_zero_point, sum_scale, sum_zero_point, sum_slope, sum_bias, x_offset, y_offset, residual,
    *, channels, kernel, strides, pads, dilations, group, function, alpha, beta,
):  # fmt: skip
    """Return three facts: standard ONNX can convolve the integers, the image has enough pixels for that, and all slopes of
    sums are 0.

    An If in the body would be simpler, but ONNX Runtime 1.32 then fails to load some models: if constant folding determines
    the condition and removes a Shape of a tensor that the branch reads, it also removes the node that produces the tensor.
    """
    import onnx_ir as ir  # only the converters load it

    from onnx_specops.graphs import constant_array

    slopes = None if sum_slope is None else constant_array(sum_slope)
    facts = {
        "between_integers": False,
        "enough_pixels": False,
        "has_relu": slopes is not None and slopes.size > 0 and not slopes.any(),
    }
    rank = kernel.count(",") + 3
    zeros = (x_zero_point, y_zero_point)
    are_numbers = all(zero.shape is not None and len(zero.shape) == 0 for zero in zeros)
    is_integer = y_zero_point.dtype == ir.DataType.UINT8 and function in ("none", "clip")
    is_integer = is_integer and factor is None and x_offset is None and y_offset is None
    # ONNX Runtime convolves 3-D volumes with channels first, which takes three times as long as a MatMul.
    if rank == 5 or not are_numbers or not is_integer or not _biases_fit(constant_array(scale), constant_array(bias)):
        return facts
    _, geometry = _stated(channels, kernel, strides, pads, dilations, group)
    sizes = [None] * (rank - 2) if X.shape is None else list(X.shape)[1:-1]
    window = _parsed("kernel", kernel, rank - 2, 1)
    few = geometry.fewest(window)
    enough = all(least <= (size if isinstance(size, int) else 0) for size, least in zip(sizes, few, strict=False))
    if set(window) == {1} and group == 1 and not all(isinstance(size, int) and size for size in sizes):
        # ONNX Runtime does not convolve empty images, but it multiplies empty matrices.
        return facts
    return {**facts, "between_integers": True, "enough_pixels": enough}


def _biases_fit(scale: np.ndarray | None, bias: np.ndarray | None) -> bool:
    """Return whether biases are 32-bit integers in units of ``scale``, and rounding them to such units is harmless."""
    if scale is None or bias is None or scale.shape != bias.shape:
        return False
    with np.errstate(all="ignore"):
        whole = np.abs(np.rint(bias / scale))
    return bool((whole <= _LARGEST_BIAS).all() and (np.abs(scale) <= _LARGEST_SCALE).all())


@QuantizedConv.body
def _(
    op, X, W, scale, bias, x_zero_point, y_zero_point, factor, slope,
    addend, addend_scale, addend_zero_point, sum_scale, sum_zero_point, sum_slope, sum_bias, x_offset, y_offset, residual,
    *, channels, kernel, strides, pads, dilations, group, function, alpha, beta, between_integers, enough_pixels, has_relu,
):  # fmt: skip
    shape, geometry = _stated(channels, kernel, strides, pads, dilations, group)
    if between_integers:
        result = _between_integers(
            op, X, W, scale, bias, x_zero_point, y_zero_point, geometry, shape[2:], group, function, alpha, beta,
            enough_pixels=enough_pixels,
        )  # fmt: skip
    else:
        result = _in_general(
            op, X, W, scale, bias, x_zero_point, y_zero_point, factor, slope, x_offset, y_offset, geometry, shape, group,
            function, alpha, beta,
        )  # fmt: skip
    is_float = y_zero_point.dtype is not None and y_zero_point.dtype.name == "FLOAT"
    if residual is not None:
        if not is_float:
            raise ValueError(f"QuantizedConv: {_NO_INTEGERS}")
        return _with_residual(op, result, residual, sum_slope, has_relu=has_relu)
    if addend is None:
        return result
    given = (addend_scale, addend_zero_point, sum_scale, sum_zero_point)
    if any(value is None for value in given) or y_zero_point.dtype is None or is_float:
        raise ValueError(f"QuantizedConv: addend needs {_LISTED}, and an integer as y_zero_point")
    return _added(op, result, y_zero_point, addend, *given, sum_slope, sum_bias)


def _stated(channels, kernel, strides, pads, dilations, group) -> tuple[list[int], _Geometry]:
    """Return the shape of the weights of one column of each group, and the geometry, as the attributes state them."""
    rank = kernel.count(",") + 3
    shape = [group, channels // group, *_parsed("kernel", kernel, rank - 2, 1)]
    return shape, _Geometry([1] * (rank - 1) + [channels], shape, strides, pads, dilations, group, sized=False)


def _added(op, x, zero, addend, addend_scale, addend_zero, scale, sum_zero, slope, bias):
    """Emit the sum of two quantized tensors. If each has one scale, the form is one that ONNX Runtime fuses."""
    # Standard ONNX would broadcast an addend of another shape.
    differs = op.Not(op.Equal(op.Shape(x), op.Shape(addend)))
    sum_zero = op.Cast(required(op, "shape_of_addend", differs, op.Cast(sum_zero, to=_INT32)), to=_UINT8)
    parts = []
    for integers, step, origin in ((x, scale, zero), (addend, addend_scale, addend_zero)):
        if origin.rank != 0:
            parts.append(op.Mul(op.Sub(op.Cast(integers, to=_FLOAT), op.Cast(origin, to=_FLOAT)), step))
        elif step.rank != 0:
            parts.append(op.Mul(op.DequantizeLinear(integers, np.float32(1), origin), step))
        else:
            parts.append(op.DequantizeLinear(integers, step, origin))
    total = op.Add(*parts)
    if bias is not None:
        total = op.Add(total, bias)
    if slope is not None:
        total = op.PRelu(total, slope)
    return _quantized(op, total, sum_zero)


def _with_residual(op, x, residual, slope, *, has_relu):
    """Emit the sum of two float tensors of the same shape, and multiply results below zero by the slope."""
    differs = op.Not(op.Equal(op.Shape(x), op.Shape(residual)))
    total = op.Add(x, required(op, "shape_of_residual", differs, residual))
    if slope is None:
        return total
    if has_relu:
        return op.Relu(total)
    least = op.Where(op.Equal(slope, np.float32(0)), np.float32(0), np.float32(-np.inf))
    return op.Where(op.Less(total, np.float32(0)), op.Mul(op.Max(total, least), slope), total)


_FLOAT, _UINT8, _INT32 = 1, 2, 6  # constants of onnx.TensorProto
_LARGEST_BIAS = np.float32(2**30)
_LARGEST_SCALE = np.float32(2**-3)  # biases are rounded to multiples of it


def _between_integers(
    op, X, W, scale, bias, x_zero, y_zero, geometry: _Geometry, kernel, group, function, alpha, beta, *, enough_pixels
):  # fmt: skip
    """Emit DequantizeLinear, Conv and QuantizeLinear, which ONNX Runtime fuses into its convolution of integers."""
    rank = len(kernel) + 2
    whole = op.Cast(op.Round(op.Div(bias, scale)), to=_INT32)
    if not enough_pixels:  # not every runtime reports too few pixels as an error
        few = op.Less(op.Shape(X, start=1, end=rank - 1), np.array(geometry.fewest(kernel), np.int64))
        whole = required(op, "pixels_of_X", few, whole)
    first = op.Transpose(X, perm=[0, rank - 1, *range(1, rank - 1)])
    integers = op.DequantizeLinear(first, np.float32(1), x_zero)
    filters = op.DequantizeLinear(W, scale, axis=0)
    biases = op.DequantizeLinear(whole, scale, axis=0)
    values = op.Conv(
        integers, filters, biases,
        kernel_shape=kernel, strides=geometry.strides, pads=geometry.all_pads, dilations=geometry.dilations, group=group,
    )  # fmt: skip
    result = op.QuantizeLinear(values, np.float32(1), y_zero)
    if function == "clip":  # limits are rounded in the same way as numbers
        limits = [op.QuantizeLinear(np.float32(limit), np.float32(1), y_zero) for limit in (alpha, beta)]
        result = op.Min(op.Max(result, limits[0]), limits[1])
    return op.Transpose(result, perm=[0, *range(2, rank), 1])


def _in_general(
    op, X, W, scale, bias, x_zero_point, y_zero_point, factor, slope, x_offset, y_offset, geometry: _Geometry, shape, group,
    function, alpha, beta,
):  # fmt: skip
    rank, channels = len(shape), shape[1] * group
    is_one = x_zero_point.rank == 0
    biases = None if x_offset is None else op.Add(op.Mul(_offsets(op, X, W, x_offset, geometry, shape, group), scale), bias)
    if not is_one:  # zero points per channel are subtracted in floats
        X = op.Sub(op.Cast(X, to=_FLOAT), op.Cast(x_zero_point, to=_FLOAT))
    if any(map(any, geometry.pads)):
        begins, ends = zip(*geometry.pads, strict=True)
        X = op.Pad(X, [0, *begins, 0, 0, *ends, 0], x_zero_point if is_one else None)
    # With few channels, gathering the windows costs more than integers save.
    if is_one and group == 1 and (channels >= 16 or math.prod(shape[1:]) > _EXACT or math.prod(shape[2:]) == 1):
        values = _as_product(op, X, W, scale, bias if biases is None else None, x_zero_point, geometry, shape)
        if biases is not None:
            values = op.Add(values, biases)
    else:
        first = op.Transpose(X, perm=[0, rank - 1, *range(1, rank - 1)])
        stated = {"strides": geometry.strides, "dilations": geometry.dilations, "group": group}
        if not is_one and math.prod(shape[1:]) > _EXACT:
            convolved = op.Cast(_in_halves(op, first, op.Cast(W, to=_FLOAT), math.prod(shape[1:]), stated), to=_FLOAT)
        elif math.prod(shape[1:]) <= _EXACT:
            numbers = op.Sub(op.Cast(first, to=_FLOAT), op.Cast(x_zero_point, to=_FLOAT)) if is_one else first
            convolved = op.Conv(numbers, op.Cast(W, to=_FLOAT), **stated)
        else:
            convolved = op.Cast(op.ConvInteger(first, W, x_zero_point, **stated), to=_FLOAT)
        sums = op.Transpose(convolved, perm=[0, *range(2, rank), 1])
        values = op.Add(op.Mul(sums, scale), bias if biases is None else biases)
    values = applied_body(op, values, slope, function, alpha, beta)
    if factor is not None:
        values = op.Mul(values, factor)
    if y_offset is not None:
        values = op.Add(values, y_offset)
    if y_zero_point.dtype is not None and y_zero_point.dtype.name == "FLOAT":
        return values
    return _quantized(op, values, y_zero_point)


def _offsets(op, X, W, x_offset, geometry: _Geometry, shape: Sequence[int], group: int):
    """Emit the convolution of ``x_offset`` for each pixel with the weights."""
    rank = len(shape)
    if any(map(any, geometry.pads)):
        space = op.Shape(X, start=1, end=rank - 1)
    else:  # all windows have the same sum
        extents = zip(shape[2:], geometry.dilations, strict=True)
        space = op.const(np.array([(size - 1) * step + 1 for size, step in extents], np.int64))
    first = op.Reshape(x_offset, [1, -1, *[1] * (rank - 2)])
    image = op.Expand(first, op.Concat(op.const(np.array([1, shape[1] * group], np.int64)), space, axis=0))
    sums = op.Conv(
        image, op.Cast(W, to=_FLOAT), strides=geometry.strides, dilations=geometry.dilations, group=group,
        pads=geometry.all_pads,
    )  # fmt: skip
    return op.Transpose(sums, perm=[0, *range(2, rank), 1])


def _quantized(op, values, zero_point):
    if zero_point.rank == 0:
        return op.QuantizeLinear(values, np.float32(1), zero_point)
    whole = op.Add(op.Round(values), op.Cast(zero_point, to=_FLOAT))
    return op.Cast(op.Clip(whole, np.float32(0), np.float32(255)), to=_UINT8)


def _in_halves(op, x, weights, products: int, stated):
    """Emit a convolution of integers from -255 to 255, split into 4-bit halves whose sums are exact in float32."""
    if products > 2**24 // (16 * 128):
        raise NoBodyError("zero points of channels require sums of at most 8,192 products")
    high = op.Floor(op.Div(x, np.float32(16)))
    low = op.Sub(x, op.Mul(high, np.float32(16)))
    high, low = (op.Cast(op.Conv(part, weights, **stated), to=_INT32) for part in (high, low))
    return op.Add(op.Mul(high, np.int32(16)), low)


def _as_product(op, X, W, scale, bias, zero, geometry: _Geometry, shape: Sequence[int]):
    """Emit a MatMul of the pixels' windows and the weights."""
    rank = len(shape)
    neighbors, first = [], None
    if math.prod(shape[2:]) > 1:  # slicing too few pixels is not an error
        extents = [(size - 1) * step + 1 for size, step in zip(shape[2:], geometry.dilations, strict=True)]
        few = op.Less(op.Shape(X, start=1, end=rank - 1), np.array(extents, np.int64))
        first = required(op, "pixels_of_X", few, op.const([0]))
    for offsets in itertools.product(*map(range, shape[2:])):
        begins = [offset * step for offset, step in zip(offsets, geometry.dilations, strict=True)]
        # The last slice ends at the end of the data. The others end by the same distance earlier.
        ends = [
            begin - (size - 1) * step for begin, size, step in zip(begins, shape[2:], geometry.dilations, strict=True)
        ]  # fmt: skip
        ends = [end if end < 0 else np.iinfo(np.int64).max for end in ends]
        is_all = not any(begins) and all(end > 0 for end in ends) and all(step == 1 for step in geometry.strides)
        if not is_all:
            starts = begins if first is None or any(begins) else op.Expand(first, [len(begins)])
            taken = op.Slice(X, starts, ends, list(range(1, rank - 1)), list(geometry.strides))
        neighbors.append(X if is_all else taken)
    around = neighbors[0] if len(neighbors) == 1 else op.Concat(*neighbors, axis=-1)
    matrix = op.Flatten(op.Transpose(W, perm=[*range(2, rank), 1, 0]), axis=rank - 1)
    return op.contrib.MatMulIntegerToFloat(around, matrix, np.float32(1), scale, zero, None, bias)
