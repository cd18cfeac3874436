"""Convolutions."""

from __future__ import annotations

from functools import partial

import numpy as np

from tests.conformance.operation_models import decided, dynamic, layer_case, ramp, static


def _values(*shape, dtype=np.float32, seed=0):
    """Numbers for which every tap of a window matters."""
    r = np.random.default_rng(seed + 7 * len(shape))
    if np.dtype(dtype).kind == "f":
        return r.normal(size=shape).astype(dtype)
    return r.integers(0 if np.dtype(dtype).kind == "u" else -6, 7, shape).astype(dtype)


def _layer(operation, make, name, data, kernel, strides, begin, end, dilations, auto_pad="explicit", **settings):
    """A case of a convolution of ``data``, with an array for a constant kernel, or an input."""
    attributes = {
        "strides": strides, "pads_begin": begin, "pads_end": end, "dilations": dilations, "auto_pad": auto_pad,
    }  # fmt: skip
    return layer_case(operation, "opset1", make, name, [data, kernel], attributes, **settings)


_convolution = partial(_layer, "Convolution", "convolution")
_group_convolution = partial(_layer, "GroupConvolution", "group_convolution")


def _weights(*shape, dtype=np.float32):
    """Numbers that float32 represents, in any type."""
    return _values(*shape, dtype=dtype, seed=1).astype(np.float32).astype(dtype)


def _plain():
    ones, zero = [1, 1], [0, 0]
    for name, data, kernel, *rest in (
        ("explicit", (1, 3, 7, 8), (4, 3, 3, 2), [2, 1], [1, 0], [0, 2], [1, 2], "explicit"),
        ("valid-ignores-pads", (1, 3, 7, 8), (4, 3, 3, 2), [1, 1], [3, 3], [3, 3], ones, "valid"),
        ("same-upper", (2, 3, 7, 8), (4, 3, 4, 2), [2, 3], [0, 0], [0, 0], ones, "same_upper"),
        ("same-lower-dilated", (2, 3, 7, 8), (4, 3, 4, 2), [2, 1], [0, 0], [0, 0], [1, 3], "same_lower"),
        ("1d", (2, 3, 9), (4, 3, 4), [2], [1], [2], [2], "explicit"),
        ("3d", (1, 2, 5, 4, 6), (3, 2, 2, 3, 3), [1, 2, 1], [1, 0, 1], [0, 1, 1], [1, 1, 2], "explicit"),
        ("kernel-as-large-as-padded", (1, 1, 2, 2), (1, 1, 4, 4), ones, [1, 1], [1, 1], ones, "explicit"),
        ("pads-larger-than-kernel", (1, 1, 2, 2), (1, 1, 2, 2), ones, [3, 4], [4, 3], ones, "explicit"),
    ):
        yield _convolution(name, static(_values(*data)), _weights(*kernel), *rest)
    k = (4, 3, 3, 2)
    images = partial(dynamic, dims=(-1, 3, -1, -1))
    for auto in ("explicit", "same_upper", "same_lower"):
        data = images(_values(1, 3, 7, 8), _values(3, 3, 6, 5))
        yield _convolution(f"dynamic-{auto}", data, _weights(*k), [2, 1], [1, 0], [1, 1], [2, 3], auto)
    name = "dynamic-same-stride-larger-than-kernel"
    data = images(_values(1, 3, 8, 9), _values(1, 3, 7, 10), _values(1, 3, 1, 11))
    yield _convolution(name, data, _weights(4, 3, 1, 2), [2, 3], zero, zero, ones, "same_lower")
    data, kernel = images(_values(1, 3, 7, 8), _values(2, 3, 6, 5)), static(_values(*k), _values(*k, seed=2))
    yield _convolution("run-time-kernel", data, kernel, [2, 1], [1, 0], [1, 1], [1, 1], "same_upper")
    data, kernel = dynamic(ramp(1, 2, 3, 3), ramp(1, 1, 2, 4)), dynamic(ramp(1, 2, 2, 2), ramp(2, 1, 1, 3))
    expected = [
        [np.array([73, 137, 62, 202, 368, 162], np.float32).reshape(1, 1, 2, 3)],
        [np.array([4, 7, 2, 3, 10, 19, 8, 15], np.float32).reshape(1, 2, 1, 4)],
    ]
    settings = decided(
        "expected", "the CPU plugin does not support a kernel of dynamic shape; values by torch", runs=expected
    )
    name = "run-time-kernel-of-any-shape"
    yield _convolution(name, data, kernel, [2, 1], [1, 0], [1, 1], [1, 2], "same_lower", **settings)
    yield _convolution("no-batch", dynamic(_values(0, 3, 7, 8), dims=(-1, 3, 7, 8)), _weights(*k), ones, zero, zero, ones)
    for dtype in (np.float16, np.float64, np.int32, np.int64, np.uint8, np.int8):
        data, kernel = _values(1, 3, 7, 8, dtype=dtype) * np.asarray(3, dtype), _weights(*k, dtype=dtype)
        yield _convolution(np.dtype(dtype).name, static(data), kernel, ones, ones, ones, ones)


