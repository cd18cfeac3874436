"""Convert a case, run it in every form, compare with the oracle."""

from __future__ import annotations

import ctypes
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from pathlib import Path

import ml_dtypes
import numpy as np
import onnxruntime as ort
from onnx import TensorProto

import onnx_specops
from converters.openvino import convert
from tests.conformance.case import Case
from tests.conformance.oracle import Oracle, OracleError, Outputs, low_precision_bytes

_SPELLINGS = {"Const": "Constant", "PReLU": "PRelu", "ReLU": "Relu", "SoftMax": "Softmax"}


def check(case: Case, oracle: Oracle, folder: Path) -> None:
    """Fail with what differs; returns when every form gives the oracle's answer."""
    path = case.save(folder)
    assert (case.operation, case.version) in _layers(path), f"the IR holds no {case.operation} of {case.version}"
    runs = [list(arrays) for arrays in case.inputs]
    names = {"both": ("cpu", "evaluate"), "expected": ()}.get(case.oracle, (case.oracle,))
    answers = oracle.run(path, runs, state=case.state, extensions="extension" in case.version, names=names)
    expected = _decide(case, answers)
    _, report = convert(path, folder / "model.onnx")
    for form in forms(report.custom_operators, report.without_body):
        got = run_model(folder / "model.onnx", runs, form, keep=case.state)
        exact = case.seeded_body or form != "none"
        compare(got, expected, case.rtol, case.atol, f"kernels={form!r} and OpenVINO", values=exact)


def forms(custom: Sequence[str], without_body: Sequence[str]) -> list[str]:
    """The kernel forms to run: all for a model with custom operators, one for standard ONNX."""
    if not custom:
        return ["none"]
    chosen = ["python"] if without_body else ["none", "python"]
    try:
        onnx_specops.library_path()
    except Exception:
        return chosen
    return ["native", *chosen]


def _layers(path: Path) -> set[tuple[str, str]]:
    return {
        (_SPELLINGS.get(layer.get("type", ""), layer.get("type", "")), layer.get("version", ""))
        for layer in ElementTree.parse(path).iter("layer")
    }


def _decide(case: Case, answers: dict[str, Outputs | OracleError]) -> Outputs:
    if case.oracle == "expected":
        assert case.expected is not None
        return [list(outputs) for outputs in case.expected]
    name = "evaluate" if case.oracle == "evaluate" else "cpu"
    answer = answers[name]
    assert not isinstance(answer, OracleError), f"the oracle {name!r} failed: {answer}"
    other = answers.get("evaluate")
    if case.oracle == "both" and other is not None and not isinstance(other, OracleError):
        compare(answer, other, case.rtol, case.atol, "the CPU plugin and Model.evaluate")
    return answer


def run_model(path: Path, runs: list[list[np.ndarray]], kernels: str, keep: bool = False) -> Outputs:
    """The outputs of each set of inputs; with `keep` the variables keep their values between them."""
    session = _session(path, kernels)
    results = []
    for arrays in runs:
        if not keep:
            session.reset_state()
        feeds = {i.name: feed(array, i.type) for i, array in zip(session.get_inputs(), arrays, strict=True)}
        results.append(run_session(session, feeds))
    return results


def _session(path: Path, kernels: str) -> ort.InferenceSession:
    options = ort.SessionOptions()
    options.log_severity_level = 3
    return onnx_specops.InferenceSession(str(path), options, kernels=kernels)


def run_session(session, feeds) -> list[np.ndarray]:
    """The session's outputs as arrays; also those of types that NumPy lacks, which ORT's ``run`` alone cannot hand out."""
    if not any(o.type in _LACKING for o in session.get_outputs()) and not any(
        hasattr(f, "element_type") for f in feeds.values()
    ):
        return [np.asarray(output) for output in session.run(None, feeds)]
    values = {
        name: f if hasattr(f, "element_type") else ort.OrtValue.ortvalue_from_numpy(np.ascontiguousarray(f).reshape(f.shape))
        for name, f in feeds.items()
    }
    return [
        _from_bytes(output) if output.data_type() in _LACKING else output.numpy()
        for output in session.run_with_ort_values(None, values)
    ]


