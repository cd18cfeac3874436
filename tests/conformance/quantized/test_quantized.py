"""Quantized networks: in integers the error is that of OpenVINO itself; in floats results are equal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest

import onnx_specops
from converters.openvino import convert
from converters.openvino.runtime.process import OpenVINOProcess
from onnx_specops.domain import CONTRIB_DOMAIN
from onnx_specops.runtime.reference import reference_evaluator
from tests.conformance.models.noise import relative_l2
from tests.conformance.quantized.record import FILES, unpack

NAMES = sorted(file.stem for file in FILES.iterdir())
SHIPPED = {"INFERENCE_PRECISION_HINT": "f32"}
EXACT = {**SHIPPED, "LP_TRANSFORMS_MODE": "NO", "DYNAMIC_QUANTIZATION_GROUP_SIZE": "0"}
ONE_LEVEL = 0.003
"""The effect of one or two values that round to the neighboring level. Any two implementations differ as much."""


def openvino_outputs(path: str, runs: list[np.ndarray], settings: dict[str, str]) -> list[np.ndarray]:
    """Return the outputs of OpenVINO's CPU plugin for each input."""
    import openvino as ov

    compiled = ov.Core().compile_model(path, "CPU", settings)
    return [compiled([run])[0] for run in runs]


@pytest.fixture(scope="module")
def openvino() -> Iterator[OpenVINOProcess]:
    with OpenVINOProcess() as process:
        yield process


def inputs(name: str) -> list[np.ndarray]:
    shape = (2, 7, 24) if name in ("encoder", "recurrent") else (2, 3, 24, 24)
    rng = np.random.default_rng(1)
    return [rng.standard_normal(shape).astype(np.float32) for _ in range(8)]


def outputs(session: ort.InferenceSession, runs: list[np.ndarray]) -> np.ndarray:
    return np.stack([session.run(None, {"x": run})[0] for run in runs])


@pytest.mark.parametrize("name", NAMES)
def test_quantized_network(name: str, openvino: OpenVINOProcess, tmp_path: Path) -> None:
    path, runs = unpack(name, tmp_path), inputs(name)
    exact, shipped = (np.stack(openvino.ask(openvino_outputs, str(path), runs, settings)) for settings in (EXACT, SHIPPED))
    allowed = max(relative_l2(shipped, exact), ONE_LEVEL)
    for options in ({}, {"contrib": False}, {"opset": 13}):
        target = tmp_path / "integer.onnx"
        model, report = convert(path, target, **options)
        onnx.checker.check_model(model, full_check=True)
        if not options:
            kernels = {"QuantizeLinear", "onnx_specops.Elementwise"}
            assert kernels & set(report.nodes) or name == "recurrent"  # ONNX Runtime has no integer LSTM
        plain = outputs(onnx_specops.InferenceSession(target, kernels="none"), runs)
        assert relative_l2(plain, exact) <= allowed, options
        if not options:
            native = outputs(onnx_specops.InferenceSession(target, kernels="native"), runs)
            assert relative_l2(native, exact) <= allowed
        else:
            assert CONTRIB_DOMAIN not in {entry.domain for entry in model.opset_import}
    for kernels in ("native", "none"):
        convert(path, tmp_path / "float.onnx", quantized="float")
        floats = outputs(onnx_specops.InferenceSession(tmp_path / "float.onnx", kernels=kernels), runs)
        assert relative_l2(floats, exact) <= ONE_LEVEL / 2


# The operators that stay in floats: transposed, grouped and few-channel convolutions before an activation function, and the
# second product of attention, whose weights NNCF does not quantize.
FUSED = {
    "encoder": {"com.microsoft.MatMulIntegerToFloat": 11, "MatMul": 2},
    "float_weights": {"com.microsoft.QLinearConv": 2},
    "mobile": {"com.microsoft.QLinearConv": 4, "com.microsoft.QLinearAdd": 2, "com.microsoft.MatMulIntegerToFloat": 3},
    "residual": {"com.microsoft.QLinearConv": 5, "com.microsoft.QLinearAdd": 1, "com.microsoft.MatMulIntegerToFloat": 1},
}


@pytest.mark.parametrize("name", FUSED)
def test_onnx_runtime_computes_in_integers(name: str, tmp_path: Path) -> None:
    """Checks the graph that ONNX Runtime runs, not the written one."""
    convert(unpack(name, tmp_path), tmp_path / "model.onnx")
    options = ort.SessionOptions()
    options.optimized_model_filepath = str(tmp_path / "optimized.onnx")
    ort.InferenceSession(tmp_path / "model.onnx", options, providers=["CPUExecutionProvider"])
    nodes = onnx.load(tmp_path / "optimized.onnx").graph.node
    counts = Counter(f"{node.domain}.{node.op_type}" if node.domain else node.op_type for node in nodes)
    assert {operator: counts[operator] for operator in FUSED[name]} == FUSED[name]


def test_weights_stay_integers(tmp_path: Path) -> None:
    """The file is as small as the .bin: no weight becomes a float, and none is duplicated."""
    path = unpack("mobile", tmp_path)
    model, _ = convert(path, tmp_path / "model.onnx")
    kept = sum(np.prod(t.dims) for t in model.graph.initializer if t.data_type == onnx.TensorProto.INT8)
    size = path.with_suffix(".bin").stat().st_size
    assert kept > 0.35 * size  # NNCF leaves the gate's weights in floats
    assert sum(len(t.raw_data) for t in model.graph.initializer) <= 1.05 * size + 4096


def test_the_reference_evaluator_runs_it(tmp_path: Path) -> None:
    for name in ("encoder", "residual"):
        target = tmp_path / f"{name}.onnx"
        convert(unpack(name, tmp_path), target)
        run = inputs(name)[0]
        expected = onnx_specops.InferenceSession(target, kernels="none").run(None, {"x": run})[0]
        assert relative_l2(reference_evaluator(target).run(None, {"x": run})[0], expected) <= ONE_LEVEL


def test_the_two_quantized_forms(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="quantized must be 'integer' or 'float', not 'int8'"):
        convert(unpack("residual", tmp_path), quantized="int8")  # type: ignore[arg-type]
