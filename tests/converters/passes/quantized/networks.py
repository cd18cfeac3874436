"""Small quantized networks, converted, against OpenVINO without its low-precision transformations."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import openvino as ov
from openvino import opset13 as ops

import onnx_specops
from converters.openvino import convert

EXACT = {"INFERENCE_PRECISION_HINT": "f32", "LP_TRANSFORMS_MODE": "NO", "DYNAMIC_QUANTIZATION_GROUP_SIZE": "0"}


def constant(numbers: Any) -> Any:
    """Return floats as float32, other numbers unchanged."""
    numbers = np.asarray(numbers)
    return ops.constant(numbers.astype(np.float32) if numbers.dtype == np.float64 else numbers)


def quantized(x: Any, low: Any = -2.0, high: Any = 2.0 * 127 / 128, levels: int = 256) -> Any:
    """Quantize numbers with the same input and output limits; by default with a step of 1 / 64."""
    limits = [np.asarray(limit, np.float32) for limit in (low, high)] * 2
    return ops.fake_quantize(x, *map(ops.constant, limits), levels)


def answers(model: ov.Model, *given: np.ndarray) -> np.ndarray:
    """Return OpenVINO's first result."""
    request = ov.Core().compile_model(model, "CPU", EXACT).create_infer_request()
    request.infer([np.array(x, order="C") for x in given])
    return np.array(request.get_output_tensor(0).data)


def rounded(x: np.ndarray, low: Any = -2.0, high: Any = 2.0 * 127 / 128, levels: int = 256) -> np.ndarray:
    """Compute `quantized` in float64 by the specification of FakeQuantize."""
    steps = np.rint((np.clip(x.astype(np.float64), low, high) - low) / (high - low) * (levels - 1))
    return steps / (levels - 1) * (high - low) + low


def compared(
    model: ov.Model,
    folder: Path,
    *given: np.ndarray,
    atol: float,
    body_atol: float | None = None,
    expected: np.ndarray | None = None,
    **options: Any,
) -> onnx.ModelProto:
    """Convert the model; its first result must equal OpenVINO's, or ``expected``, within ``atol``, with and without kernels.

    ``body_atol`` is the tolerance without kernels, if it differs.
    """
    ov.save_model(model, folder / "model.xml", compress_to_fp16=False)
    result, _ = convert(folder / "model.xml", folder / "model.onnx", **options)
    expected = answers(model, *given) if expected is None else expected.astype(np.float32)
    of_bodies = atol if body_atol is None else body_atol
    for kernels, tolerance in (("auto", atol), ("none", of_bodies)):
        running = onnx_specops.InferenceSession(folder / "model.onnx", kernels=kernels)
        feeds = dict(zip((value.name for value in running.get_inputs()), given, strict=True))
        np.testing.assert_allclose(running.run(None, feeds)[0], expected, rtol=1e-4, atol=tolerance, strict=True)
    return result


def names(model: onnx.ModelProto) -> list[str]:
    """Return the operators in order, without those that prepare an input of the model for its QuantizeLinear."""
    scaled = {value.name for value in model.graph.input}
    found = []
    for node in model.graph.node:
        if node.op_type in ("Mul", "Add", "Max") and node.input[0] in scaled:
            scaled.update(node.output)
        else:
            found.append(node.op_type)
    return found
