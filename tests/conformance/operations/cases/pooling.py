"""Poolings."""

from __future__ import annotations

import numpy as np

from tests.conformance.case import Case

_NO_INDICES = "the CPU plugin takes 32-bit indices only, Model.evaluate none at all; values by torch"
_KEPT = "Model.evaluate keeps the padding of the first run"
_UNSIZED = "Model.evaluate writes beyond outputs of dynamic shape"
_CORRUPTED = "with same padding and a dynamic shape OpenVINO reads and writes beyond its buffers; values by torch"


def _values(*shape, dtype=np.float32, seed=0):
    """Numbers with ties among them."""
    r = np.random.default_rng(seed + sum(shape))
    if np.dtype(dtype).kind == "f":
        return (r.integers(-20, 20, shape) / 4).astype(dtype)
    return r.integers(0 if np.dtype(dtype).kind == "u" else -9, 10, shape).astype(dtype)


def _average(
    version, data, kernel, strides, begin, end, exclude, rounding="floor", auto="explicit", dtype=np.float32, dilations=None
):
    def build():
        import openvino as ov
        from openvino import opset1, opset14, opset16

        x = opset1.parameter(ov.PartialShape(list(data)), dtype)
        make = {1: opset1, 14: opset14, 16: opset16}[version].avg_pool
        more = {"dilations": dilations or [1] * len(kernel)} if version == 16 else {}
        return ov.Model([make(x, strides, begin, end, kernel, exclude, rounding, auto, **more)], [x])

    return build


def _maximum(
    version, data, kernel, strides, begin, end, rounding="floor", auto="explicit", dtype=np.float32, dilations=None, **more
):
    def build():
        import openvino as ov
        from openvino import opset1, opset8, opset14

        x = opset1.parameter(ov.PartialShape(list(data)), dtype)
        if version == 1:
            node = opset1.max_pool(x, strides, begin, end, kernel, rounding, auto)
        else:
            make = {8: opset8, 14: opset14}[version].max_pool
            node = make(x, strides, dilations or [1] * len(kernel), begin, end, kernel, rounding, auto, **more)
        return ov.Model(node.outputs(), [x])

    return build


# name: data, kernel, strides, pads_begin, pads_end, rounding_type, auto_pad
_WINDOWS = {
    "plain": ((2, 3, 6, 7), [2, 3], [2, 2], [0, 0], [0, 0], "floor", "explicit"),
    "pads": ((2, 3, 6, 7), [3, 3], [2, 1], [1, 0], [0, 2], "floor", "explicit"),
    "ceil": ((1, 2, 6, 7), [3, 2], [2, 2], [0, 0], [0, 0], "ceil", "explicit"),
    "ceil-pads": ((1, 2, 6, 7), [3, 3], [2, 3], [1, 1], [1, 1], "ceil", "explicit"),
    "ceil-window-outside": ((1, 2, 5, 6), [2, 3], [3, 3], [1, 1], [1, 2], "ceil", "explicit"),
    "valid-ceil": ((1, 2, 6, 7), [3, 2], [2, 2], [1, 1], [1, 1], "ceil", "valid"),
    "same-upper": ((1, 2, 6, 7), [3, 2], [2, 2], [0, 0], [0, 0], "floor", "same_upper"),
    "same-lower": ((1, 2, 6, 7), [4, 2], [1, 2], [0, 0], [0, 0], "floor", "same_lower"),
    "same-upper-ceil": ((1, 2, 6, 8), [3, 1], [2, 2], [0, 0], [0, 0], "ceil", "same_upper"),
    "same-upper-apart": ((1, 2, 6, 8), [3, 1], [2, 3], [0, 0], [0, 0], "floor", "same_upper"),
    "1d": ((2, 3, 9), [4], [3], [1], [2], "ceil", "explicit"),
    "3d": ((1, 2, 5, 4, 6), [2, 2, 3], [2, 1, 2], [0, 1, 1], [1, 0, 1], "floor", "explicit"),
    "global": ((2, 3, 6, 7), [6, 7], [1, 1], [0, 0], [0, 0], "floor", "explicit"),
}
_TORCH = {
    "torch": ((1, 2, 6, 7), [3, 2], [2, 2], [0, 0], [0, 0], "ceil_torch", "explicit"),
    "torch-pads": ((1, 2, 6, 7), [3, 3], [2, 3], [1, 1], [1, 1], "ceil_torch", "explicit"),
    "torch-window-outside": ((1, 2, 5, 6), [2, 3], [3, 3], [1, 1], [1, 2], "ceil_torch", "explicit"),
    "torch-one-window-less": ((1, 2, 5, 9), [2, 3], [4, 5], [1, 1], [0, 1], "ceil_torch", "explicit"),
}


