"""Deviations of early files of version 10, read like OpenVINO reads them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import openvino as ov
import pytest

from converters.errors import ConversionError
from converters.openvino import convert
from converters.openvino.reader import ir10
from converters.openvino.reader.element_types import ElementType
from converters.openvino.reader.graph import Layer, Model
from converters.openvino.reader.read import read
from converters.openvino.rule import find_rule
from tests.conformance.case import Case
from tests.conformance.operations.cases import convolution, detectron, patches, proposals, recurrent, roi
from tests.conformance.operations.cases import normalization as normalizations

from . import ir_text

MODULES = (convolution, detectron, normalizations, patches, proposals, recurrent, roi)
CASES: dict[str, Case] = {case.id: case for module in MODULES for case in module.CASES}

# case, its opset, the opset in an early file
EARLY = [
    ("MVN-2-float16", "opset2", "opset1"),
    ("ROIPooling-2-max", "opset2", "opset1"),
    ("ReorgYolo-2-stride-2", "opset2", "opset1"),
    *(
        (name, own, said)
        for name, own in (
            ("ExperimentalDetectronTopKROIs-6-some", "opset6"),
            ("ExperimentalDetectronPriorGridGenerator-6-flat", "opset6"),
            ("GRUCell-3-plain", "opset3"),
            ("RNNCell-1-plain", "opset1"),
            ("Proposal-4-pixels", "opset4"),
        )
        for said in ("experimental", "extension")
    ),
]


def saying(case: Case, folder: Path, old: str, new: str) -> Path:
    """Return the case's IR with another opset or other text, as in an early file."""
    path = case.save(folder)
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    return path


def the_layer(model: Model, kind: str) -> Layer:
    (layer,) = (layer for layer in model.layers if layer.type == kind)
    return layer


@pytest.mark.parametrize(("name", "own", "said"), EARLY, ids=[f"{name}-as-{said}" for name, _, said in EARLY])
def test_versions_of_early_files(tmp_path: Path, name: str, own: str, said: str) -> None:
    kind = name.split("-")[0]
    expected, _ = convert(CASES[name].save(tmp_path))
    path = saying(CASES[name], tmp_path, f'type="{kind}" version="{own}"', f'type="{kind}" version="{said}"')
    (oracle,) = (op for op in ov.Core().read_model(path).get_ops() if op.get_type_name() == kind)
    version = the_layer(read(path), kind).version
    assert version.startswith("opset")
    assert find_rule(kind, version) is find_rule(kind, oracle.get_type_info().version_id) is find_rule(kind, own)
    model, _ = convert(path)
    assert [node.op_type for node in model.graph.node] == [node.op_type for node in expected.graph.node]


@pytest.mark.parametrize("said", ["experimental", "extension"])
def test_other_layers_were_never_extensions(tmp_path: Path, said: str) -> None:
    path = saying(CASES["MVN-2-float16"], tmp_path, 'type="MVN" version="opset2"', f'type="MVN" version="{said}"')
    with pytest.raises(RuntimeError, match="unsupported opset"):
        ov.Core().read_model(path)
    assert the_layer(read(path), "MVN").version == said
    with pytest.raises(ConversionError, match=f"MVN has no version '{said}'"):
        convert(path)


@pytest.mark.parametrize("name", ["Convolution-1-explicit", "GroupConvolution-1-groups"])
@pytest.mark.parametrize(("padding", "kept"), [("", False), ("0,0", False), ("0, 0", False), ("1,0", True)])
def test_output_padding_of_layers_without_the_attribute(tmp_path: Path, name: str, padding: str, kept: bool) -> None:
    kind = name.split("-")[0]
    path = saying(CASES[name], tmp_path, ' auto_pad="', f' output_padding="{padding}" auto_pad="')
    assert ("output_padding" in the_layer(read(path), kind).attributes) is kept


def test_output_padding_of_transposed_convolutions_stays(tmp_path: Path) -> None:
    path = CASES["ConvolutionBackpropData-1-valid"].save(tmp_path)
    assert the_layer(read(path), "ConvolutionBackpropData").attributes["output_padding"] == "0, 0"


def constant_of(data: str, shape: tuple[int | None, ...]) -> str:
    port = f'<output><port id="1" precision="I64">{ir_text.dims(shape)}</port></output>'
    node = ir_text.layer(0, "Const", data=data, extra=port)
    return ir_text.net([node, ir_text.result(1, shape)], [ir_text.edge(0, 1, 1, 0)], version=10)