_GROUPS_1 = [
    1, 0, 4, 0, 3, 4, 18, 10, 59, 32, 86, 44, 85, 48, 124, 66,
    13, 0, 16, 0, 63, 28, 78, 34, 167, 80, 194, 92, 241, 120, 280, 138,
]  # fmt: skip
_GROUPS_2 = [28, 12, 252, 124]


def _grouped():
    ones, zero = [1, 1], [0, 0]
    for name, data, kernel, *rest in (
        ("depthwise", (1, 4, 6, 7), (4, 1, 1, 3, 3), [1, 2], [1, 1], [1, 1], [1, 1], "explicit"),
        ("groups", (2, 6, 6, 7), (3, 4, 2, 3, 2), [2, 1], [0, 1], [1, 0], [1, 2], "same_lower"),
        ("1d", (2, 4, 9), (2, 3, 2, 3), [1], [1], [0], [2], "explicit"),
        ("3d", (1, 4, 4, 5, 3), (2, 1, 2, 2, 2, 2), [1, 2, 1], [1, 0, 0], [0, 1, 0], [1, 1, 1], "valid"),
        ("one-group", (1, 3, 5, 5), (1, 2, 3, 3, 3), [1, 1], [1, 1], [1, 1], [1, 1], "same_upper"),
        ("multiplier", (1, 2, 5, 5), (2, 5, 1, 3, 3), [1, 1], [0, 0], [0, 0], [1, 1], "explicit"),
        ("large-kernel", (1, 80, 5, 5), (80, 1, 1, 9, 9), [1, 1], [4, 4], [4, 4], [1, 1], "explicit"),
    ):
        yield _group_convolution(name, static(_values(*data)), _weights(*kernel), *rest)
    data = dynamic(_values(2, 2, 7, 8), _values(1, 2, 4, 5), dims=(-1, 2, -1, -1))
    kernel = static(_values(2, 2, 1, 2, 2), _values(2, 2, 1, 2, 2, seed=1))
    yield _group_convolution("run-time-kernel", data, kernel, [2, 1], [1, 0], ones, ones)
    data = dynamic(ramp(2, 2, 2, 3), ramp(1, 4, 2, 2))
    expected = [
        [np.array(_GROUPS_1, np.float32).reshape(2, 4, 2, 2)],
        [np.array(_GROUPS_2, np.float32).reshape(1, 2, 2, 1)],
    ]
    settings = decided(
        "expected", "the CPU plugin does not support a kernel of dynamic shape; values by torch", runs=expected
    )
    for name, known in (("known", 2), ("unknown", -1)):
        kernel = dynamic(ramp(2, 2, 1, 1, 2), ramp(2, 1, 2, 2, 1), dims=(known, -1, -1, -1, -1))
        name = f"run-time-kernel-groups-{name}"
        yield _group_convolution(name, data, kernel, [1, 2], zero, zero, ones, "same_upper", **settings)
    for dtype in (np.float16, np.int32, np.uint8):
        data = dynamic(_values(1, 4, 6, 6, dtype=dtype), dims=(-1, 4, 6, 6))
        yield _group_convolution(np.dtype(dtype).name, data, _weights(2, 2, 2, 3, 3, dtype=dtype), ones, ones, ones, ones)


