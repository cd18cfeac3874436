"""The assignment of nodes to layers, and times that add up to the total."""

from __future__ import annotations

import onnx
import pytest
from onnx import TensorProto, helper

from converters.openvino.runtime.times import Executed
from converters.validation.nodes import nodes_by_layer
from converters.validation.times.measure import _within


def test_a_node_without_a_separate_layer_belongs_to_the_next() -> None:
    nodes = [
        helper.make_node("Relu", ["x"], ["a"]),
        helper.make_node("Neg", ["a"], ["inner"]),
        helper.make_node("Add", ["inner", "a"], ["b"], name="sum"),
        helper.make_node("Gelu", ["b"], ["c"], domain="com.microsoft"),
        helper.make_node("Abs", ["x"], ["unused"]),
    ]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in "xc"]
    graph = helper.make_graph(nodes, "layers", ends[:1], ends[1:])
    # "c" is the output of two layers, where the second has no effect.
    found = nodes_by_layer(graph, {"a": [(1, 0)], "b": [(2, 0)], "c": [(3, 1), (4, 0)]})
    assert [(node.name, node.operator, node.layers) for node in found] == [
        ("a", "Relu", ((1, 0),)),
        ("inner", "Neg", ((2, 0),)),
        ("sum", "Add", ((2, 0),)),
        ("c", "com.microsoft.Gelu", ((3, 1), (4, 0))),
        ("unused", "Abs", ()),
    ]
    assert nodes_by_layer(onnx.GraphProto(), {}) == []


@pytest.mark.parametrize(
    ("whole", "seconds", "expected"),
    [
        (10.0, [6.0, 14.0], [3.0, 7.0]),
        (10.0, [1.0, 2.0], [1.0, 2.0]),
        (None, [6.0], [6.0]),
        (1.0, [0.0], [0.0]),
        (1.0, [], []),
    ],
)
def test_steps_add_up_to_the_total(whole: float | None, seconds: list[float], expected: list[float]) -> None:
    assert [step.seconds for step in _within(whole, [Executed((), "Add", time) for time in seconds])] == expected
