"""Resizing, and sampling of an image."""

from __future__ import annotations

import numpy as np

from tests.conformance.case import Case
from tests.conformance.models import dynamic, layer_case, static, unranked

_MODES = ("nearest", "linear", "linear_onnx", "cubic")
_COORDINATES = ("half_pixel", "pytorch_half_pixel", "asymmetric", "tf_half_pixel_for_nn", "align_corners")
_ROUNDINGS = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil", "simple")

_ANTIALIAS = "the CPU plugin leaves out antialiasing in this layout, the specification does not"


def _values(*shape, dtype=np.float32):
    r = np.random.default_rng(sum(shape))
    if np.dtype(dtype).kind == "f":
        return r.normal(size=shape).astype(dtype)
    limits = np.iinfo(dtype)
    return r.integers(max(limits.min, -1000), min(limits.max, 1000), shape).astype(dtype)


def _interpolate(
    version, shape, given, axes, mode, calculation="sizes", coordinates="half_pixel", rounding="round_prefer_floor",
    *, dtype=np.float32, antialias=False, begin=(0,), end=(0,), cube=-0.75, run_time=(),
):  # fmt: skip
    """A model of one Interpolate-4 or -11; ``run_time`` names the inputs that are Parameters: "given", "axes"."""

    def build():
        import openvino as ov
        from openvino import opset11
        from openvino.utils.node_factory import NodeFactory

        x = opset11.parameter(ov.PartialShape(list(shape)), dtype)
        numbers = np.array(given, np.int64 if calculation == "sizes" else np.float32)
        inputs = [x]

        def node(name, array):
            if name not in run_time:
                return opset11.constant(array)
            inputs.append(opset11.parameter(list(array.shape), array.dtype))
            return inputs[-1]

        wanted = node("given", numbers)
        along = None if axes is None else node("axes", np.array(axes, np.int64))
        begins, ends = list(begin), list(end)
        if version == 11:
            result = opset11.interpolate(
                x, wanted, mode, calculation, begins, ends, coordinates, rounding, antialias, cube, along
            )
        else:
            other = opset11.constant(np.ones(len(given), np.float32 if calculation == "sizes" else np.int64))
            pair = [wanted, other] if calculation == "sizes" else [other, wanted]
            attributes = {
                "mode": mode,
                "shape_calculation_mode": calculation,
                "coordinate_transformation_mode": coordinates,
                "nearest_mode": rounding,
                "antialias": antialias,
                "pads_begin": begins,
                "pads_end": ends,
                "cube_coeff": cube,
            }
            nodes = [x, *pair] if along is None else [x, *pair, along]
            result = NodeFactory("opset4").create("Interpolate", nodes, attributes)
        return ov.Model([result], inputs)

    return build


