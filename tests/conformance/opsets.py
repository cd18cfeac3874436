"""A case at another opset: it converts, is valid ONNX and gives the oracle's answer, or it is refused with a clear error."""

from __future__ import annotations

import os
from pathlib import Path

import onnx
import pytest

from converters.errors import Fault, UnsupportedError
from converters.openvino import convert
from tests.conformance.case import Case
from tests.conformance.check import _decide, compare, forms, run_model
from tests.conformance.oracle import Oracle

READABLE = 10
"""A version of the file format that ONNX Runtime reads whatever the opset."""


def check_at(opset: int, case: Case, oracle: Oracle, folder: Path) -> None:
    """Fail with what differs; skip what the opset cannot say, with the reason."""
    path, target = case.save(folder), folder / "model.onnx"
    runs = [list(arrays) for arrays in case.inputs]
    names = {"both": ("cpu",), "expected": ()}.get(case.oracle, (case.oracle,))
    expected = _decide(case, oracle.run(path, runs, state=case.state, extensions="extension" in case.version, names=names))
    try:
        proto, report = convert(path, target, opset=opset)
    except UnsupportedError as error:
        for problem in error.problems:
            assert problem.fault is Fault.UNSUPPORTED and problem.layer_name is not None, problem
            assert problem.message.startswith(f"opset {opset} cannot say "), problem
            assert problem.remedy.startswith("use opset "), problem
        pytest.skip("; ".join(problem.message for problem in error.problems))
    check_valid(proto)
    read_by_onnxruntime(proto, target)
    for form in forms(report.custom_operators, report.without_body):
        got = run_model(target, runs, form, keep=case.state)
        exact = case.seeded_body or form != "none"
        compare(got, expected, case.rtol, case.atol, f"opset {opset}, kernels={form!r} and OpenVINO", values=exact)


def check_valid(proto: onnx.ModelProto) -> None:
    """ONNX's own checks, with shape inference; they know neither inputs and outputs of unknown rank nor dimensions of 1 that
    Einsum broadcasts.
    """
    ports = [*proto.graph.input, *proto.graph.output]
    ranked = all(port.type.tensor_type.HasField("shape") for port in ports)
    if ranked and not any(node.op_type == "Einsum" for node in proto.graph.node):
        onnx.checker.check_model(proto, full_check=True)


def read_by_onnxruntime(proto: onnx.ModelProto, path: Path) -> None:
    """Let ONNX Runtime read opsets that it does not know as released yet."""
    os.environ["ALLOW_RELEASED_ONNX_OPSET_ONLY"] = "0"
    if proto.ir_version > READABLE:
        proto.ir_version = READABLE
        path.write_bytes(proto.SerializeToString())
