"""Convolutions."""

from __future__ import annotations

import numpy as np

from tests.conformance.case import Case


def _values(*shape, dtype=np.float32, seed=0):
    """Numbers that make every tap of a window tell."""
    r = np.random.default_rng(seed + 7 * len(shape))
    if np.dtype(dtype).kind == "f":
        return r.normal(size=shape).astype(dtype)
    return r.integers(0 if np.dtype(dtype).kind == "u" else -6, 7, shape).astype(dtype)


def _ramp(*shape):
    """0, 1, 2, ..."""
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


def _convolution(
    kind,
    data,
    kernel,
    strides,
    begin,
    end,
    dilations,
    auto_pad="explicit",
    *,
    dtype=np.float32,
    run_time_kernel=None,
    **more,
):
    """A model of one convolution, its kernel a constant unless ``run_time_kernel`` gives a partial shape for it."""
    import openvino as ov
    from openvino import opset1

    def build():
        x = opset1.parameter(ov.PartialShape(list(data)), dtype)
        inputs = [x]
        if run_time_kernel is None:
            w = opset1.constant(_values(*kernel, dtype=dtype, seed=1))
        else:
            w = opset1.parameter(ov.PartialShape(list(run_time_kernel)), dtype)
            inputs.append(w)
        make = getattr(opset1, kind)
        return ov.Model([make(x, w, strides, begin, end, dilations, auto_pad, **more)], inputs)

    return build


def _transposed(
    kind, data, kernel, strides, begin, end, dilations, auto_pad="explicit", output_padding=None, output_shape=None,
    *, dtype=np.float32,
):  # fmt: skip
    """A model of one transposed convolution; ``output_shape="run-time"`` makes the shape an input."""
    import openvino as ov
    from openvino import opset1

    def build():
        x = opset1.parameter(ov.PartialShape(list(data)), dtype)
        w = opset1.constant(_values(*kernel, dtype=dtype, seed=1))
        inputs, shape = [x], None
        if output_shape == "run-time":
            shape = opset1.parameter([len(strides)], np.int32)
            inputs.append(shape)
        elif output_shape is not None:
            shape = opset1.constant(np.array(output_shape, np.int64))
        make = getattr(opset1, kind)
        node = make(x, w, strides, shape, begin, end, dilations, auto_pad, output_padding or [0] * len(strides))
        return ov.Model([node], inputs)

    return build