def _modern():
    data = _values(2, 3, 5, 6)
    for version in (4, 11):
        opset = f"opset{version}"
        yield Case(  # 7 rows: 5 times 1.4 in float32, less in float64
            "Interpolate",
            opset,
            "inexact-scale",
            _interpolate(version, data.shape, [1.4, 0.5], [2, 3], "nearest", "scales", rounding="floor"),
            [(data,)],
        )
        for mode in _MODES:
            for coordinates in _COORDINATES:
                # Larger, smaller, both, to and from a single element.
                for name, sizes in (
                    ("up", [8, 11]),
                    ("down", [3, 4]),
                    ("mixed", [9, 2]),
                    ("double", [10, 12]),
                    ("one", [1, 6]),
                ):
                    if version == 4 and name not in ("mixed", "double"):
                        continue
                    for rounding in _ROUNDINGS if mode == "nearest" else ("floor",):
                        suffix = f"-{rounding}" if mode == "nearest" else ""
                        yield Case(
                            "Interpolate",
                            opset,
                            f"{mode}-{coordinates}{suffix}-{name}",
                            _interpolate(version, data.shape, sizes, [2, 3], mode, "sizes", coordinates, rounding),
                            [(data,)],
                        )
            for name, scales in (("scales", [2.3, 0.7]), ("whole-scales", [2.0, 3.0]), ("decimal-scale", [0.6, 1.1])):
                yield Case(
                    "Interpolate",
                    opset,
                    f"{mode}-{name}",
                    _interpolate(version, data.shape, scales, [2, 3], mode, "scales"),
                    [(data,)],
                )
                yield Case(
                    "Interpolate",
                    opset,
                    f"{mode}-{name}-dynamic",
                    _interpolate(version, (-1, 3, -1, -1), scales, [2, 3], mode, "scales"),
                    [(data,), (_values(1, 3, 7, 10),)],
                )
            yield Case(
                "Interpolate",
                opset,
                f"{mode}-run-time-sizes",
                _interpolate(version, (-1, -1, -1, -1), [0, 0], [2, 3], mode, run_time=("given",)),
                [(data, np.array([7, 3])), (_values(1, 2, 4, 4), np.array([4, 9]))],
            )
            yield Case(
                "Interpolate",
                opset,
                f"{mode}-run-time-scales",
                _interpolate(version, (-1, -1, -1, -1), [0, 0], [2, 3], mode, "scales", run_time=("given",)),
                [(data, np.array([1.5, 0.7], np.float32)), (_values(1, 2, 4, 4), np.array([1, 2.3], np.float32))],
            )
            yield Case(
                "Interpolate",
                opset,
                f"{mode}-pads",
                _interpolate(version, data.shape, [8, 11], [2, 3], mode, begin=[0, 0, 1, 2], end=[0, 0, 2, 0]),
                [(data,)],
            )
            for dtype in (np.float16, np.float64, np.int32, np.int64, np.uint8, np.int8):
                if version == 11:
                    yield Case("Interpolate", opset, f"{mode}-{np.dtype(dtype).name}", *_typed(mode, dtype))
        yield Case(
            "Interpolate",
            opset,
            "cubic-coefficient",
            _interpolate(version, data.shape, [8, 4], [2, 3], "cubic", cube=-0.4),
            [(data,)],
        )
        for mode in ("nearest", "linear", "cubic"):
            yield Case(
                "Interpolate", opset, f"{mode}-one-axis", _interpolate(version, data.shape, [8], [3], mode), [(data,)]
            )
            yield Case(
                "Interpolate",
                opset,
                f"{mode}-run-time-axes",
                _interpolate(version, (-1, -1, -1, -1), [8, 4], [2, 3], mode, run_time=("axes",)),
                [(data, np.array([2, 3])), (data, np.array([3, 2]))],
            )
        for mode in ("linear_onnx", "nearest", "linear"):
            yield Case(
                "Interpolate",
                opset,
                f"{mode}-5d",
                _interpolate(version, (1, 2, 3, 4, 5), [5, 3, 7], [2, 3, 4], mode),
                [(_values(1, 2, 3, 4, 5),)],
            )
        for mode in ("nearest", "linear", "cubic"):
            yield Case(
                "Interpolate",
                opset,
                f"{mode}-3d",
                _interpolate(version, (2, 4, 5), [7, 3], [1, 2], mode),
                [(_values(2, 4, 5),)],
                oracle="evaluate",
                reason="the CPU plugin takes other axes of three-dimensional data",
            )
        yield Case(
            "Interpolate",
            opset,
            "without-axes",
            _interpolate(version, (2, 3, 4, 5), [2, 3, 6, 7], None, "nearest"),
            [(_values(2, 3, 4, 5),)],
        )
        for coordinates in ("half_pixel", "align_corners", "asymmetric"):
            for name, sizes in (("down", [3, 2]), ("mixed", [3, 9])):
                yield Case(
                    "Interpolate",
                    opset,
                    f"antialias-{coordinates}-{name}",
                    _interpolate(version, data.shape, sizes, [2, 3], "linear", "sizes", coordinates, antialias=True),
                    [(data,)],
                    oracle="evaluate",
                    reason=_ANTIALIAS,
                )
        yield Case(
            "Interpolate",
            opset,
            "antialias-up",
            _interpolate(version, data.shape, [7, 8], [2, 3], "linear", antialias=True),
            [(data,)],
        )
        yield Case(
            "Interpolate",
            opset,
            "antialias-dynamic",
            _interpolate(version, (-1, -1, -1, -1), [0, 0], [2, 3], "linear", antialias=True, run_time=("given",)),
            [(data, np.array([3, 4])), (data, np.array([7, 8])), (data, np.array([2, 9]))],
            oracle="evaluate",
            reason=_ANTIALIAS,
        )


def _of_unknown_rank(mode, sizes=(7, 3), axes=(2, 3), begin=(0,)):
    def build():
        import openvino as ov
        from openvino import opset11

        x, shape = opset11.parameter([-1], np.float32), opset11.parameter([-1], np.int64)
        data = opset11.reshape(x, shape, False)
        along = None if axes is None else opset11.constant(np.array(axes))
        resized = opset11.interpolate(data, np.array(sizes), mode, "sizes", pads_begin=list(begin), pads_end=[0], axes=along)
        return ov.Model([resized], [x, shape])

    return build


def _resize(opset, image, given, axes, *, mode, shape_calculation_mode):
    return opset.interpolate(image, given, mode, shape_calculation_mode, axes=axes)


