"""Computations that stay in float32 because float16 lacks the range, with near misses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import openvino as ov
import pytest
from onnx.reference import ReferenceEvaluator
from openvino import opset13 as ops
from openvino import opset15
from openvino.utils.node_factory import NodeFactory

import onnx_specops
from converters.openvino import convert
from converters.passes.float16_limits import near_zero, overflowing, positions
from onnx_specops.building import new_value
from onnx_specops.graphs import all_nodes, all_values
from tests.converters.passes.graphs import floats, graph

D = ir.DataType
FREQUENCIES = (10000.0 ** (-np.arange(0, 32, 2) / 32)).astype(np.float32).reshape(1, 16)


def parts(emit: Callable[..., Any], *inputs: ir.Value) -> tuple[list[ir.Node], set[ir.Value]]:
    model = graph(emit, *inputs)
    return list(all_nodes(model.graph)), {value for value in all_values(model.graph) if value.dtype == D.FLOAT}


def angles(op: Any, p: Any) -> Any:
    return op.Cos(op.MatMul(op.Cast(p, to=D.FLOAT), op.const(FREQUENCIES)))


def expanded(op: Any, p: Any) -> Any:
    """Exporters repeat the frequencies for each batch."""
    whole = op.Expand(op.const(FREQUENCIES), op.Concat(op.Shape(p, start=0, end=1), [16], axis=0))
    return op.Mul(op.Cast(p, to=D.FLOAT), whole)


def after_cos(op: Any, p: Any) -> Any:
    return op.Mul(angles(op, p), 2.0)


def weighted(op: Any, p: Any) -> Any:
    return op.MatMul(op.Cast(p, to=D.FLOAT), op.const(np.ones((1, 5000), np.float32)))


def embedded(op: Any, p: Any) -> Any:
    return op.Mul(op.Gather(op.const(np.ones((8, 4), np.float32)), p), 2.0)


@pytest.mark.parametrize(
    ("emit", "type_", "operators"),
    [
        (angles, D.INT64, ["Cast", "Cos", "MatMul"]),
        (angles, D.INT16, ["Cast", "Cos", "MatMul"]),
        (angles, D.UINT8, []),
        (expanded, D.INT64, ["Cast", "Expand", "Mul"]),
        (after_cos, D.INT64, ["Cast", "Cos", "MatMul"]),
        (weighted, D.INT64, ["Cast"]),
        (embedded, D.INT64, []),
    ],
    ids=lambda x: x.__name__ if callable(x) else str(x),
)
def test_positions(emit: Callable[..., Any], type_: ir.DataType, operators: list[str]) -> None:
    found = positions(*parts(emit, new_value(type_, [None, 1], "p")))
    assert sorted(node.op_type for node in found) == operators


@pytest.mark.parametrize(
    ("emit", "type_", "operators"),
    [
        # sums of small integers
        (lambda op, p: op.CumSum(op.Cast(p, to=D.FLOAT), 0), D.BOOL, ["CumSum"]),
        (lambda op, p: op.ReduceSum(op.Sub(1.0, op.Cast(p, to=D.FLOAT))), D.UINT8, ["ReduceSum"]),
        (lambda op, p: op.Mul(op.ReduceSum(op.Cast(p, to=D.FLOAT)), 0.5), D.BOOL, ["Mul", "ReduceSum"]),
        (lambda op, p: op.ReduceMax(op.Cast(p, to=D.FLOAT)), D.BOOL, []),
        (lambda op, p: op.CumSum(op.Exp(op.Cast(p, to=D.FLOAT)), 0), D.BOOL, []),
        # angles of an input
        (lambda op, p: op.Cos(op.Mul(op.Unsqueeze(p, [2]), 0.01)), D.FLOAT, ["Cos", "Mul", "Unsqueeze"]),
        (lambda op, p: op.Equal(p, 3000.0), D.FLOAT, ["Equal"]),
        (lambda op, p: op.Relu(op.Mul(p, 0.01)), D.FLOAT, []),
        (lambda op, p: op.Cos(op.Exp(p)), D.FLOAT, []),
        (lambda op, p: op.Cos(op.MatMul(p, np.ones((1, 5000), np.float32))), D.FLOAT, []),
        (lambda op, p: op.Less(p, 3000.0), D.FLOAT, []),
        # constants
        (lambda op, p: op.Add(p, op.Sin(op.Mul(op.const(5000.0), op.const(FREQUENCIES)))), D.FLOAT, ["Sin"]),
        (lambda op, p: op.Add(p, op.Exp(op.const(FREQUENCIES))), D.FLOAT, ["Exp"]),
        (lambda op, p: op.MatMul(p, op.Exp(op.const(np.zeros((1, 70_000), np.float32)))), D.FLOAT, []),
    ],
)
def test_positions_of_sums_and_inputs(emit: Callable[..., Any], type_: ir.DataType, operators: list[str]) -> None:
    p = new_value(type_, [None, 1], "p")
    nodes, values = parts(emit, p)
    assert sorted(node.op_type for node in positions(nodes, values, [p])) == operators


@pytest.mark.parametrize(
    ("layers", "given"),
    [
        (lambda p: ops.convert(ops.reduce_sum(ops.convert(p, "f32"), ops.constant([1])), "i64"), np.ones((1, 5001), bool)),
        (lambda p: ops.convert(ops.reduce_sum(p, ops.constant([1])), "i64"), np.ones((1, 5001), np.float32)),
        (lambda p: ops.cum_sum(ops.convert(p, "f32"), ops.constant(1)), np.ones((1, 2001), bool)),
        (lambda p: ops.equal(p, ops.constant(np.float32(3000))), np.arange(2990, 3010, dtype=np.float32).reshape(1, -1)),
        (lambda p: ops.cos(ops.multiply(p, ops.constant(np.float32(0.9)))), np.float32([[981.5, 999, 3]])),
    ],
    ids=["count", "count-of-floats", "cumulative", "ids", "time-steps"],
)
def test_exact_results(layers: Callable[[Any], Any], given: np.ndarray) -> None:
    """ONNX's evaluator computes in float16, where ONNX Runtime's CPU provider would use float32."""
    p = ops.parameter([1, -1], given.dtype, name="p")
    model = ov.Model([layers(p)], [p])
    expected = ov.Core().compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})(given)[0]
    converted = convert(model, precision="float16", target="standard", opset=17).model
    (got,) = ReferenceEvaluator(converted).run(None, {"p": given})
    np.testing.assert_allclose(
        got.astype(np.float64), expected.astype(np.float64), atol=2e-3 if got.dtype == np.float32 else 0, strict=True
    )


def test_positions_end_at_other_values() -> None:
    def emit(op, p, x):
        return op.Neg(op.Add(op.Cast(p, to=D.FLOAT), x))

    found = positions(*parts(emit, new_value(D.INT64, [None], "p"), floats("x")))
    assert [node.op_type for node in found] == ["Cast"]


EPS = np.float32(1e-10)


@pytest.mark.parametrize(
    ("emit", "operators", "large"),
    [
        (lambda op, x: op.Div(x, op.Add(op.Abs(x), EPS)), ["Add", "Div"], 1),
        (lambda op, x: op.Div(x, op.Sqrt(op.Max(op.Abs(x), EPS))), ["Div", "Max", "Sqrt"], 1),
        (lambda op, x: op.Log(op.Clip(x, EPS)), ["Clip", "Log"], 0),
        (lambda op, x: op.Mul(op.Mul(x, EPS), np.float32(1e9)), ["Mul", "Mul"], 0),
        (lambda op, x: op.Div(op.Mul(x, EPS), op.Abs(x)), ["Div", "Mul"], 0),
        (lambda op, x: op.Div(x, op.const(np.float32([1, 1e-10]))), ["Div"], 1),
        (lambda op, x: op.Add(x, op.Mul(x, EPS)), ["Mul"], 0),
        (lambda op, x: op.Div(x, op.Add(op.Abs(x), np.float32(1e-3))), [], 0),
        (lambda op, x: op.Mul(x, op.const(np.float32([1, 1e-10]))), [], 0),
        (lambda op, x: op.Mul(x, op.const(np.float32([0, 1]))), [], 0),
        # weights, but not a bias
        (lambda op, x: op.MatMul(x, op.const(np.full((2, 3), EPS))), ["MatMul"], 0),
        (lambda op, x: op.MatMul(op.const(np.full((3, 2), EPS)), x), ["MatMul"], 0),
        (lambda op, x: op.MatMul(x, op.const(np.float32([[1], [1e-10]]))), [], 0),
        (
            lambda op, x: op.Gemm(op.Unsqueeze(x, [0]), op.const(np.ones((2, 3), np.float32)), op.const(np.full(3, EPS))),
            [],
            0,
        ),
    ],
)
def test_near_zero(emit: Callable[..., Any], operators: list[str], large: int) -> None:
    found, beyond = near_zero(*parts(emit, floats("x", 2)))
    assert sorted(node.op_type for node in found) == operators
    assert len(beyond) == large


def _mean(op: Any, x: Any) -> Any:
    return op.ReduceMean(x, [-1], keepdims=1)


@pytest.mark.parametrize(
    ("emit", "large"),
    [
        (lambda op, x: op.Div(x, op.Sqrt(op.Add(_mean(op, op.Pow(x, 2.0)), EPS))), 0),
        (lambda op, x: op.Div(x, op.Sqrt(op.Add(EPS, _mean(op, op.Mul(x, x))))), 0),
        (lambda op, x: op.Div(x, op.Sqrt(op.Add(_mean(op, op.Pow(x, 3.0)), EPS))), 1),
        (lambda op, x: op.Div(x, op.Sqrt(op.Add(_mean(op, op.Mul(x, op.Abs(x))), EPS))), 1),
        (lambda op, x: op.Div(op.Exp(x), op.Sqrt(op.Add(_mean(op, op.Pow(x, 2.0)), EPS))), 1),  # of other numbers
        (lambda op, x: op.Div(x, op.Sqrt(op.Add(op.ReduceMean(op.Pow(x, 2.0), keepdims=0), EPS))), 1),
        (lambda op, x: op.Div(x, op.Sqrt(op.Add(_mean(op, op.Pow(x, 2.0)), -EPS))), 1),
        (lambda op, x: op.Div(x, op.Add(_mean(op, op.Pow(x, 2.0)), EPS)), 1),  # no root
        (lambda op, x: op.Div(1.0, op.Sqrt(op.Add(_mean(op, op.Pow(x, 2.0)), np.float32(1e-9)))), 0),
        (lambda op, x: op.Div(1.0, op.Sqrt(op.Add(_mean(op, op.Pow(x, 2.0)), EPS))), 1),  # up to 1e5
        (lambda op, x: op.Div(2e3, op.Sqrt(op.Add(_mean(op, op.Pow(x, 2.0)), np.float32(1e-9)))), 1),
        (lambda op, x: op.Div(1.0, op.Sqrt(op.Add(_mean(op, x), np.float32(1e-9)))), 1),  # of a sum that may be 0
    ],
)
def test_normalized_numbers_are_not_large(emit: Callable[..., Any], large: int) -> None:
    """Numbers divided by the root of their own mean square are in float16's range."""
    _, beyond = near_zero(*parts(emit, floats("x", 3, 2)))
    assert len(beyond) == large