def _bits(channels, outputs, kernel, strides, begin, end, dilations, pad_value, auto_pad="explicit", data=None):
    import openvino as ov
    from openvino import opset1

    def build():
        x = opset1.parameter(ov.PartialShape(list(data or (2, channels, 5, 6))), np.float32)
        shape = ov.Shape([outputs, channels, *kernel])
        packed = np.random.default_rng(5).integers(0, 256, outputs * channels * kernel[0] * kernel[1] // 8)
        w = ov.op.Constant(ov.Tensor(packed.astype(np.uint8), shape, ov.Type.u1))
        return ov.Model(
            [opset1.binary_convolution(x, w, strides, begin, end, dilations, "xnor-popcount", pad_value, auto_pad)], [x]
        )

    return build


def _binary(*shape):
    return np.random.default_rng(3).integers(0, 2, shape).astype(np.float32)


def _deformable(version, data, kernel, strides, begin, end, dilations, auto_pad, group, deformable_group, dtype, **more):
    import openvino as ov
    from openvino import opset1, opset8

    mask = more.pop("mask", None)
    spots = more.pop("spots")
    batch = data[0]

    def build():
        taps = deformable_group * kernel[2] * kernel[3]
        x = opset1.parameter(ov.PartialShape(list(data)), dtype)
        offsets = opset1.parameter(ov.PartialShape([batch, 2 * taps, *spots]), dtype)
        w = opset1.constant(_values(*kernel, dtype=dtype, seed=1))
        if version == 1:
            node = opset1.deformable_convolution(
                x, offsets, w, strides, begin, end, dilations, auto_pad, group, deformable_group
            )
            return ov.Model([node], [x, offsets])
        m = opset1.parameter(ov.PartialShape([batch, taps, *spots]), dtype) if mask else None
        node = opset8.deformable_convolution(
            x, offsets, w, strides, begin, end, dilations, m, auto_pad, group, deformable_group, **more
        )
        return ov.Model([node], [x, offsets] + ([m] if mask else []))

    return build


def _offsets(*shape, scale=1.5, dtype=np.float32):
    """Offsets of all kinds: none, whole, across the borders, onto the last row exactly."""
    r = np.random.default_rng(9)
    x = r.normal(scale=scale, size=shape)
    x[r.random(shape) < 0.2] = 0
    rounded = np.round(x)
    return np.where(r.random(shape) < 0.2, rounded, x).astype(dtype)


def _plain():
    ones = [1, 1]
    specs = [
        ("explicit", (1, 3, 7, 8), (4, 3, 3, 2), [2, 1], [1, 0], [0, 2], [1, 2], "explicit"),
        ("valid-ignores-pads", (1, 3, 7, 8), (4, 3, 3, 2), [1, 1], [3, 3], [3, 3], ones, "valid"),
        ("same-upper", (2, 3, 7, 8), (4, 3, 4, 2), [2, 3], [0, 0], [0, 0], ones, "same_upper"),
        ("same-lower-dilated", (2, 3, 7, 8), (4, 3, 4, 2), [2, 1], [0, 0], [0, 0], [1, 3], "same_lower"),
        ("1d", (2, 3, 9), (4, 3, 4), [2], [1], [2], [2], "explicit"),
        ("3d", (1, 2, 5, 4, 6), (3, 2, 2, 3, 3), [1, 2, 1], [1, 0, 1], [0, 1, 1], [1, 1, 2], "explicit"),
        ("kernel-as-large-as-padded", (1, 1, 2, 2), (1, 1, 4, 4), ones, [1, 1], [1, 1], ones, "explicit"),
        ("pads-larger-than-kernel", (1, 1, 2, 2), (1, 1, 2, 2), ones, [3, 4], [4, 3], ones, "explicit"),
    ]
    for name, data, kernel, *rest in specs:
        yield Case("Convolution", "opset1", name, _convolution("convolution", data, kernel, *rest), [(_values(*data),)])
    k = (4, 3, 3, 2)
    for auto in ("explicit", "same_upper", "same_lower"):
        yield Case(
            "Convolution",
            "opset1",
            f"dynamic-{auto}",
            _convolution("convolution", (-1, 3, -1, -1), k, [2, 1], [1, 0], [1, 1], [2, 3], auto),
            [(_values(1, 3, 7, 8),), (_values(3, 3, 6, 5),)],
        )
    yield Case(
        "Convolution",
        "opset1",
        "dynamic-same-stride-larger-than-kernel",
        _convolution("convolution", (-1, 3, -1, -1), (4, 3, 1, 2), [2, 3], [0, 0], [0, 0], ones, "same_lower"),
        [(_values(1, 3, 8, 9),), (_values(1, 3, 7, 10),), (_values(1, 3, 1, 11),)],
    )
    yield Case(
        "Convolution",
        "opset1",
        "run-time-kernel",
        _convolution("convolution", (-1, 3, -1, -1), k, [2, 1], [1, 0], [1, 1], [1, 1], "same_upper", run_time_kernel=k),
        [(_values(1, 3, 7, 8), _values(*k)), (_values(2, 3, 6, 5), _values(*k, seed=2))],
    )
    yield Case(
        "Convolution",
        "opset1",
        "run-time-kernel-of-any-shape",
        _convolution(
            "convolution",
            (-1, -1, -1, -1),
            k,
            [2, 1],
            [1, 0],
            [1, 1],
            [1, 2],
            "same_lower",
            run_time_kernel=(-1, -1, -1, -1),
        ),
        [(_ramp(1, 2, 3, 3), _ramp(1, 2, 2, 2)), (_ramp(1, 1, 2, 4), _ramp(2, 1, 1, 3))],
        oracle="expected",
        reason="the CPU plugin takes no kernel of dynamic shape; values by torch",
        expected=[
            [np.array([73, 137, 62, 202, 368, 162], np.float32).reshape(1, 1, 2, 3)],
            [np.array([4, 7, 2, 3, 10, 19, 8, 15], np.float32).reshape(1, 2, 1, 4)],
        ],
    )
    yield Case(
        "Convolution",
        "opset1",
        "no-batch",
        _convolution("convolution", (-1, 3, 7, 8), k, ones, [0, 0], [0, 0], ones),
        [(_values(0, 3, 7, 8),)],
    )
    for dtype in (np.float16, np.float64, np.int32, np.int64, np.uint8, np.int8):
        yield Case(
            "Convolution",
            "opset1",
            np.dtype(dtype).name,
            _convolution("convolution", (1, 3, 7, 8), k, ones, [1, 1], [1, 1], ones, dtype=dtype),
            [(_values(1, 3, 7, 8, dtype=dtype) * np.asarray(3, dtype),)],
        )


_GROUPS_1 = [
    1, 0, 4, 0, 3, 4, 18, 10, 59, 32, 86, 44, 85, 48, 124, 66,
    13, 0, 16, 0, 63, 28, 78, 34, 167, 80, 194, 92, 241, 120, 280, 138,
]  # fmt: skip
_GROUPS_2 = [28, 12, 252, 124]


def _grouped():
    specs = [
        ("depthwise", (1, 4, 6, 7), (4, 1, 1, 3, 3), [1, 2], [1, 1], [1, 1], [1, 1], "explicit"),
        ("groups", (2, 6, 6, 7), (3, 4, 2, 3, 2), [2, 1], [0, 1], [1, 0], [1, 2], "same_lower"),
        ("1d", (2, 4, 9), (2, 3, 2, 3), [1], [1], [0], [2], "explicit"),
        ("3d", (1, 4, 4, 5, 3), (2, 1, 2, 2, 2, 2), [1, 2, 1], [1, 0, 0], [0, 1, 0], [1, 1, 1], "valid"),
        ("one-group", (1, 3, 5, 5), (1, 2, 3, 3, 3), [1, 1], [1, 1], [1, 1], [1, 1], "same_upper"),
        ("multiplier", (1, 2, 5, 5), (2, 5, 1, 3, 3), [1, 1], [0, 0], [0, 0], [1, 1], "explicit"),
        ("large-kernel", (1, 80, 5, 5), (80, 1, 1, 9, 9), [1, 1], [4, 4], [4, 4], [1, 1], "explicit"),
    ]
    for name, data, kernel, *rest in specs:
        yield Case(
            "GroupConvolution", "opset1", name, _convolution("group_convolution", data, kernel, *rest), [(_values(*data),)]
        )
    kernels = (2, 2, 1, 2, 2)
    yield Case(
        "GroupConvolution",
        "opset1",
        "run-time-kernel",
        _convolution("group_convolution", (-1, 2, -1, -1), None, [2, 1], [1, 0], [1, 1], [1, 1], run_time_kernel=kernels),
        [(_values(2, 2, 7, 8), _values(*kernels)), (_values(1, 2, 4, 5), _values(*kernels, seed=1))],
    )
    for name, known in (("known", 2), ("unknown", -1)):
        yield Case(
            "GroupConvolution",
            "opset1",
            f"run-time-kernel-groups-{name}",
            _convolution(
                "group_convolution",
                (-1, -1, -1, -1),
                None,
                [1, 2],
                [0, 0],
                [0, 0],
                [1, 1],
                "same_upper",
                run_time_kernel=(known, -1, -1, -1, -1),
            ),
            [(_ramp(2, 2, 2, 3), _ramp(2, 2, 1, 1, 2)), (_ramp(1, 4, 2, 2), _ramp(2, 1, 2, 2, 1))],
            oracle="expected",
            reason="the CPU plugin takes no kernel of dynamic shape; values by torch",
            expected=[
                [np.array(_GROUPS_1, np.float32).reshape(2, 4, 2, 2)],
                [np.array(_GROUPS_2, np.float32).reshape(1, 2, 2, 1)],
            ],
        )
    for dtype in (np.float16, np.int32, np.uint8):
        yield Case(
            "GroupConvolution",
            "opset1",
            np.dtype(dtype).name,
            _convolution("group_convolution", (-1, 4, 6, 6), (2, 2, 2, 3, 3), [1, 1], [1, 1], [1, 1], [1, 1], dtype=dtype),
            [(_values(1, 4, 6, 6, dtype=dtype),)],
        )


def _backprop():
    zero, one, two = [0, 0], [1, 1], [2, 2]
    data, kernel = (2, 3, 4, 5), (3, 4, 3, 2)
    specs = [
        ("explicit", data, kernel, [2, 3], [1, 0], [0, 1], [1, 2], "explicit", [1, 0], None),
        ("valid", data, kernel, two, one, one, one, "valid", None, None),
        ("same-upper-without-shape", data, kernel, two, one, one, one, "same_upper", None, None),
        ("output-padding-beyond-stride", data, kernel, two, zero, zero, one, "explicit", [3, 2], None),
        ("shape-explicit", data, kernel, two, one, zero, one, "explicit", None, [8, 9]),
        ("shape-explicit-larger", data, kernel, two, zero, zero, one, "explicit", None, [10, 13]),
        ("shape-within-dilation", data, (3, 2, 2, 2), one, zero, zero, [3, 2], "explicit", None, [8, 8]),
        ("nothing-left", (1, 2, 6, 2), (2, 2, 1, 1), [2, 3], [0, 2], [0, 2], [1, 3], "explicit", None, None),
        ("shape-same-upper", data, kernel, two, zero, zero, one, "same_upper", None, [8, 9]),
        ("shape-same-lower", data, kernel, two, zero, zero, one, "same_lower", [1, 1], [8, 9]),
        ("shape-same-lower-larger", data, kernel, two, zero, zero, one, "same_lower", None, [10, 12]),
        ("shape-valid", data, kernel, two, one, one, one, "valid", None, [8, 9]),
        ("1d", (1, 2, 5), (2, 3, 4), [3], [1], [2], [1], "explicit", [1], None),
        ("3d", (1, 2, 3, 2, 3), (2, 2, 2, 3, 2), [2, 1, 2], [1, 0, 0], [0, 1, 0], [1, 1, 2], "explicit", None, None),
    ]
    for name, data, kernel, *rest in specs:
        yield Case(
            "ConvolutionBackpropData",
            "opset1",
            name,
            _transposed("convolution_backprop_data", data, kernel, *rest),
            [(_values(*data),)],
        )
    for name, auto, shape in (("dynamic", "explicit", None), ("dynamic-shape-same-upper", "same_upper", [11, 12])):
        yield Case(
            "ConvolutionBackpropData",
            "opset1",
            name,
            _transposed("convolution_backprop_data", (-1, 3, -1, -1), (3, 2, 3, 4), two, one, zero, one, auto, None, shape),
            [(_values(1, 3, 5, 6),), (_values(2, 3, 6, 5),)],
        )
    yield Case(
        "ConvolutionBackpropData",
        "opset1",
        "nothing-left-dynamic",
        _transposed("convolution_backprop_data", (-1, 3, -1, -1), (3, 2, 1, 1), [1, 3], [0, 2], [0, 2], one),
        [(_values(1, 3, 5, 2),), (_values(2, 3, 6, 5),)],
    )
    ramp = np.arange(1, 10, dtype=np.float32).reshape(1, 1, 3, 3)
    for auto, before in (("same_upper", 1), ("same_lower", 0)):
        # The whole result has the size 7; of the cut-off element OpenVINO takes it from the end unless same_upper.
        expected = [_rows(6, 6, before), _rows(5, 7, 1, 0)]
        yield Case(
            "ConvolutionBackpropData",
            "opset1",
            f"run-time-shape-{auto}",
            _ramp_transposed(auto),
            [(ramp, np.array([6, 6], np.int32)), (ramp, np.array([5, 7], np.int32))],
            oracle="expected",
            reason="the CPU plugin takes no output_shape at run time; values by the specification's formulas",
            expected=[[e] for e in expected],
        )
    for dtype in (np.float16, np.float64, np.int32):
        yield Case(
            "ConvolutionBackpropData",
            "opset1",
            np.dtype(dtype).name,
            _transposed("convolution_backprop_data", (1, 3, 4, 5), (3, 2, 3, 3), two, one, one, one, dtype=dtype),
            [(_values(1, 3, 4, 5, dtype=dtype),)],
        )


def _ramp_transposed(auto_pad):
    """Stride 2 and a kernel of ones, one row and column wider: every sum is easily added up by hand."""
    import openvino as ov
    from openvino import opset1

    def build():
        x = opset1.parameter([1, 1, 3, 3], np.float32)
        shape = opset1.parameter([2], np.int32)
        w = opset1.constant(np.ones((1, 1, 3, 3), np.float32))
        return ov.Model(
            [opset1.convolution_backprop_data(x, w, [2, 2], shape, [0, 0], [0, 0], [1, 1], auto_pad)], [x, shape]
        )

    return build


# The 3x3 ramp 1..9 spread by the stride 2, each number over a 3x3 square: rows overlap where squares meet.
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


def _group_backprop():
    zero, one, two = [0, 0], [1, 1], [2, 2]
    data, kernel = (2, 6, 4, 5), (3, 2, 4, 3, 2)
    specs = [
        ("explicit", data, kernel, [2, 3], [1, 0], [0, 1], [1, 2], "explicit", [1, 0], None),
        ("depthwise", (1, 4, 3, 3), (4, 1, 1, 4, 4), two, one, one, one, "explicit", None, None),
        ("shape-same-upper", data, kernel, two, zero, zero, one, "same_upper", None, [8, 9]),
        ("shape-same-lower", data, kernel, two, zero, zero, one, "same_lower", None, [8, 9]),
        ("shape-explicit", data, kernel, two, one, one, one, "explicit", None, [9, 9]),
        ("valid", data, kernel, two, one, one, one, "valid", [1, 1], None),
        ("1d", (1, 4, 5), (2, 2, 3, 4), [3], [1], [2], [1], "explicit", [1], None),
        ("3d", (1, 4, 3, 2, 3), (2, 2, 1, 2, 3, 2), [2, 1, 2], [1, 0, 0], [0, 1, 0], [1, 1, 2], "explicit", None, None),
    ]
    for name, data, kernel, *rest in specs:
        yield Case(
            "GroupConvolutionBackpropData",
            "opset1",
            name,
            _transposed("group_convolution_backprop_data", data, kernel, *rest),
            [(_values(*data),)],
        )
    yield Case(
        "GroupConvolutionBackpropData",
        "opset1",
        "dynamic",
        _transposed("group_convolution_backprop_data", (-1, 4, -1, -1), (2, 2, 3, 3, 4), two, one, zero, one),
        [(_values(1, 4, 5, 6),), (_values(2, 4, 6, 5),)],
    )
    yield Case(
        "GroupConvolutionBackpropData",
        "opset1",
        "float16",
        _transposed("group_convolution_backprop_data", (1, 4, 4, 5), (2, 2, 2, 3, 3), two, one, one, one, dtype=np.float16),
        [(_values(1, 4, 4, 5, dtype=np.float16),)],
    )


def _binary_cases():
    specs = [
        ("no-pads", (8, 8, [3, 3], [1, 1], [0, 0], [0, 0], [1, 1], 0.0), (2, 8, 5, 6)),
        ("pad-value-0", (8, 16, [3, 3], [1, 1], [1, 1], [1, 1], [1, 1], 0.0), (2, 8, 5, 6)),
        ("pad-value-1", (16, 8, [3, 3], [2, 1], [1, 0], [1, 2], [1, 1], 1.0), (2, 16, 5, 6)),
        ("pad-value-minus-1", (8, 8, [3, 3], [1, 2], [1, 1], [1, 1], [1, 1], -1.0), (2, 8, 5, 6)),
        ("pad-value-other", (8, 8, [3, 3], [1, 1], [1, 1], [1, 1], [1, 1], 0.5), (2, 8, 5, 6)),
        ("same-upper", (32, 8, [3, 3], [2, 2], [0, 0], [0, 0], [1, 1], -1.0, "same_upper"), (2, 32, 5, 6)),
        ("same-lower", (8, 8, [2, 2], [1, 1], [0, 0], [0, 0], [1, 1], 0.0, "same_lower"), (2, 8, 5, 6)),
        ("dilations", (8, 8, [3, 2], [1, 1], [2, 1], [2, 1], [2, 3], -1.0), (2, 8, 5, 6)),
    ]
    for name, arguments, data in specs:
        yield Case("BinaryConvolution", "opset1", name, _bits(*arguments), [(_binary(*data),)])


def _deformable_cases():
    one, zero = [1, 1], [0, 0]
    kernel = (4, 4, 3, 2)
    plain = ((2, 4, 6, 7), kernel, one, one, zero, one, "explicit", 1, 1, np.float32)
    specs = [
        ("plain", plain, (6, 7)),
        ("strides-dilations", ((2, 4, 8, 9), kernel, [2, 1], [1, 2], [2, 1], [2, 3], "explicit", 1, 1, np.float32), (4, 9)),
        ("groups", ((1, 4, 6, 7), (4, 2, 3, 2), one, one, zero, one, "explicit", 2, 1, np.float32), (5, 7)),
        ("deformable-groups", ((1, 4, 6, 7), kernel, one, one, zero, one, "explicit", 1, 2, np.float32), (5, 7)),
        ("both-groups", ((2, 4, 6, 7), (4, 2, 3, 2), one, one, zero, one, "explicit", 2, 4, np.float32), (5, 7)),
        ("valid", ((1, 4, 6, 7), kernel, [1, 2], one, one, one, "valid", 1, 1, np.float32), (4, 3)),
        ("same-upper", ((1, 4, 6, 7), kernel, [2, 1], zero, zero, one, "same_upper", 1, 1, np.float32), (3, 7)),
        ("same-lower", ((1, 4, 6, 7), kernel, [2, 1], zero, zero, one, "same_lower", 1, 1, np.float32), (3, 7)),
        ("float16", (*plain[:-1], np.float16), (5, 7)),
    ]  # fmt: skip
    specs[0] = ("plain", plain, (5, 7))
    for name, arguments, spots in specs:
        data, kernel, *_, deformable_group, dtype = arguments
        taps = deformable_group * kernel[2] * kernel[3]
        x = _values(*data, dtype=dtype)
        offsets = _offsets(data[0], 2 * taps, *spots, dtype=dtype)
        yield Case("DeformableConvolution", "opset1", name, _deformable(1, *arguments, spots=spots), [(x, offsets)])
        for pad in (False, True):
            for with_mask in (False, True):
                if name in ("valid", "float16") and pad == with_mask:
                    continue
                m = (np.random.default_rng(2).random((data[0], taps, *spots)).astype(dtype),) if with_mask else ()
                yield Case(
                    "DeformableConvolution",
                    "opset8",
                    f"{name}{'-pad' if pad else ''}{'-mask' if with_mask else ''}",
                    _deformable(8, *arguments, spots=spots, mask=with_mask, bilinear_interpolation_pad=pad),
                    [(x, offsets, *m)],
                )
    for version in (1, 8):
        for auto in ("explicit", "same_upper"):
            size = (6, 8) if auto == "same_upper" else (5, 6)
            other = (4, 5) if auto == "same_upper" else (3, 3)
            yield Case(
                "DeformableConvolution",
                f"opset{version}",
                f"dynamic-{auto}",
                _deformable(
                    version, (-1, 4, -1, -1), (4, 4, 2, 3), one, zero, zero, one, auto, 1, 1, np.float32, spots=(-1, -1)
                ),
                [
                    (_values(1, 4, 6, 8), _offsets(1, 12, *size)),
                    (_values(2, 4, 4, 5), _offsets(2, 12, *other)),
                ],
            )


CASES = [*_plain(), *_grouped(), *_backprop(), *_group_backprop(), *_binary_cases(), *_deformable_cases()]
