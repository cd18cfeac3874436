"""Resizing, and sampling of an image."""

from __future__ import annotations

from functools import partial

import numpy as np

from tests.conformance.operation_models import Input, decided, dynamic, dynamics, layer_case, static, statics, unranked

F16, F32, I64 = np.float16, np.float32, np.int64
_MODES = ("nearest", "linear", "linear_onnx", "cubic")
_COORDINATES = ("half_pixel", "pytorch_half_pixel", "asymmetric", "tf_half_pixel_for_nn", "align_corners")
_ROUNDINGS = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil", "simple")

_ANTIALIAS = "the CPU plugin ignores antialiasing in this layout, the specification does not"
_OF_MEMORY = "the CPU plugin returns uninitialized memory"


def _values(*shape, dtype=np.float32):
    r = np.random.default_rng(sum(shape))
    if np.dtype(dtype).kind == "f":
        return r.normal(size=shape).astype(dtype)
    limits = np.iinfo(dtype)
    return r.integers(max(limits.min, -1000), min(limits.max, 1000), shape).astype(dtype)


def _later(version, name, data, given, axes, mode, calculation="sizes", coordinates="half_pixel",
           rounding="round_prefer_floor", *, antialias=False, begin=(0,), end=(0,), cube=-0.75, **settings):  # fmt: skip
    """A case of Interpolate-4 or -11; ``given`` and ``axes`` are numbers for constants, or inputs."""
    attributes = {
        "mode": mode,
        "shape_calculation_mode": calculation,
        "coordinate_transformation_mode": coordinates,
        "nearest_mode": rounding,
        "antialias": antialias,
        "pads_begin": list(begin),
        "pads_end": list(end),
        "cube_coeff": cube,
    }
    kinds = {"sizes": I64, "scales": F32}
    wanted = [given if isinstance(given, Input) else np.array(given, kinds[calculation])]
    if version == 4:
        other = "scales" if calculation == "sizes" else "sizes"
        count = len(given.arrays[0] if isinstance(given, Input) else given)
        wanted.insert(calculation == "sizes", np.ones(count, kinds[other]))
    if axes is not None:
        wanted.append(axes if isinstance(axes, Input) else np.array(axes))
    inputs = [data, *wanted]
    return layer_case("Interpolate", f"opset{version}", "Interpolate", name, inputs, attributes, **settings)


def _of_channels_last():
    """Along the channels, and after a Transpose that ONNX Runtime moves past a Resize, which moves the channels."""

    def make(ops, data, sizes, axes, mode):
        return ops.interpolate(ops.transpose(data, np.array([0, 2, 3, 1])), sizes, mode, "sizes", axes=axes)

    for mode in ("nearest", "linear", "linear_onnx", "cubic"):
        inputs = [static(_values(2, 3, 2, 4)), np.array([1, 1]), np.array([2, 3])]
        yield layer_case("Interpolate", "opset11", make, f"{mode}-of-channels-last", inputs, {"mode": mode})

    def make_between(ops, data, sizes, axes, mode):
        image = ops.interpolate(ops.transpose(data, np.array([0, 3, 1, 2])), sizes, mode, "sizes", axes=axes)
        return ops.transpose(image, np.array([0, 2, 3, 1]))

    def make_pooled(ops, data, regions, scales, axes, mode):
        pooled = ops.roi_pooling(data, regions, [3, 3], 1.0, "bilinear")
        return ops.interpolate(pooled, scales, mode, "scales", axes=axes)

    for mode in ("nearest", "linear", "linear_onnx", "cubic"):
        for size in ([3, 2], [7, 3], [8, 9]):
            inputs = [static(_values(2, 5, 6, 3)), np.array(size), np.array([2, 3])]
            label = f"{mode}-of-channels-first-{size[0]}x{size[1]}"
            yield layer_case("Interpolate", "opset11", make_between, label, inputs, {"mode": mode})
    regions = np.array([[1, 0, 1, 5, 4], [0, 1, 0, 3, 3], [1, 2, 1, 6, 2]], np.float32)
    inputs = [static(_values(2, 3, 6, 7)), regions, np.array([0.5, 1.75], np.float32), np.array([2, 3])]
    yield layer_case("Interpolate", "opset11", make_pooled, "cubic-of-pooled", inputs, {"mode": "cubic"})


