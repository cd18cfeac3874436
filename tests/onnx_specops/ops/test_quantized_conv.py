"""QuantizedConv's body, which depends on the constants and sizes of a node."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper

import onnx_specops
from onnx_specops.bodies import add_bodies
from tests.onnx_specops.ops.one_node import one_node

CONSTANTS = ("W", "scale", "bias", "x_zero_point", "y_zero_point")


def layer(
    constants: tuple[str, ...] = CONSTANTS, space: Any = (5, 7), stated: Any = None, **changed: Any
) -> onnx.ModelProto:
    """Return the model of one node of 3x3 windows and its body; ``changed`` has other inputs."""
    rng = np.random.default_rng(0)
    inputs = {
        "X": rng.integers(0, 256, (1, 5, 7, 4)).astype(np.uint8),
        "W": rng.integers(-128, 128, (6, 4, 3, 3)).astype(np.int8),
        "scale": np.full(6, 1e-3, np.float32),
        "bias": np.ones(6, np.float32),
        "x_zero_point": np.array(3, np.uint8),
        "y_zero_point": np.array(5, np.uint8),
    }
    model = one_node("QuantizedConv", inputs | changed, {"channels": 4, "kernel": "3,3"} | (stated or {}), constants)
    if space is not None:
        model.graph.input[0].CopyFrom(helper.make_tensor_value_info("X", TensorProto.UINT8, [1, *space, 4]))
    return add_bodies(model)


def operators(model: onnx.ModelProto) -> set[str]:
    (body,) = (function for function in model.functions if function.name == "QuantizedConv")
    return {node.op_type for node in body.node}


def per_channel(number: float) -> np.ndarray:
    return np.array([1e-3, 1e-3, number, 1e-3, 1e-3, 1e-3], np.float32)


LIMIT = np.float32(2**-3)


@pytest.mark.parametrize(
    ("changed", "found"),
    [
        ({}, True),
        ({"scale": per_channel(LIMIT)}, True),
        ({"scale": per_channel(-LIMIT)}, True),
        ({"scale": per_channel(np.nextafter(LIMIT, np.float32(1)))}, False),  # biases would be rounded to its multiples
        ({"scale": per_channel(2**-30)}, True),
        ({"scale": per_channel(2**-31)}, False),  # the bias exceeds 2**30
        ({"scale": per_channel(0)}, False),
        ({"bias": per_channel(np.nan)}, False),
        ({"constants": tuple(name for name in CONSTANTS if name != "bias")}, False),  # known at run time only
        ({"constants": tuple(name for name in CONSTANTS if name != "scale")}, False),
        ({"factor": np.ones(6, np.float32)}, False),
        ({"y_zero_point": np.array(0, np.float32)}, False),
        ({"x_zero_point": np.full(4, 3, np.uint8)}, False),
        ({"y_zero_point": np.full(6, 5, np.uint8)}, False),
        ({"stated": {"function": "clip", "alpha": 0.0, "beta": 9.0}}, True),
        ({"stated": {"function": "sigmoid"}}, False),
        ({"W": np.ones((6, 4, 3, 3, 1), np.int8), "X": np.ones((1, 5, 7, 1, 4), np.uint8), "space": [5, 7, 1],
          "stated": {"kernel": "3,3,1"}}, False),
    ],
)  # fmt: skip
def test_convolutions_between_integers(changed: dict[str, Any], found: bool) -> None:
    model = layer(**changed)
    assert operators(model) >= {"QuantizeLinear", "Conv"} if found else "DequantizeLinear" not in operators(model)
    assert "If" not in operators(model)


@pytest.mark.parametrize(
    ("space", "stated", "checked"),
    [
        ([3, 7], {}, False),
        ([2, 7], {}, True),
        ([3, 2], {}, True),
        (["height", 7], {}, True),
        (None, {}, True),  # no size is known
        ([2, 7], {"pads": "1,0,0,0"}, False),
        ([4, 7], {"dilations": "2,1"}, True),
        (["height", "width"], {"pads": "1,1,2,2"}, False),  # the padding fills a window
    ],
)
def test_pixels_are_counted_at_run_time_if_their_number_is_unknown(
    space: Any, stated: dict[str, str], checked: bool
) -> None:
    model = layer(space=space, stated=stated)
    assert ("Shape" in operators(model)) == checked
    assert "If" not in operators(model)


def test_too_few_pixels_at_run_time() -> None:
    session = ort.InferenceSession(layer(space=["height", "width"]).SerializeToString())
    assert session.run(None, {"X": np.zeros((1, 3, 3, 4), np.uint8)})[0].shape == (1, 1, 1, 6)
    with pytest.raises(Exception, match="pixels_of_X"):
        session.run(None, {"X": np.zeros((1, 3, 2, 4), np.uint8)})


def test_nodes_with_equal_facts_share_a_body() -> None:
    model = layer()
    again = onnx.ModelProto.FromString(model.SerializeToString())
    for number, scale in enumerate((2e-3, 4e-3, 1.0)):
        node = again.graph.node.add()
        node.CopyFrom(model.graph.node[0])
        node.name, node.input[2], node.output[0] = f"again{number}", f"scale{number}", f"Y{number}"
        again.graph.initializer.append(helper.make_tensor(f"scale{number}", TensorProto.FLOAT, [6], [scale] * 6))
        again.graph.output.append(helper.make_tensor_value_info(f"Y{number}", TensorProto.UINT8, None))
    bodies = [node.overload for node in add_bodies(again).graph.node if node.op_type == "QuantizedConv"]
    assert bodies == ["", "", "", "1"]


@pytest.mark.parametrize("kernels", ["native", "python", "none"])
@pytest.mark.parametrize("strides", ["", "2,1"])
def test_no_pixels(strides: str, kernels: Any) -> None:
    """A window of one pixel, as in a matrix multiplication, accepts them. A larger one does not."""
    x = np.zeros((2, 0, 5, 4), np.uint8)

    def run(size: int) -> np.ndarray:
        given = {"W": np.ones((6, 4, size, 1), np.int8), "scale": np.ones(6, np.float32), "bias": np.ones(6, np.float32)}
        given |= {"x_zero_point": np.array(3, np.uint8), "y_zero_point": np.array(5, np.uint8)}
        attributes = {"channels": 4, "kernel": f"{size},1", "strides": strides}
        model = one_node("QuantizedConv", {"X": x, **given}, attributes, CONSTANTS)
        model.graph.input[0].CopyFrom(helper.make_tensor_value_info("X", TensorProto.UINT8, [2, "height", 5, 4]))
        session = onnx_specops.InferenceSession(add_bodies(model).SerializeToString(), kernels=kernels)
        return session.run(None, {"X": x})[0]

    assert run(1).shape == (2, 0, 5, 6)
    with pytest.raises(Exception, match=r"has 0 pixels|pixels_of_X|Invalid input sha"):
        run(2)
