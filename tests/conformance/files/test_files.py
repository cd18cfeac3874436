"""Public files are read as OpenVINO reads them and agree with it. Ignored content is reported."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import openvino as ov
import pytest

from converters.openvino import convert
from converters.openvino.onnx_types import element_type
from converters.openvino.reader.graph import Model
from converters.openvino.reader.read import read
from converters.openvino.reader.tensor_names import output_names
from converters.openvino.stated import Corrections
from converters.openvino.walk import all_layers, emit
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


@pytest.mark.parametrize(
    "lesson", [lesson for lesson in LESSONS if lesson.remarks], ids=lambda lesson: lesson.name.replace(" ", "-")
)
def test_the_walk_does_not_change_the_file(lesson: Lesson, tmp_path: Path) -> None:
    """Corrections of types, dimensions and names are separate from the reader's graph."""
    model = read(lesson.save(tmp_path))
    before = _stated(model)
    corrections = Corrections()
    emitted = emit(model, corrections)
    assert _stated(model) == before
    assert [value.name for value in emitted.model.graph.outputs][: len(model.results)] == [
        names[0] for names in output_names(model, corrections.omitted)
    ]
    assert emit(model).model.graph.outputs[0].name == emitted.model.graph.outputs[0].name


def _stated(model: Model) -> object:
    ports = [
        (
            layer.type,
            layer.name,
            dict(layer.attributes),
            port.index,
            port.element_type,
            port.dims,
            port.names,
            len(port.consumers),
        )
        for layer in all_layers(model)
        for port in layer.outputs
    ]
    return ports, list(model.input_names), list(model.output_names)


def random(port: ov.Output, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(list(port.shape)).astype(port.get_element_type().to_dtype())
