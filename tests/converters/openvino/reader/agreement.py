"""Compare the reader's graph of an IR with OpenVINO's for the same file."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import numpy as np
import openvino as ov

from converters.openvino.reader.graph import Graph, Model
from converters.openvino.reader.read import read

# Names that differ between the file and OpenVINO's API.
_TYPE_NAMES = {"Const": "Constant", "ReLU": "Relu", "SoftMax": "Softmax", "PReLU": "PRelu"}


def assert_agrees(path: Path, *, ranks: str = "known", stale: bool = False) -> tuple[Model, ov.Model]:
    """Read the file with both and compare all common facts.

    Args:
        ranks: "known" if the reader must know every rank that OpenVINO infers, "cautious" if it may consider a scalar's rank
            unknown.
        stale: whether the dimensions of the file's ports may differ from those that OpenVINO infers.
    """
    model = read(path)
    oracle = ov.Core().read_model(path)
    assert model.name == oracle.get_friendly_name()
    _compare(model, oracle, ranks, stale)
    for layer, parameter in zip(model.parameters, oracle.get_parameters(), strict=True):
        assert layer.name == parameter.get_friendly_name()
    for layer, result in zip(model.results, oracle.get_results(), strict=True):
        assert layer.name == result.get_friendly_name()
    for names, port in zip(model.input_names, oracle.inputs, strict=True):
        assert set(names) == port.names or not port.names
    for names, port in zip(model.output_names, oracle.outputs, strict=True):
        assert set(names) == port.names or not port.names
    return model, oracle


def _compare(graph: Graph, oracle: ov.Model, ranks: str, stale: bool) -> None:
    by_name = defaultdict(list)
    for node in oracle.get_ordered_ops():
        by_name[node.get_friendly_name()].append(node)
    done = set()
    for layer in graph.layers:
        assert all(port.source.layer in done for port in layer.inputs), "not in topological order"
        done.add(layer)
        (node,) = by_name[layer.name]
        assert node.get_type_name() == _TYPE_NAMES.get(layer.type, layer.type)
        assert len(layer.inputs) == node.get_input_size()
        for port in layer.inputs:
            source = node.input_value(port.index)
            expected = (source.get_node().get_friendly_name(), source.get_index())
            assert (port.source.layer.name, port.source.index) == expected
            assert port in port.source.consumers
        for port in layer.outputs if layer.type != "Result" else ():
            _compare_port(port, node.output(port.index), ranks, stale and layer.type not in ("Parameter", "Const"))
        if layer.type == "Const":
            _compare_constant(layer.constant, node)
        for name, body in layer.bodies.items():
            index = {"body": 0, "then_body": 0, "else_body": 1}[name]
            _compare(body, node.get_function() if name == "body" else node.get_function(index), ranks, stale)


def _compare_port(port, oracle: ov.Output, ranks: str, stale: bool) -> None:
    assert str(port.element_type) == oracle.get_element_type().to_string()
    shape = oracle.get_partial_shape()
    expected = None
    if shape.rank.is_static:
        expected = tuple(dim.get_length() if dim.is_static else None for dim in shape)
    if not stale and not (ranks == "cautious" and port.dims is None and expected == ()):
        assert port.dims == expected, port
    # OpenVINO adds the names of Results, and in version 10 those of layers.
    assert set(port.names) <= oracle.get_names()


def _compare_constant(constant, node) -> None:
    assert constant.shape == tuple(node.get_output_shape(0))
    if constant.element_type.bits >= 8:
        data = np.asarray(node.data)
        assert constant.numpy().tobytes() == data.tobytes()
        assert constant.numpy().dtype.itemsize == data.dtype.itemsize