def _unknown_ranks():
    data = _values(2, 3, 5, 6)
    runs = [(data.reshape(-1), np.array(data.shape))]
    for name, build in (
        *((f"{mode}-unknown-rank", _of_unknown_rank(mode)) for mode in ("nearest", "linear", "cubic")),
        ("unknown-rank-all-axes", _of_unknown_rank("linear", (2, 3, 8, 3), None)),
        ("unknown-rank-pads", _of_unknown_rank("cubic", begin=(0, 0, 1))),
    ):
        yield Case(
            "Interpolate",
            "opset11",
            name,
            build,
            runs,
            oracle="evaluate",
            reason="the CPU plugin takes no inputs of unknown rank",
        )
    image = unranked(data, data[0], data[0, 0])
    sizes, scales = dynamic(np.array([2, 3, 7, 3]), np.array([3, 7, 3]), np.array([7, 3])), np.array([1.5], np.float32)
    for name, mode, given, axes in (
        ("run-time-sizes", "linear", sizes, None),
        ("run-time-axes", "nearest", np.array([3]), static(np.array([1]), np.array([2]), np.array([0]))),
        ("scale", "nearest", scales, np.array([1])),
    ):
        attributes = {"mode": mode, "shape_calculation_mode": "scales" if given is scales else "sizes"}
        yield layer_case("Interpolate", "opset11", _resize, f"any-rank-{name}", [image, given, axes], attributes)


def _typed(mode, dtype):
    """Values without ties between two integers: OpenVINO's CPU resizes integers in float32, in an order of its own."""
    data = _values(1, 2, 5, 4, dtype=dtype)
    if np.dtype(dtype).kind in "iu" and np.dtype(dtype).itemsize > 1:
        data = data * 4
    cube = -0.5 if mode == "bicubic_pillow" else -0.75
    build = _interpolate(11, data.shape, [7, 3], [2, 3], mode, dtype=dtype, cube=cube)
    if np.dtype(dtype).itemsize == 1 and mode != "nearest":
        return build, [(data,)], "cpu", "Model.evaluate neither rounds nor saturates integers as the CPU plugin does"
    return build, [(data,)]


def _pillow():
    data = _values(2, 3, 5, 6)
    for mode, cube in (("bilinear_pillow", -0.75), ("bicubic_pillow", -0.5)):
        for name, sizes in (("up", [8, 11]), ("down", [3, 4]), ("mixed", [9, 2]), ("one", [1, 6])):
            yield Case(
                "Interpolate",
                "opset11",
                f"{mode}-{name}",
                _interpolate(11, data.shape, sizes, [2, 3], mode, cube=cube),
                [(data,)],
            )
        yield Case(
            "Interpolate",
            "opset11",
            f"{mode}-dynamic-scales",
            _interpolate(11, (-1, 3, -1, -1), [0.7, 2.3], [2, 3], mode, "scales", cube=cube),
            [(data,), (_values(1, 3, 7, 10),)],
        )
        yield Case(
            "Interpolate",
            "opset11",
            f"{mode}-empty",
            _interpolate(11, (-1, 3, -1, -1), [0, 0], [2, 3], mode, cube=cube, run_time=("given",)),
            [(data[:0], np.array([3, 8])), (data, np.array([3, 8]))],
        )
        yield Case(
            "Interpolate",
            "opset11",
            f"{mode}-channels-last",
            _interpolate(11, (1, 5, 6, 3), [3, 8], [1, 2], mode, cube=cube),
            [(_values(1, 5, 6, 3),)],
        )
        for dtype in (np.float16, np.uint8, np.int8):
            yield Case(
                "Interpolate", "opset11", f"{mode}-{np.dtype(dtype).name}", *_typed(mode, dtype)[:2], **_rest(mode, dtype)
            )
    yield Case(
        "Interpolate",
        "opset11",
        "bicubic_pillow-coefficient",
        _interpolate(11, data.shape, [8, 4], [2, 3], "bicubic_pillow", cube=-0.9),
        [(data,)],
        oracle="evaluate",
        reason="the CPU plugin takes the coefficient -0.5 always",
    )


def _rest(mode, dtype):
    if np.dtype(dtype).itemsize > 1:
        return {}
    return {"oracle": "cpu", "reason": "Model.evaluate rounds ties away from zero, and after each of the two axes"}


def _first(shape, sizes, axes, mode, align=False, antialias=False, begin=(0,), end=(0,), run_time=False, dtype=np.float32):
    def build():
        import openvino as ov
        from openvino import opset1

        x = opset1.parameter(ov.PartialShape(list(shape)), dtype)
        attributes = {
            "axes": np.array(axes),
            "mode": mode,
            "align_corners": align,
            "antialias": antialias,
            "pads_begin": np.array(begin),
            "pads_end": np.array(end),
        }
        target = opset1.parameter([len(axes)], np.int64) if run_time else opset1.constant(np.array(sizes, np.int64))
        return ov.Model([opset1.interpolate(x, target, attributes)], [x, target] if run_time else [x])

    return build


