"""4-bit constants stay packed in the file and are decoded, in any opset, to the values that OpenVINO uses."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import openvino as ov
import pytest
from openvino import opset13 as op

from converters.openvino import convert

FOUR_BITS = (onnx.TensorProto.INT4, onnx.TensorProto.UINT4)


def compressed(kind: str, shape: tuple[int, int], move=lambda x: x) -> ov.Model:
    """Build a product with 4-bit weights and scales for each row."""
    codes = np.random.default_rng(5).integers(0, 16, shape).astype(np.uint8)
    if kind == "i4":
        codes = np.where(codes < 8, codes, codes.astype(np.int8) - 16)
    packed = ov.op.Constant(getattr(ov.Type, kind), ov.Shape(shape), codes.reshape(-1).tolist())
    x = op.parameter([2, -1], np.float32, name="x")
    weights = op.convert(move(packed), "f32")
    zero = np.float32(8 if kind == "u4" else 0)
    scaled = op.multiply(op.subtract(weights, zero), np.full((shape[0], 1), 0.1, np.float32))
    return ov.Model([op.matmul(x, scaled, False, True)], [x])


@pytest.mark.parametrize("opset", [11, 17, 21])
@pytest.mark.parametrize(("kind", "shape"), [("u4", (96, 128)), ("i4", (96, 128)), ("u4", (101, 99)), ("i4", (8, 6))])
def test_values_equal_openvino(kind: str, shape: tuple[int, int], opset: int, tmp_path: Path):
    model = compressed(kind, shape)
    check(model, opset, tmp_path, size=shape[0] * shape[1])


@pytest.mark.parametrize("opset", [13, 21])
def test_moves_before_the_cast(opset: int, tmp_path: Path):
    model = compressed("u4", (96, 128), lambda x: op.gather(x, np.arange(0, 96)[::-1].copy(), np.array(0)))
    check(model, opset, tmp_path, size=96 * 128)


def check(model: ov.Model, opset: int, folder: Path, size: int) -> None:
    path = folder / "model.xml"
    ov.save_model(model, path, compress_to_fp16=False)
    converted, _ = convert(path, folder / "model.onnx", opset=opset)
    graph = converted.graph
    assert not any(tensor.data_type in FOUR_BITS for tensor in graph.initializer)
    if size > 8192:
        assert max(len(tensor.raw_data) for tensor in graph.initializer) <= (size + 1) // 2 + 4096, "they were unpacked"
    columns = model.outputs[0].node.input_value(0).node.input_value(1).partial_shape[1].get_length()
    x = np.random.default_rng(6).standard_normal((2, columns)).astype(np.float32)
    exact = {"INFERENCE_PRECISION_HINT": "f32", "DYNAMIC_QUANTIZATION_GROUP_SIZE": "0"}
    expected = ov.Core().compile_model(model, "CPU", exact)([x])[0]
    session = ort.InferenceSession(converted.SerializeToString(), providers=["CPUExecutionProvider"])
    np.testing.assert_allclose(session.run(None, {"x": x})[0], expected, rtol=1e-4, atol=1e-4, strict=True)


def test_references_to_the_bin(tmp_path: Path):
    path = tmp_path / "model.xml"
    ov.save_model(compressed("u4", (96, 128)), path, compress_to_fp16=False)
    converted, _ = convert(path, tmp_path / "model.onnx", weights="reference")
    (codes,) = [t for t in converted.graph.initializer if t.data_location == onnx.TensorProto.EXTERNAL]
    assert codes.data_type == onnx.TensorProto.UINT8 and list(codes.dims) == [96, 128 // 2]
    ort.InferenceSession(str(tmp_path / "model.onnx"), providers=["CPUExecutionProvider"])


@pytest.mark.parametrize("size", [(8, 6), (96, 256)])
def test_the_first_node_of_a_graph_is_one_of_two_casts(size: tuple[int, int], tmp_path: Path):
    codes = np.random.default_rng(5).integers(-8, 8, size)
    packed = ov.op.Constant(ov.Type.i4, ov.Shape(size), codes.reshape(-1).tolist())
    wide = [
        op.multiply(op.convert(packed, "f32"), np.full(shape, 0.1, np.float32)) for shape in ((size[0], 1), (1, size[1]))
    ]
    x = op.parameter([2, size[1]], np.float32, name="x")
    y = op.matmul(op.matmul(x, wide[0], False, True), wide[1], False, False)
    check(ov.Model([y], [x]), 21, tmp_path, size=0)
