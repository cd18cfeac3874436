"""Interpolate and GroupedMatMul: modes, types, errors."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from onnx_specops.domain import find
from tests.onnx_specops.ops.case import Case

F = np.float32
KNOWN = find("Interpolate").attributes
IMAGE = np.random.default_rng(7).normal(size=(2, 3, 5, 6)).astype(F)
# Larger and smaller, twice as large, smaller in both, one element, unchanged.
TARGETS = {"mixed": [9, 2], "double": [10, 12], "smaller": [3, 4], "one": [1, 1], "same": [5, 6]}
ANTIALIAS = "the CPU plugin ignores antialiasing in this layout, the specification does not"


def _layer(image, sizes, scales, *, axes, mode, by_scales=False, **attributes):
    from openvino import opset11

    along = opset11.constant(np.array([int(axis) for axis in axes.split(",")], np.int64))
    given, calculation = (scales, "scales") if by_scales else (sizes, "sizes")
    return opset11.interpolate(
        image, given, mode, calculation, [0], [0],
        attributes.get("coordinate_transformation_mode", "half_pixel"),
        attributes.get("nearest_mode", "round_prefer_floor"),
        bool(attributes.get("antialias", 0)), attributes.get("cube_coeff", -0.75), along,
    )  # fmt: skip


def _case(name, mode, sizes, image=IMAGE, axes="2,3", scales=None, **options):
    at = [int(axis) for axis in axes.split(",") if axis]
    attributes = {"axes": axes, "mode": mode} | options.pop("attributes", {})
    if scales is None:
        scales = np.array(sizes, F) / np.array([image.shape[axis] for axis in at], F)
        layer = _layer
    else:

        def layer(*nodes, **keywords):
            return _layer(*nodes, by_scales=True, **keywords)

    inputs = {"image": image, "sizes": np.array(sizes, np.int64), "scales": np.array(scales, F)}
    return Case("Interpolate", name, inputs, attributes, layer=layer, **options)


def _interpolate():
    for mode in KNOWN["mode"].choices:
        cube = {"cube_coeff": -0.5} if mode == "bicubic_pillow" else {}
        every = KNOWN["coordinate_transformation_mode"].choices
        for coordinates in every if not mode.endswith("pillow") else ("half_pixel",):
            for rounding in KNOWN["nearest_mode"].choices if mode == "nearest" else ("floor",):
                for target, sizes in TARGETS.items():
                    if target != "mixed" and (coordinates, rounding) not in (
                        ("half_pixel", "simple"),
                        ("half_pixel", "floor"),
                    ):
                        continue
                    attributes = {"coordinate_transformation_mode": coordinates, "nearest_mode": rounding} | cube
                    name = (
                        f"{mode}-{coordinates}-{rounding}-{target}"
                        if mode == "nearest"
                        else f"{mode}-{coordinates}-{target}"
                    )
                    yield _case(name, mode, sizes, attributes=attributes, rtol=1e-4, atol=1e-5)
    for coordinates in ("half_pixel", "align_corners", "asymmetric"):
        for target in ("mixed", "smaller"):
            attributes = {"coordinate_transformation_mode": coordinates, "antialias": 1}
            yield _case(
                f"antialias-{coordinates}-{target}", "linear", TARGETS[target], attributes=attributes,
                source="evaluate", reason=ANTIALIAS, rtol=1e-4, atol=1e-5,
            )  # fmt: skip
    yield _case("antialias-larger", "linear", [7, 8], attributes={"antialias": 1}, rtol=1e-4)
    yield _case("coefficient", "cubic", [8, 4], attributes={"cube_coeff": -0.3}, rtol=1e-4)
    yield _case("scales", "linear_onnx", [11, 4], scales=[2.3, 0.7], rtol=1e-4)
    yield _case("one-axis", "linear", [8], axes="3", rtol=1e-4)
    wide = np.random.default_rng(0).standard_normal((1, 2, 5, 37)).astype(F)
    for sizes in ([9, 74], [10, 37], [3, 101], [7, 33], [5, 38], [1, 400]):  # rows of several vectors
        for how in ("half_pixel", "align_corners", "asymmetric"):
            attributes = {"coordinate_transformation_mode": how}
            yield _case(f"wide-{sizes[1]}-{how}", "linear_onnx", sizes, wide, attributes=attributes, rtol=1e-4, atol=1e-5)
    yield _case(
        "five-dimensions", "linear_onnx", [5, 3, 4], np.arange(24, dtype=F).reshape(1, 1, 2, 3, 4) ** 2, "2,3,4", rtol=1e-4
    )
    for mode in KNOWN["mode"].choices:
        yield _case(
            f"scalar-{mode}", mode, [], np.array(3, F), "", scales=[],
            expected=np.array(3, F), reason="OpenVINO has no scalars to interpolate",
        )  # fmt: skip
    yield _case("no-batch", "nearest", [7, 3], IMAGE[:0])
    yield _case("to-nothing", "nearest", [0, 3], expected=np.zeros((2, 3, 0, 3), F), reason="OpenVINO rejects a size of 0")
    whole = (IMAGE * 40).astype(np.int64)
    for type_ in (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64):
        image = np.abs(whole).astype(type_) if np.dtype(type_).kind == "u" else whole.astype(type_)
        expected = np.repeat(np.repeat(image, 2, 2), 3, 3)
        copied = {"nearest_mode": "floor", "coordinate_transformation_mode": "asymmetric"}
        yield _case(
            f"nearest-{np.dtype(type_).name}", "nearest", [10, 18], image, attributes=copied,
            expected=expected, reason="OpenVINO copies most integers in float32",
        )  # fmt: skip
        if type_ in (np.int8, np.uint8, np.int32):
            yield _case(f"cubic-{np.dtype(type_).name}", "cubic", [7, 8], image)
            if type_ != np.int32:
                yield _case(f"bilinear_pillow-{np.dtype(type_).name}", "bilinear_pillow", [7, 8], image // 2 * 2)
    ends = np.iinfo(np.int32)
    extremes = np.array([ends.min, ends.max, ends.max, 0, ends.max, ends.min], np.int32).reshape(1, 1, 2, 3)
    yield _case("saturated-int32", "linear_onnx", [3, 5], extremes)
    for type_ in (np.float16, ml_dtypes.bfloat16, np.float64):
        close = {"rtol": 1e-4} if type_ == np.float64 else {"rtol": 1e-2, "atol": 1e-2}
        for mode in ("nearest", "linear", "cubic", "bilinear_pillow"):
            yield _case(
                f"{mode}-{np.dtype(type_).name}",
                mode,
                [7, 8],
                IMAGE.astype(type_),
                oracle_type=F,
                **close,
            )
    yield _case("error-mode", "area", [7, 8], error="attribute mode = 'area' is not one of nearest, linear")
    yield _case(
        "error-axes", "nearest", [7, 8], attributes={"axes": "2,2"}, error="axes = '2,2' is not a list of different axes"
    )
    yield _case("error-empty", "nearest", [7, 8], IMAGE[:, :, :0], scales=[1, 1], error="sizes: 0 elements along axis 2")


def _grouped(name, offsets, rows=7, type_=F, index_type=np.int64, **options):
    r = np.random.default_rng(3)

    def random(*shape):
        numbers = r.normal(size=shape) * 4
        # Processors differ in the conversion of negative floats to unsigned integers.
        return (numbers.astype(np.int64) if np.dtype(type_).kind in "iu" else numbers).astype(type_)

    matrices = random(len(offsets), 5, 4)
    inputs = {
        "mat_a": random(rows, 4),
        "mat_b": matrices,
        "offsets": np.array(offsets, index_type),
    }
    if "error" not in options:
        group = np.searchsorted(offsets, np.arange(rows), side="right")
        wide = np.float64 if np.dtype(type_).kind not in "iu" else type_
        parts = [inputs["mat_a"][i].astype(wide) @ matrices[g].T.astype(wide) for i, g in enumerate(group)]
        expected = np.array(parts, wide).reshape(rows, 5).astype(type_)
        options |= {"expected": expected, "reason": "the CPU plugin requires constant matrices; results by NumPy"}
    return Case("GroupedMatMul", name, inputs, **options)


def _grouped_mat_mul():
    yield _grouped("groups", [2, 4, 7], rtol=1e-4, atol=1e-4)
    yield _grouped("empty-groups", [0, 7, 7], rtol=1e-4, atol=1e-4)
    yield _grouped("one-group", [7], rtol=1e-4, atol=1e-4)
    yield _grouped("offsets-beyond", [2, 4, 9], rtol=1e-4, atol=1e-4)
    yield _grouped("no-rows", [0, 0], rows=0)
    yield _grouped("int32-offsets", [2, 4, 7], index_type=np.int32, rtol=1e-4, atol=1e-4)
    for type_ in (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64):
        yield _grouped(np.dtype(type_).name, [2, 4, 7], type_=type_)
    for type_ in (np.float16, ml_dtypes.bfloat16, np.float64):
        close = 1e-4 if type_ == np.float64 else 2e-2
        yield _grouped(np.dtype(type_).name, [2, 4, 7], type_=type_, rtol=close, atol=close)
    yield _grouped("error-decreasing", [4, 2, 7], error=r"offsets\[1\] = 2 is less than 4", body_error="offsets_decrease")
    yield _grouped("error-negative", [-1, 2, 7], error=r"offsets\[0\] = -1 is less than 0", body_error="offsets_decrease")
    yield _grouped(
        "error-rows-left", [2, 4, 6], error="offsets: the last of 7 rows", body_error="rows_beyond_the_last_offset"
    )


CASES = [*_interpolate(), *_grouped_mat_mul()]
