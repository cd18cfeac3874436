"""Poolings."""

from __future__ import annotations

from functools import partial

import numpy as np

from tests.conformance.operation_models import decided, dynamic, layer_case, static

_NO_INDICES = "the CPU plugin only supports 32-bit indices, Model.evaluate no indices; values by torch"
_KEPT = "Model.evaluate keeps the padding of the first run"
_UNSIZED = "Model.evaluate writes out of bounds for dynamic shapes"
_CORRUPTED = "with same padding and a dynamic shape OpenVINO reads and writes out of bounds; values by torch"


def _values(*shape, dtype=np.float32, seed=0):
    """Numbers with ties."""
    r = np.random.default_rng(seed + sum(shape))
    if np.dtype(dtype).kind == "f":
        return (r.integers(-20, 20, shape) / 4).astype(dtype)
    return r.integers(0 if np.dtype(dtype).kind == "u" else -9, 10, shape).astype(dtype)


def _pool(operation, make, version, name, data, kernel, strides, begin, end, rounding="floor", auto="explicit",
          settings=None, **more):  # fmt: skip
    """A case of pooling; ``more``: attributes that not every version has."""
    attributes = {
        "kernel_shape": kernel, "strides": strides, "pads_begin": begin, "pads_end": end, "rounding_type": rounding,
        "auto_pad": auto,
    }  # fmt: skip
    if (operation, version) not in (("AvgPool", 1), ("AvgPool", 14), ("MaxPool", 1)):
        attributes["dilations"] = [1] * len(kernel)
    return layer_case(operation, f"opset{version}", make, name, [data], {**attributes, **more}, **(settings or {}))


_average = partial(_pool, "AvgPool", "avg_pool")
_maximum = partial(_pool, "MaxPool", "max_pool")