def _dynamic(data):
    """A partial shape that leaves all but the channels open, and two sets of inputs for it."""
    other = (data[0] + 1, data[1], *(d + 1 + k for k, d in enumerate(data[2:])))
    return (-1, data[1], *([-1] * (len(data) - 2))), [(_values(*data),), (_values(*other),)]


def _averages():
    for version in (1, 14, 16):
        windows = _WINDOWS if version == 1 else _TORCH | {k: _WINDOWS[k] for k in ("ceil-pads", "same-upper", "3d")}
        for name, (data, kernel, strides, begin, end, rounding, auto) in windows.items():
            for exclude in (True, False):
                case = f"{name}-{'exclude' if exclude else 'include'}-pad"
                shape, runs = _dynamic(data)
                arguments = (kernel, strides, begin, end, exclude, rounding, auto)
                yield Case("AvgPool", f"opset{version}", case, _average(version, data, *arguments), [(_values(*data),)])
                yield Case("AvgPool", f"opset{version}", f"{case}-dynamic", _average(version, shape, *arguments), runs)
    ones, k = [1, 1], [2, 2]
    for name, arguments in {
        "dilations": (k, ones, [0, 0], [0, 0], True, "floor"),
        "dilations-exclude-pad": (k, [2, 2], ones, ones, True, "ceil"),
        "dilations-include-pad": (k, [2, 2], ones, ones, False, "ceil_torch"),
        "dilations-same-upper": (k, [2, 1], [0, 0], [0, 0], False, "floor", "same_upper"),
        "dilations-same-lower": (k, [1, 2], [0, 0], [0, 0], True, "floor", "same_lower"),
    }.items():
        shape, runs = _dynamic((2, 2, 7, 8))
        yield Case("AvgPool", "opset16", name, _average(16, (2, 2, 7, 8), *arguments, dilations=[2, 3]), runs[:1])
        yield Case("AvgPool", "opset16", f"{name}-dynamic", _average(16, shape, *arguments, dilations=[2, 3]), runs)
    for dtype in (np.float16, np.float64, np.int32, np.int64, np.uint8, np.int8):
        for version in (1, 16):
            yield Case(
                "AvgPool",
                f"opset{version}",
                np.dtype(dtype).name,
                _average(version, (1, 2, 5, 6), k, ones, [0, 0], ones, False, dtype=dtype),
                [(_values(1, 2, 5, 6, dtype=dtype),)],
            )
    yield Case(
        "AvgPool",
        "opset14",
        "ceil-torch-partly-dynamic",
        _average(14, (1, -1, -1, 9), [3, 2], [3, 3], [0, 0], [0, 0], True, "ceil_torch", "valid"),
        [(_values(1, 3, 6, 9),)],
    )
    halves = np.arange(1 * 3 * 8 * 3, dtype=np.uint8).reshape(1, 3, 8, 3) * 5 % 19
    yield Case(
        "AvgPool",
        "opset16",
        "uint8-halves",
        _average(16, halves.shape, [3, 2], [1, 3], [0, 0], [0, 0], True, "ceil", "same_upper", np.uint8, dilations=[2, 1]),
        [(halves,)],
    )


