"""A model's metadata is converted: run-time information, layouts, names, bounds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import openvino as ov
from openvino import opset13 as ops

from converters.openvino import convert
from converters.openvino.contents import contents
from converters.openvino.reader.read import read
from converters.openvino.source import OpenVINOSource
from converters.validation.inputs import ModelInputs
from tests.converters.openvino.reader import ir_text


def props(message) -> dict[str, str]:
    return {entry.key: entry.value for entry in message.metadata_props}


def save(model: ov.Model, folder: Path) -> Path:
    ov.save_model(model, folder / "model.xml")
    return folder / "model.xml"


def image_model(shape=(1, 3, 8, 8)) -> ov.Model:
    x = ops.parameter(ov.PartialShape(list(shape)), np.float32, name="image_layer")
    x.output(0).set_names({"image"})
    y = ops.relu(x, name="relu")
    y.output(0).set_names({"scores", "another"})
    return ov.Model([y], [x], "classifier")


def test_model_api_metadata(tmp_path: Path) -> None:
    """Geti and Model API write this form, and Model API's ONNX adapter reads it from the metadata."""
    model = image_model()
    information = {
        "model_type": "Classification",
        "labels": "cat dog",
        "mean_values": "123.675 116.28 103.53",
        "scale_values": "58.395 57.12 57.375",
        "confidence_threshold": "0.5",
        "reverse_input_channels": "True",
    }
    for name, value in information.items():
        model.set_rt_info(value, ["model_info", name])
    converted = convert(save(model, tmp_path)).model
    found = props(converted)
    assert {
        name.removeprefix("model_info "): value for name, value in found.items() if name.startswith("model_info ")
    } == information
    onnx.checker.check_model(converted)
    custom = ort.InferenceSession(converted.SerializeToString()).get_modelmeta().custom_metadata_map
    assert custom["model_info labels"] == "cat dog"


def test_conversion_parameters(tmp_path: Path) -> None:
    model = image_model()
    model.set_rt_info("mixed", ["nncf", "quantization", "preset"])
    model.set_rt_info("2026.4.0-releases", "Runtime_version")
    model.set_rt_info("None", ["conversion_parameters", "input_shape"])
    found = props(convert(save(model, tmp_path)).model)
    assert found["nncf quantization preset"] == "mixed"
    assert found["conversion_parameters input_shape"] == "None"
    assert found["Runtime_version"] == "2026.4.0-releases"


def test_conversion_parameters_of_early_files(tmp_path: Path) -> None:
    """Before version 11, a file has this information in <meta_data>."""
    parameters = '<cli_parameters><mean_values value="data[1.0]"/></cli_parameters>'
    extra = f'<meta_data><MO_version value="2020.1"/>{parameters}</meta_data>'
    layers = [ir_text.parameter(), ir_text.layer(1, "ReLU", inputs=[(2,)], outputs=[(2,)]), ir_text.result(2)]
    text = ir_text.net(layers, [ir_text.edge(0, 0, 1, 0), ir_text.edge(1, 1, 2, 0)], version=10, extra=extra)
    path = ir_text.write(tmp_path, text)
    model = ov.Core().read_model(path)
    found = props(convert(path).model)
    assert model.get_rt_info(["conversion_parameters", "mean_values"]).value == "data[1.0]"
    assert found["conversion_parameters mean_values"] == "data[1.0]"
    assert found["MO_version"] == "2020.1"
    source = read(path)
    assert contents(source).information == found
    assert ModelInputs.by_source(OpenVINOSource(source), []).information == found


def test_layouts(tmp_path: Path) -> None:
    model = image_model()
    model.inputs[0].node.set_layout(ov.Layout("NCHW"))
    model.outputs[0].node.set_layout(ov.Layout("N..."))
    graph = convert(save(model, tmp_path)).model.graph
    assert props(graph.input[0])["layout"] == "[N,C,H,W]"
    assert props(graph.output[0])["layout"] == "[N,...]"


def test_friendly_names(tmp_path: Path) -> None:
    """The value has the tensor's name, which OpenVINO's users know; the layer's name is stored separately."""
    graph = convert(save(image_model(), tmp_path)).model.graph
    assert graph.input[0].name == "image" and props(graph.input[0])["openvino.friendly_name"] == "image_layer"
    assert graph.output[0].name in ("scores", "another")


def test_bounds_of_dimensions(tmp_path: Path) -> None:
    shape = [ov.Dimension(1, 8), 3, ov.Dimension(32, -1), -1]
    graph = convert(save(image_model(shape), tmp_path)).model.graph
    assert props(graph.input[0])["openvino.shape"] == "[1..8,3,32..,?]"
    dims = graph.input[0].type.tensor_type.shape.dim
    assert [dim.dim_value for dim in dims] == [0, 3, 0, 0]
    assert all(dims[k].dim_param for k in (0, 2, 3))


def test_an_unchanged_dimension_keeps_one_name(tmp_path: Path) -> None:
    graph = convert(save(image_model([-1, 3, -1, -1]), tmp_path)).model.graph
    names = [[d.dim_param or d.dim_value for d in v.type.tensor_type.shape.dim] for v in (graph.input[0], graph.output[0])]
    assert names[0] == names[1]
    assert len({*names[0]}) == 4


def test_dimensions_of_two_inputs_have_different_names(tmp_path: Path) -> None:
    a = ops.parameter(ov.PartialShape([-1, 4]), np.float32, name="a")
    b = ops.parameter(ov.PartialShape([-1, 4]), np.float32, name="b")
    graph = convert(save(ov.Model([ops.relu(a), ops.relu(b)], [a, b], "two"), tmp_path)).model.graph
    first, second = (value.type.tensor_type.shape.dim[0].dim_param for value in graph.input)
    assert first != second
    assert [value.type.tensor_type.shape.dim[0].dim_param for value in graph.output] == [first, second]