def _sum(op: Any, x: Any) -> Any:
    return op.ReduceSum(x, [-1], keepdims=1)


def _area(op: Any, x: Any) -> Any:
    return op.Mul(op.Slice(x, [0], [1], [1]), op.Slice(x, [1], [2], [1]))


MATRIX = np.ones((2, 2), np.float32)


@pytest.mark.parametrize(
    ("emit", "operators"),
    [
        # a mean square and its root
        (lambda op, x, y: op.Div(x, op.Sqrt(_mean(op, op.Mul(x, x)))), ["Mul", "ReduceMean", "Sqrt"]),
        (lambda op, x, y: op.Div(x, op.Sqrt(_mean(op, op.Pow(x, 2.0)))), ["Pow", "ReduceMean", "Sqrt"]),
        (lambda op, x, y: op.Div(x, op.Sqrt(op.Add(_mean(op, op.Mul(x, x)), 1.0))), ["Add", "Mul", "ReduceMean", "Sqrt"]),
        (lambda op, x, y: op.Div(x, op.Sqrt(_mean(op, op.Mul(x, y)))), []),
        (lambda op, x, y: op.Relu(_mean(op, op.Mul(x, x))), []),
        (lambda op, x, y: op.Sqrt(op.Add(_mean(op, op.Mul(x, x)), y)), []),
        (lambda op, x, y: op.Sqrt(op.MatMul(op.Mul(x, x), MATRIX)), ["MatMul", "Mul", "Sqrt"]),
        (lambda op, x, y: op.Sqrt(op.MatMul(op.Mul(x, y), MATRIX)), []),
        # exponentials
        (lambda op, x, y: op.Log(op.Add(op.Exp(x), 1.0)), ["Add", "Exp", "Log"]),
        (lambda op, x, y: op.Tanh(op.Exp(x)), []),
        (lambda op, x, y: op.Sqrt(op.Pow(x, 0.5)), []),
        # sums, with the products in them
        (lambda op, x, y: op.Div(_sum(op, op.Mul(x, y)), _sum(op, y)), ["Div", "Mul", "ReduceSum", "ReduceSum"]),
        (lambda op, x, y: op.Mul(_sum(op, x), np.float32(0.25)), ["Mul", "ReduceSum"]),
        (lambda op, x, y: op.Mul(_sum(op, x), np.float32(2)), []),
        (lambda op, x, y: op.Mul(_mean(op, x), np.float32(0.25)), []),
        (lambda op, x, y: op.Div(op.Add(_sum(op, x), y), 4.0), []),
        # divisors
        (lambda op, x, y: op.Div(y, op.Add(_area(op, x), _area(op, y))), ["Add", "Div", "Mul", "Mul"]),
        (lambda op, x, y: op.Div(op.Mul(x, y), 4.0), []),
        (lambda op, x, y: op.Mul(op.Add(op.Mul(op.Mul(op.Mul(x, x), x), np.float32(0.04)), x), y), []),
    ],
)
def test_overflowing(emit: Callable[..., Any], operators: list[str]) -> None:
    found = overflowing(*parts(emit, floats("x", 2, 2), floats("y", 2, 2)))
    assert sorted(node.op_type for node in found) == operators