def _of_none():
    """Empty images, with empty results."""
    for mode in ("nearest", "linear", "linear_onnx", "cubic"):
        yield _later(11, f"{mode}-of-none", static(_values(1, 0, 2, 0)), [3, 4], [2, 3], mode)
    yield _later(4, "linear-of-none", static(_values(2, 0, 0)), [3], [1], "linear")
    settings = decided("evaluate", _OF_MEMORY)
    yield _later(11, "linear-of-no-rows", static(_values(1, 2, 0, 3)), [3, 4], [2, 3], "linear", **settings)


def _modern():
    data, other = _values(2, 3, 5, 6), _values(1, 2, 4, 4)
    x = static(data)
    antialias = decided("evaluate", _ANTIALIAS)
    for version in (4, 11):
        case = partial(_later, version)
        # 7 rows: 5 times 1.4 in float32, fewer in float64
        yield case("inexact-scale", x, [1.4, 0.5], [2, 3], "nearest", "scales", rounding="floor")
        for mode in _MODES:
            for coordinates in _COORDINATES:
                # Larger, smaller, both, to and from a single element.
                for name, sizes in (
                    ("up", [8, 11]), ("down", [3, 4]), ("mixed", [9, 2]), ("double", [10, 12]), ("one", [1, 6]),
                ):  # fmt: skip
                    if version == 4 and name not in ("mixed", "double"):
                        continue
                    for rounding in _ROUNDINGS if mode == "nearest" else ("floor",):
                        suffix = f"-{rounding}" if mode == "nearest" else ""
                        full = f"{mode}-{coordinates}{suffix}-{name}"
                        yield case(full, x, sizes, [2, 3], mode, "sizes", coordinates, rounding)
            for name, scales in (("scales", [2.3, 0.7]), ("whole-scales", [2.0, 3.0]), ("decimal-scale", [0.6, 1.1])):
                yield case(f"{mode}-{name}", x, scales, [2, 3], mode, "scales")
                images = dynamic(data, _values(1, 3, 7, 10), dims=[-1, 3, -1, -1])
                yield case(f"{mode}-{name}-dynamic", images, scales, [2, 3], mode, "scales")
            sizes = static(np.array([7, 3]), np.array([4, 9]))
            yield case(f"{mode}-run-time-sizes", dynamic(data, other), sizes, [2, 3], mode)
            scales = static(np.array([1.5, 0.7], F32), np.array([1, 2.3], F32))
            yield case(f"{mode}-run-time-scales", dynamic(data, other), scales, [2, 3], mode, "scales")
            yield case(f"{mode}-pads", x, [8, 11], [2, 3], mode, begin=[0, 0, 1, 2], end=[0, 0, 2, 0])
            for dtype in (np.float16, np.float64, np.int32, np.int64, np.uint8, np.int8):
                if version == 11:
                    yield _typed(mode, dtype, "Model.evaluate neither rounds nor saturates integers as the CPU plugin does")
        yield case("cubic-coefficient", x, [8, 4], [2, 3], "cubic", cube=-0.4)
        for mode in ("nearest", "linear", "cubic"):
            yield case(f"{mode}-one-axis", x, [8], [3], mode)
            axes = static(np.array([2, 3]), np.array([3, 2]))
            yield case(f"{mode}-run-time-axes", dynamic(data, data), [8, 4], axes, mode)
            axes = decided("evaluate", "the CPU plugin uses other axes of three-dimensional data")
            yield case(f"{mode}-3d", static(_values(2, 4, 5)), [7, 3], [1, 2], mode, **axes)
        for mode in ("linear_onnx", "nearest", "linear"):
            yield case(f"{mode}-5d", static(_values(1, 2, 3, 4, 5)), [5, 3, 7], [2, 3, 4], mode)
        for dtype in (np.uint8, np.int8):
            image = np.array([0, 0, 41, 41, 0, 127, 120, 3], dtype).reshape(1, 1, 1, 1, 8)
            yield case(
                f"cubic-5d-{np.dtype(dtype)}-wraps", static(image), [12], [4], "cubic", coordinates="pytorch_half_pixel"
            )
            for mode in ("linear", "linear_onnx", "cubic"):
                axes = static(np.array([2, 3]))
                image = static(_values(1, 2, 5, 7, dtype=dtype))  # no ties
                yield case(f"{mode}-{np.dtype(dtype)}-run-time-axes", image, [4, 5], axes, mode)
            image = static(_values(1, 1, 2, 3, 5, 6, dtype=dtype))
            yield case(f"cubic-6d-{np.dtype(dtype)}", image, [8, 11], [4, 5], "cubic")
        yield case("without-axes", static(_values(2, 3, 4, 5)), [2, 3, 6, 7], None, "nearest")
        for coordinates in ("half_pixel", "align_corners", "asymmetric"):
            for name, sizes in (("down", [3, 2]), ("mixed", [3, 9])):
                full = f"antialias-{coordinates}-{name}"
                yield case(full, x, sizes, [2, 3], "linear", "sizes", coordinates, antialias=True, **antialias)
        yield case("antialias-up", x, [7, 8], [2, 3], "linear", antialias=True)
        narrow = static(_values(2, 3, 3, 1))
        yield case("antialias-to-nothing", narrow, [1, 0.75], [2, 3], "linear", "scales", antialias=True)
        sizes = static(*map(np.array, ([3, 4], [7, 8], [2, 9])))
        yield case("antialias-dynamic", dynamic(data, data, data), sizes, [2, 3], "linear", antialias=True, **antialias)


