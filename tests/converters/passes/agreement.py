"""OpenVINO models, converted in the forms that passes must support, against OpenVINO."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort

from converters.openvino import convert
from tests.comparison import assert_all_close
from tests.conformance.check import run_model
from tests.conformance.oracle import Oracle, OracleError

FORMS = {
    "plain": ({"compress_to_fp16": False}, {}),
    "halves": ({"compress_to_fp16": True}, {}),
    "reference": ({"compress_to_fp16": True}, {"weights": "reference"}),
    "opset-13": ({"compress_to_fp16": True}, {"opset": 13}),
}
"""Name -> how OpenVINO saves the model, and the options of its conversion."""


def converted(
    model: Any,
    inputs: list[np.ndarray],
    oracle: Oracle,
    folder: Path,
    form: str = "plain",
    *,
    rtol: float = 1e-4,
    atol: float = 1e-5,
    **more: Any,
) -> onnx.ModelProto:
    """Convert the ``openvino.Model`` with more options; the result must agree with OpenVINO for the inputs."""
    import openvino as ov

    saved, options = FORMS[form]
    ov.save_model(model, folder / "model.xml", **saved)
    result, _ = convert(folder / "model.xml", folder / "model.onnx", **options, **more)  # type: ignore[arg-type]
    expected = oracle.run(folder / "model.xml", [inputs], names=("cpu",))["cpu"]
    assert not isinstance(expected, OracleError), expected
    got = run_model(folder / "model.onnx", [inputs], "none")
    assert_all_close(got, expected, rtol, atol, f"{form}: ONNX Runtime and OpenVINO")
    onnx.checker.check_model(str(folder / "model.onnx"), full_check=True)
    return result


def operators(model: onnx.ModelProto) -> list[str]:
    """Return the sorted operators."""
    return sorted(node.op_type for node in model.graph.node)


def optimised(path: Path) -> list[str]:
    """Return the operators after ONNX Runtime's optimizations for CPUs."""
    options = ort.SessionOptions()
    options.optimized_model_filepath = str(path.with_suffix(".optimised"))
    options.log_severity_level = 3
    ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return operators(onnx.load(options.optimized_model_filepath))
