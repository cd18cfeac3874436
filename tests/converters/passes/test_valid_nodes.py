"""The last pass rejects nodes that an opset does not have, and duplicate names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx_ir as ir
import openvino as ov
import pytest
from openvino import opset14 as ops

from converters import convert as conversion
from converters.errors import ConversionError
from converters.openvino import convert
from converters.passes.valid_nodes import CheckNodes, InvalidNodes
from onnx_specops.building import Value
from tests.converters.passes.graphs import floats, graph

D = ir.DataType


def _node(op_type: str, *inputs: ir.Value | None, domain: str = "", outputs: int = 1, **attributes: object) -> ir.Node:
    node = ir.node(op_type, inputs, attributes, domain=domain, num_outputs=outputs, name="wrong")
    for index, value in enumerate(node.outputs):
        value.name = f"result{index}"
    return node


def _model(make: Callable[[Value], ir.Node]) -> ir.Model:
    """Build a graph of one node by hand, because the builder rejects most of them."""
    x = floats("x", 2, 3)
    model = graph(lambda op, x: op.Relu(x), x)
    node = make(x)
    model.graph.insert_before(model.graph[0], node)
    return model


def _typed(node: ir.Node, *types: ir.DataType) -> ir.Node:
    for value, dtype in zip(node.outputs, types, strict=True):
        value.type = ir.TensorType(dtype)
    return node


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda x: _node("Relu", x), None),
        (lambda x: _node("NoSuch", x), "opset 21 has no operator NoSuch"),
        (lambda x: _node("RMSNormalization", x, x), "opset 21 has no operator RMSNormalization"),
        (lambda x: _node("Upsample", x, x), "opset 21 has no operator Upsample"),
        (lambda x: _node("Relu", x, domain="elsewhere"), "the model does not import the domain of elsewhere.Relu"),
        (lambda x: _node("Relu", x, alpha=1.0), 'Relu has no attribute "alpha"'),
        (lambda x: _node("Relu", x, __note=1), None),
        (lambda x: _node("Elu", x, alpha=1), 'the attribute "alpha" of Elu is of the type INT, not FLOAT'),
        (lambda x: _node("Cast", x), 'Cast lacks the attribute "to"'),
        (lambda x: _node("Relu", x, x), "Relu has 2 inputs, not 1"),
        (lambda x: _node("Clip", x, x, x, x), "Clip has 4 inputs, not 1 to 3"),
        (lambda x: _node("Clip", x, None, x), None),
        (lambda x: _node("Add", x, None), 'Add lacks the input "B"'),
        (lambda x: _node("Relu", x, outputs=2), "Relu has 2 outputs, not 1"),
        (lambda x: _node("And", x, x), '"A" of And is tensor(float)'),
        (lambda x: _typed(_node("Relu", x), D.INT64), '"Y" of Relu is tensor(int64)'),
        (lambda x: _typed(_node("Shape", x), D.INT64), None),
        (lambda x: _typed(_node("Shape", x), D.INT32), '"shape" of Shape is tensor(int32)'),
        (lambda x: _node("Multinomial", x, x, domain="onnx_specops"), "Multinomial lacks the attribute"),
    ],
)  # fmt: skip
def test_a_node(make: Callable[[Value], ir.Node], message: str | None) -> None:
    model = _model(make)
    if message is None:
        CheckNodes()(model)
        return
    with pytest.raises(InvalidNodes) as caught:
        CheckNodes()(model)
    (problem,) = caught.value.problems
    assert problem.node_name == "wrong" and message in problem.message


def test_types_of_one_variable() -> None:
    """Both inputs of Add may be integers, but not only one of them."""
    model = graph(lambda op, x: op.Add(x, x), floats("x"))
    node = model.graph[0]
    node.replace_input_with(1, ir.Value(name="y", type=ir.TensorType(D.INT32)))
    model.graph.inputs.append(node.inputs[1])
    with pytest.raises(InvalidNodes, match=r'"B" of Add is tensor\(int32\), another value .* tensor\(float\)'):
        CheckNodes()(model)


def test_nested_graphs_and_functions() -> None:
    model = graph(
        lambda op, x: op.if_(op.Less(op.ReduceMax(x, keepdims=0), 1.0), lambda op: op.Relu(x), lambda op: x), floats("x")
    )
    inner = next(node for node in model.graph if node.op_type == "If").attributes["then_branch"].as_graph()
    CheckNodes()(model)
    inner[0].op_type = "NoSuch"
    with pytest.raises(InvalidNodes, match="NoSuch"):
        CheckNodes()(model)
    inner[0].op_type = "Relu"
    body = graph(lambda op, x: op.Relu(x), floats("x")).graph
    function = ir.Function("mine", "Own", graph=body, attributes=[])
    model.functions[function.identifier()] = function
    CheckNodes()(model)
    body[0].op_type = "NoSuch"
    with pytest.raises(InvalidNodes, match="NoSuch"):
        CheckNodes()(model)


def test_nodes_are_checked_by_opset() -> None:
    model = graph(lambda op, x: op.Relu(x), floats("x"))
    model.graph[0].op_type = "Gelu"
    CheckNodes()(model)
    model.graph.opset_imports[""] = 19
    with pytest.raises(InvalidNodes, match="opset 19 has no operator Gelu"):
        CheckNodes()(model)


def test_names() -> None:
    """A second value with the same name, also in a nested graph, and a value that is used before its producer."""
    model = graph(lambda op, x: op.Relu(op.Abs(x)), floats("x"))
    first, second = model.graph
    second.outputs[0].name = first.outputs[0].name
    with pytest.raises(InvalidNodes, match=f'two values have the name "{first.outputs[0].name}"'):
        CheckNodes()(model)
    second.outputs[0].name = "last"
    CheckNodes()(model)
    model.graph.insert_after(second, first)
    with pytest.raises(InvalidNodes, match="is not computed before it"):
        CheckNodes()(model)
    nested = graph(
        lambda op, x: op.if_(op.Less(op.ReduceMax(x, keepdims=0), 1.0), lambda op: op.Relu(x), lambda op: x), floats("x")
    )
    then = next(node for node in nested.graph if node.op_type == "If").attributes["then_branch"].as_graph()
    then[0].outputs[0].name = "x"
    with pytest.raises(InvalidNodes, match='two values have the name "x"'):
        CheckNodes()(nested)


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Let the last pass replace the nodes of an operator by invalid nodes."""
    finish = conversion.finish

    def of(operator: str) -> None:
        def broken(model: ir.Model, **options: Any) -> Any:
            done = finish(model, **options)
            for node in model.graph:
                node.op_type = "NoSuch" if node.op_type == operator else node.op_type
            return done

        monkeypatch.setattr(conversion, "finish", broken)

    return of


def test_the_layer_is_reported(broken: Callable[[str], None]) -> None:
    """A pass that emits an invalid node gives an internal error that names the layer, and no file."""
    x = ops.parameter([2, 3], np.float32, name="x")
    relu = ops.relu(x)
    relu.set_friendly_name("the layer")
    broken("Relu")
    with pytest.raises(
        ConversionError, match=r'layer "the layer" \(ReLU, .*internal error: opset 21 has no operator NoSuch'
    ):
        convert(ov.Model([ops.abs(relu)], [x]))


def test_the_layer_is_reported_for_any_node_name(broken: Callable[[str], None]) -> None:
    """A node has a reference to its layer; its name may equal that of another layer."""
    x = ops.parameter([2, 3], np.float32, name="x")
    swish, other = ops.swish(x), ops.abs(x)
    swish.set_friendly_name("layer")
    other.set_friendly_name("layer/Sigmoid")
    broken("Sigmoid")
    with pytest.raises(ConversionError, match=r'layer "layer" \(Swish, .*internal error: opset 21 has no operator NoSuch'):
        convert(ov.Model([ops.add(swish, other)], [x]))