def _of_unknown_rank(mode, sizes=(7, 3), axes=(2, 3), begin=(0,)):
    def make(ops, x, shape):
        data, along = ops.reshape(x, shape, False), None if axes is None else ops.constant(np.array(axes))
        return ops.interpolate(data, np.array(sizes), mode, "sizes", pads_begin=list(begin), pads_end=[0], axes=along)

    return make


def _resize(ops, image, given, axes, *, mode, shape_calculation_mode):
    return ops.interpolate(image, given, mode, shape_calculation_mode, axes=axes)


def _unknown_ranks():
    data = _values(2, 3, 5, 6)
    inputs = dynamics([data.reshape(-1), np.array(data.shape)])
    refused = decided("evaluate", "the CPU plugin does not support inputs of unknown rank")
    for name, make in (
        *((f"{mode}-unknown-rank", _of_unknown_rank(mode)) for mode in ("nearest", "linear", "cubic")),
        ("unknown-rank-all-axes", _of_unknown_rank("linear", (2, 3, 8, 3), None)),
        ("unknown-rank-pads", _of_unknown_rank("cubic", begin=(0, 0, 1))),
    ):
        yield layer_case("Interpolate", "opset11", make, name, inputs, **refused)
    image = unranked(data, data[0], data[0, 0])
    sizes, scales = dynamic(np.array([2, 3, 7, 3]), np.array([3, 7, 3]), np.array([7, 3])), np.array([1.5], F32)
    for name, mode, given, axes in (
        ("run-time-sizes", "linear", sizes, None),
        ("run-time-axes", "nearest", np.array([3]), static(np.array([1]), np.array([2]), np.array([0]))),
        ("scale", "nearest", scales, np.array([1])),
    ):
        attributes = {"mode": mode, "shape_calculation_mode": "scales" if given is scales else "sizes"}
        yield layer_case("Interpolate", "opset11", _resize, f"any-rank-{name}", [image, given, axes], attributes)
    cut = decided("cpu", "the CPU plugin cuts fractions off in five dimensions, and rounds in fewer")
    for dtype in (np.int8, np.uint8):
        data = _values(2, 3, 5, 6, dtype=dtype)
        inputs = [unranked(data, data[..., None]), np.array([1.375, 0.6], F32), np.array([2, 3])]
        attributes = {"mode": "cubic", "shape_calculation_mode": "scales"}
        name = f"any-rank-{np.dtype(dtype).name}"
        yield layer_case("Interpolate", "opset11", _resize, name, inputs, attributes, **cut)