def _original():
    data = _values(2, 3, 5, 6)
    for mode in ("nearest", "linear", "linear_onnx", "cubic"):
        for align in (True, False):
            for name, sizes in (("up", [8, 11]), ("down", [3, 4]), ("mixed", [9, 2]), ("double", [10, 12])):
                yield Case(
                    "Interpolate",
                    "opset1",
                    f"{mode}-{'align' if align else 'free'}-{name}",
                    _first(data.shape, sizes, [2, 3], mode, align),
                    [(data,)],
                )
        yield Case(
            "Interpolate",
            "opset1",
            f"{mode}-run-time-sizes",
            _first((-1, -1, -1, -1), None, [2, 3], mode, run_time=True),
            [(data, np.array([7, 3])), (_values(1, 2, 4, 4), np.array([4, 9]))],
        )
    for align in (True, False):
        yield Case(
            "Interpolate",
            "opset1",
            f"linear-5d-{'align' if align else 'free'}",
            _first((1, 2, 3, 4, 5), [5, 3, 7], [2, 3, 4], "linear", align),
            [(_values(1, 2, 3, 4, 5),)],
        )
    yield Case(
        "Interpolate",
        "opset1",
        "float16",
        _first((1, 2, 4, 5), [7, 3], [2, 3], "linear", dtype=np.float16),
        [(_values(1, 2, 4, 5, dtype=np.float16),)],
    )


def _grid_sample(data, grid, attributes, dtype=np.float32, grid_dtype=np.float32):
    def build():
        import openvino as ov
        from openvino import opset9

        x = opset9.parameter(ov.PartialShape(list(data)), dtype)
        g = opset9.parameter(ov.PartialShape(list(grid)), grid_dtype)
        return ov.Model([opset9.grid_sample(x, g, attributes)], [x, g])

    return build


def _grid(*shape):
    """Places inside, outside (a little and far), at corners, at borders and between."""
    grid = np.random.default_rng(4).normal(scale=1.2, size=shape)
    flat = grid.reshape(-1)
    flat[:8] = [-1, -1, 1, 1, 0, 0, 1, -1]
    flat[8:12] = [5.3, -7.1, 3, -3]
    return grid.astype(np.float32)


def _grids():
    data, grid = _values(2, 3, 5, 6), _grid(2, 4, 7, 2)
    for mode in ("bilinear", "bicubic", "nearest"):
        for padding in ("zeros", "border", "reflection"):
            for align in (True, False):
                yield Case(
                    "GridSample",
                    "opset9",
                    f"{mode}-{padding}-{'align' if align else 'free'}",
                    _grid_sample(data.shape, grid.shape, {"mode": mode, "padding_mode": padding, "align_corners": align}),
                    [(data, grid)],
                )
    yield Case(
        "GridSample",
        "opset9",
        "dynamic",
        _grid_sample((-1, -1, -1, -1), (-1, -1, -1, 2), {}),
        [(data, grid), (_values(1, 2, 3, 1), _grid(1, 2, 9, 2))],
    )
    half = np.array([[-0.5, 0.5], [0, 0], [0.25, -0.25], [0.75, 0.75]], np.float32).reshape(1, 1, 4, 2)
    for align in (True, False):  # half way between two elements
        yield Case(
            "GridSample",
            "opset9",
            f"ties-{align}",
            _grid_sample((1, 1, 4, 4), half.shape, {"mode": "nearest", "align_corners": align}),
            [(_values(1, 1, 4, 4), half)],
        )
    yield Case(
        "GridSample",
        "opset9",
        "one-element",
        _grid_sample((1, 2, 1, 1), (1, 3, 3, 2), {"align_corners": True, "padding_mode": "reflection"}),
        [(_values(1, 2, 1, 1), _grid(1, 3, 3, 2))],
    )
    for dtype in (np.float16, np.int32, np.int64, np.uint8, np.int8):
        for mode in ("bilinear", "nearest"):
            yield Case(
                "GridSample",
                "opset9",
                f"{np.dtype(dtype).name}-{mode}",
                _grid_sample((2, 3, 5, 6), grid.shape, {"mode": mode, "padding_mode": "border"}, dtype),
                [(_values(2, 3, 5, 6, dtype=dtype), grid)],
            )
    yield Case(
        "GridSample",
        "opset9",
        "float16-grid",
        _grid_sample((2, 3, 5, 6), grid.shape, {}, np.float32, np.float16),
        [(data, grid.astype(np.float16))],
    )


CASES = [*_grids(), *_unknown_ranks(), *_modern(), *_pillow(), *_original()]