# name: data, kernel, strides, pads_begin, pads_end, rounding_type, auto_pad
_WINDOWS = {
    "plain": ((2, 3, 6, 7), [2, 3], [2, 2], [0, 0], [0, 0], "floor", "explicit"),
    "pads": ((2, 3, 6, 7), [3, 3], [2, 1], [1, 0], [0, 2], "floor", "explicit"),
    "ceil": ((1, 2, 6, 7), [3, 2], [2, 2], [0, 0], [0, 0], "ceil", "explicit"),
    "ceil-pads": ((1, 2, 6, 7), [3, 3], [2, 3], [1, 1], [1, 1], "ceil", "explicit"),
    "ceil-window-outside": ((1, 2, 5, 6), [2, 3], [3, 3], [1, 1], [1, 2], "ceil", "explicit"),
    "ceil-window-of-padding": ((1, 2, 5, 5), [2, 2], [1, 3], [0, 0], [0, 1], "ceil", "explicit"),
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
    """An input with unknown dimensions except the channels, and two arrays."""
    other = (data[0] + 1, data[1], *(d + 1 + k for k, d in enumerate(data[2:])))
    return dynamic(_values(*data), _values(*other), dims=(-1, data[1], *[-1] * (len(data) - 2)))


def _averages():
    for version in (1, 14, 16):
        windows = _WINDOWS if version == 1 else _TORCH | {k: _WINDOWS[k] for k in ("ceil-pads", "same-upper", "3d")}
        for name, (data, *arguments) in windows.items():
            for exclude in (True, False):
                case = f"{name}-{'exclude' if exclude else 'include'}-pad"
                yield _average(version, case, static(_values(*data)), *arguments, exclude_pad=exclude)
                yield _average(version, f"{case}-dynamic", _dynamic(data), *arguments, exclude_pad=exclude)
    ones, zero, k = [1, 1], [0, 0], [2, 2]
    for name, exclude, *arguments in (
        ("dilations", True, k, ones, zero, zero, "floor"),
        ("dilations-exclude-pad", True, k, [2, 2], ones, ones, "ceil"),
        ("dilations-include-pad", False, k, [2, 2], ones, ones, "ceil_torch"),
        ("dilations-same-upper", False, k, [2, 1], zero, zero, "floor", "same_upper"),
        ("dilations-same-lower", True, k, [1, 2], zero, zero, "floor", "same_lower"),
    ):
        more = {"exclude_pad": exclude, "dilations": [2, 3]}
        yield _average(16, name, static(_values(2, 2, 7, 8)), *arguments, **more)
        yield _average(16, f"{name}-dynamic", _dynamic((2, 2, 7, 8)), *arguments, **more)
    for dtype in (np.float16, np.float64, np.int32, np.int64, np.uint8, np.int8):
        for version in (1, 16):
            data = static(_values(1, 2, 5, 6, dtype=dtype))
            yield _average(version, np.dtype(dtype).name, data, k, ones, zero, ones, exclude_pad=False)
    data = dynamic(_values(1, 3, 6, 9), dims=(1, -1, -1, 9))
    arguments = [3, 2], [3, 3], zero, zero, "ceil_torch", "valid"
    yield _average(14, "ceil-torch-partly-dynamic", data, *arguments, exclude_pad=True)
    halves = np.arange(1 * 3 * 8 * 3, dtype=np.uint8).reshape(1, 3, 8, 3) * 5 % 19
    arguments = [3, 2], [1, 3], zero, zero, "ceil", "same_upper"
    yield _average(16, "uint8-halves", static(halves), *arguments, exclude_pad=True, dilations=[2, 1])


def _maxima():
    unsized, kept = decided("cpu", _UNSIZED), decided("cpu", _KEPT)
    for version in (1, 8, 14):
        windows = _TORCH | {k: _WINDOWS[k] for k in ("ceil-pads", "same-upper", "3d")} if version == 14 else _WINDOWS
        for name, (data, *arguments) in windows.items():
            yield _maximum(version, name, static(_values(*data)), *arguments)
            same = arguments[-1].startswith("same")
            if version > 1 and same:
                continue  # see `_same_cases`
            settings = unsized if version > 1 else kept if same else {}
            yield _maximum(version, f"{name}-dynamic", _dynamic(data), *arguments, settings=settings)
        arguments = [2, 2], [1, 2], [3, 2], [2, 3], "floor", "explicit"
        yield _maximum(version, "pads-beyond-kernel", static(_values(1, 2, 4, 5)), *arguments)
        for dtype in (np.float16, np.float64):  # windows with padding only
            data = static(_values(1, 2, 4, 5, dtype=dtype))
            yield _maximum(version, f"pads-beyond-kernel-{np.dtype(dtype).name}", data, *arguments)
        lowest = np.full((2, 2, 4, 5), np.finfo(np.float32).min, np.float32)
        lowest[1, 0, 2, 2] = -1
        lowest[0, 1, 1, 1] = np.inf
        yield _maximum(version, "lowest", static(lowest), [2, 2], [1, 1], [0, 0], [0, 0])
        for dtype in (np.float16, np.float64, np.int32, np.int64, np.uint8, np.int8):
            data = static(_values(1, 2, 5, 6, dtype=dtype))
            yield _maximum(version, np.dtype(dtype).name, data, [2, 2], [1, 1], [1, 0], [0, 1])
        for dtype in (np.int64, np.uint64):  # no float represents all of these numbers
            data = static(_values(1, 2, 5, 6, dtype=dtype) + dtype(2**62))
            settings = decided("evaluate", "the CPU plugin computes in int32")
            for name, *arguments in (
                ("large", [2, 3], [1, 2], [1, 0], [0, 1], "floor", "explicit"),
                ("large-ceil", [2, 3], [2, 3], [1, 1], [1, 1], "ceil", "explicit"),
            ):
                more = {"dilations": [2, 1]} if version > 1 else {}
                name = f"{np.dtype(dtype).name}-{name}"
                yield _maximum(version, name, data, *arguments, settings=settings, **more)
    for version in (8, 14):
        for dtype in (np.float32, np.float16):
            column, more = np.array([[[-1], [np.finfo(dtype).min]]], dtype), {"axis": 1}
            name, around = f"around-the-data-{np.dtype(dtype).name}", ([2], [1], [1], [1])  # windows with padding only
            yield _maximum(version, name, static(column), *around, **more, dilations=[2])
            name = f"lowest-{np.dtype(dtype).name}"
            yield _maximum(version, name, static(column.repeat(3, 2)), [2], [1], [0], [0], **more)
        for axis in (0, 1, 2, 3, -2, -3):
            data, more = static(_values(2, 3, 5, 6)), {"axis": axis, "index_element_type": "i32"}
            yield _maximum(version, f"axis{axis}", data, [2, 2], [2, 1], [1, 0], [0, 1], **more)
        for name, *arguments in (
            ("dilations", [2, 3], [1, 2], [1, 0], [1, 1], "floor", "explicit"),
            ("dilations-same-lower", [2, 3], [1, 2], [0, 0], [0, 0], "floor", "same_lower"),
            ("dilations-ceil", [2, 2], [2, 3], [1, 1], [0, 1], "ceil", "explicit"),
        ):
            more = {"dilations": [2, 3], "axis": 1}
            yield _maximum(version, name, static(_values(2, 2, 7, 8)), *arguments, **more)
            if "same" not in name:
                data = _dynamic((2, 2, 7, 8))
                yield _maximum(version, f"{name}-dynamic", data, *arguments, settings=unsized, **more)


def _same_cases():
    """Same padding of dynamic shapes: two rows of numbers, windows of two by three."""
    x = np.array([[3, 1, 4, 1, 5, 9, 2], [6, 5, 3, 5, 8, 9, 7]], np.float32)[None, None]
    zero = [0, 0]
    for name, auto, strides, dilations, values, places in (
        ("same-upper", "same_upper", [1, 2], [1, 1], [6, 5, 9, 9, 6, 5, 9, 9], [7, 8, 5, 5, 7, 8, 12, 12]),
        ("same-lower", "same_lower", [2, 2], [1, 1], [6, 5, 9, 9], [7, 8, 5, 5]),
        ("same-lower-dilations", "same_lower", [1, 3], [1, 2], [4, 9, 5, 6, 9, 8], [2, 5, 4, 7, 5, 11]),
    ):
        shape = 1, 1, 2 // strides[0], -1
        expected = np.array(values, np.float32).reshape(shape), np.array(places).reshape(shape)
        for version in (8, 14):
            yield _maximum(
                version, f"{name}-dynamic", dynamic(x, dims=(-1, 1, -1, -1)), [2, 3], strides, zero, zero, "floor", auto,
                dilations=dilations, settings=decided("expected", _CORRUPTED, *expected),
            )  # fmt: skip


def _adaptive_cases():
    for operation, make, more in (
        ("AdaptiveAvgPool", "adaptive_avg_pool", {}),
        ("AdaptiveMaxPool", "adaptive_max_pool", {"index_element_type": "i32"}),
    ):
        case = partial(layer_case, operation, "opset8", make, attributes=more)
        for name, data, shape in (
            ("even", (2, 3, 6, 8), [3, 2]),
            ("uneven", (2, 3, 7, 5), [3, 4]),
            ("larger", (1, 2, 3, 2), [5, 7]),
            ("one", (2, 3, 6, 7), [1, 1]),
            ("1d", (2, 3, 10), [4]),
            ("3d", (1, 2, 5, 4, 7), [2, 3, 3]),
            ("same-size", (1, 2, 4, 5), [4, 5]),
        ):
            yield case(name, [static(_values(*data)), np.array(shape, np.int32)])
        images = partial(dynamic, dims=(-1, 2, -1, -1))
        data = images(_values(1, 2, 6, 4), _values(2, 2, 5, 7), _values(1, 2, 1, 1))
        yield case("dynamic", [data, np.array([3, 2], np.int32)])
        data = images(_values(1, 2, 6, 4), _values(2, 2, 5, 7))
        yield case("run-time-shape", [data, static(np.array([3, 3]), np.array([1, 9]))])
        yield case("float16", [static(_values(1, 2, 5, 6, dtype=np.float16)), np.array([2, 4], np.int32)])
        for dtype in (np.int32, np.int64, np.uint8, np.int8):
            for name, shape in (("even", [3, 2]), ("uneven", [4, 4]), ("one", [1, 1])):
                data = static(_values(1, 2, 6, 6, dtype=dtype))
                yield case(f"{np.dtype(dtype).name}-{name}", [data, np.array(shape, np.int32)])
            data = images(_values(1, 2, 6, 4, dtype=dtype), _values(2, 2, 5, 7, dtype=dtype))
            yield case(f"{np.dtype(dtype).name}-dynamic", [data, np.array([3, 2], np.int32)])
        halfway = np.random.default_rng(3).integers(-20, 20, (4, 8, 5, 6)).astype(np.int32)
        for name, data in (("halfway", static(halfway)), ("halfway-dynamic", images(halfway[:, :2]))):
            yield case(name, [data, np.array([2, 3], np.int32)])
    expected = (
        np.array([8, 8, 5, 9, 9, 6, 9, 9, 9, 9, 9, 7], np.float32).reshape(1, 2, 2, 3),
        np.array([1, 1, 6, 8, 9, 10, 0, 2, 2, 8, 9, 11]).reshape(1, 2, 2, 3),
    )
    lowest = np.array([[[[-np.inf, -np.inf, -np.inf, 1], [-np.inf, -np.inf, 2, 3]]]], np.float32)
    given = {"index_element_type": "i32"}
    for name, shape in (("minus-infinity", [1, 2]), ("minus-infinity-uneven", [2, 3])):
        inputs = [static(lowest), np.array(shape, np.int32)]
        yield layer_case("AdaptiveMaxPool", "opset8", "adaptive_max_pool", name, inputs, given)
    inputs, settings = [static(_PLACES), np.array([2, 3], np.int32)], decided("expected", _NO_INDICES, *expected)
    given = {"index_element_type": "i64"}
    yield layer_case("AdaptiveMaxPool", "opset8", "adaptive_max_pool", "i64", inputs, given, **settings)


_PLACES = np.array([[[3, 8, 1, 4], [2, 0, 5, 5], [9, 9, 6, 1]], [[9, 2, 9, 1], [2, 6, 0, 5], [9, 9, 3, 7]]], np.float32)[
    None
]


CASES = [*_averages(), *_maxima(), *_same_cases(), *_adaptive_cases()]
