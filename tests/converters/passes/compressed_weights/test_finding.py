"""The recognition of decompressed weights."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx_ir as ir
import openvino as ov
import pytest
from openvino import opset13 as ops

import onnx_specops
from converters.openvino import convert
from converters.passes.compressed_weights.codes import codes_of
from converters.passes.compressed_weights.finding import find_weights
from tests.converters.passes.graphs import floats, graph

D = ir.DataType


@pytest.mark.parametrize(
    ("types", "found"),
    [
        ([D.FLOAT16, D.FLOAT], True),
        ([D.BFLOAT16, D.FLOAT], True),
        ([D.UINT8, D.FLOAT16, D.FLOAT], True),
        ([D.INT8, D.BFLOAT16, D.FLOAT], True),
        ([D.FLOAT16, D.BFLOAT16, D.FLOAT], False),
        ([D.BFLOAT16, D.FLOAT16, D.FLOAT], False),
        ([D.FLOAT16, D.FLOAT, D.BFLOAT16, D.FLOAT], False),
    ],
    ids=lambda types: "-".join(str(type_) for type_ in types) if isinstance(types, list) else None,
)
def test_casts_that_round(types: list[ir.DataType], found: bool) -> None:
    """float16 and bfloat16 round each other's numbers."""
    stored, *casts = types
    weights = ir.tensor(np.ones((64, 512), stored.numpy()))

    def emit(op, x):
        value = op.const(weights)
        for type_ in casts:
            value = op.node("Cast", value, to=type_)
        return op.MatMul(x, value)

    product = next(node for node in graph(emit, floats("x", 1, 64)).graph if node.op_type == "MatMul")
    assert product.inputs[1] is not None
    assert (find_weights(product.inputs[1]) is not None) is found


@pytest.mark.parametrize(("count", "found"), [(1, True), (2, False), (2000, False)])
def test_lookups_of_lookups(count: int, found: bool) -> None:
    def emit(op, x):
        value = op.Cast(op.const(np.ones((64, 512), np.uint8)), to=D.INT32)
        for k in range(count):
            value = op.Gather(np.arange(256).astype(np.int32 if k + 1 < count else np.float32), value, axis=0)
        return op.MatMul(x, value)

    product = next(node for node in graph(emit, floats("x", 1, 64)).graph if node.op_type == "MatMul")
    assert product.inputs[1] is not None
    assert (codes_of(product.inputs[1]) is not None) is found


