"""InstanceNormalization of float16, whose channels may have no elements."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
import openvino as ov
import pytest
from openvino import opset12 as ops

from converters.openvino import convert
from converters.passes.onnxruntime.empty_instances import InstancesWithoutElements
from converters.passes.spellings import SPELLINGS
from onnx_specops.building import Builder, Value, new_value
from tests.converters.passes.graphs import floats, graph, operators, run

SCRIPT = """
import sys, numpy as np, onnxruntime
session = onnxruntime.InferenceSession(sys.argv[1])
for shape in ([2, 4, 0, 3], [0, 4, 2, 2]):
    y, = session.run(None, {"x": np.ones(shape, np.float16 if "16" in session.get_inputs()[0].type else np.float32)})
    assert list(y.shape) == shape
x = np.load(sys.argv[2])
np.save(sys.argv[3], session.run(None, {"x": x})[0])
"""
"""An empty tensor may end the process."""


def _group_normalization(x: Any) -> Any:
    return ops.group_normalization(x, np.array([1, 2, 3, 4], np.float16), np.zeros(4, np.float16), 2, 1e-5)


def _mean_variance(x: Any) -> Any:
    return ops.mvn(x, np.array([2, 3]), True, 1e-5, "inside_sqrt")


@pytest.mark.parametrize("layer", [_group_normalization, _mean_variance])
@pytest.mark.parametrize(
    "options",
    [{}, {"precision": "float16"}, {"opset": 13}, {"target": "standard"}, {"target": "standard", "precision": "float16"}],
)
def test_images_without_pixels(layer: Any, options: dict[str, Any], tmp_path: Path) -> None:
    x = ops.parameter([-1, 4, -1, -1], np.float16, name="x")
    model = ov.Model([layer(x)], [x])
    numbers = np.random.default_rng(0).standard_normal((2, 4, 2, 3)).astype(np.float16)
    (expected,) = ov.Core().compile_model(model.clone(), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})(numbers).values()
    files = [tmp_path / name for name in ("model.onnx", "x.npy", "y.npy")]
    convert(model, files[0], **options)
    np.save(files[1], numbers)
    subprocess.run([sys.executable, "-c", SCRIPT, *map(str, files)], check=True)
    np.testing.assert_allclose(np.load(files[2]), expected, rtol=2e-2, atol=2e-3, strict=True)


@pytest.mark.parametrize(
    ("dtype", "dims", "source", "reshaped"),
    [
        (ir.DataType.FLOAT16, (2, 3, None), None, True),
        (ir.DataType.FLOAT16, (2, 3, 4, None), None, True),
        (ir.DataType.FLOAT16, (2, 3, 0), None, True),
        (ir.DataType.FLOAT16, (None, 3, 4), None, False),  # an empty batch has no effect
        (ir.DataType.FLOAT, (2, 3, None), None, False),
        (ir.DataType.FLOAT, (2, 3, None), ir.DataType.FLOAT16, True),  # ONNX Runtime removes the Cast
        (ir.DataType.FLOAT, (2, 3, 4), ir.DataType.FLOAT16, False),
        (ir.DataType.FLOAT, (2, 3, None), ir.DataType.DOUBLE, False),
    ],
)
def test_conditions(dtype: ir.DataType, dims: tuple[int | None, ...], source: ir.DataType | None, reshaped: bool) -> None:
    def emit(op: Builder, x: Value) -> Value:
        data = x if source is None else op.Cast(x, to=dtype)
        found: Value = op.InstanceNormalization(data, *(op.const(np.ones(3), dtype) for _ in range(2)))
        return found

    model = graph(emit, new_value(source or dtype, dims, "x"))
    assert InstancesWithoutElements()(model).modified is reshaped
    assert ("Reshape" in operators(model)) is reshaped


@pytest.mark.parametrize("shape", [(0, 3, 2, 2), (2, 3, 0, 2), (0, 3, 0, 0)])
def test_decomposed_normalizations_of_nothing(shape: tuple[int, ...]) -> None:
    model = graph(lambda op, x: op.InstanceNormalization(x, *np.ones((2, 3), np.float32)), floats("x", None, 3, None, None))
    SPELLINGS["several elements"]()(model)
    assert "InstanceNormalization" not in operators(model)
    assert run(model, np.zeros(shape, np.float32))[0].shape == shape