def _rms_norm(x: Any) -> Any:
    square = ops.reduce_mean(ops.multiply(x, x), ops.constant([1]), True)
    return ops.divide(x, ops.sqrt(ops.add(square, ops.constant(np.float32(1e-3)))))


def _softmax(x: Any) -> Any:
    exponential = ops.exp(ops.multiply(x, ops.constant(np.float32(0.05))))
    return ops.divide(exponential, ops.reduce_sum(exponential, ops.constant([1]), True))


@pytest.mark.parametrize(
    "layers",
    [
        _rms_norm,
        _softmax,
        lambda x: ops.divide(ops.reduce_sum(x, ops.constant([1]), True), ops.constant(np.float32(512))),
        lambda x: ops.normalize_l2(x, ops.constant([1]), 1e-3, "add"),
        lambda x: ops.batch_norm_inference(x, *(np.full(512, n, np.float32) for n in (1, 0, 0, 1e5)), 1e-5),
        lambda x: ops.batch_norm_inference(x, *(np.full(512, n, np.float32) for n in (1e-6, 0, 0, 1e-9)), 1e-12),
    ],
    ids=["rms-norm", "softmax", "mean", "l2", "large-variance", "small-variance"],
)
def test_large_results(layers: Callable[[Any], Any]) -> None:
    """ONNX's evaluator computes in float16, where ONNX Runtime's CPU provider would use float32."""
    x = ops.parameter([2, 512], np.float32, name="x")
    model = ov.Model([layers(x)], [x])
    given = np.random.default_rng(0).uniform(150, 250, (2, 512)).astype(np.float32)
    expected = ov.Core().compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})(given)[0]
    converted = convert(model, precision="float16", target="standard", opset=17).model
    np.testing.assert_allclose(
        ReferenceEvaluator(converted).run(None, {"x": given})[0], expected, rtol=0.01, atol=1e-4, strict=True
    )


