"""A linear Resize, axis by axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnxruntime as ort
import pytest
from onnx import NodeProto, TensorProto, helper, numpy_helper

from onnx_specops.optimizing import optimize_in_place
from tests.onnx_specops.optimizing import graphs
from tests.onnx_specops.optimizing.graphs import X, made
from tests.onnx_specops.runtime.graphs import value

COORDINATES = "coordinate_transformation_mode"
DOUBLED = np.float32([1, 1, 2, 2])


def resize(scales: str = "scales", sizes: str = "", x: str = X, **stated: Any) -> NodeProto:
    return helper.make_node("Resize", [x, "", scales, *([sizes] if sizes else [])], ["y"], **{"mode": "linear"} | stated)


def changed(
    node: NodeProto | list[NodeProto],
    dims: Sequence[int | None] = (2, 3, 5, 20),
    scales: np.ndarray = DOUBLED,
    sizes: Sequence[int] = (2, 3, 9, 40),
    **given: Any,
) -> bool:
    nodes = node if isinstance(node, list) else [node]
    model = made(nodes, dims, weights={"scales": scales, "sizes": np.array(sizes), "none": np.zeros(0, np.float32)}, **given)
    return graphs.changed(model, ["Interpolate"])


@pytest.mark.parametrize(
    ("scales", "found"),
    [
        (DOUBLED, True),
        (np.float32([1, 1, 2.1, 1.7]), True),
        (np.float32([1, 1, 0.5, 1]), True),
        (np.float32([1, 1, 2, 0.9]), False),
        (np.float32([1, 1, 1, 1]), False),
        (np.float32([1, 1, 1, 1.05]), True),
        (np.float32([1, 1, 1, 1.04]), False),  # the width does not change
        (np.float32([1, 1, 1.1, 2]), False),  # the height does not change
        (np.float32([1, 1, 1.2, 2]), True),
        (np.float32([1, 1, 0.7, 2]), True),
    ],
)
def test_scales(scales: np.ndarray, found: bool) -> None:
    assert changed(resize(), scales=scales) is found


@pytest.mark.parametrize(
    ("sizes", "stated", "found"),
    [
        ((2, 3, 9, 40), {}, True),
        ((2, 3, 9, 40), {COORDINATES: "align_corners"}, True),
        ((2, 3, 1, 40), {COORDINATES: "pytorch_half_pixel"}, True),
        ((2, 3, 9, 40), {COORDINATES: "asymmetric"}, True),
        ((2, 3, 2, 20), {}, True),  # less high, as wide
        ((2, 3, 9, 19), {}, False),
        ((2, 3, 9, 40), {COORDINATES: "half_pixel_symmetric"}, False),
        ((2, 3, 9, 40), {"keep_aspect_ratio_policy": "stretch"}, False),
        ((2, 3, 9, 40), {"antialias": 1}, False),
        ((2, 3, 9, 40), {"mode": "nearest"}, False),
    ],
)
def test_sizes(sizes: Sequence[int], stated: dict[str, Any], found: bool) -> None:
    assert changed(resize("", "sizes", **stated), sizes=sizes) is found
    assert changed(resize("none", "sizes", **stated), sizes=sizes) is found


@pytest.mark.parametrize(("scales", "height"), [([0.7, 2], 14), ([1.3, 1], 25), ([1.3, 1.9230769], 10)])
def test_products_of_float32(scales: Sequence[float], height: int) -> None:
    """20 rows times 0.7 are 14 in float32, and 13 in float64."""
    assert changed(resize(), (2, 3, height, 20), np.float32([1, 1, *scales]))


def test_scales_of_channels_stay() -> None:
    """ONNX Runtime rejects them. They do not change the number of channels."""
    model = made([resize()], (2, 3, 5, 20), weights={"scales": np.float32([1, 1.2, 2, 2])})
    assert not optimize_in_place(model)


def test_axes_stay() -> None:
    assert not changed(resize(axes=[2, 3]), scales=np.float32([2, 2]))


def test_excluded_pixels_stay() -> None:
    assert not changed(resize(exclude_outside=1))


@pytest.mark.parametrize(
    ("dims", "found"), [((2, 3, 5, 16), True), ((2, 3, 5, 15), False), ((None, 3, 5, 16), False), ((2, 3, None, 16), False)]
)
def test_dimensions(dims: tuple[int | None, ...], found: bool) -> None:
    assert changed(resize(), dims) is found


def test_other_ranks_stay() -> None:
    assert not changed(resize(), (5, 20), np.float32([2, 2]))


def test_other_types_stay() -> None:
    cast = helper.make_node("Cast", [X], ["h"], to=TensorProto.INT32)
    back = helper.make_node("Resize", ["h", "", "scales"], ["y"], mode="linear")
    model = made([cast, back], (2, 3, 5, 20), weights={"scales": DOUBLED})
    model.graph.output[0].type.tensor_type.elem_type = TensorProto.INT32
    assert not graphs.changed(model, ["Interpolate"])


def test_computed_scales_stay() -> None:
    nodes = [helper.make_node("Neg", ["scales"], ["n"]), helper.make_node("Neg", ["n"], ["computed"]), resize("computed")]
    assert not changed(nodes)


def test_older_opsets_stay() -> None:
    node = helper.make_node("Resize", [X, "scales"], ["y"], mode="linear")
    assert not changed(node, opset=10)
    assert changed(helper.make_node("Resize", [X, "none", "scales"], ["y"], mode="linear"), opset=11)


SIZES = np.array([2, 3, 10, 40])
OTHER_SIZES = np.array([2, 3, 15, 60])


def test_sizes_that_a_caller_can_replace_stay() -> None:
    given = [value("sizes", TensorProto.INT64, [4])]
    model = made([resize("", "sizes")], (2, 3, 5, 20), inputs=given, weights={"sizes": SIZES})
    assert not graphs.changed(model, ["Interpolate"], sizes=OTHER_SIZES)


def test_shapes_that_a_caller_can_replace_stay() -> None:
    nodes = [helper.make_node("Reshape", [X, "shape"], ["r"]), resize(x="r")]
    weights = {"shape": np.array([2, 3, 5, 20]), "scales": DOUBLED}
    model = made(nodes, (2, 3, 5, 20), inputs=[value("shape", TensorProto.INT64, [4])], weights=weights)
    assert not graphs.changed(model, ["Interpolate"], shape=np.array([2, 3, 4, 25]))


def test_callers_cannot_replace_constants_of_old_files() -> None:
    """In IR version 3, all initializers are inputs."""
    given = [value("sizes", TensorProto.INT64, [4])]
    model = made([resize("", "sizes")], (2, 3, 5, 20), inputs=given, weights={"sizes": SIZES}, opset=13)
    model.ir_version = 3
    session = ort.InferenceSession(model.SerializeToString())
    assert optimize_in_place(model)
    with pytest.raises(ort.capi.onnxruntime_pybind11_state.InvalidArgument, match="sizes"):
        session.run(None, {X: graphs.numbers(2, 3, 5, 20), "sizes": OTHER_SIZES})


def test_sizes_at_run_time_stay() -> None:
    """ONNX Runtime does not check the dimensions that a model states of its outputs."""
    model = made([resize("", "sizes")], (2, 3, 5, 20), inputs=[value("sizes", TensorProto.INT64, [4])])
    model.graph.output[0].CopyFrom(value("y", TensorProto.FLOAT, SIZES.tolist()))
    assert not graphs.changed(model, ["Interpolate"], sizes=OTHER_SIZES)


@pytest.mark.parametrize(("x", "found"), [(("n", 3, "h", "w"), False), ((2, 3, 5, 20), True)])
def test_stated_dimensions_of_computed_values_are_not_known(x: Sequence[int | str], found: bool) -> None:
    """They remain if somebody makes the dimensions of the input dynamic."""
    model = made([helper.make_node("Relu", [X], ["r"]), resize(x="r")], x, weights={"scales": DOUBLED})
    model.graph.value_info.append(value("r", TensorProto.FLOAT, [2, 3, 5, 20]))
    model.graph.output[0].CopyFrom(value("y", TensorProto.FLOAT, SIZES.tolist()))
    assert graphs.changed(model, ["Interpolate"], x=graphs.numbers(2, 3, 7 if not found else 5, 20)) is found


@pytest.mark.parametrize(("height", "found"), [(-1, False), (5, True)])
def test_negative_dimensions_are_unknown(height: int, found: bool) -> None:
    model = made([resize()], (2, 3, height, 20), weights={"scales": DOUBLED})
    assert graphs.changed(model, ["Interpolate"], x=graphs.numbers(2, 3, 5, 20)) is found


def test_stated_dimensions_of_branches_are_not_known() -> None:
    branch = helper.make_graph(
        [helper.make_node("Resize", [X, "", "scales"], ["b"], mode="nearest")],
        "branch",
        [],
        [value("b", TensorProto.FLOAT, [2, 3, 9, 40])],
    )
    condition = helper.make_node("Constant", [], ["c"], value=numpy_helper.from_array(np.array(True)))
    node = helper.make_node("If", ["c"], ["r"], then_branch=branch, else_branch=branch)
    model = made([condition, node, resize(x="r")], (2, 3, 5, 20), weights={"scales": DOUBLED})
    assert not graphs.changed(model, ["Interpolate"])


def test_volume_conv_before_a_resize() -> None:
    """Its result's dimensions are inferred, also if those of the convolution are stated."""
    nodes = [helper.make_node("Conv", [X, "w"], ["c"]), helper.make_node("Relu", ["c"], ["r"]), resize(x="r")]
    model = made(nodes, (2, 32, 22, 22), weights={"scales": DOUBLED, "w": graphs.numbers(32, 32, 3, 3)})
    model.graph.value_info.append(value("c", TensorProto.FLOAT, [2, 32, 20, 20]))
    assert graphs.changed(model, ["Interpolate"])
    assert [node.op_type for node in model.graph.node if node.op_type != "Constant"] == ["VolumeConv", "Interpolate"]