def _transposed(
    operation, make, name, data, kernel, strides, begin, end, dilations, auto_pad="explicit", padding=None, shape=None,
    **settings,
):  # fmt: skip
    """A case of a transposed convolution; ``shape``: that of the output."""
    attributes = {
        "strides": strides, "pads_begin": begin, "pads_end": end, "dilations": dilations, "auto_pad": auto_pad,
        "output_padding": padding or [0] * len(strides),
    }  # fmt: skip
    if isinstance(shape, list):
        shape = np.array(shape)

    def emit(ops, data, kernel, shape=None, **attributes):
        node = getattr(ops, make)(data, kernel, output_shape=shape, **attributes)
        for name in ("pads_begin", "pads_end"):  # omitted with a shape in the function for groups
            node.set_attribute(name, attributes[name])
        return node

    return layer_case(operation, "opset1", emit, name, [data, kernel, shape], attributes, **settings)


_backprop = partial(_transposed, "ConvolutionBackpropData", "convolution_backprop_data")
_group_backprop = partial(_transposed, "GroupConvolutionBackpropData", "group_convolution_backprop_data")


def _backprops():
    zero, one, two = [0, 0], [1, 1], [2, 2]
    usual, taps = (2, 3, 4, 5), (3, 4, 3, 2)
    for name, data, kernel, *rest in (
        ("explicit", usual, taps, [2, 3], [1, 0], [0, 1], [1, 2], "explicit", [1, 0], None),
        ("valid", usual, taps, two, one, one, one, "valid", None, None),
        ("same-upper-without-shape", usual, taps, two, one, one, one, "same_upper", None, None),
        ("output-padding-beyond-stride", usual, taps, two, zero, zero, one, "explicit", [3, 2], None),
        ("shape-explicit", usual, taps, two, one, zero, one, "explicit", None, [8, 9]),
        ("shape-explicit-larger", usual, taps, two, zero, zero, one, "explicit", None, [10, 13]),
        ("shape-of-data", usual, (3, 4, 1, 1), one, [1, 2], one, one, "explicit", None, [4, 5]),
        ("shape-of-data-of-pairs", usual, (3, 4, 1, 2), one, [1, 2], one, one, "explicit", None, [4, 5]),
        ("shape-of-other-data", usual, (3, 4, 1, 1), one, [1, 2], one, one, "explicit", None, [4, 4]),
        ("shape-within-dilation", usual, (3, 2, 2, 2), one, zero, zero, [3, 2], "explicit", None, [8, 8]),
        ("nothing-left", (1, 2, 6, 2), (2, 2, 1, 1), [2, 3], [0, 2], [0, 2], [1, 3], "explicit", None, None),
        ("shape-same-upper", usual, taps, two, zero, zero, one, "same_upper", None, [8, 9]),
        ("shape-same-lower", usual, taps, two, zero, zero, one, "same_lower", [1, 1], [8, 9]),
        ("shape-same-lower-larger", usual, taps, two, zero, zero, one, "same_lower", None, [10, 12]),
        ("shape-valid", usual, taps, two, one, one, one, "valid", None, [8, 9]),
        ("1d", (1, 2, 5), (2, 3, 4), [3], [1], [2], [1], "explicit", [1], None),
        ("3d", (1, 2, 3, 2, 3), (2, 2, 2, 3, 2), [2, 1, 2], [1, 0, 0], [0, 1, 0], [1, 1, 2], "explicit", None, None),
    ):
        yield _backprop(name, static(_values(*data)), _weights(*kernel), *rest)
    images = partial(dynamic, dims=(-1, 3, -1, -1))
    data = images(_values(1, 3, 5, 6), _values(2, 3, 6, 5))
    for name, auto, shape in (("dynamic", "explicit", None), ("dynamic-shape-same-upper", "same_upper", [11, 12])):
        yield _backprop(name, data, _weights(3, 2, 3, 4), two, one, zero, one, auto, None, shape)
    yield _backprop("dynamic-shape-of-data", data, _weights(3, 2, 1, 1), one, [1, 2], one, one, "explicit", None, [5, 6])
    data = images(_values(1, 3, 5, 2), _values(2, 3, 6, 5))
    yield _backprop("nothing-left-dynamic", data, _weights(3, 2, 1, 1), [1, 3], [0, 2], [0, 2], one)
    # Stride 2 and a kernel of ones, with one more row and column, for simple sums.
    ramp = np.arange(1, 10, dtype=np.float32).reshape(1, 1, 3, 3)
    shapes = static(np.array([6, 6], np.int32), np.array([5, 7], np.int32))
    reason = "the CPU plugin does not support a run-time output_shape; values by the specification's formulas"
    for auto, before in (("same_upper", 1), ("same_lower", 0)):
        # The full result has the length 7; OpenVINO crops the end unless same_upper.
        settings = decided("expected", reason, runs=[[_rows(6, 6, before)], [_rows(5, 7, 1, 0)]])
        kernel = np.ones((1, 1, 3, 3), np.float32)
        name = f"run-time-shape-{auto}"
        yield _backprop(name, static(ramp, ramp), kernel, two, zero, zero, one, auto, None, shapes, **settings)
    for dtype in (np.float16, np.float64, np.int32):
        data, kernel = static(_values(1, 3, 4, 5, dtype=dtype)), _weights(3, 2, 3, 3, dtype=dtype)
        yield _backprop(np.dtype(dtype).name, data, kernel, two, one, one, one)