def _layer_norm(x: Any) -> Any:
    centred = ops.subtract(x, ops.reduce_mean(x, ops.constant([1]), True))
    variance = ops.reduce_mean(ops.multiply(centred, centred), ops.constant([1]), True)
    return ops.divide(centred, ops.sqrt(ops.add(variance, ops.constant(np.float32(1e-12)))))


@pytest.mark.parametrize(
    "layers",
    [
        lambda x: ops.divide(x, ops.add(ops.reduce_sum(ops.abs(x), ops.constant([1]), True), ops.constant(EPS))),
        lambda x: ops.log(ops.add(ops.relu(x), ops.constant(np.float32(1e-9)))),
        lambda x: ops.normalize_l2(x, ops.constant([1]), 1e-12, "max"),
        lambda x: ops.multiply(ops.multiply(x, ops.constant(np.float32(1e-9))), ops.constant(np.float32(1e9))),
        lambda x: ops.multiply(
            ops.matmul(x, ops.constant(np.eye(8, dtype=np.float32) * np.float32(1e-9)), False, False),
            ops.constant(np.float32(1e9)),
        ),
        _layer_norm,
    ],
    ids=["sum", "log", "l2", "scale", "weights", "layer-norm"],
)
def test_results(layers: Callable[[Any], Any]) -> None:
    """Zeros, tiny and ordinary numbers give OpenVINO's results."""
    x = ops.parameter([4, 8], np.float32, name="x")
    model = ov.Model([layers(x)], [x])
    given = np.random.default_rng(0).standard_normal((4, 8)).astype(np.float32) * np.float32([[0], [1], [1e-3], [100]])
    expected = ov.Core().compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})(given)[0]
    session = onnx_specops.InferenceSession(convert(model, precision="float16").model)
    np.testing.assert_allclose(session.run(None, {"x": given})[0], expected, rtol=0.02, atol=0.02, strict=True)