@pytest.mark.parametrize("scaled", [False, True])
def test_levels_of_nf4_that_float16_rounds(scaled: bool) -> None:
    """Without a scale OpenVINO folds the Convert, and the levels are float16; with a scale it does not round them."""
    rng = np.random.default_rng(0)
    packed = rng.integers(0, 256, 96 * 256 // 2, np.uint8)
    x = ops.parameter([16, 256], np.float32, name="x")
    shape = [96, 256] if scaled else [96, 8, 32]
    weights = ops.convert(ov.op.Constant(ov.Tensor(packed, ov.Shape(shape), ov.Type.nf4), shared_memory=False), "f16")
    if scaled:
        weights = ops.multiply(weights, ops.constant(np.full((96, 1), 0.5, np.float16)))
    else:
        weights = ops.reshape(weights, ops.constant([96, 256]), False)
    weights = ops.convert(weights, "f32")
    model = ov.Model([ops.matmul(x, weights, False, True)], [x])
    data = np.eye(16, 256, dtype=np.float32)
    exact = {"INFERENCE_PRECISION_HINT": "f32", "DYNAMIC_QUANTIZATION_GROUP_SIZE": "0"}
    expected = ov.Core().compile_model(model, "CPU", exact)([data])[0]
    converted, _ = convert(model)
    assert "MatMulCompressed" in {node.op_type for node in converted.graph.node}
    for kernels in ("none", "auto"):
        session = onnx_specops.InferenceSession(converted.SerializeToString(), kernels=kernels)
        np.testing.assert_array_equal(session.run(None, {"x": data})[0], expected, strict=True)


def _levels(form: str, rows: int) -> ov.Model:
    """Build consumers of scaled nf4 levels, 64 per row; ``x`` has two rows."""
    packed = np.random.default_rng(0).integers(0, 256, rows * 32, np.uint8)
    x = ops.parameter([2, 64], np.float32, name="x")
    shape = [rows, 2, 32] if "group" in form else [rows, 64]
    levels = ops.convert(ov.op.Constant(ov.Tensor(packed, ov.Shape(shape), ov.Type.nf4), shared_memory=False), "f16")
    one = [rows] + [1] * (len(shape) - 1)
    if "zero point" in form:
        levels = ops.subtract(levels, ops.constant(np.full(one, 0.25, np.float16)))
    elif form == "negated":
        levels = ops.subtract(ops.constant(np.zeros(one, np.float16)), levels)
    weights = ops.multiply(levels, ops.constant(np.full(one, 0.7, np.float16)))
    if form == "group, late":
        weights = ops.reshape(ops.convert(weights, "f32"), ops.constant([rows, 64]), False)
    else:
        if "group" in form:
            weights = ops.reshape(weights, ops.constant([rows, 64]), False)
        weights = ops.convert(weights, "f32")
    if form == "sum":
        result = ops.reduce_sum(ops.multiply(ops.gather(x, ops.constant([0]), ops.constant(0)), weights), ops.constant(1))
    elif form == "product and sum":
        result = ops.add(ops.matmul(x, weights, False, True), ops.reduce_sum(weights, ops.constant(1), False))
    elif form == "rows":
        result = ops.gather(weights, ops.convert(ops.gather(x, ops.constant([0]), ops.constant(1)), "i64"), ops.constant(0))
    elif form == "transposed group":
        result = ops.matmul(x, ops.transpose(weights, ops.constant([1, 0])), False, False)
    elif form == "two products":
        both = [ops.matmul(y, weights, False, True) for y in (x, ops.relu(x))]
        result = ops.concat(both, 0)
    else:
        result = ops.matmul(x, weights, False, True)
    return ov.Model([result], [x])


@pytest.mark.parametrize("rows", [16, 256], ids=["small", "large"])
@pytest.mark.parametrize(
    ("form", "rounded"),
    [
        ("product", False), ("group", False), ("transposed group", False), ("two products", False),
        ("group, late", True), ("sum", True), ("product and sum", True), ("rows", True), ("zero point", False),
        ("group with zero point", False), ("negated", True),
    ],
)  # fmt: skip
def test_levels_of_nf4_that_only_products_use(form: str, rounded: bool, rows: int, tmp_path: Path) -> None:
    """OpenVINO keeps them for products only; for other consumers it folds the Convert, which rounds them."""
    model = _levels(form, rows)
    ov.save_model(model, tmp_path / "model.xml", compress_to_fp16=False)
    data = np.zeros((2, 64), np.float32)
    data[0, 3], data[1, 8] = 1, 2
    if form == "sum":
        data[0] = np.eye(64, dtype=np.float32)[8]
    exact = {"INFERENCE_PRECISION_HINT": "f32", "DYNAMIC_QUANTIZATION_GROUP_SIZE": "0"}
    expected = ov.Core().compile_model(tmp_path / "model.xml", "CPU", exact)([data])[0]
    if form not in ("sum", "product and sum", "rows"):
        levels = expected[:1] / np.float32(np.float16(0.7)) + np.float32(0.25 if "zero point" in form else 0)
        assert np.allclose(levels, levels.astype(np.float16), rtol=1e-6, atol=0) == rounded
    converted, _ = convert(tmp_path / "model.xml")
    for kernels in ("none", "python", "native"):
        session = onnx_specops.InferenceSession(converted.SerializeToString(), kernels=kernels)
        np.testing.assert_allclose(session.run(None, {"x": data})[0], expected, rtol=2e-6, atol=1e-6, strict=True)


def test_verification_keeps_marked_casts(tmp_path: Path) -> None:
    """A Cast to float16 that is marked as not rounding is also marked in the copy of the rewritten part."""
    ov.save_model(_levels("group", 256), tmp_path / "model.xml", compress_to_fp16=False)
    converted, _ = convert(tmp_path / "model.xml", verify=True)
    assert "MatMulCompressed" in {node.op_type for node in converted.graph.node}