# The 3x3 ramp 1..9 with stride 2, each number spread over a 3x3 square; squares overlap in rows.
_WHOLE = np.array(
    [
        [1, 1, 3, 2, 5, 3, 3],
        [1, 1, 3, 2, 5, 3, 3],
        [5, 5, 12, 7, 16, 9, 9],
        [4, 4, 9, 5, 11, 6, 6],
        [11, 11, 24, 13, 28, 15, 15],
        [7, 7, 15, 8, 17, 9, 9],
        [7, 7, 15, 8, 17, 9, 9],
    ],
    np.float32,
)


def _rows(height, width, top, left=None):
    left = top if left is None else left
    return _WHOLE[None, None, top : top + height, left : left + width]


def _group_backprops():
    zero, one, two = [0, 0], [1, 1], [2, 2]
    usual, taps = (2, 6, 4, 5), (3, 2, 4, 3, 2)
    for name, data, kernel, *rest in (
        ("explicit", usual, taps, [2, 3], [1, 0], [0, 1], [1, 2], "explicit", [1, 0], None),
        ("depthwise", (1, 4, 3, 3), (4, 1, 1, 4, 4), two, one, one, one, "explicit", None, None),
        ("shape-same-upper", usual, taps, two, zero, zero, one, "same_upper", None, [8, 9]),
        ("shape-same-lower", usual, taps, two, zero, zero, one, "same_lower", None, [8, 9]),
        ("shape-explicit", usual, taps, two, one, one, one, "explicit", None, [9, 9]),
        ("shape-of-data", usual, (3, 2, 4, 1, 1), one, [1, 2], one, one, "explicit", None, [4, 5]),
        ("valid", usual, taps, two, one, one, one, "valid", [1, 1], None),
        ("1d", (1, 4, 5), (2, 2, 3, 4), [3], [1], [2], [1], "explicit", [1], None),
        ("3d", (1, 4, 3, 2, 3), (2, 2, 1, 2, 3, 2), [2, 1, 2], [1, 0, 0], [0, 1, 0], [1, 1, 2], "explicit", None, None),
    ):
        yield _group_backprop(name, static(_values(*data)), _weights(*kernel), *rest)
    data = dynamic(_values(1, 4, 5, 6), _values(2, 4, 6, 5), dims=(-1, 4, -1, -1))
    yield _group_backprop("dynamic", data, _weights(2, 2, 3, 3, 4), two, one, zero, one)
    data, kernel = static(_values(1, 4, 4, 5, dtype=np.float16)), _weights(2, 2, 2, 3, 3, dtype=np.float16)
    yield _group_backprop("float16", data, kernel, two, one, one, one)


