"""Convert a case, run it in every form, and compare it with the oracle."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import onnxruntime as ort
import pytest

import onnx_specops
from converters.openvino import convert
from converters.validation.ort_values import run_session
from onnx_specops.runtime.library import has_library
from tests.comparison import assert_all_close
from tests.conformance import providers
from tests.conformance.case import Case
from tests.conformance.oracle import Oracle, OracleError, Outputs

_SPELLINGS = {"Const": "Constant", "PReLU": "PRelu", "ReLU": "Relu", "SoftMax": "Softmax"}


def check(case: Case, oracle: Oracle, folder: Path) -> None:
    """Fail if a form differs from the oracle."""
    path = case.save(folder)
    assert (case.operation, case.version) in _layers(path), f"the IR contains no {case.operation} of {case.version}"
    runs = [list(arrays) for arrays in case.inputs]
    names = {"both": ("cpu", "evaluate"), "expected": ()}.get(case.oracle, (case.oracle,))
    answers = oracle.run(path, runs, state=case.state, names=names)
    expected = decide(case, answers)
    _, report = convert(path, folder / "model.onnx")
    if not (chosen := forms(report.custom_operators, report.without_body)):
        pytest.skip("an operator without a body runs on the CPU only")
    for form in chosen:
        got = run_model(folder / "model.onnx", runs, form, keep=case.state)
        exact = case.seeded_body or form != "none"
        assert_all_close(got, expected, case.rtol, case.atol, f"kernels={form!r} and OpenVINO", values=exact)


def forms(custom: Sequence[str], without_body: Sequence[str]) -> list[str]:
    """Return the kernel forms to run: all for a model with custom operators on the CPU, otherwise the bodies."""
    if not providers.is_cpu():  # the kernels run on the CPU
        return [] if without_body else ["none"]
    if not custom:
        return ["none"]
    chosen = ["python"] if without_body else ["none", "python"]
    return ["native", *chosen] if has_library() else chosen


def _layers(path: Path) -> set[tuple[str, str]]:
    return {
        (_SPELLINGS.get(layer.get("type", ""), layer.get("type", "")), layer.get("version", ""))
        for layer in ElementTree.parse(path).iter("layer")
    }


def decide(case: Case, answers: dict[str, Outputs | OracleError]) -> Outputs:
    if case.oracle == "expected":
        assert case.expected is not None
        return [list(outputs) for outputs in case.expected]
    name = "evaluate" if case.oracle == "evaluate" else "cpu"
    answer = answers[name]
    assert not isinstance(answer, OracleError), f"the oracle {name!r} failed: {answer}"
    other = answers.get("evaluate")
    if case.oracle == "both" and other is not None and not isinstance(other, OracleError):
        assert_all_close(answer, other, case.rtol, case.atol, "the CPU plugin and Model.evaluate")
    return answer


def run_model(path: Path, runs: list[list[np.ndarray]], kernels: str, keep: bool = False) -> Outputs:
    """Return the outputs of each set of inputs; with `keep`, variables keep their values between them."""
    session = _session(path, kernels)
    results = []
    for arrays in runs:
        if not keep:
            session.reset_state()
        feeds = {i.name: _fed(array, i.type) for i, array in zip(session.get_inputs(), arrays, strict=True)}
        results.append(run_session(session, feeds))
    return results


def _session(path: Path, kernels: str) -> ort.InferenceSession:
    options = ort.SessionOptions()
    options.log_severity_level = 3
    return onnx_specops.InferenceSession(str(path), options, providers.chosen(), kernels=kernels)


def _fed(array: np.ndarray, onnx_type: str) -> np.ndarray:
    """Return the array in the type of the ONNX model: float32 for narrow types that ONNX Runtime lacks."""
    if onnx_type == "tensor(float)" and array.dtype.itemsize == 1:
        return array.astype(np.float32)
    return np.asarray(array, object) if onnx_type == "tensor(string)" else array
