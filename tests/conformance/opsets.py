"""A case at another opset is valid ONNX and agrees with the oracle, or is rejected with a clear error."""

from __future__ import annotations

import functools
import xml.etree.ElementTree as ET
from pathlib import Path

import onnx
import onnxruntime as ort
import pytest
from onnxruntime.capi.onnxruntime_pybind11_state import NotImplemented as NoKernel

from converters.errors import Fault, UnsupportedError
from converters.openvino import convert
from converters.targets import TARGETS
from onnx_specops.building import OPSET
from onnx_specops.lowering import ir_version, newest
from tests.comparison import assert_all_close
from tests.conformance.case import Case
from tests.conformance.check import decide, forms, run_model
from tests.conformance.oracle import Oracle

SIXTEEN_BITS = frozenset((
    "Constant-1-nf4-through-f16", "Convert-1-computed-bf16-f32", "Convert-1-computed-bf16-f64",
    "Convert-1-computed-bf16-i32", "RandomUniform-8-f16-pytorch", "RandomUniform-8-f16-tensorflow",
    *(f"Convert-1-{kind}-bf16-f32" for kind in ("f16", "f32", "f64", "i32", "i64", "u16")),
))  # fmt: skip
"""Cases whose results show 16-bit rounding, which a target with ``float32`` does not have."""


def check_at(opset: int | None, case: Case, oracle: Oracle, folder: Path, target: str = "onnxruntime") -> None:
    """Fail for differences; skip cases that the opset or target does not support, with the reason."""
    if case.id in SIXTEEN_BITS and TARGETS[target].float32:
        pytest.skip("the target computes in float32, the model in 16 bits")
    path, written = case.save(folder), folder / "model.onnx"
    runs = [list(arrays) for arrays in case.inputs]
    shapes: dict[str, list[int]] = {}
    if TARGETS[target].static:  # the inputs of equal shapes
        layers = ET.parse(path).getroot().iterfind("layers/layer[@type='Parameter']")
        shapes = {str(layer.get("name")): list(array.shape) for layer, array in zip(layers, runs[0], strict=True)}
        runs = [run for run in runs if [list(array.shape) for array in run] == list(shapes.values())]
    names = {"both": ("cpu",), "expected": ()}.get(case.oracle, (case.oracle,))
    answers = oracle.run(path, runs, state=case.state, names=names)
    expected = decide(case, answers)
    try:
        proto, report = convert(path, written, opset=opset, target=target, input_shapes=shapes)
    except UnsupportedError as error:
        for problem in error.problems:
            of_variable = bool(shapes) and "--input-shape" in (problem.remedy or "")
            assert problem.fault is Fault.UNSUPPORTED and (problem.layer_name is not None or of_variable), problem
            if target == "onnxruntime":
                assert problem.message.startswith(f"opset {opset} cannot represent "), problem
                assert problem.remedy.startswith("use opset "), problem
        pytest.skip("; ".join(problem.message for problem in error.problems))
    check_valid(proto)
    read_by_onnxruntime(proto, written)
    for form in forms(report.custom_operators, report.without_body):
        got = run_model(written, runs, form, keep=case.state)
        exact = case.seeded_body or form != "none"
        assert_all_close(got, expected, case.rtol, case.atol, f"opset {opset}, kernels={form!r} and OpenVINO", values=exact)


def check_valid(proto: onnx.ModelProto) -> None:
    """Run ONNX's own checks with shape inference.

    They do not support inputs and outputs of unknown rank, dimensions of 1 that Einsum broadcasts, or empty windows in
    poolings that round up.
    """
    ports = [*proto.graph.input, *proto.graph.output]
    ranked = all(port.type.tensor_type.HasField("shape") for port in ports)
    if ranked and not any(node.op_type in ("Einsum", "AveragePool") for node in proto.graph.node):
        onnx.checker.check_model(proto, full_check=True)


def read_by_onnxruntime(proto: onnx.ModelProto, path: Path) -> None:
    """Let ONNX Runtime read opsets that it does not support, or whose kernels are incomplete (for 22 it lacks
    RandomUniformLike). From 21 on only the version numbers change.
    """
    if _stamp(proto, *_newest_read()):
        path.write_bytes(proto.SerializeToString())
    try:
        ort.InferenceSession(path, providers=["CPUExecutionProvider"])
    except NoKernel:
        if _stamp(proto, OPSET, ir_version(OPSET)):
            path.write_bytes(proto.SerializeToString())
    except Exception:  # the plugin's kernels are missing
        return


def _stamp(proto: onnx.ModelProto, opset: int, ir_version: int) -> bool:
    """Lower the model's opset and file format version to the given ones; return whether they change."""
    imports = [entry for holder in (proto, *proto.functions) for entry in holder.opset_import]
    newer = [entry for entry in imports if not entry.domain and entry.version > opset]
    for entry in newer:
        entry.version = opset
    changed = bool(newer) or proto.ir_version > ir_version
    proto.ir_version = min(proto.ir_version, ir_version)
    return changed


@functools.cache
def _newest_read() -> tuple[int, int]:
    """Return the newest opset that the installed ONNX Runtime reads, with its file format version."""
    value = onnx.helper.make_tensor_value_info
    node = onnx.helper.make_node("Abs", ["x"], ["y"])
    graph = onnx.helper.make_graph([node], "probe", [value("x", 1, [1])], [value("y", 1, [1])])
    for opset in range(newest(), 20, -1):
        imports = [onnx.helper.make_opsetid("", opset)]
        model = onnx.helper.make_model(graph, opset_imports=imports, ir_version=ir_version(opset))
        try:
            ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
        except Exception:  # ONNX Runtime's exceptions have no common base
            continue
        return opset, ir_version(opset)
    raise AssertionError("ONNX Runtime reads no opset from 21 on")
