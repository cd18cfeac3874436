"""ONNX to OpenVINO's IR and back: the outputs must be OpenVINO's.

All cases: ``pytest tests/conformance/onnx_roundtrip --conformance=all``; a sample, fixed by a seed, runs by default.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from converters.openvino import convert
from tests.conformance.check import compare, forms, run_model
from tests.conformance.onnx_roundtrip.cases import RANDOM, all_cases, inputs, listed
from tests.conformance.oracle import Oracle, OracleError


def test_the_list_holds_the_cases_that_openvino_runs():
    assert len(listed()) > 1300
    assert set(listed()) <= set(all_cases())


@pytest.mark.conformance
@pytest.mark.parametrize("name", listed())
def test_onnx_roundtrip(name, oracle: Oracle, tmp_path: Path):
    case = all_cases()[name]
    path = tmp_path / "model.xml"
    arrays = inputs(case)
    oracle.import_onnx(case.model.SerializeToString(), path)
    expected = oracle.run(path, [arrays])["cpu"]
    assert not isinstance(expected, OracleError), expected
    _, report = convert(path, tmp_path / "model.onnx")
    for form in forms(report.custom_operators, report.without_body)[:1]:
        got = run_model(tmp_path / "model.onnx", [arrays], form)
        compare(got, expected, 1e-3, 1e-4, f"kernels={form!r} and OpenVINO", values=name not in RANDOM)