def _typed(mode, dtype, reason):
    """Values without ties between two integers: OpenVINO's CPU plugin resizes integers in float32, in its own order."""
    data = _values(1, 2, 5, 4, dtype=dtype)
    if np.dtype(dtype).kind in "iu" and np.dtype(dtype).itemsize > 1:
        data = data * 4
    cube = -0.5 if mode == "bicubic_pillow" else -0.75
    settings = decided("cpu", reason) if np.dtype(dtype).itemsize == 1 and mode != "nearest" else {}
    return _later(11, f"{mode}-{np.dtype(dtype).name}", static(data), [7, 3], [2, 3], mode, cube=cube, **settings)


def _pillow():
    data = _values(2, 3, 5, 6)
    images = partial(dynamic, dims=[-1, 3, -1, -1])
    for mode, cube in (("bilinear_pillow", -0.75), ("bicubic_pillow", -0.5)):
        case = partial(_later, 11, mode=mode, cube=cube)
        for name, sizes in (("up", [8, 11]), ("down", [3, 4]), ("mixed", [9, 2]), ("one", [1, 6])):
            yield case(f"{mode}-{name}", static(data), sizes, [2, 3])
        x = images(data, _values(1, 3, 7, 10))
        yield case(f"{mode}-dynamic-scales", x, [0.7, 2.3], [2, 3], calculation="scales")
        sizes = static(np.array([3, 8]), np.array([3, 8]))
        yield case(f"{mode}-empty", images(data[:0], data), sizes, [2, 3])
        yield case(f"{mode}-channels-last", static(_values(1, 5, 6, 3)), [3, 8], [1, 2])
        for dtype in (np.float16, np.uint8, np.int8):
            yield _typed(mode, dtype, "Model.evaluate rounds ties away from zero, and after each of the two axes")
        reversed_ = decided("cpu", "Model.evaluate does not transpose reversed axes")
        for dtype in (np.float32, np.int8):
            image = static(_values(2, 3, 5, 6, dtype=dtype))
            yield case(f"{mode}-{np.dtype(dtype)}-reversed-axes", image, [8, 11], [3, 2], **reversed_)
        others = decided("evaluate", "the CPU plugin gives wrong numbers")
        yield case(f"{mode}-other-axes", static(data), [8, 11], [1, 3], **others)
        once = decided("cpu", "the CPU plugin rounds once, Model.evaluate after each of the two axes")
        for dtype in (np.uint8, np.int8):
            for image, axes in ((_values(3, 5, 6, dtype=dtype), [1, 2]), (_values(5, 6, dtype=dtype), [0, 1])):
                name = f"{mode}-{np.dtype(dtype)}-{image.ndim}d"
                yield case(name, static(image), [8, 11], axes, **once)
    along = static(np.array([2, 3]))
    yield _later(11, "bicubic_pillow-run-time-axes", static(data), [8, 4], along, "bicubic_pillow", cube=-0.9)
    of_five = static(_values(2, 1, 3, 5, 6))
    yield _later(11, "bicubic_pillow-5d-coefficient", of_five, [8, 4], [3, 4], "bicubic_pillow", cube=-0.9)
    always = decided("cpu", "the reference uses the coefficient")
    yield _later(11, "bicubic_pillow-coefficient", static(data), [8, 4], [2, 3], "bicubic_pillow", cube=-0.9, **always)


def _first(name, data, sizes, axes, mode, align=False):
    """A case of Interpolate-1."""
    attributes = {"axes": np.array(axes), "mode": mode, "align_corners": align, "antialias": False}
    attributes |= {"pads_begin": np.array([0]), "pads_end": np.array([0])}
    target = sizes if isinstance(sizes, Input) else np.array(sizes)
    return layer_case("Interpolate", "opset1", "interpolate", name, [data, target], {"attrs": attributes})