def _maxima():
    for version in (1, 8, 14):
        windows = _TORCH | {k: _WINDOWS[k] for k in ("ceil-pads", "same-upper", "3d")} if version == 14 else _WINDOWS
        for name, (data, kernel, strides, begin, end, rounding, auto) in windows.items():
            shape, runs = _dynamic(data)
            arguments = (kernel, strides, begin, end, rounding, auto)
            yield Case("MaxPool", f"opset{version}", name, _maximum(version, data, *arguments), [(_values(*data),)])
            if version > 1 and auto.startswith("same"):
                continue  # see `_same_cases`
            reason = _UNSIZED if version > 1 else _KEPT if auto.startswith("same") else ""
            one = {"oracle": "cpu", "reason": reason} if reason else {}
            yield Case("MaxPool", f"opset{version}", f"{name}-dynamic", _maximum(version, shape, *arguments), runs, **one)
        data = (1, 2, 4, 5)
        arguments = ([2, 2], [1, 2], [3, 2], [2, 3], "floor", "explicit")
        yield Case(
            "MaxPool", f"opset{version}", "pads-beyond-kernel", _maximum(version, data, *arguments), [(_values(*data),)]
        )
        for dtype in (np.float16, np.float64):  # windows of nothing but padding
            yield Case(
                "MaxPool",
                f"opset{version}",
                f"pads-beyond-kernel-{np.dtype(dtype).name}",
                _maximum(version, data, *arguments, dtype=dtype),
                [(_values(*data, dtype=dtype),)],
            )
        lowest = np.full((2, 2, 4, 5), np.finfo(np.float32).min, np.float32)
        lowest[1, 0, 2, 2] = -1
        lowest[0, 1, 1, 1] = np.inf
        yield Case(
            "MaxPool",
            f"opset{version}",
            "lowest",
            _maximum(version, lowest.shape, [2, 2], [1, 1], [0, 0], [0, 0]),
            [(lowest,)],
        )
        for dtype in (np.float16, np.float64, np.int32, np.int64, np.uint8, np.int8):
            yield Case(
                "MaxPool",
                f"opset{version}",
                np.dtype(dtype).name,
                _maximum(version, (1, 2, 5, 6), [2, 2], [1, 1], [1, 0], [0, 1], dtype=dtype),
                [(_values(1, 2, 5, 6, dtype=dtype),)],
            )
    for version in (8, 14):
        for axis in (0, 1, 2, 3, -2, -3):
            yield Case(
                "MaxPool",
                f"opset{version}",
                f"axis{axis}",
                _maximum(version, (2, 3, 5, 6), [2, 2], [2, 1], [1, 0], [0, 1], axis=axis, index_element_type="i32"),
                [(_values(2, 3, 5, 6),)],
            )
        for name, arguments in {
            "dilations": ([2, 3], [1, 2], [1, 0], [1, 1], "floor", "explicit"),
            "dilations-same-lower": ([2, 3], [1, 2], [0, 0], [0, 0], "floor", "same_lower"),
            "dilations-ceil": ([2, 2], [2, 3], [1, 1], [0, 1], "ceil", "explicit"),
        }.items():
            shape, runs = _dynamic((2, 2, 7, 8))
            more = {"dilations": [2, 3], "axis": 1}
            yield Case("MaxPool", f"opset{version}", name, _maximum(version, (2, 2, 7, 8), *arguments, **more), runs[:1])
            if "same" not in name:
                yield Case(
                    "MaxPool",
                    f"opset{version}",
                    f"{name}-dynamic",
                    _maximum(version, shape, *arguments, **more),
                    runs,
                    oracle="cpu",
                    reason=_UNSIZED,
                )


