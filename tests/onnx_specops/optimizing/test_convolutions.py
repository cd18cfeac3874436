"""Convolutions of images with windows of 3 x 3, which sessions compute by the domain's VolumeConv."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import NodeProto, TensorProto, helper, numpy_helper

from onnx_specops.optimizing import convolutions, optimize_in_place
from tests.onnx_specops.optimizing import graphs
from tests.onnx_specops.optimizing.graphs import X, numbers
from tests.onnx_specops.runtime.graphs import value


def conv(weights: str = "w", *, name: str = "y", bias: str = "", x: str = X, **stated: Any) -> NodeProto:
    return helper.make_node("Conv", [x, weights, *([bias] if bias else [])], [name], **stated)


def made(nodes: Sequence[NodeProto], x: Sequence[int | None] = (2, 32, 22, 22), **given: Any) -> onnx.ModelProto:
    """Return a model whose weights ``w`` are those of 32 channels to 32, if not given."""
    known = {name: given.pop(name) for name in ("outputs", "inputs", "opset") if name in given}
    return graphs.made(nodes, x, weights={"w": numbers(32, 32, 3, 3)} | given, **known)


def changed(model: onnx.ModelProto) -> bool:
    return graphs.changed(model, ["VolumeConv"])


@pytest.mark.parametrize(
    ("dims", "stated", "found"),
    [
        ((32, 32, 3, 3), {}, True),
        ((32, 32, 3, 3), {"pads": [1, 2, 0, 1], "strides": [1, 1], "dilations": [1, 1], "kernel_shape": [3, 3]}, True),
        ((32, 32, 2, 3), {}, False),
        ((32, 32, 3, 4), {}, False),
        ((32, 32, 1, 1), {}, False),
        ((32, 32, 3, 3), {"strides": [1, 2]}, False),
        ((32, 32, 3, 3), {"strides": [2, 1]}, False),
        ((32, 32, 3, 3), {"dilations": [1, 2]}, False),
        ((32, 32, 3, 3), {"dilations": [2, 1]}, False),
        ((32, 32, 3, 3), {"auto_pad": "NOTSET"}, True),
        ((32, 32, 3, 3), {"auto_pad": "SAME_UPPER"}, False),
        ((32, 32, 3, 3), {"pads": [1000, 1000, 0, 0]}, True),
        ((32, 32, 3, 3), {"pads": [1000, 1047, 0, 0]}, False),  # 1,049,048 pixels
        ((31, 32, 3, 3), {}, False),  # the gain
    ],
)
def test_windows(dims: tuple[int, ...], stated: dict[str, Any], found: bool) -> None:
    model = made([conv(**stated)], w=numbers(*dims))
    if "pads" in stated and max(stated["pads"]) > 100:
        assert optimize_in_place(model) is found  # large results
    else:
        assert changed(model) is found


@pytest.mark.parametrize(
    ("channels", "outputs", "group", "pixels", "found"),
    [
        (16, 512, 1, 400, False),  # a gain of 15.5
        (18, 144, 1, 400, True),  # 16
        (15, 512, 1, 400, False),
        (32, 32, 2, 400, False),
        (64, 64, 2, 400, True),
        (60, 64, 2, 400, False),
        (64, 60, 2, 400, False),
        (64, 64, 1, 399, True),
        (63, 64, 1, 399, False),  # a gain of 31.7
        (63, 64, 1, 400, True),
        (64, 64, 1, 144, True),
        (64, 64, 1, 143, False),
    ],
)
def test_channels_and_pixels(channels: int, outputs: int, group: int, pixels: int, found: bool) -> None:
    height = next(size for size in range(12, 0, -1) if pixels % size == 0)
    model = made(
        [conv(group=group, pads=[1, 1, 1, 1])],
        x=(1, channels, height, pixels // height),
        w=numbers(outputs, channels // group, 3, 3),
    )
    assert changed(model) is found


def test_pixels_of_the_result() -> None:
    assert changed(made([conv()], x=(1, 64, 14, 14), w=numbers(64, 64, 3, 3)))
    assert not changed(made([conv()], x=(1, 64, 14, 13), w=numbers(64, 64, 3, 3)))


@pytest.mark.parametrize(("x", "found"), [((None, 32, 22, 22), True), ((1, 32, 22, None), False)])
def test_unknown_dimensions(x: Sequence[int | None], found: bool) -> None:
    assert changed(made([conv()], x=x)) is found


def test_stated_shapes_need_no_inference(monkeypatch: pytest.MonkeyPatch) -> None:
    model = made([conv()])
    del model.graph.output[:]
    model.graph.output.append(value("y", TensorProto.FLOAT, [2, 32, 20, 20]))
    monkeypatch.delattr(onnx.shape_inference, "infer_shapes")
    assert changed(model)


def test_computed_shapes() -> None:
    """Shape inference follows the dimensions that nodes compute."""
    nodes = [
        helper.make_node("Shape", [X], ["shape"]),
        helper.make_node("Relu", [X], ["r"]),
        helper.make_node("Reshape", ["r", "shape"], ["z"]),
        conv(x="z"),
    ]
    assert changed(made(nodes))


@pytest.mark.parametrize("dims", [(32, 32, 3), (32, 32, 3, 3, 3)])
def test_other_dimensions_stay(dims: tuple[int, ...]) -> None:
    assert not changed(made([conv()], x=(1, 32, *(20 for _ in dims[2:])), w=numbers(*dims)))


def test_bias() -> None:
    assert changed(made([conv(bias="b")], b=numbers(32, seed=1)))


@pytest.mark.parametrize(
    ("nodes", "outputs", "found"),
    [
        ([helper.make_node("Mul", ["y", "s"], ["z"])], ["z"], False),
        ([helper.make_node("Mul", ["s", "y"], ["z"])], ["z"], False),
        ([helper.make_node("Add", ["y", "s"], ["z"])], ["z"], False),
        ([helper.make_node("BatchNormalization", ["y", *["ones"] * 4], ["z"])], ["z"], False),
        ([helper.make_node("Sigmoid", ["y"], ["g"]), helper.make_node("Mul", ["y", "g"], ["z"])], ["z"], True),
        ([helper.make_node("Mul", ["y", "s"], ["z"]), helper.make_node("Abs", ["y"], ["a"])], ["z", "a"], True),
        ([helper.make_node("Sub", ["y", "s"], ["z"])], ["z"], True),
        ([helper.make_node("Mul", ["y", "s"], ["z"])], ["z", "y"], True),
        ([helper.make_node("Neg", ["s"], ["n"]), helper.make_node("Mul", ["y", "n"], ["z"])], ["z"], True),
    ],
)
def test_scales_stay_part_of_the_convolution(nodes: list[NodeProto], outputs: list[str], found: bool) -> None:
    weights = {"s": numbers(1, 32, 1, 1), "ones": np.ones(32, np.float32)}
    assert changed(made([conv(), *nodes], outputs=outputs, **weights)) is found


@pytest.mark.parametrize("source", ["initializer", "Constant"])
def test_weights_of_16_bits_are_constant_after_a_cast(source: str) -> None:
    halves = numbers(32, 32, 3, 3).astype(np.float16)
    nodes = [helper.make_node("Cast", ["h"], ["c"], to=TensorProto.FLOAT), conv("c")]
    if source == "initializer":
        assert changed(made(nodes, h=halves))
    else:
        constant = helper.make_node("Constant", [], ["h"], value=numpy_helper.from_array(halves))
        assert changed(made([constant, *nodes]))


def test_computed_weights_stay() -> None:
    dims = [32, 32, 3, 3]
    assert not changed(made([conv("v")], inputs=[value("v", TensorProto.FLOAT, dims)]))
    cast = [helper.make_node("Cast", ["v"], ["c"], to=TensorProto.FLOAT), conv("c")]
    assert not changed(made(cast, inputs=[value("v", TensorProto.FLOAT16, dims)]))


def test_weights_that_a_caller_can_replace_stay() -> None:
    assert not changed(made([conv()], inputs=[value("w", TensorProto.FLOAT, [32, 32, 3, 3])]))


def test_doubles_and_16_bits_stay() -> None:
    for dtype in (np.float16, np.float64):
        assert not optimize_in_place(made([conv()], w=numbers(32, 32, 3, 3).astype(dtype)))


@pytest.mark.parametrize(
    ("after", "outputs", "found"),
    [
        (helper.make_node("Relu", ["y"], ["z"]), ["z"], {"slope": 0.0}),
        (helper.make_node("LeakyRelu", ["y"], ["z"], alpha=0.25), ["z"], {"slope": 0.25}),
        (helper.make_node("LeakyRelu", ["y"], ["z"]), ["z"], {"slope": np.float32(0.01)}),
        (helper.make_node("LeakyRelu", ["y"], ["z"], alpha=0.0), ["z"], {"slope": 1.0}),
        (helper.make_node("Relu", ["y"], ["z"]), ["z", "y"], {"slope": 1.0}),
        (helper.make_node("Sigmoid", ["y"], ["z"]), ["z"], {"slope": 1.0}),
    ],
)
def test_activations(after: NodeProto, outputs: list[str], found: dict[str, float]) -> None:
    model = made([conv(), after], outputs=outputs)
    assert changed(model)
    node = model.graph.node[0]
    assert {a.name: a.f for a in node.attribute if a.name == "slope"} == found
    assert len(model.graph.node) == (1 if found["slope"] != 1 else 2)


def test_activation_of_two_users() -> None:
    after = [helper.make_node("Relu", ["y"], ["z"]), helper.make_node("Exp", ["y"], ["e"])]
    model = made([conv(), *after], outputs=["z", "e"])
    assert changed(model)
    assert [node.op_type for node in model.graph.node] == ["VolumeConv", "Relu", "Exp"]


def test_a_nested_graph_uses_the_result() -> None:
    """Its Relu does not become part of the convolution."""
    branches = {
        name: helper.make_graph(
            [helper.make_node(operator, ["y"], [f"{name}_z"])], name, [], [value(f"{name}_z", TensorProto.FLOAT, None)]
        )
        for name, operator in (("then_branch", "Neg"), ("else_branch", "Abs"))
    }
    condition = helper.make_node("Constant", [], ["c"], value=numpy_helper.from_array(np.array(True)))
    nodes = [condition, conv(), helper.make_node("Relu", ["y"], ["r"]), helper.make_node("If", ["c"], ["z"], **branches)]
    model = made(nodes, outputs=["r", "z"])
    assert changed(model)
    assert "Relu" in [node.op_type for node in model.graph.node]


def test_nested_convolutions_stay() -> None:
    graph = helper.make_graph([conv()], "branch", [], [value("y", TensorProto.FLOAT, None)])
    condition = helper.make_node("Constant", [], ["c"], value=numpy_helper.from_array(np.array(True)))
    node = helper.make_node("If", ["c"], ["z"], then_branch=graph, else_branch=graph)
    assert not changed(made([condition, node], outputs=["z"]))


@pytest.mark.parametrize(("most", "found"), [(2 * 65536, [False, True, True]), (2 * 65536 - 1, [False, False, True])])
def test_weights_of_a_model(monkeypatch: pytest.MonkeyPatch, most: int, found: list[bool]) -> None:
    """Convolutions with the most pixels come first. The transformed weights of 32 x 32 channels have 65,536 bytes."""
    monkeypatch.setattr(convolutions, "_MOST_BYTES", most)
    nodes = [conv(name="y2", pads=[2, 2, 2, 2]), conv(name="y1", pads=[1, 1, 1, 1]), conv(name="y3", pads=[3, 3, 3, 3])]
    model = made(nodes, outputs=["y1", "y2", "y3"])
    assert changed(model)
    by_name = {node.output[0]: node.op_type == "VolumeConv" for node in model.graph.node}
    assert [by_name[name] for name in ("y1", "y2", "y3")] == found


@pytest.mark.parametrize("opset", [11, 13, 21, 22])
def test_opsets(opset: int) -> None:
    assert changed(made([conv()], opset=opset))


@pytest.mark.parametrize(
    "node",
    [
        helper.make_node("Conv", [X], ["y"]),
        helper.make_node("Conv", [X, "w"], []),
        helper.make_node("Conv", [X, "w"], ["y"], strides="1"),
        helper.make_node("Conv", [X, "w"], ["y"], strides=1),
        helper.make_node("Conv", [X, "w"], ["y"], pads=[1]),
        helper.make_node("Conv", [X, "w"], ["y"], pads=[-1, 0, 0, 0]),
        helper.make_node("Conv", [X, "w"], ["y"], group=0),
        helper.make_node("Conv", [X, "w"], ["y"], group=3),
        helper.make_node("Conv", [X, "w"], ["y"], kernel_shape=[3, 1]),
        helper.make_node("Conv", [X, "w"], ["y"], group="1"),
    ],
)
def test_invalid_models_are_left_to_onnxruntime(node: NodeProto) -> None:
    assert not changed(made([node]))