@pytest.mark.parametrize("opset", [13, 16, 21])
def test_positions_in_images(opset: int) -> None:
    """float16 would move samples by a twentieth of a pixel."""
    x, rows = ops.parameter([1, 1, 300, 300], np.float32, name="x"), np.linspace(-1, 1, 50, dtype=np.float32)
    grid = np.stack(np.meshgrid(rows, rows), -1)[None]
    attributes = {"align_corners": True, "mode": "bilinear", "padding_mode": "border"}
    model = ov.Model([ops.grid_sample(x, ops.constant(grid), attributes)], [x])
    given = np.random.default_rng(0).standard_normal((1, 1, 300, 300)).astype(np.float32)
    expected = ov.Core().compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})(given)[0]
    session = onnx_specops.InferenceSession(convert(model, precision="float16", opset=opset).model)
    np.testing.assert_allclose(session.run(None, {"x": given})[0], expected, rtol=2e-3, atol=5e-3, strict=True)


@pytest.mark.parametrize("at", [10, 1000, 100_000])
@pytest.mark.parametrize("by", [ops.multiply, lambda a, b: ops.matmul(a, b, False, False)], ids=["Multiply", "MatMul"])
def test_angles(at: int, by: Callable[[Any, Any], Any]) -> None:
    p = ops.parameter([-1, 1], np.int64, name="p")
    model = ov.Model([ops.cos(by(ops.convert(p, "f32"), ops.constant(FREQUENCIES)))], [p])
    given = np.arange(at, at + 8).reshape(-1, 1)
    expected = ov.Core().compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})(given)[0]
    session = onnx_specops.InferenceSession(convert(model, precision="float16").model)
    np.testing.assert_allclose(session.run(None, {"p": given})[0], expected, atol=0.01, strict=True)


def boxes_in_an_image(count: int = 40) -> np.ndarray:
    """Return small boxes near the lower right corner of an image of 1,300 pixels, where float16 represents whole numbers."""
    rng = np.random.default_rng(1)
    corners = rng.uniform(1100, 1200, (count, 2))
    return np.concatenate([corners, corners + rng.uniform(8, 60, (count, 2))], 1).astype(np.float32)


def aligned(x: Any, boxes: Any) -> Any:
    return ops.roi_align(x, boxes, np.zeros(40, np.int64), 3, 3, 2, 0.25, "avg")


def rotated(x: Any, boxes: Any) -> Any:
    turned = ops.concat([boxes, ops.constant(np.full((40, 1), 0.3, np.float32))], 1)
    return opset15.roi_align_rotated(x, turned, np.zeros(40, np.int64), 3, 3, 2, 0.25, False)


def pooled(x: Any, boxes: Any) -> Any:
    numbered = ops.concat([ops.constant(np.zeros((40, 1), np.float32)), boxes], 1)
    return ops.roi_pooling(x, numbered, [3, 3], 0.25, "max")


@pytest.mark.parametrize("pool", [aligned, rotated, pooled])
@pytest.mark.parametrize("opset", [17, 21])
def test_boxes_in_images(pool: Callable[[Any, Any], Any], opset: int) -> None:
    """float16 would move boxes by up to half a pixel, also those that the model computes."""
    x, deltas = ops.parameter([1, 2, 320, 320], np.float32, name="x"), ops.parameter([40, 4], np.float32, name="deltas")
    boxes = boxes_in_an_image()
    half = ops.constant(np.float32(0.5))
    decoded = ops.add(ops.constant(boxes), ops.multiply(deltas, half))
    model = ov.Model([pool(x, decoded)], [x, deltas])
    rng = np.random.default_rng(0)
    given = {"x": rng.standard_normal((1, 2, 320, 320)), "deltas": rng.uniform(-3, 3, (40, 4))}
    given = {name: array.astype(np.float32) for name, array in given.items()}
    expected = ov.Core().compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})([*given.values()])[0]
    converted = convert(model, precision="float16", opset=opset).model
    got = onnx_specops.InferenceSession(converted).run(None, given)[0]
    np.testing.assert_allclose(got, expected, rtol=2e-3, atol=5e-3, strict=True)