def _same_cases():
    """Same padding of dynamic shapes: two rows of numbers, windows of two by three."""
    x = np.array([[3, 1, 4, 1, 5, 9, 2], [6, 5, 3, 5, 8, 9, 7]], np.float32)[None, None]
    shape, kernel, zero = (-1, 1, -1, -1), [2, 3], [0, 0]
    for name, auto, strides, dilations, values, places in (
        ("same-upper", "same_upper", [1, 2], [1, 1], [6, 5, 9, 9, 6, 5, 9, 9], [7, 8, 5, 5, 7, 8, 12, 12]),
        ("same-lower", "same_lower", [2, 2], [1, 1], [6, 5, 9, 9], [7, 8, 5, 5]),
        ("same-lower-dilations", "same_lower", [1, 3], [1, 2], [4, 9, 5, 6, 9, 8], [2, 5, 4, 7, 5, 11]),
    ):
        for version in (8, 14):
            yield Case(
                "MaxPool",
                f"opset{version}",
                f"{name}-dynamic",
                _maximum(version, shape, kernel, strides, zero, zero, "floor", auto, dilations=dilations),
                [(x,)],
                oracle="expected",
                reason=_CORRUPTED,
                expected=[
                    [
                        np.array(v, t).reshape(1, 1, 2 // strides[0], -1)
                        for v, t in ((values, np.float32), (places, np.int64))
                    ]
                ],
            )


def _adaptive(kind, data, output_shape, dtype=np.float32, **more):
    """``output_shape``: the shape, or how many numbers of it come at run time."""

    def build():
        import openvino as ov
        from openvino import opset8

        x = opset8.parameter(ov.PartialShape(list(data)), dtype)
        if isinstance(output_shape, int):
            shape = opset8.parameter([output_shape], np.int64)
            inputs = [x, shape]
        else:
            shape, inputs = opset8.constant(np.array(output_shape, np.int32)), [x]
        return ov.Model(getattr(opset8, kind)(x, shape, **more).outputs(), inputs)

    return build


def _adaptive_cases():
    for operation, kind, more in (
        ("AdaptiveAvgPool", "adaptive_avg_pool", {}),
        ("AdaptiveMaxPool", "adaptive_max_pool", {"index_element_type": "i32"}),
    ):
        for name, data, shape in (
            ("even", (2, 3, 6, 8), [3, 2]),
            ("uneven", (2, 3, 7, 5), [3, 4]),
            ("larger", (1, 2, 3, 2), [5, 7]),
            ("one", (2, 3, 6, 7), [1, 1]),
            ("1d", (2, 3, 10), [4]),
            ("3d", (1, 2, 5, 4, 7), [2, 3, 3]),
            ("same-size", (1, 2, 4, 5), [4, 5]),
        ):
            yield Case(operation, "opset8", name, _adaptive(kind, data, shape, **more), [(_values(*data),)])
        yield Case(
            operation,
            "opset8",
            "dynamic",
            _adaptive(kind, (-1, 2, -1, -1), [3, 2], **more),
            [(_values(1, 2, 6, 4),), (_values(2, 2, 5, 7),), (_values(1, 2, 1, 1),)],
        )
        yield Case(
            operation,
            "opset8",
            "run-time-shape",
            _adaptive(kind, (-1, 2, -1, -1), 2, **more),
            [(_values(1, 2, 6, 4), np.array([3, 3])), (_values(2, 2, 5, 7), np.array([1, 9]))],
        )
        yield Case(
            operation,
            "opset8",
            "float16",
            _adaptive(kind, (1, 2, 5, 6), [2, 4], np.float16, **more),
            [(_values(1, 2, 5, 6, dtype=np.float16),)],
        )
    yield Case(
        "AdaptiveMaxPool",
        "opset8",
        "i64",
        _adaptive("adaptive_max_pool", (1, 2, 3, 4), [2, 3], index_element_type="i64"),
        [(_PLACES,)],
        oracle="expected",
        reason=_NO_INDICES,
        expected=[
            [
                np.array([8, 8, 5, 9, 9, 6, 9, 9, 9, 9, 9, 7], np.float32).reshape(1, 2, 2, 3),
                np.array([1, 1, 6, 8, 9, 10, 0, 2, 2, 8, 9, 11]).reshape(1, 2, 2, 3),
            ]
        ],
    )


_PLACES = np.array([[[3, 8, 1, 4], [2, 0, 5, 5], [9, 9, 6, 1]], [[9, 2, 9, 1], [2, 6, 0, 5], [9, 9, 3, 7]]], np.float32)[
    None
]


CASES = [*_averages(), *_maxima(), *_same_cases(), *_adaptive_cases()]
