"""Resize as matrix multiplications, and near misses."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx_ir as ir
import openvino as ov
import pytest
from openvino import opset11 as ops

from converters.options import TargetName
from converters.passes.spellings.resize_matrices import (
    ResizeByMatrices,
    ResizeOfNcnn,
    ResizeOfOpenCV4,
    ResizeOfOpenCV5,
    ResizeOfTinygrad,
    ResizeOfTract,
    ResizeOfTVM,
)
from onnx_specops.building import new_value
from tests.conformance.oracle import Oracle
from tests.converters.passes.agreement import converted
from tests.converters.passes.graphs import floats, graph, rewritten

COORDINATES = ["half_pixel", "pytorch_half_pixel", "asymmetric", "align_corners"]


@pytest.mark.parametrize("coordinates", COORDINATES)
@pytest.mark.parametrize(
    ("mode", "dims", "sizes"),
    [
        ("cubic", (1, 2, 5, 7), [1, 2, 11, 4]),
        ("cubic", (1, 2, 5, 7), [1, 2, 1, 7]),
        ("linear", (1, 2, 3, 4, 5), [1, 2, 6, 3, 9]),
        ("nearest", (1, 2, 3, 4, 5), [1, 2, 6, 3, 9]),
        ("nearest", (1, 2, 7), [1, 2, 12]),
    ],
)
def test_modes(coordinates: str, mode: str, dims: tuple[int, ...], sizes: list[int]) -> None:
    def emit(op, x):
        return op.Resize(x, None, None, sizes, mode=mode, coordinate_transformation_mode=coordinates, nearest_mode="floor")

    assert "Resize" not in rewritten(emit, floats("x", *dims), by=[ResizeByMatrices()])


@pytest.mark.parametrize(
    ("mode", "scale", "found"),
    [
        ("nearest", 2.0**17, ["Gather"]),
        ("nearest", 2.0**22, ["Resize"]),  # 4 times as many positions as are computed
        ("linear", 2.0**10, ["MatMul"]),
        ("linear", 2.0**40, ["Resize"]),
    ],
)
def test_enormous_results(mode: str, scale: float, found: list[str]) -> None:
    model = graph(lambda op, x: op.Resize(x, None, [1.0, 1.0, scale], mode=mode), floats("x", 1, 1, 4))
    ResizeByMatrices()(model)
    assert [node.op_type for node in model.graph] == found


@pytest.mark.parametrize(("size", "found"), [(2048, "MatMul"), (4096, "Resize")])
def test_enormous_matrices(size: int, found: str) -> None:
    model = graph(lambda op, x: op.Resize(x, None, [1.0, 1.0, 2.0], mode="linear"), floats("x", 1, 1, size))
    ResizeByMatrices()(model)
    assert [node.op_type for node in model.graph] == [found]


@pytest.mark.parametrize("rounding", ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"])
def test_rounding_of_nearest(rounding: str) -> None:
    def emit(op, x):
        return op.Resize(x, None, [1.0, 1.0, 2.6, 0.5, 1.5], mode="nearest", nearest_mode=rounding)

    assert rewritten(emit, floats("x", 1, 2, 3, 4, 5), by=[ResizeByMatrices()]) == ["Gather"] * 3


@pytest.mark.parametrize("attributes", [{"cubic_coeff_a": -0.5}, {"exclude_outside": 1}])
def test_attributes_of_cubic(attributes: dict) -> None:
    def emit(op, x):
        return op.Resize(x, None, [1.0, 1.0, 1.7, 0.6], mode="cubic", **attributes)

    found = rewritten(emit, floats("x", 1, 2, 6, 7), by=[ResizeByMatrices()])
    assert found == ["MatMul", "MatMul", "Transpose", "Transpose"]


@pytest.mark.parametrize(
    ("mode", "dims", "attributes"),
    [
        ("linear", (1, 2, 5, 7), {}),
        ("nearest", (1, 2, 5, 7), {}),
        ("cubic", (1, 2, 5, 7), {"antialias": 1}),
        ("cubic", (1, 2, 5, 7), {"coordinate_transformation_mode": "half_pixel_symmetric"}),
        ("cubic", (1, 2, 5, None), {}),
    ],
)
def test_near_misses(mode: str, dims: tuple[int | None, ...], attributes: dict) -> None:
    def emit(op, x):
        return op.Resize(x, None, [1.0, 1.0, 2.0, 3.0], mode=mode, **attributes)

    assert rewritten(emit, floats("x", *dims), by=[ResizeByMatrices()]) == ["Resize"]


@pytest.mark.parametrize(
    ("mode", "coordinates", "rounding", "sizes", "changed"),
    [
        ("nearest", "asymmetric", "floor", [10, 14], False),
        ("nearest", "asymmetric", "floor", [3, 4], False),
        ("nearest", "asymmetric", "ceil", [9, 14], True),
        ("nearest", "half_pixel", "round_prefer_floor", [10, 14], False),
        ("nearest", "half_pixel", "floor", [10, 14], True),
        ("nearest", "pytorch_half_pixel", "ceil", [10, 14], True),
        ("nearest", "align_corners", "round_prefer_ceil", [9, 13], False),
        ("nearest", "align_corners", "floor", [9, 13], True),
        ("linear", "half_pixel", "floor", [10, 1], False),
        ("linear", "pytorch_half_pixel", "floor", [10, 14], False),
        ("linear", "pytorch_half_pixel", "floor", [10, 1], True),
        ("cubic", "half_pixel", "floor", [10, 14], True),
    ],
)
def test_elements_of_opencv_4(mode: str, coordinates: str, rounding: str, sizes: list[int], changed: bool) -> None:
    def emit(op, x):
        attributes = {"mode": mode, "coordinate_transformation_mode": coordinates, "nearest_mode": rounding}
        return op.Resize(x, None, None, [1, 2, *sizes], **attributes)

    assert ("Resize" not in rewritten(emit, floats("x", 1, 2, 5, 7), by=[ResizeOfOpenCV4()])) == changed


@pytest.mark.parametrize(
    ("mode", "coordinates", "sizes", "attributes", "kept"),
    [
        ("nearest", "asymmetric", [10, 14], {"nearest_mode": "floor"}, True),
        ("nearest", "half_pixel", [10, 14], {"nearest_mode": "round_prefer_floor"}, True),
        ("nearest", "half_pixel", [9, 14], {"nearest_mode": "round_prefer_floor"}, False),
        ("nearest", "asymmetric", [15, 21], {"nearest_mode": "round_prefer_floor"}, False),
        ("nearest", "align_corners", [9, 13], {"nearest_mode": "floor"}, True),
        ("nearest", "align_corners", [11, 13], {"nearest_mode": "floor"}, False),
        ("linear", "half_pixel", [9, 3], {}, True),
        ("linear", "align_corners", [9, 3], {}, True),
        ("linear", "asymmetric", [9, 3], {}, False),
        ("linear", "pytorch_half_pixel", [9, 3], {}, True),
        ("linear", "pytorch_half_pixel", [9, 1], {}, False),
        ("cubic", "half_pixel", [9, 14], {}, True),
        ("cubic", "asymmetric", [9, 14], {}, False),
        ("cubic", "half_pixel", [9, 14], {"cubic_coeff_a": -0.5}, False),
        ("cubic", "half_pixel", [9, 14], {"exclude_outside": 1}, False),
    ],
)
def test_coordinates_of_ncnn(mode: str, coordinates: str, sizes: list[int], attributes: dict, kept: bool) -> None:
    """A nearest Resize that stays has asymmetric coordinates, rounded down."""

    def emit(op, x):
        return op.Resize(x, None, None, [1, 2, *sizes], mode=mode, coordinate_transformation_mode=coordinates, **attributes)

    assert (rewritten(emit, floats("x", 1, 2, 5, 7), by=[ResizeOfNcnn()]) == ["Resize"]) == kept
    model = graph(emit, floats("x", 1, 2, 5, 7))
    ResizeOfNcnn()(model)
    for node in model.graph:
        if node.op_type == "Resize" and mode == "nearest":
            assert node.attributes.get_string("coordinate_transformation_mode") == "asymmetric"
            assert node.attributes.get_string("nearest_mode") == "floor"


@pytest.mark.parametrize(("mode", "least"), [("linear", 2), ("cubic", 4), ("nearest", 1)])
def test_least_sizes_of_ncnn(mode: str, least: int) -> None:
    def emit(op, x):
        return op.Resize(x, None, None, [1, 2, 8, 16], mode=mode, nearest_mode="floor")

    for size in range(1, 5):
        found = rewritten(emit, floats("x", 1, 2, size, 8), by=[ResizeOfNcnn()])
        assert ("MatMul" in found) == (size < least), size


def test_scales_of_ncnn_become_sizes() -> None:
    def emit(op, x):
        return op.Resize(x, None, [1.0, 1.0, 2.0, 2.0], mode="nearest", nearest_mode="round_prefer_floor")

    model = graph(emit, floats("x", 1, 2, 5, 7))
    ResizeOfNcnn()(model)
    (node,) = model.graph
    assert node.inputs[3] is not None and node.inputs[2] is None
    volumes = rewritten(
        lambda op, x: op.Resize(x, None, None, [1, 2, 4, 6, 8], mode="linear"),
        floats("x", 1, 2, 2, 3, 4),
        by=[ResizeOfNcnn()],
    )
    assert "Resize" not in volumes


@pytest.mark.parametrize("target", ["jax", "qnn", "opencv4", "ncnn"])
@pytest.mark.parametrize(
    ("size", "scale", "coordinates", "rounding"),
    [
        (6, 1 / 3, "asymmetric", "floor"),  # 1 / (1 / 3) is below 3, and 3 in float32
        (7, 1.2, "half_pixel", "floor"),
        (13, 7 / 6, "half_pixel", "floor"),
        (6, 5 / 6, "half_pixel", "round_prefer_floor"),
        (6, 5 / 6, "half_pixel", "round_prefer_ceil"),
        (6, 0.5, "half_pixel", "floor"),  # exact in any precision
    ],
)
def test_positions_have_32_bits(
    size: int, scale: float, coordinates: str, rounding: str, target: TargetName, oracle: Oracle, tmp_path: Path
) -> None:
    x = ops.parameter([1, 2, size, 5], np.float32, name="x")
    attributes = {"coordinate_transformation_mode": coordinates, "nearest_mode": rounding}
    scales, axes = ops.constant(np.array([scale], np.float32)), ops.constant(np.array([2], np.int64))
    model = ov.Model([ops.interpolate(x, scales, "nearest", axes=axes, shape_calculation_mode="scales", **attributes)], [x])
    data = np.arange(10 * size, dtype=np.float32).reshape(1, 2, size, 5)
    converted(model, [data], oracle, tmp_path, target=target)


@pytest.mark.parametrize(
    ("of", "kept"),
    [
        (ResizeByMatrices, {"half", "whole"}),
        (ResizeOfOpenCV5, {"half", "whole", "up"}),
        (ResizeOfTract, None),
        (ResizeOfTVM, {"half", "whole", "up"}),
        (ResizeOfTinygrad, {"half", "whole", "up"}),
    ],
    ids=["mnn", "opencv", "tract", "tvm", "tinygrad"],
)
@pytest.mark.parametrize(
    ("name", "size", "count", "coordinates", "rounding"),
    [
        ("half", 5, 10, "asymmetric", "floor"),  # exact in any order
        ("whole", 5, 5 * 256, "half_pixel", "round_prefer_floor"),
        ("up", 4, 8, "half_pixel", "ceil"),  # MNN rounds down only
        ("tie", 5, 13, "half_pixel", "floor"),  # 2, or a little less
        ("quotient", 7, 1, "half_pixel", "floor"),  # 0.5 / (1 / 7) is below 3.5 in float32
        ("near", 333, 1000, "half_pixel", "round_prefer_floor"),  # 0.4995
    ],
)
def test_positions_between_elements(
    of: type[ResizeByMatrices],
    kept: set[str] | None,
    name: str,
    size: int,
    count: int,
    coordinates: str,
    rounding: str,
) -> None:
    def emit(op, x):
        attributes = {"coordinate_transformation_mode": coordinates, "nearest_mode": rounding}
        return op.Resize(x, None, None, [1, 2, 3, count], mode="nearest", **attributes)

    found = rewritten(emit, floats("x", 1, 2, 3, size), by=[of()])
    assert found == (["Resize"] if kept is None or name in kept else ["Gather"])


@pytest.mark.parametrize(
    ("mode", "coordinates", "sizes", "rounding", "kept"),
    [
        ("nearest", "align_corners", [9, 13], "round_prefer_floor", True),
        ("nearest", "align_corners", [9, 13], "floor", True),  # steps of 1/2
        ("nearest", "align_corners", [8, 13], "floor", False),
        ("nearest", "half_pixel", [8, 13], "floor", True),
        ("cubic", "pytorch_half_pixel", [9, 13], "floor", True),
        ("cubic", "pytorch_half_pixel", [9, 1], "floor", False),
        ("cubic", "align_corners", [9, 1], "floor", True),
        ("linear", "pytorch_half_pixel", [9, 1], "floor", True),
    ],
)
def test_images_of_tract(mode: str, coordinates: str, sizes: list[int], rounding: str, kept: bool) -> None:
    def emit(op, x):
        attributes = {"mode": mode, "coordinate_transformation_mode": coordinates, "nearest_mode": rounding}
        return op.Resize(x, None, None, [1, 2, *sizes], **attributes)

    assert (rewritten(emit, floats("x", 1, 2, 5, 7), by=[ResizeOfTract()]) == ["Resize"]) == kept


@pytest.mark.parametrize(
    ("dims", "sizes", "kept"),
    [((1, 2, 5, 7), [1, 2, 10, 7], True), ((1, 2, 5, 7), [1, 4, 5, 7], False), ((1, 2, 5), [1, 2, 10], False)],
)
@pytest.mark.parametrize("mode", ["linear", "nearest"])
def test_images_of_opencv(dims: tuple[int, ...], sizes: list[int], kept: bool, mode: str) -> None:
    def emit(op, x):
        return op.Resize(x, None, None, sizes, mode=mode)

    for of in (ResizeOfOpenCV4, ResizeOfOpenCV5):
        assert (rewritten(emit, floats("x", *dims), by=[of()]) == ["Resize"]) == kept
    assert rewritten(emit, floats("x", *dims), by=[ResizeOfTract()]) == ["Resize"]


def test_free_scales_of_opencv() -> None:
    """It uses the sizes. A linear Resize stays, and the limits of the target reject it."""

    def emit(op, x, mode):
        return op.Resize(x, None, [1.0, 1.0, 1.0, 1.75], mode=mode, nearest_mode="floor")

    for mode, found in (("nearest", ["Gather"]), ("linear", ["Resize"])):
        by = [ResizeOfOpenCV5()]
        assert rewritten(lambda op, x, mode=mode: emit(op, x, mode), floats("x", 1, 2, 3, 7), by=by) == found


@pytest.mark.parametrize("dtype", [ir.DataType.INT32, ir.DataType.FLOAT16])
def test_nearest_elements_of_other_types(dtype: ir.DataType) -> None:
    def emit(op, x):
        sizes = [1, 2, 3, 13]
        return op.Resize(x, None, None, sizes, mode="nearest", nearest_mode="ceil"), op.Resize(
            x, None, None, sizes, mode="linear"
        )

    model = graph(emit, new_value(dtype, [1, 2, 3, 5], "x"))
    ResizeByMatrices()(model)
    assert sorted(node.op_type for node in model.graph) == ["Gather", "Resize"]


@pytest.mark.parametrize("target", ["mnn", "opencv", "opencv4", "tract", "ncnn", "jax", "qnn"])
@pytest.mark.parametrize("coordinates", COORDINATES)
@pytest.mark.parametrize(("mode", "rounding"), [("nearest", "floor"), ("nearest", "round_prefer_ceil"), ("cubic", "floor")])
def test_results_are_those_of_openvino(
    coordinates: str, mode: str, rounding: str, target: TargetName, oracle: Oracle, tmp_path: Path
) -> None:
    x = ops.parameter([1, 2, 5, 7], np.float32, name="x")
    attributes = {"coordinate_transformation_mode": coordinates, "nearest_mode": rounding}
    sizes, axes = ops.constant(np.array([13, 1], np.int64)), ops.constant(np.array([2, 3], np.int64))
    model = ov.Model([ops.interpolate(x, sizes, mode, axes=axes, shape_calculation_mode="sizes", **attributes)], [x])
    data = np.random.default_rng(0).standard_normal((1, 2, 5, 7)).astype(np.float32)
    converted(model, [data], oracle, tmp_path, target=target)


@pytest.mark.parametrize(
    ("dims", "scales", "sizes", "options", "kept"),
    [
        ((1, 2, 5, 8), [1, 1, 2, 1.5], None, {"mode": "linear"}, True),
        ((1, 2, 5, 8), [1, 1, 1.7, 1.5], None, {"mode": "linear"}, False),
        ((1, 2, 5, 8), [1, 1, 1.7, 1.5], None, {"mode": "cubic"}, False),
        ((1, 2, 8), [1, 1, 1.3], None, {"mode": "nearest"}, False),
        ((1, 2, 8), None, [1, 2, 16], {"mode": "nearest"}, True),
        ((1, 2, 8), None, [1, 4, 16], {"mode": "nearest"}, False),
        ((2, 8), None, [2, 16], {"mode": "nearest"}, False),
        ((1, 2, 3, 4, 5), None, [1, 2, 6, 8, 10], {"mode": "linear"}, True),
        ((1, 2, 5, 8), None, [1, 2, 1, 7], {"mode": "linear", "coordinate_transformation_mode": "align_corners"}, False),
        ((1, 2, 5, 8), None, [1, 2, 2, 7], {"mode": "linear", "coordinate_transformation_mode": "align_corners"}, True),
        ((1, 2, 5, 8), None, [1, 2, 1, 7], {"mode": "linear", "coordinate_transformation_mode": "pytorch_half_pixel"}, True),
    ],
)
def test_resize_of_tvm(
    dims: tuple[int, ...], scales: list[float] | None, sizes: list[int] | None, options: dict[str, str], kept: bool
) -> None:
    def emit(op, x):
        return op.Resize(x, None, None if scales is None else op.const(np.array(scales, np.float32)), sizes, **options)

    assert (rewritten(emit, floats("x", *dims), by=[ResizeOfTVM()]) == ["Resize"]) == kept


@pytest.mark.parametrize(("kind", "kept"), [(ir.DataType.INT32, False), (ir.DataType.UINT8, True)])
def test_resize_of_integers_of_tvm(kind: ir.DataType, kept: bool) -> None:
    found = rewritten(
        lambda op, x: op.Resize(x, None, None, [1, 2, 6, 8], mode="nearest"),
        new_value(kind, (1, 2, 3, 4), "x"),
        by=[ResizeOfTVM()],
    )
    assert (found == ["Resize"]) == kept


@pytest.mark.parametrize(
    ("dims", "scales", "sizes", "options", "kept"),
    [
        ((1, 2, 5, 8), [1, 1, 1.7, 1.5], None, {"mode": "linear"}, True),
        ((1, 2, 5, 8), None, [1, 2, 7, 12], {"mode": "linear"}, True),
        ((1, 2, 5, 8), [1, 1, 1.7, 1.5], None, {"mode": "cubic"}, True),
        ((1, 2, 17), [1, 1, 0.6], None, {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}, False),
        ((1, 2, 17), [1, 1, 0.5], None, {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}, True),
        ((1, 2, 8), None, [1, 2, 16], {"mode": "nearest"}, True),
        ((1, 2, 8), None, [1, 4, 16], {"mode": "nearest"}, False),
        ((2, 8), None, [2, 16], {"mode": "nearest"}, False),
        ((1, 2, 3, 4, 5), None, [1, 2, 6, 8, 10], {"mode": "linear"}, False),
        ((1, 2, 3, 4, 5), [1, 1, 2, 2, 2], None, {"mode": "linear"}, True),
    ],
)
def test_resize_of_tinygrad(
    dims: tuple[int, ...], scales: list[float] | None, sizes: list[int] | None, options: dict[str, str], kept: bool
) -> None:
    def emit(op, x):
        return op.Resize(x, None, None if scales is None else op.const(np.array(scales, np.float32)), sizes, **options)

    assert (rewritten(emit, floats("x", *dims), by=[ResizeOfTinygrad()]) == ["Resize"]) == kept


@pytest.mark.parametrize(("scale", "kept"), [(1.4, False), (1.5, True)])
def test_sizes_of_tinygrad(scale: float, kept: bool) -> None:
    """1.4 in float32 by 5 is below 7 in float64, which tinygrad multiplies in."""
    count = int(5 * np.float32(scale))

    def emit(op, x):
        scales = op.const(np.array([1, 1, 1, scale], np.float32))
        return op.node("Resize", x, None, scales, mode="linear", types=[(ir.DataType.FLOAT, [1, 2, 3, count])])

    assert (rewritten(emit, floats("x", 1, 2, 3, 5), by=[ResizeOfTinygrad()]) == ["Resize"]) == kept