def _bits(*shape):
    return np.random.default_rng(3).integers(0, 2, shape).astype(np.float32)


def _packed(*shape):
    """A constant of single bits."""

    def make():
        import openvino as ov

        packed = np.random.default_rng(5).integers(0, 256, int(np.prod(shape)) // 8)
        return ov.op.Constant(ov.Tensor(packed.astype(np.uint8), ov.Shape(list(shape)), ov.Type.u1), shared_memory=False)

    return make


def _binaries():
    for name, data, kernel, strides, begin, end, dilations, pad_value, *auto in (
        ("no-pads", (2, 8, 5, 6), (8, 8, 3, 3), [1, 1], [0, 0], [0, 0], [1, 1], 0.0),
        ("pad-value-0", (2, 8, 5, 6), (16, 8, 3, 3), [1, 1], [1, 1], [1, 1], [1, 1], 0.0),
        ("pad-value-1", (2, 16, 5, 6), (8, 16, 3, 3), [2, 1], [1, 0], [1, 2], [1, 1], 1.0),
        ("pad-value-minus-1", (2, 8, 5, 6), (8, 8, 3, 3), [1, 2], [1, 1], [1, 1], [1, 1], -1.0),
        ("pad-value-other", (2, 8, 5, 6), (8, 8, 3, 3), [1, 1], [1, 1], [1, 1], [1, 1], 0.5),
        ("same-upper", (2, 32, 5, 6), (8, 32, 3, 3), [2, 2], [0, 0], [0, 0], [1, 1], -1.0, "same_upper"),
        ("same-lower", (2, 8, 5, 6), (8, 8, 2, 2), [1, 1], [0, 0], [0, 0], [1, 1], 0.0, "same_lower"),
        ("dilations", (2, 8, 5, 6), (8, 8, 3, 2), [1, 1], [2, 1], [2, 1], [2, 3], -1.0),
    ):
        attributes = {
            "strides": strides, "pads_begin": begin, "pads_end": end, "dilations": dilations, "mode": "xnor-popcount",
            "pad_value": pad_value, "auto_pad": auto[0] if auto else "explicit",
        }  # fmt: skip
        inputs = [static(_bits(*data)), _packed(*kernel)]
        yield layer_case("BinaryConvolution", "opset1", "binary_convolution", name, inputs, attributes)
    # The specification only allows 0 and 1.
    others = np.random.default_rng(4).choice(
        np.array([-2, -0.3, 0, 1e-40, 0.3, 3, np.inf, -np.inf, np.nan], np.float32), (2, 8, 5, 6)
    )
    attributes = {"strides": [1, 1], "pads_begin": [0, 0], "pads_end": [0, 0], "dilations": [1, 1], "mode": "xnor-popcount",
                  "pad_value": 0.0, "auto_pad": "explicit"}  # fmt: skip
    inputs = [static(others), _packed(8, 8, 3, 3)]
    yield layer_case("BinaryConvolution", "opset1", "binary_convolution", "other-numbers", inputs, attributes)


def _offsets(*shape, scale=1.5, dtype=np.float32):
    """Offsets of all kinds: zero, integer, across the borders, exactly onto the last row."""
    r = np.random.default_rng(9)
    x = r.normal(scale=scale, size=shape)
    x[r.random(shape) < 0.2] = 0
    rounded = np.round(x)
    return np.where(r.random(shape) < 0.2, rounded, x).astype(dtype)


def _deformable(version, name, data, offsets, kernel, attributes, mask=None):
    """A case of a convolution whose taps are moved by ``offsets``."""

    def make(ops, data, offsets, kernel, mask=None, **attributes):
        return ops.deformable_convolution(data, offsets, kernel, **attributes, **({} if mask is None else {"mask": mask}))

    inputs = [data, offsets, kernel, *([] if mask is None else [mask])]
    return layer_case("DeformableConvolution", f"opset{version}", make, name, inputs, attributes)


def _deformables():
    one, zero, usual = [1, 1], [0, 0], (4, 4, 3, 2)
    for name, data, kernel, strides, begin, end, dilations, auto, group, deformable_group, spots in (
        ("plain", (2, 4, 6, 7), usual, one, one, zero, one, "explicit", 1, 1, (5, 7)),
        ("strides-dilations", (2, 4, 8, 9), usual, [2, 1], [1, 2], [2, 1], [2, 3], "explicit", 1, 1, (4, 9)),
        ("groups", (1, 4, 6, 7), (4, 2, 3, 2), one, one, zero, one, "explicit", 2, 1, (5, 7)),
        ("deformable-groups", (1, 4, 6, 7), usual, one, one, zero, one, "explicit", 1, 2, (5, 7)),
        ("both-groups", (2, 4, 6, 7), (4, 2, 3, 2), one, one, zero, one, "explicit", 2, 4, (5, 7)),
        ("valid", (1, 4, 6, 7), usual, [1, 2], one, one, one, "valid", 1, 1, (4, 3)),
        ("same-upper", (1, 4, 6, 7), usual, [2, 1], zero, zero, one, "same_upper", 1, 1, (3, 7)),
        ("same-lower", (1, 4, 6, 7), usual, [2, 1], zero, zero, one, "same_lower", 1, 1, (3, 7)),
        ("float16", (2, 4, 6, 7), usual, one, one, zero, one, "explicit", 1, 1, (5, 7)),
    ):
        dtype = np.float16 if name == "float16" else np.float32
        attributes = {
            "strides": strides, "pads_begin": begin, "pads_end": end, "dilations": dilations, "auto_pad": auto,
            "group": group, "deformable_group": deformable_group,
        }  # fmt: skip
        taps = deformable_group * kernel[2] * kernel[3]
        x, w = static(_values(*data, dtype=dtype)), _weights(*kernel, dtype=dtype)
        offsets = static(_offsets(data[0], 2 * taps, *spots, dtype=dtype))
        yield _deformable(1, name, x, offsets, w, attributes)
        for pad in (False, True):
            for with_mask in (False, True):
                if name in ("valid", "float16") and pad == with_mask:
                    continue
                mask = static(np.random.default_rng(2).random((data[0], taps, *spots)).astype(dtype)) if with_mask else None
                full = f"{name}{'-pad' if pad else ''}{'-mask' if with_mask else ''}"
                yield _deformable(8, full, x, offsets, w, {**attributes, "bilinear_interpolation_pad": pad}, mask)
    for version in (1, 8):
        for auto, size, other in (("explicit", (5, 6), (3, 3)), ("same_upper", (6, 8), (4, 5))):
            attributes = {
                "strides": one, "pads_begin": zero, "pads_end": zero, "dilations": one, "auto_pad": auto,
            }  # fmt: skip
            data = dynamic(_values(1, 4, 6, 8), _values(2, 4, 4, 5), dims=(-1, 4, -1, -1))
            offsets = dynamic(_offsets(1, 12, *size), _offsets(2, 12, *other), dims=(-1, 12, -1, -1))
            yield _deformable(version, f"dynamic-{auto}", data, offsets, _weights(4, 4, 2, 3), attributes)


CASES = [*_plain(), *_grouped(), *_backprops(), *_group_backprops(), *_binaries(), *_deformables()]