def test_levels_of_boxes() -> None:
    """The level of a box is the floor of a logarithm, which float16 would round to the next level."""
    boxes, x = ops.parameter([6, 4], np.float32, name="boxes"), ops.parameter([1, 2, 64, 64], np.float32, name="x")
    below = ops.parameter([1, 2, 32, 32], np.float32, name="below")
    attributes = {"output_size": 2, "sampling_ratio": 2, "pyramid_scales": [4, 8], "aligned": False}
    extractor = "ExperimentalDetectronROIFeatureExtractor"
    pyramid = NodeFactory("opset6").create(extractor, [node.output(0) for node in (boxes, x, below)], attributes)
    model = ov.Model([pyramid.output(0)], [boxes, x, below])
    sizes = np.float32([111.98, 112, 112.02, 111.9, 300, 50])  # the second level begins at 112 pixels
    rng = np.random.default_rng(0)
    given = {
        "boxes": np.stack([sizes * 0, sizes * 0, sizes, sizes], 1),
        "x": rng.standard_normal((1, 2, 64, 64)).astype(np.float32),
        "below": rng.standard_normal((1, 2, 32, 32)).astype(np.float32),
    }
    expected = ov.Core().compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})([*given.values()])[0]
    got = onnx_specops.InferenceSession(convert(model, precision="float16").model).run(None, given)[0]
    np.testing.assert_allclose(got, expected, rtol=2e-3, atol=5e-3, strict=True)


def test_images_before_boxes_stay_float16() -> None:
    """The near miss: only the pooling of regions and its boxes are float32, not the computation of the image."""
    x, boxes = ops.parameter([1, 2, 64, 64], np.float32, name="x"), ops.parameter([40, 4], np.float32, name="boxes")
    weights = np.random.default_rng(0).standard_normal((2, 2, 3, 3)).astype(np.float32)
    image = ops.convolution(x, ops.constant(weights), [1, 1], [1, 1], [1, 1], [1, 1])
    converted = convert(ov.Model([aligned(image, boxes)], [x, boxes]), precision="float16").model
    (conv,) = (node for node in converted.graph.node if node.op_type == "Conv")
    (weight,) = (tensor for tensor in converted.graph.initializer if tensor.name == conv.input[1])
    assert weight.data_type == onnx.TensorProto.FLOAT16
    (pool,) = (node for node in converted.graph.node if node.op_type.lower() == "roialign")
    assert pool.input[1] == "boxes"


@pytest.mark.parametrize(
    ("levels", "type_", "tolerance"), [(65536, onnx.TensorProto.FLOAT, 0.02), (256, onnx.TensorProto.FLOAT16, 0.1)]
)
def test_levels_of_16_bits(levels: int, type_: int, tolerance: float) -> None:
    """float16 represents neither the levels nor 65,535, but all levels of 8 bits. Some elements round to the next one."""
    x, w = ops.parameter([4, 24], np.float32, name="x"), ops.parameter([24, 8], np.float32, name="w")
    limits = [np.float32(-1), np.float32(1 - 2 / levels)]  # zero is a level
    y = ops.fake_quantize(x, *limits, *limits, levels)
    weights = np.random.default_rng(2).standard_normal((24, 8)).astype(np.float32)
    model = convert(ov.Model([ops.matmul(y, w, False, False)], [x, w]), precision="float16").model
    (quantize,) = (node for node in model.graph.node if node.op_type == "QuantizeLinear")
    types = {value.name: value.type.tensor_type.elem_type for value in (*model.graph.input, *model.graph.value_info)}
    assert types[quantize.input[0]] == type_
    given = np.linspace(-1, 1, 96, dtype=np.float32).reshape(4, 24)
    low, high = limits
    step = (high - low) / (levels - 1)
    expected = (np.rint((np.clip(given, low, high) - low) / step) * step + low) @ weights
    for kernels in ("native", "none"):
        found = onnx_specops.InferenceSession(model, kernels=kernels).run(None, {"x": given, "w": weights})[0]
        np.testing.assert_allclose(found, expected, atol=tolerance)