_LACKING = {
    "tensor(bfloat16)": ml_dtypes.bfloat16,
    "tensor(float8e4m3fn)": ml_dtypes.float8_e4m3fn,
    "tensor(float8e5m2)": ml_dtypes.float8_e5m2,
    "tensor(int4)": ml_dtypes.int4,
    "tensor(uint4)": ml_dtypes.uint4,
}


def _from_bytes(value) -> np.ndarray:
    dtype, shape = np.dtype(_LACKING[value.data_type()]), value.shape()
    count, packed = int(np.prod(shape, dtype=np.int64)), "int4" in dtype.name
    size = (count + 1) // 2 if packed else count * dtype.itemsize
    raw = ctypes.string_at(value.data_ptr(), size) if size else b""
    if not packed:
        return np.frombuffer(raw, dtype).reshape(shape)
    data = np.frombuffer(raw, np.uint8)
    codes = np.stack([data & 15, data >> 4], axis=-1).reshape(-1)[:count].astype(np.int8)
    if dtype == ml_dtypes.int4:
        codes = np.where(codes < 8, codes, codes - 16)
    return codes.astype(dtype).reshape(shape)


def feed(array: np.ndarray, onnx_type: str):
    """An input in the form that ORT takes."""
    if onnx_type == "tensor(string)":
        return np.asarray(array, dtype=object)
    if onnx_type == "tensor(bfloat16)":
        bits = np.asarray(array).astype(ml_dtypes.bfloat16).view(np.uint16)
        return ort.OrtValue.ortvalue_from_numpy_with_onnx_type(
            np.ascontiguousarray(bits).reshape(array.shape), TensorProto.BFLOAT16
        )
    if (raw := low_precision_bytes(array)) is not None:
        if onnx_type not in _STORED:  # the type stands for one that ONNX lacks
            return array.astype(np.float32)
        value = ort.OrtValue.ortvalue_from_shape_and_type(array.shape, _STORED[onnx_type], "cpu")
        ctypes.memmove(value.data_ptr(), raw, len(raw))
        return value
    return np.asarray(array)


_STORED = {
    "tensor(float8e4m3fn)": TensorProto.FLOAT8E4M3FN,
    "tensor(float8e5m2)": TensorProto.FLOAT8E5M2,
    "tensor(int4)": TensorProto.INT4,
    "tensor(uint4)": TensorProto.UINT4,
}


def compare(got: Outputs, expected: Outputs, rtol: float, atol: float, who: str, values: bool = True) -> None:
    """Integers, booleans, strings, shapes and element types must be equal, floats close."""
    assert len(got) == len(expected)
    for run, (some, others) in enumerate(zip(got, expected, strict=True)):
        assert len(some) == len(others), f"{who}: {len(some)} and {len(others)} outputs"
        for index, (a, b) in enumerate(zip(some, others, strict=True)):
            place = f"{who}, run {run}, output {index}"
            assert a.shape == b.shape, f"{place}: the shapes are {a.shape} and {b.shape}"
            if a.dtype.kind in "OUS" or b.dtype.kind in "OUS":
                assert a.astype(str).tolist() == b.astype(str).tolist(), f"{place}: the strings differ"
                continue
            assert _kind(a) == _kind(b), f"{place}: the element types are {a.dtype} and {b.dtype}"
            if not values:
                continue
            if "float" not in _kind(a):
                np.testing.assert_array_equal(a, b, err_msg=place)
                continue
            x, y = a.astype(np.float64), b.astype(np.float64)
            scale = {2: 2e-2 if "bfloat16" in str(a.dtype) else 2e-3}.get(a.dtype.itemsize, 0.0)
            np.testing.assert_allclose(x, y, rtol=max(rtol, scale), atol=max(atol, scale), err_msg=place)


def _kind(array: np.ndarray) -> str:
    return str(array.dtype)
