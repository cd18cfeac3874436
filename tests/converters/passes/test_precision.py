"""Float16 and float32 throughout: agreement with OpenVINO within float16's accuracy, without unnecessary casts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import openvino as ov
import pytest
from openvino import opset13 as op
from openvino import opset15

from converters.openvino import convert

FLOAT, FLOAT16 = onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16


def weights(*shape: int) -> np.ndarray:
    fan = np.prod(shape[1:]) if len(shape) > 1 else 1
    return (np.random.default_rng(sum(shape)).standard_normal(shape) / np.sqrt(fan)).astype(np.float32)


def image_classifier() -> tuple[ov.Model, list[np.ndarray]]:
    """Convolutions with batch normalization, a residual connection, pooling, and a linear layer."""
    x = op.parameter([1, 3, 32, 32], np.float32, name="image")
    y = op.convolution(x, weights(16, 3, 3, 3), [1, 1], [1, 1], [1, 1], [1, 1])
    y = op.batch_norm_inference(y, weights(16) + 1, weights(16), weights(16), abs(weights(16)) + 1, 1e-5)
    y = op.relu(y)
    z = op.convolution(y, weights(16, 16, 3, 3), [1, 1], [1, 1], [1, 1], [1, 1])
    y = op.max_pool(op.add(y, z), [2, 2], [1, 1], [0, 0], [0, 0], [2, 2])
    y = op.reduce_mean(y.output(0), np.array([2, 3]), keep_dims=False)
    y = op.softmax(op.matmul(y, weights(10, 16), False, True), 1)
    return ov.Model([y], [x]), [np.random.default_rng(1).random((1, 3, 32, 32), np.float32)]


def masked_attention() -> tuple[ov.Model, list[np.ndarray]]:
    """A layer of a language model: a mask with the lowest float32, layer normalization, a gate."""
    x = op.parameter([1, -1, 32], np.float32, name="hidden")
    mask = op.parameter([1, -1], np.int64, name="mask")
    blocked = op.multiply(op.subtract(np.float32(1), op.convert(mask, "f32")), np.float32(np.finfo(np.float32).min))
    normal = op.multiply(op.mvn(x, [-1], True, 1e-5, "inside_sqrt"), weights(32) + 1)
    q, k, v = (op.matmul(normal, weights(32, 32) * (i + 1), False, True) for i in range(3))
    scores = op.multiply(op.matmul(q, k, False, True), np.float32(32**-0.5))
    scores = op.add(scores, op.unsqueeze(blocked, np.array([1])))
    y = op.add(x, op.matmul(op.softmax(scores, 2), v, False, False))
    y = op.multiply(op.swish(op.matmul(y, weights(64, 32), False, True)), op.matmul(y, weights(64, 32) * 2, False, True))
    data = np.random.default_rng(2).standard_normal((1, 7, 32)).astype(np.float32)
    return ov.Model([y], [x, mask]), [data, np.array([[1, 1, 1, 1, 1, 0, 0]])]


def sums_of_experts() -> tuple[ov.Model, list[np.ndarray]]:
    """Rows that are added at indices, as in mixtures of experts: by elements and by slices."""
    x = op.parameter([-1, 8], np.float32, name="rows")
    y = op.matmul(x, weights(8, 8), False, False)
    rows = np.array([[1], [0], [1]])
    elements = op.broadcast(op.constant(rows), op.shape_of(x))
    y = op.scatter_elements_update(op.sin(x), elements, y, np.int64(0), "sum")
    y = op.scatter_elements_update(op.sin(y), elements, y, np.int64(0), "max")
    node = opset15.scatter_nd_update(op.sin(y), op.constant(rows), y, "sum")
    return ov.Model([op.relu(node)], [x]), [np.random.default_rng(4).standard_normal((3, 8)).astype(np.float32)]


def decoder_with_resize() -> tuple[ov.Model, list[np.ndarray]]:
    """A size that is computed from a shape in floats, and Resize."""
    x = op.parameter([1, 4, -1, -1], np.float32, name="features")
    sizes = op.gather(op.convert(op.shape_of(x), "f32"), np.array([2, 3]), np.array(0))
    target = op.convert(op.floor(op.multiply(sizes, np.float32(2.5))), "i64")
    y = op.interpolate(x, target, "linear_onnx", "sizes", axes=np.array([2, 3]), coordinate_transformation_mode="half_pixel")
    y = op.sigmoid(op.convolution(y, weights(4, 4, 3, 3), [1, 1], [1, 1], [1, 1], [1, 1]))
    return ov.Model([y], [x]), [np.random.default_rng(3).random((1, 4, 9, 11), np.float32)]


def recurrent() -> tuple[ov.Model, list[np.ndarray]]:
    x = op.parameter([2, 6, 8], np.float32, name="sequence")
    zeros = np.zeros((2, 1, 8), np.float32)
    cell = op.lstm_sequence(
        x, zeros, zeros, np.array([6, 6]), weights(1, 32, 8), weights(1, 32, 8), weights(1, 32), 8, "forward"
    )
    return ov.Model([cell.output(0)], [x]), [np.random.default_rng(4).standard_normal((2, 6, 8)).astype(np.float32)]


NETWORKS = [image_classifier, masked_attention, decoder_with_resize, recurrent, sums_of_experts]


def run(model: onnx.ModelProto, inputs: list[np.ndarray]) -> list[np.ndarray]:
    options = ort.SessionOptions()
    options.log_severity_level = 3
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, {x.name: array for x, array in zip(session.get_inputs(), inputs, strict=True)})


def expected(model: ov.Model, inputs: list[np.ndarray]) -> list[np.ndarray]:
    compiled = ov.Core().compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    return list(compiled(inputs).values())


def saved(network, folder: Path, compress: bool = False) -> tuple[Path, ov.Model, list[np.ndarray]]:
    model, inputs = network()
    path = folder / "model.xml"
    ov.save_model(model, path, compress_to_fp16=compress)
    return path, model, inputs


def all_nodes(graph: onnx.GraphProto):
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from all_nodes(attribute.g)


@pytest.mark.parametrize("opset", [13, 17, 21])
@pytest.mark.parametrize("network", NETWORKS)
def test_float16_agrees_with_openvino(network, opset: int, tmp_path: Path):
    path, model, inputs = saved(network, tmp_path)
    converted, _ = convert(path, opset=opset, precision="float16")
    onnx.checker.check_model(converted, full_check=True)
    for got, wanted in zip(run(converted, inputs), expected(model, inputs), strict=True):
        assert got.dtype == wanted.dtype == np.float32
        assert np.linalg.norm(got - wanted) <= 5e-3 * np.linalg.norm(wanted)
    large = [t for t in converted.graph.initializer if t.data_type == FLOAT and np.prod(t.dims, dtype=int) > 2]
    assert not large, "weights stayed in float32"


@pytest.mark.parametrize("network", NETWORKS)
def test_float32_leaves_no_cast_of_weights(network, tmp_path: Path):
    path, _, inputs = saved(network, tmp_path, compress=True)
    stored = convert(path).model
    assert 'element_type="f16"' in path.read_text()
    converted, _ = convert(path, precision="float32")
    assert FLOAT16 not in {tensor.data_type for tensor in converted.graph.initializer}
    to_float = [n for n in all_nodes(converted.graph) if n.op_type == "Cast" and n.attribute[0].i == FLOAT]
    produced = {x.name for x in converted.graph.input}
    produced |= {name for node in all_nodes(converted.graph) for name in node.output}
    assert all(node.input[0] in produced for node in to_float)
    for got, wanted in zip(run(converted, inputs), run(stored, inputs), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6, strict=True)


def test_numbers_beyond_float16_are_clamped_and_reported(tmp_path: Path):
    x = op.parameter([2, 3], np.float32, name="x")
    lowest = op.constant(np.array([[-3.4e38, 0, 1e9]], np.float32), name="far")
    path = tmp_path / "model.xml"
    ov.save_model(ov.Model([op.softmax(op.add(op.relu(x), lowest), 1)], [x]), path, compress_to_fp16=False)
    converted, report = convert(path, precision="float16")
    assert report.clamped == ["far"]
    (constant,) = [t for t in converted.graph.initializer if t.name.startswith("far")]
    assert onnx.numpy_helper.to_array(constant).tolist() == [[-65504, 0, 65504]]


@pytest.mark.parametrize("far", [65504.0, 70000.0])
def test_weights_beyond_float16_are_multiplied_in_float32(far: float, tmp_path: Path):
    x = op.parameter([2, 3], np.float32, name="x")
    weights = op.constant(np.array([[far, 1.0], [-2.0, far], [0.5, 3.0]], np.float32), name="weights")
    path, given = tmp_path / "model.xml", np.array([[0.25, 0.5, -1], [-0.5, 0.125, 2]], np.float32)
    model = ov.Model([op.matmul(x, weights, False, False)], [x])
    ov.save_model(model, path, compress_to_fp16=False)
    converted, report = convert(path, precision="float16")
    assert not report.clamped
    assert (FLOAT16 in {t.data_type for t in converted.graph.initializer}) == (far == 65504)
    (result,) = run(converted, [given])
    np.testing.assert_allclose(result, given @ weights.data, rtol=1e-3, strict=True)


def test_computations_on_shapes_stay_exact(tmp_path: Path):
    x = op.parameter([1, -1], np.float32, name="x")
    size = op.convert(op.gather(op.shape_of(x), np.array([1]), np.array(0)), "f32")
    half = op.convert(op.floor(op.multiply(size, np.float32(0.5))), "i64")
    path = tmp_path / "model.xml"
    ov.save_model(ov.Model([half, op.relu(x)], [x]), path, compress_to_fp16=False)
    converted, _ = convert(path, precision="float16")
    assert run(converted, [np.zeros((1, 4099), np.float32)])[0].tolist() == [2049]


def test_float16_keeps_the_types_of_inputs_and_outputs(tmp_path: Path):
    path, _, _ = saved(masked_attention, tmp_path)
    plain, halves = convert(path).model, convert(path, precision="float16").model
    for kind in ("input", "output"):
        assert [x.type for x in getattr(plain.graph, kind)] == [x.type for x in getattr(halves.graph, kind)]


def test_changed_weights_cannot_be_references(tmp_path: Path):
    path, _, _ = saved(recurrent, tmp_path)
    with pytest.raises(ValueError, match="cannot be referenced"):
        convert(path, tmp_path / "model.onnx", weights="reference", precision="float16")


def test_an_invalid_precision(tmp_path: Path):
    path, _, _ = saved(recurrent, tmp_path)
    with pytest.raises(ValueError, match="not 'int8'"):
        convert(path, precision="int8")


@pytest.mark.unverified  # integers have no NaN
@pytest.mark.parametrize("opset", [11, 13, 15, 17, 18, 19, 21])
@pytest.mark.parametrize("contrib", [True, False], ids=["contrib", "standard"])
def test_quantized_networks(opset: int, contrib: bool) -> None:
    """QuantizeLinear and DequantizeLinear support float16 from opset 19 on."""
    x = op.parameter([1, 8, 8, 8], np.float32, name="x")

    def quantized(data: object, low: float, high: float, levels: int) -> object:
        return op.fake_quantize(data, *(np.float32(limit) for limit in (low, high) * 2), levels)

    def convolution(data: object) -> object:
        filters = quantized(op.constant(np.clip(weights(8, 8, 1, 1), -2, 2)), -2.0, 2.0, 255)
        return op.convolution(data, filters, [1, 1], [0, 0], [0, 0], [1, 1])

    inner = op.relu(convolution(quantized(x, -2.0, 2.0 * 127 / 128, 256)))
    model = ov.Model([convolution(quantized(inner, -2.0, 2.0 * 127 / 128, 256))], [x])
    given = np.random.default_rng(0).standard_normal((1, 8, 8, 8)).astype(np.float32)
    exact = {"INFERENCE_PRECISION_HINT": "f32", "LP_TRANSFORMS_MODE": "NO"}
    expected = ov.Core().compile_model(model, "CPU", exact)(given)[0]

    converted = convert(model, opset=opset, precision="float16", contrib=contrib).model
    onnx.checker.check_model(converted, full_check=True)
    session = ort.InferenceSession(converted.SerializeToString())
    np.testing.assert_allclose(session.run(None, {"x": given})[0], expected, atol=0.1, strict=True)


@pytest.mark.unverified  # integers have no NaN
@pytest.mark.parametrize(("step", "singles"), [(1e-7, 1), (1e-3, 0)])
def test_small_scales_are_multiplied_in_float32(step: float, singles: int) -> None:
    """float16 has a step of 6e-8."""
    x = op.parameter([2, 4], np.float32, name="x")
    filters = np.random.default_rng(0).integers(-126, 127, (4, 3)).astype(np.float32)
    filters[0] = 127
    limits = [np.float32(limit) for limit in (-127 * step, 127 * step) * 2]
    levels = [np.float32(limit) for limit in (-300.0 * 128, 300.0 * 127) * 2]
    y = op.matmul(
        op.fake_quantize(x, *levels, 256), op.fake_quantize(filters * np.float32(step), *limits, 255), False, False
    )
    model = ov.Model([y], [x])
    given = np.random.default_rng(0).uniform(-1e4, 1e4, (2, 4)).astype(np.float32) * np.float32(min(1, 1e-3 / step))
    exact = {"INFERENCE_PRECISION_HINT": "f32", "LP_TRANSFORMS_MODE": "NO"}
    expected = ov.Core().compile_model(model, "CPU", exact)(given)[0]
    converted = convert(model, precision="float16", target="standard", opset=21).model
    kinds = {value.name: value.data_type for value in converted.graph.initializer}
    scales = [node.input[1] for node in converted.graph.node if node.op_type == "DequantizeLinear"]
    assert [kinds[name] for name in scales].count(FLOAT) == singles
    session = ort.InferenceSession(converted.SerializeToString())
    np.testing.assert_allclose(session.run(None, {"x": given})[0], expected, atol=0.01 * abs(expected).max(), strict=True)


@pytest.mark.parametrize("opset", [13, 21])
def test_names_of_nodes_in_branches(opset: int) -> None:
    """ONNX Runtime rejects a graph with two nodes of the same name."""
    x = op.parameter([2, 4, 8, 2], np.float32, name="x")
    sizes = op.parameter([2], np.int32, name="sizes")
    model = ov.Model([op.dft(x, op.constant(np.array([1, 2], np.int32)), sizes)], [x, sizes])
    given = [np.random.default_rng(0).standard_normal((2, 4, 8, 2)).astype(np.float32), np.array([4, 8], np.int32)]
    expected = ov.Core().compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})(given)[0]
    session = ort.InferenceSession(convert(model, opset=opset, precision="float16").model.SerializeToString())
    np.testing.assert_allclose(
        session.run(None, dict(zip(["x", "sizes"], given, strict=True)))[0], expected, atol=0.05, strict=True
    )


@pytest.mark.parametrize("kind", ["f8e4m3", "f8e5m2"])
@pytest.mark.parametrize("opset", [17, 21])
def test_float32_rounds_to_8_bits_by_way_of_float16(kind: str, opset: int, tmp_path: Path):
    """Numbers that float16 rounds to the middle between two 8-bit floats; another float16 computation becomes float32."""
    x = op.parameter([2, 3], np.float32, name="x")
    y = op.parameter([2, 3], np.float16, name="y")
    scale = op.constant(np.array([8], np.float32))
    shift = op.constant(np.array([0], np.float32))
    clamped = op.clamp(op.multiply(y, np.float16(3)), -448, 448)
    path, model = tmp_path / "model.xml", ov.Model([op.fake_convert(x, scale, shift, kind), clamped], [x, y])
    ov.save_model(model, path, compress_to_fp16=False)
    given = np.array([[18.999, 19.001, -18.999], [-35.999, 17.0001, 0.5]], np.float32) / 8
    halves = np.array([[1, 200, -3], [0.1, 5, 6]], np.float16)
    converted, _ = convert(path, opset=opset, precision="float32")
    got, wanted = run(converted, [given, halves]), expected(model, [given, halves])
    np.testing.assert_allclose(got[0], wanted[0], rtol=1e-6, strict=True)
    np.testing.assert_allclose(got[1].astype(np.float32), wanted[1].astype(np.float32), rtol=1e-3, strict=True)
    rounding = [n for n in converted.graph.node if n.op_type == "Cast" and n.attribute[0].i == FLOAT16]
    assert len(rounding) == 2  # the other one is before the output


@pytest.mark.parametrize("options", [{"precision": "float32"}, {"target": "standard"}, {"target": "opencv"}])
def test_float32_rounds_constants_to_float16(options: dict[str, str]) -> None:
    """OpenVINO rounds constants, including integers and computed constants, but not values that it computes at run time."""
    x = op.parameter([4], np.float32, name="x")
    numbers = op.constant(np.array([0.1, 2049, -1e-9, 3], np.float32))
    integers = op.constant(np.array([2049, 4099, 1, -2051], np.int32))
    computed = op.convert(op.multiply(op.convert(op.constant(np.arange(4, dtype=np.uint8)), "f32"), numbers), "f16")
    halves = [op.convert(numbers, "f16"), op.convert(integers, "f16"), computed, op.convert(op.multiply(x, x), "f16")]
    model = ov.Model([op.add(x, op.convert(half, "f32")) for half in halves], [x])
    given = np.array([0, 0, 0, 0.3], np.float32)
    converted, _ = convert(model, **options)  # type: ignore[arg-type]
    assert "Cast" not in {node.op_type for node in converted.graph.node}
    for got, wanted in zip(run(converted, [given]), expected(model, [given]), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-7, strict=True)
