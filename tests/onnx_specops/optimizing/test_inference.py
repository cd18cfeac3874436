"""Nodes whose results ONNX Runtime gives other dimensions than shape inference."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import helper

from onnx_specops.optimizing.graph import Graph
from tests.onnx_specops.optimizing.graphs import X, made

POOL = {"kernel_shape": [3, 3], "strides": [2, 2]}


@pytest.mark.parametrize(
    ("operator", "x", "stated", "known"),
    [
        ("MaxPool", (1, 1, 16, 17), POOL | {"pads": [1, 1, 1, 1]}, True),
        ("MaxPool", (1, 1, 16, 17), POOL | {"ceil_mode": 1}, True),
        ("MaxPool", (1, 1, 16, 17), POOL | {"pads": [0, 0, 0, 0], "ceil_mode": 1}, True),
        ("MaxPool", (1, 1, 17, 17), POOL | {"pads": [1, 1, 2, 2], "ceil_mode": 1}, False),
        ("AveragePool", (1, 1, 17, 17), POOL | {"pads": [1, 1, 2, 2], "ceil_mode": 1}, False),
        ("MaxPool", (1, 1, 8, 8), {"kernel_shape": [2, 2], "strides": [5, 5]}, True),
        ("MaxPool", (1, 1, 8, 8), {"kernel_shape": [2, 2], "strides": [5, 5], "ceil_mode": 1}, False),
        ("LpPool", (1, 1, 18, 18), {"kernel_shape": [1, 1], "strides": [2, 1]}, True),
        ("LpPool", (1, 1, 18, 18), {"kernel_shape": [1, 1], "strides": [2, 1], "ceil_mode": 1}, False),
        ("MaxPool", (1, 1, 20, 20), POOL | {"auto_pad": "SAME_LOWER"}, True),
        ("MaxPool", (1, 1, 20, 20), POOL | {"dilations": [3, 2]}, True),
        ("MaxPool", (1, 1, 20, 20), {"kernel_shape": [3, 2], "dilations": [3, 2], "auto_pad": "SAME_LOWER"}, False),
        ("ConvTranspose", (1, 1, 9, 7), {"strides": [2, 1], "auto_pad": "SAME_UPPER"}, True),
        ("ConvTranspose", (1, 1, 9, 7), {"strides": [2, 1], "output_padding": [1, 0]}, True),
        ("ConvTranspose", (1, 1, 9, 7), {"strides": [2, 1], "auto_pad": "SAME_UPPER", "output_padding": [1, 0]}, False),
    ],
)
def test_windows(operator: str, x: Sequence[int], stated: dict[str, Any], known: bool) -> None:
    weights = {"w": np.ones([1, 1, 2, 2], np.float32)} if operator == "ConvTranspose" else {}
    check(made([helper.make_node(operator, [X, *weights], ["y"], **stated)], x, weights=weights), known)


@pytest.mark.parametrize("scale, known", [(2, True), (0.5, True), (1.25, True), (0.7, False), (1.3, False)])
def test_scales(scale: float, known: bool) -> None:
    weights = {"scales": np.float32([1, 1, scale, 1])}
    check(made([helper.make_node("Resize", [X, "", "scales"], ["y"])], (1, 1, 20, 20), weights=weights), known)
    model = made([helper.make_node("Resize", [X, "scales"], ["y"])], (1, 1, 20, 20), weights=weights, opset=10)
    check(model, known)


def test_scales_of_other_constants() -> None:
    """Shape inference may know their elements."""
    nodes = [
        helper.make_node("Constant", [], ["scales"], value_floats=[1.0, 1.0, 0.7, 1.0]),
        helper.make_node("Resize", [X, "", "scales"], ["y"]),
    ]
    check(made(nodes, (1, 1, 20, 20)), False)


def test_stft() -> None:
    nodes = [helper.make_node("STFT", [X, "step", "", "length"], ["y"])]
    weights = {"step": np.array(8), "length": np.array(16)}
    check(made(nodes, (1, 128, 1), weights=weights), False)


def check(model: onnx.ModelProto, known: bool) -> None:
    """Check whether the dimensions of ``y`` are known, and that they are those that ONNX Runtime computes."""
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    x = np.ones([dim.dim_value for dim in model.graph.input[0].type.tensor_type.shape.dim], np.float32)
    computed = ort.InferenceSession(model.SerializeToString(), options).run(None, {X: x})[0].shape
    found = Graph(model).proven_type_of("y")
    assert (found.dims == computed) is known
    assert known or found.dims is None
    inferred = onnx.shape_inference.infer_shapes(model, data_prop=True).graph.output[0].type.tensor_type
    if not known:
        assert tuple(dim.dim_value for dim in inferred.shape.dim) != computed
