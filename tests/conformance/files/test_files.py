"""Public files are read like OpenVINO reads them, agree with it, and ignored content is reported."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import openvino as ov
import pytest

from converters.openvino import convert
from converters.openvino.onnx_types import element_type
from tests.comparison import assert_all_close
from tests.conformance.check import forms, run_model
from tests.conformance.files.lesson import Lesson
from tests.conformance.files.lessons import LESSONS
from tests.conformance.oracle import Oracle, OracleError


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.name.replace(" ", "-"))
def test_file(lesson: Lesson, oracle: Oracle, tmp_path: Path) -> None:
    path, target = lesson.save(tmp_path), tmp_path / "model.onnx"
    model, report = convert(path, target)
    assert sorted(remark.message for remark in report.passed_over) == sorted(lesson.remarks)
    known = ov.Core().read_model(path)
    for ports, values in ((known.inputs, model.graph.input), (known.outputs, model.graph.output)):
        assert len(values) == len(ports) + report.layers.get("ReadValue", 0)
        for port, value in zip(ports, values, strict=False):  # variables follow the model's own inputs
            source = port.node.input_value(0) if port.node.get_input_size() else port
            friendly = source.node.get_friendly_name()
            several = source.node.get_output_size() > 1
            names = port.names or {f"{friendly}.{source.get_index()}" if several else friendly}
            assert value.name in names
            assert element_type(value.type.tensor_type.elem_type).value == port.get_element_type().to_string()
    inputs = list(lesson.inputs) or [random(port, seed) for seed, port in enumerate(known.inputs)]
    answer = oracle.run(path, [inputs], names=("cpu",))["cpu"]
    assert not isinstance(answer, OracleError), answer
    for form in forms(report.custom_operators, report.without_body):
        got = run_model(target, [inputs], form)
        assert_all_close(got, answer, lesson.tolerance, lesson.tolerance, f"kernels={form!r} and OpenVINO")


def random(port: ov.Output, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(list(port.shape)).astype(port.get_element_type().to_dtype())