@pytest.mark.parametrize("shape", [(), (2,), (1, 2)])
def test_a_constant_whose_type_is_only_in_its_port(tmp_path: Path, shape: tuple[int, ...]) -> None:
    count = int(np.prod(shape))
    text = constant_of(f'offset="8" size="{8 * count}"', shape)
    constant = read(ir_text.write(tmp_path, text, np.arange(3).tobytes())).layers[0].constant
    assert constant is not None
    assert (constant.element_type, constant.shape) == (ElementType.I64, shape)
    assert constant.numpy().reshape(-1).tolist() == [1, 2][:count]


@pytest.mark.parametrize(
    ("data", "shape", "message"),
    [
        ('offset="0" size="16"', (None,), "the shape of a constant must be known"),
        ('offset="0" size="16" element_type="i64"', (2,), "the attribute shape is missing"),
        ('offset="0" size="16" shape="2"', (2,), "the attribute element_type is missing"),
    ],
)
def test_a_constant_with_an_incomplete_type(tmp_path: Path, data: str, shape, message: str) -> None:
    with pytest.raises(ConversionError, match=message):
        read(ir_text.write(tmp_path, constant_of(data, shape), bytes(16)))


def passed_on(kind: str, version: int) -> str:
    precision = kind.upper().replace("BOOLEAN", "BOOL")
    precision = f"FP{kind[1:]}" if kind[0] == "f" else precision
    layers = [ir_text.parameter(0, (2,), kind, precision), ir_text.result(1)]
    return ir_text.net(layers, [ir_text.edge(0, 0, 1, 0)], version=version)


@pytest.mark.parametrize("version", [10, 11])
@pytest.mark.parametrize(
    "kind", ["f16", "f32", "f64", "bf16", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "boolean"]
)
def test_types_of_inputs_and_outputs(tmp_path: Path, kind: str, version: int) -> None:
    path = ir_text.write(tmp_path, passed_on(kind, version), b"")
    oracle, model, element = ov.Core().read_model(path), read(path), ElementType(kind)
    assert ir10.is_early(model) is (version == 10)
    assert ir10.input_type(model, element).value == oracle.inputs[0].get_element_type().to_string()
    assert ir10.output_type(model, element).value == oracle.outputs[0].get_element_type().to_string()


def relu_and_loop(tmp_path: Path, version: int) -> Path:
    """Create a layer before a Loop and two after it."""
    inner = [ir_text.parameter(0, (1, 3)), relu(1, (1, 3)), ir_text.result(2, (1, 3))]
    rows = 'axis="0" start="0" end="-1" stride="1" part_size="1"'
    body = (
        f'<port_map><input external_port_id="0" internal_layer_id="0" {rows}/>'
        f'<output external_port_id="1" internal_layer_id="2" {rows}/></port_map>'
        f"<body>{ir_text.graph(inner, EDGES)}</body>"
    )
    layers = [
        ir_text.parameter(0, (4, 3)),
        relu(1, (4, 3)),
        ir_text.layer(2, "TensorIterator", inputs=[(4, 3)], outputs=[(4, 3)], extra=body),
        relu(3, (4, 3)),
        ir_text.result(4, (4, 3)),
    ]
    edges = [ir_text.edge(0, 0, 1, 0), *(ir_text.edge(i, 1, i + 1, 0) for i in (1, 2, 3))]
    return ir_text.write(tmp_path, ir_text.net(layers, edges, version=version))


EDGES = [ir_text.edge(0, 0, 1, 0), ir_text.edge(1, 1, 2, 0)]


def relu(number: int, shape: tuple[int, ...]) -> str:
    return ir_text.layer(number, "ReLU", inputs=[shape], outputs=[shape])


@pytest.mark.parametrize("version", [10, 11])
def test_dimensions_in_bodies(tmp_path: Path, version: int) -> None:
    """In early files the outer dimensions of a TensorIterator are correct, and the inner ones are not."""
    model = read(relu_and_loop(tmp_path, version))
    assert [layer.outputs[0].dims for layer in model.layers[:4]] == [(4, 3)] * 4
    inner = model.layers[2].bodies["body"]
    assert inner.parameters[0].outputs[0].dims == (1, 3)
    assert inner.layers[1].outputs[0].dims == ((None, None) if version == 10 else (1, 3))


@pytest.mark.parametrize("version", [10, 11])
def test_dimensions_after_a_loop(tmp_path: Path, version: int) -> None:
    path = relu_and_loop(tmp_path, version)
    text = path.read_text().replace('type="TensorIterator"', 'type="Loop"')
    path.write_text(text)
    dims = [layer.outputs[0].dims for layer in read(path).layers[:4]]
    known = [(None, None)] * 2 if version == 10 else [(4, 3)] * 2
    assert dims == [(4, 3), (4, 3), *known]
