"""The translation of IR 2 to 7, and errors in such files."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest

from converters.errors import ConversionError, MalformedError
from converters.inference_engine.baseline import ENVIRONMENT, BaselineError, EngineProcess, python, weights_of_old_ir
from converters.openvino import convert
from converters.openvino.reader.read import read
from tests.conformance.inference_engine.check import run
from tests.conformance.inference_engine.model import Net


def _convolution(version: int = 6, precision: str = "FP32") -> Net:
    net = Net(version, precision)
    x = net.input(1, 3, 8, 8, name="data")
    weights = {"weights": np.ones((4, 3, 3, 3), np.float32), "biases": np.zeros(4, np.float32)}
    y = net.layer("Convolution", [x], [(1, 4, 6, 6)], {"kernel": "3,3", "output": 4}, blobs=weights, name="conv")
    net.layer("Pooling", [y], [(1, 4, 3, 3)], {"kernel": "2,2", "strides": "2,2", "pool-method": "avg"}, name="pool")
    return net


def _changed(net: Net, folder: Path, old: str, new: str) -> Path:
    xml, _ = net.save(folder)
    text = xml.read_text()
    assert old in text
    xml.write_text(text.replace(old, new))
    return xml


@pytest.mark.parametrize("version", range(2, 8))
def test_each_version_is_read(version: int, tmp_path: Path) -> None:
    model = read(_convolution(version).save(tmp_path)[0])
    assert model.version == version
    assert model.input_names == [("data",)] and model.output_names == [("pool",)]


def test_lines_beyond_65535(tmp_path: Path) -> None:
    xml = _changed(_convolution(), tmp_path, "<layers>", "\n" * 70000 + "<layers>")
    text = xml.read_text()
    layers = read(xml).layers
    lines = {
        layer.name: 1 + text[: text.index(f'name="{layer.name}"')].count("\n") for layer in layers if layer.name in text
    }
    assert len(lines) > 2
    assert {layer.name: layer.line for layer in layers if layer.name in lines} == lines


def test_16_bit_weights_stay_16_bits(tmp_path: Path) -> None:
    xml, _ = _convolution(precision="FP16").save(tmp_path)
    result = convert(xml, tmp_path / "model.onnx")
    assert {i.type.tensor_type.elem_type for i in result.model.graph.input} == {1}
    assert result.report.weights_bytes < (4 * 27 + 4) * 4  # the biases have 32 bits


def test_other_shapes_of_inputs(tmp_path: Path) -> None:
    xml, _ = _convolution().save(tmp_path)
    convert(xml, tmp_path / "model.onnx", input_shapes={"data": [2, 3, 12, -1]})
    found = run(tmp_path / "model.onnx", {"data": np.ones((2, 3, 12, 10), np.float32)}, "none")
    assert found["pool"].shape == (2, 4, 5, 4)
    assert (found["pool"] == 27).all()


def test_other_shapes_of_inputs_keep_the_sizes_of_a_split(tmp_path: Path) -> None:
    net = Net(6)
    x = net.input(1, 6, 4, name="data")
    net.layer("Split", [x], [(1, 1, 4), (1, 5, 4)], {"axis": 1}, name="parts")
    xml, _ = net.save(tmp_path)
    convert(xml, tmp_path / "model.onnx", input_shapes={"data": [3, 6, 4]})
    found = run(tmp_path / "model.onnx", {"data": np.ones((3, 6, 4), np.float32)}, "none")
    assert [found[f"parts.{i}"].shape for i in range(2)] == [(3, 1, 4), (3, 5, 4)]
    with pytest.raises(ConversionError, match=r"the sizes of its outputs are \[1, 5\], and the size of its input 8"):
        convert(xml, tmp_path / "model.onnx", input_shapes={"data": [3, 8, 4]})


@pytest.mark.parametrize(
    ("kind", "dims", "data", "shape"),
    [
        ("Pooling", (1, 2, 4, 4), {"kernel": "3,3", "strides": "2,2"}, (1, 2, 5, 5)),  # rounded up by default
        ("Pooling", (1, 2, 4, 4), {"kernel": "3,3", "strides": "2,2", "rounding_type": "floor"}, (1, 2, 4, 4)),
        ("Pooling", (1, 2, 4, 4), {"kernel": "1,1", "strides": "2,2", "pads_end": "1,1"}, (1, 2, 5, 5)),
        ("Resample", (1, 2, 12, 12), {"factor": 1.35, "type": "caffe.ResampleParameter.LINEAR"}, (1, 2, 14, 14)),
    ],
)
def test_other_shapes_of_inputs_round_as_the_inference_engine(kind, dims, data, shape, tmp_path: Path) -> None:
    net = Net(6)
    net.layer(kind, [net.input(1, 2, 8, 8, name="data")], [dims], data, name="out")
    convert(net.save(tmp_path)[0], tmp_path / "model.onnx", input_shapes={"data": [1, 2, 10, 10]})
    assert run(tmp_path / "model.onnx", {"data": np.ones((1, 2, 10, 10), np.float32)}, "none")["out"].shape == shape


def test_an_output_of_an_inner_layer(tmp_path: Path) -> None:
    xml, _ = _convolution().save(tmp_path)
    convert(xml, tmp_path / "model.onnx", outputs=["conv"])
    assert list(run(tmp_path / "model.onnx", {"data": np.ones((1, 3, 8, 8), np.float32)}, "none")) == ["conv"]


def test_statistics_are_reported(tmp_path: Path) -> None:
    net = _convolution()
    net.extra = "<statistics><layer><name>conv</name><min>0</min><max>1</max></layer></statistics>"
    _, report = convert(net.save(tmp_path)[0])
    assert any("statistics" in remark.message for remark in report.passed_over)


def test_a_scale_is_ignored_and_reported(tmp_path: Path) -> None:
    net = _convolution()
    net.extra = '<pre-process><channel id="0"><scale value="2"/></channel></pre-process>'
    _, report = convert(net.save(tmp_path)[0])
    assert any("<scale>" in remark.message for remark in report.passed_over)


@pytest.mark.parametrize(
    ("channels", "message"),
    [
        (['id="0"><mean value="1,5"/>', 'id="1"><mean value="2"/>', 'id="2"><mean value="3"/>'], "is not a number"),
        (['id="0"><mean value="1"/>', 'id="0"><mean value="2"/>', 'id="2"><mean value="3"/>'], "more than once"),
        (['id="0"><mean value="1"/>', 'id="1"><mean value="2"/>', 'id="5"><mean value="3"/>'], "does not exist"),
        (['id="0"><mean value="1"/>', 'id="1"><mean value="2"/>'], "has 2 means for 3 channels"),
    ],
)
def test_malformed_means(channels: list[str], message: str, tmp_path: Path) -> None:
    net = _convolution()
    net.extra = f"<pre-process>{''.join(f'<channel {text}</channel>' for text in channels)}</pre-process>"
    with pytest.raises(ConversionError, match=message):
        convert(net.save(tmp_path)[0])


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('kernel="3,3"', 'kernel="3"', "its input has 4 dimensions for a kernel of 1"),
        ('kernel="3,3"', 'kernel="0,3"', "are not a multiple of the 0 elements of a kernel"),
        ('kernel="3,3"', "", "the attribute 'kernel' is missing"),
        ('output="4"', 'output="5"', "elements of a kernel"),
        ('output="4"', 'output="x"', "is not an integer"),
        ("<dim>3</dim>", "<dim>0</dim>", '"0" is not a valid dimension'),
        ("<dim>3</dim>", "<dim>-1</dim>", '"-1" is not a valid dimension'),
        ('type="Pooling"', 'type="Unheard"', "no rule converts Unheard of IR 2 to 7"),
        ('offset="0"', 'offset="999999"', "reaches byte"),
        ('offset="0"', 'offset="-5"', "offset and size must be integers"),
        ('<weights offset="0" size="432"/>', "", "biases without weights"),
        ('to-layer="2"', 'to-layer="9"', "the edge ends at layer 9, which does not exist"),
        ('from-layer="1"', 'from-layer="7"', "which does not exist"),
    ],
)
def test_malformed_files(old: str, new: str, message: str, tmp_path: Path) -> None:
    xml = _changed(_convolution(), tmp_path, old, new)
    with pytest.raises(ConversionError, match=message):
        convert(xml)


@pytest.mark.parametrize(
    ("kind", "count", "message"),
    [
        ("ScaleShift", 5, "it has 5 weights for 3 channels"),
        ("PReLU", 2, "it has 2 slopes for 3 channels"),
        ("Normalize", 5, "it has 5 weights for 3 channels"),
    ],
)
def test_a_blob_with_another_number_of_channels(kind: str, count: int, message: str, tmp_path: Path) -> None:
    net = Net(6)
    x = net.input(1, 3, 4, 5)
    net.layer(kind, [x], [(1, 3, 4, 5)], {"eps": 1}, blobs={"weights": np.ones(count, np.float32)})
    with pytest.raises(ConversionError, match=message):
        convert(net.save(tmp_path)[0])


def test_a_blob_that_would_broadcast_one_channel(tmp_path: Path) -> None:
    net = Net(6)
    x = net.input(1, 1, 4, 5)
    net.layer("ScaleShift", [x], [(1, 1, 4, 5)], {}, blobs={"weights": np.ones(3, np.float32)})
    with pytest.raises(ConversionError, match="it has 3 weights for 1 channels"):
        convert(net.save(tmp_path)[0])


def test_a_shape_that_differs_from_the_computed_one(tmp_path: Path) -> None:
    net = Net(6)
    x = net.input(1, 3, 4, 5)
    net.layer("Concat", [x, x], [(1, 5, 4, 5)], {"axis": 1}, name="joined")
    with pytest.raises(ConversionError, match=r"its output 0 is \[1, 6, 4, 5\], but the file states \[1, 5, 4, 5\]"):
        convert(net.save(tmp_path)[0])


def test_an_attribute_that_is_neither_true_nor_false(tmp_path: Path) -> None:
    net = Net(6)
    x = net.input(1, 3, 4, 5)
    blobs = {"weights": np.ones(3, np.float32)}
    net.layer("Normalize", [x], [(1, 3, 4, 5)], {"eps": 1, "across_spatial": "yes"}, blobs=blobs)
    with pytest.raises(ConversionError, match="across_spatial='yes' is neither true nor false nor a number"):
        convert(net.save(tmp_path)[0])


@pytest.mark.parametrize(
    ("data", "element", "blobs", "message"),
    [
        ({"negative_slope": 0.5}, "elu_data", None, "<elu_data> of relu"),
        ({"negative_slope": 0.5}, "data", {"weights": np.ones(3, np.float32), "scales": np.ones(3)}, "the blob <scales> of"),
    ],
)
def test_content_that_the_inference_engine_ignores_is_reported(data, element, blobs, message: str, tmp_path: Path) -> None:
    net = Net(6, data_element=element)
    x = net.input(1, 3, 4, 5)
    net.layer("ReLU" if blobs is None else "ScaleShift", [x], [(1, 3, 4, 5)], data, blobs=blobs)
    _, report = convert(net.save(tmp_path)[0])
    assert any(message in remark.message for remark in report.passed_over)


@pytest.mark.parametrize(
    ("mode", "pooled", "bins", "message"),
    [
        ("average", (6, 6), (6, 6), "its bins read channel 29 of 18"),
        ("average", (2, 3), (2, 3), "2 x 3 of 2 x 3 bins are not supported"),
        ("average", (2, 2), (3, 3), "3 x 3 of 2 x 2 bins are not supported"),
        ("average", (0, 0), (3, 3), "3 x 3 of 0 x 0 bins are not supported"),
        ("bilinear", None, (1, 3), "1 x 3 of 3 x 3 bilinear bins are not supported"),
    ],
)
def test_bins_that_the_operation_does_not_have(mode, pooled, bins, message: str, tmp_path: Path) -> None:
    net = Net(6)
    x, rois = net.input(1, 18, 8, 8), net.input(3, 5)
    data = {"output_dim": 2, "group_size": 3, "spatial_scale": 1.0, "mode": mode}
    data |= {} if pooled is None else {"pooled_height": pooled[0], "pooled_width": pooled[1]}
    net.layer("PSROIPooling", [x, rois], [(3, 2, *bins)], data)
    with pytest.raises(ConversionError, match=message):
        convert(net.save(tmp_path)[0])


def _detector(attributes: dict, boxes: int) -> Net:
    net = Net(6)
    inputs = [net.input(1, boxes), net.input(1, 6), net.input(1, 2, 8)]
    usual = {"num_classes": 3, "keep_top_k": 2, "nms_threshold": 0.5}
    net.layer("DetectionOutput", inputs, [(1, 1, 2, 7)], {**usual, **attributes})
    return net


@pytest.mark.parametrize(("attributes", "boxes"), [({"decrease_label_id": 1}, 8), ({"share_location": 0}, 24)])
def test_boxes_of_classes_are_converted(attributes: dict, boxes: int, tmp_path: Path) -> None:
    convert(_detector(attributes, boxes).save(tmp_path)[0])


@pytest.mark.parametrize(
    ("attributes", "boxes", "message"),
    [
        ({"decrease_label_id": 1, "share_location": 0}, 24, "suppresses boxes by those of other classes"),
        ({"keep_top_k": 0}, 8, "its keep_top_k is 0"),
    ],
)
def test_detections_that_the_inference_engine_does_not_define(attributes, boxes, message: str, tmp_path: Path) -> None:
    with pytest.raises(ConversionError, match=message):
        convert(_detector(attributes, boxes).save(tmp_path)[0])


@pytest.mark.parametrize("variance", ["", "0.1", "0.1,0.2"])
def test_variances_that_the_inference_engine_does_not_set(variance: str, tmp_path: Path) -> None:
    net = Net(6)
    data = {"width": "10,20", "height": "15,8", "offset": 0.5, "clip": 0, "step": 16, "variance": variance}
    net.layer("PriorBoxClustered", [net.input(1, 2, 3, 4), net.input(1, 3, 48, 64)], [(1, 2, 96)], data)
    with pytest.raises(ConversionError, match="variances, and the Inference Engine does not set all variances"):
        convert(net.save(tmp_path)[0])


@pytest.mark.parametrize(
    ("begin", "end", "data", "message"),
    [
        ([0, 5], [3, 3], {}, "it reads element 8 of 7"),
        ([0, 1], [3, 5], {"new_axis_mask": "0,1"}, "its begin for a new axis is 1"),
        ([0, 0], [1, 1], {"new_axis_mask": "0,0,0,1"}, "it has more entries than its data has dimensions: 2"),
    ],
)
def test_slices_beyond_the_data(begin: list[int], end: list[int], data: dict, message: str, tmp_path: Path) -> None:
    net = Net(7)
    bounds = [net.const(np.array(numbers, np.int32)) for numbers in (begin, end)]
    net.layer("StridedSlice", [net.input(3, 7), *bounds], [(3, 3)], data)
    with pytest.raises(ConversionError, match=message):
        convert(net.save(tmp_path)[0])


def test_a_slice_to_the_end_of_an_unknown_size(tmp_path: Path) -> None:
    net = Net(7)
    bounds = [net.const(np.array(numbers, np.int32)) for numbers in ([0, -2, 5], [0, 0, -1], [1, 1, -2])]
    net.layer("StridedSlice", [net.input(3, 7, 6, name="data"), *bounds], [(3, 2, 3)], {}, name="out")
    convert(net.save(tmp_path)[0], tmp_path / "model.onnx", input_shapes={"data": [-1, -1, -1]})
    data = np.arange(4 * 5 * 6, dtype=np.float32).reshape(4, 5, 6)
    found = run(tmp_path / "model.onnx", {"data": data}, "none")["out"]
    assert np.array_equal(found, data[:, -2:, 5::-2])


def test_other_shapes_of_inputs_of_a_memory(tmp_path: Path) -> None:
    net = Net(6)
    x = net.input(1, 6, name="data")
    old = net.layer("Memory", [], [(1, 6)], {"id": "state", "index": 1, "size": 2})
    net.layer("Eltwise", [x, old], [(1, 6)], {"operation": "sum"})
    net.layer("Memory", [x], [], {"id": "state", "index": 0, "size": 2})
    xml, _ = net.save(tmp_path)
    convert(xml)
    with pytest.raises(ConversionError, match=r"it writes \[2, 6\] to a memory of \[1, 6\]"):
        convert(xml, input_shapes={"data": [2, 6]})


@pytest.mark.parametrize(
    ("out", "offsets", "message"),
    [
        ((4, 4), (5, 5), r"its offsets have the shape \[1, 18, 5, 5\] for an output of \[1, 4, 4, 4\]"),
        ((3, 3), (3, 3), "its output in the file is smaller than that of its attributes"),
    ],
)
def test_offsets_of_another_size(out: tuple, offsets: tuple, message: str, tmp_path: Path) -> None:
    net = Net(6)
    inputs = [net.input(1, 4, 6, 6), net.input(1, 18, *offsets)]
    blobs = {"weights": np.ones((4, 4, 3, 3), np.float32)}
    net.layer("DeformableConvolution", inputs, [(1, 4, *out)], {"output": 4, "kernel": "3,3"}, blobs=blobs)
    with pytest.raises(ConversionError, match=message):
        convert(net.save(tmp_path)[0])


@pytest.mark.parametrize(("buckets", "is_sorted"), [([0, 1, 1], True), ([1, 0, 2], False)])
def test_buckets(buckets: list[float], is_sorted: bool, tmp_path: Path) -> None:
    net = Net(7)
    inputs = [net.input(2, 3), net.const(np.array(buckets, np.float32))]
    net.layer("Bucketize", inputs, [(2, 3)], {"with_right_bound": 1}, precisions=("I32",))
    with nullcontext() if is_sorted else pytest.raises(ConversionError, match="its buckets are not sorted"):
        convert(net.save(tmp_path)[0])


def test_a_sequence_with_one_of_two_states(tmp_path: Path) -> None:
    net = Net(6)
    x, state = net.input(2, 3, 5), net.input(2, 4)
    data = {"hidden_size": 4, "direction": "Forward"}
    blobs = {"weights": np.ones(16 * 9, np.float32)}
    net.layer("LSTMSequence", [x, state], [(2, 3, 4)], data, blobs=blobs)
    with pytest.raises(ConversionError, match="it has 1 states and 1 blobs"):
        convert(net.save(tmp_path)[0])


@pytest.mark.parametrize(
    ("executable", "message"),
    [("/no/such/python", "SPECOPS_INFERENCE_ENGINE=/no/such/python is not a Python"), (sys.executable, "has no ")],
)
def test_a_python_without_the_inference_engine(executable: str, message: str, tmp_path: Path) -> None:
    xml, weights = _convolution().save(tmp_path)
    with EngineProcess(executable) as engine, pytest.raises(BaselineError, match=message):
        engine.interface(xml, weights)


def test_all_problems_are_reported_at_once(tmp_path: Path) -> None:
    net = Net(6)
    x = net.input(1, 4)
    for place in range(3):
        x = net.layer("Unheard", [x], [(1, 4)], {}, name=f"layer{place}")
    with pytest.raises(ConversionError) as caught:
        convert(net.save(tmp_path)[0])
    assert len(caught.value.problems) == 3
    assert [problem.layer_name for problem in caught.value.problems] == ["layer0", "layer1", "layer2"]


@pytest.mark.parametrize("kind", ["", "/", "*[", "..", "a/b", "@x"])
def test_a_type_that_no_element_can_have(kind: str, tmp_path: Path) -> None:
    """A layer's attributes may be in an element of the name of its type."""
    with pytest.raises(ConversionError) as caught:
        convert(_changed(_convolution(), tmp_path, 'type="Pooling"', f'type="{kind}"'))
    assert "internal error" not in str(caught.value)


def test_a_missing_bin(tmp_path: Path) -> None:
    xml, weights = _convolution().save(tmp_path)
    weights.unlink()
    with pytest.raises(MalformedError, match=r"\.bin file, which is missing"):
        convert(xml)


def test_old_files_are_recognized(tmp_path: Path) -> None:
    xml, weights = _convolution(2).save(tmp_path)
    assert weights_of_old_ir(xml) == weights
    xml.write_text(xml.read_text().replace('version="2"', 'version="11"'))
    assert weights_of_old_ir(xml) is None
    assert weights_of_old_ir(tmp_path / "none.xml") is None


def test_the_environment_variable_selects_the_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ENVIRONMENT, "/some/python")
    assert python() == "/some/python"