def _original():
    data = _values(2, 3, 5, 6)
    for mode in ("nearest", "linear", "linear_onnx", "cubic"):
        for align in (True, False):
            for name, sizes in (("up", [8, 11]), ("down", [3, 4]), ("mixed", [9, 2]), ("double", [10, 12])):
                full = f"{mode}-{'align' if align else 'free'}-{name}"
                yield _first(full, static(data), sizes, [2, 3], mode, align)
        sizes = static(np.array([7, 3]), np.array([4, 9]))
        yield _first(f"{mode}-run-time-sizes", dynamic(data, _values(1, 2, 4, 4)), sizes, [2, 3], mode)
    for align in (True, False):
        name = f"linear-5d-{'align' if align else 'free'}"
        yield _first(name, static(_values(1, 2, 3, 4, 5)), [5, 3, 7], [2, 3, 4], "linear", align)
    yield _first("float16", static(_values(1, 2, 4, 5, dtype=F16)), [7, 3], [2, 3], "linear")


def _grid(*shape):
    """Positions inside, outside (a little and far), at corners, at borders and between elements."""
    grid = np.random.default_rng(4).normal(scale=1.2, size=shape)
    flat = grid.reshape(-1)
    flat[:8] = [-1, -1, 1, 1, 0, 0, 1, -1]
    flat[8:12] = [5.3, -7.1, 3, -3]
    return grid.astype(np.float32)


def _grids():
    def case(name, inputs, settings=None, **attributes):
        return layer_case("GridSample", "opset9", "grid_sample", name, inputs, {"attributes": attributes}, **settings or {})

    data, grid = _values(2, 3, 5, 6), _grid(2, 4, 7, 2)
    for mode in ("bilinear", "bicubic", "nearest"):
        for padding in ("zeros", "border", "reflection"):
            for align in (True, False):
                name = f"{mode}-{padding}-{'align' if align else 'free'}"
                yield case(name, statics([data, grid]), mode=mode, padding_mode=padding, align_corners=align)
    images = dynamic(data, _values(1, 2, 3, 1))
    yield case("dynamic", [images, dynamic(grid, _grid(1, 2, 9, 2), dims=[-1, -1, -1, 2])])
    far = np.array([[np.nan, 0.3], [0.3, np.nan], [np.inf, 0.3], [0.3, -np.inf], [0.3, 1e10], [-1e8, 0.3], [0.3, 0.2]], F32)
    far = far.reshape(1, 1, 7, 2)
    for mode in ("bilinear", "bicubic", "nearest"):
        for padding in ("zeros", "border", "reflection"):
            places = far
            if padding == "reflection":  # of large numbers, it depends on rounding
                places = far[:, :, 6:] if mode == "nearest" else np.delete(far, [4, 5], axis=2)
            elif mode == "nearest" and padding == "border":
                places = far[:, :, 3:]
            yield case(f"{mode}-{padding}-far", statics([data[:1], places]), mode=mode, padding_mode=padding)
    half = np.array([[-0.5, 0.5], [0, 0], [0.25, -0.25], [0.75, 0.75]], F32).reshape(1, 1, 4, 2)
    for align in (True, False):  # half way between two elements
        yield case(f"ties-{align}", statics([_values(1, 1, 4, 4), half]), mode="nearest", align_corners=align)
    for mode in ("bilinear", "bicubic", "nearest"):
        yield case(f"{mode}-of-none", statics([_values(1, 0, 2, 0), _grid(1, 4, 3, 2)]), mode=mode)
    for shape in ((1, 2, 0, 3), (1, 2, 3, 0)):
        inputs = statics([_values(*shape), _grid(1, 4, 3, 2)])
        yield case(f"of-{shape[2]}-rows-of-{shape[3]}", inputs, decided("evaluate", _OF_MEMORY))
    one = statics([_values(1, 2, 1, 1), _grid(1, 3, 3, 2)])
    yield case("one-element", one, align_corners=True, padding_mode="reflection")
    for dtype in (np.float16, np.int32, np.int64, np.uint8, np.int8):
        for mode in ("bilinear", "nearest"):
            inputs = statics([_values(2, 3, 5, 6, dtype=dtype), grid])
            yield case(f"{np.dtype(dtype).name}-{mode}", inputs, mode=mode, padding_mode="border")
    yield case("float16-grid", statics([data, grid.astype(F16)]))


CASES = [*_grids(), *_unknown_ranks(), *_of_channels_last(), *_of_none(), *_modern(), *_pillow(), *_original()]
