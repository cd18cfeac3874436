"""Products of transposed and cast operands, which crash ONNX Runtime if the operands' ranks differ."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx_ir as ir
import pytest

from converters.openvino import convert
from converters.passes.onnxruntime import TransposeAfterCasts
from onnx_specops.building import new_value
from tests.conformance.oracle import Oracle
from tests.converters.passes.agreement import converted, operators
from tests.converters.passes.graphs import graph, rewritten

X = np.arange(24).reshape(2, 3, 4) % 7 - 3


def _product(ops, x, perm: list[int], rank: int):
    rows = X.shape[perm[-1]]
    weights = (np.arange(rows * 5, dtype=np.float32) % 7 - 3).reshape([1] * (rank - 2) + [rows, 5])
    turned = ops.convert(ops.transpose(x, ops.constant(perm)), "f32")
    return ops.matmul(turned, ops.constant(weights), False, False)


@pytest.mark.parametrize("dtype", [np.float16, np.int32])
@pytest.mark.parametrize("rank", [2, 4])
@pytest.mark.parametrize("perm", [[1, 0, 2], [1, 2, 0]])
def test_a_cast_moves_before_the_transpose(perm, rank, dtype, oracle: Oracle, tmp_path: Path) -> None:
    import openvino as ov
    from openvino import opset14 as ops

    x = ops.parameter([2, 3, 4], dtype)
    model = converted(ov.Model([_product(ops, x, perm, rank)], [x]), [X.astype(dtype)], oracle, tmp_path)
    assert [node.op_type for node in model.graph.node] == ["Cast", "Transpose", "MatMul"]


@pytest.mark.parametrize("perms", [([1, 0, 2], [0, 2, 1]), ([0, 2, 1], [2, 0, 1])])
def test_a_cast_moves_before_combined_transposes(perms, oracle: Oracle, tmp_path: Path) -> None:
    import openvino as ov
    from openvino import opset14 as ops

    x = ops.parameter([2, 3, 4], np.float16)
    turned = x
    for perm in perms:
        turned = ops.transpose(turned, ops.constant(perm))
    weights = ops.constant(np.ones((turned.shape[-1], 5), np.float32))
    product = ops.matmul(ops.convert(turned, "f32"), weights, False, False)
    model = converted(ov.Model([product], [x]), [X.astype(np.float16)], oracle, tmp_path)
    assert [node.op_type for node in model.graph.node] == ["Cast", "Transpose", "MatMul"]


def test_other_consumers_keep_the_transpose(oracle: Oracle, tmp_path: Path) -> None:
    import openvino as ov
    from openvino import opset14 as ops

    x = ops.parameter([2, 3, 4], np.int32)
    turned = ops.transpose(x, ops.constant([1, 0, 2]))
    product = ops.matmul(ops.convert(turned, "f32"), ops.constant(np.ones((4, 5), np.float32)), False, False)
    model = converted(ov.Model([product, ops.abs(turned)], [x]), [X.astype(np.int32)], oracle, tmp_path)
    assert operators(model) == ["Abs", "Cast", "MatMul", "Transpose", "Transpose"]


def test_a_product_in_16_bits_loads(tmp_path: Path) -> None:
    """ONNX Runtime itself inserts casts around it."""
    import openvino as ov
    from openvino import opset14 as ops

    x = ops.parameter([2, 3, 4], np.float32)
    weights = ops.constant(np.ones((4, 5), np.float32))
    product = ops.matmul(ops.transpose(x, ops.constant([1, 0, 2])), weights, False, False)
    ov.save_model(ov.Model([product], [x]), tmp_path / "model.xml")
    convert(tmp_path / "model.xml", tmp_path / "model.onnx", precision="float16")
    code = "import onnxruntime, sys; print(onnxruntime.InferenceSession(sys.argv[1]).get_outputs()[0].shape)"
    ran = subprocess.run([sys.executable, "-c", code, tmp_path / "model.onnx"], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[3, 2, 5]"


def _turned(op, x, *perms: list[int], cast: bool = True):
    for perm in perms:
        x = op.Transpose(x, perm=perm)
    x = op.Cast(x, to=ir.DataType.FLOAT) if cast else x
    return op.MatMul(x, op.const(np.ones((x.dims[-1], 5), x.dtype.numpy())))


@pytest.mark.parametrize(
    ("emit", "moved"),
    [
        (lambda op, x: _turned(op, x, [1, 0, 2]), True),
        (lambda op, x: _turned(op, x, [1, 2, 0]), True),
        (lambda op, x: _turned(op, x, [0, 2, 1], [2, 0, 1]), True),
        (lambda op, x: _turned(op, x, [0, 2, 1]), False),  # the first dimension stays
        (lambda op, x: _turned(op, x, [2, 1, 0]), False),
        (lambda op, x: _turned(op, x, [2, 0, 1]), False),
        (lambda op, x: _turned(op, x, [1, 0, 2], cast=False), False),
        (lambda op, x: _turned(op, op.Abs(x)), False),
    ],
)
def test_conditions(emit, moved: bool) -> None:
    model = graph(emit, new_value(ir.DataType.INT32, [2, 3, 4], "x"))
    assert TransposeAfterCasts()(model).modified is moved
    x = new_value(ir.DataType.INT32, [2, 3, 4], "x")
    assert "MatMul" in rewritten(emit, x, by=[TransposeAfterCasts()], numbers=[X.astype(np.int32)])
