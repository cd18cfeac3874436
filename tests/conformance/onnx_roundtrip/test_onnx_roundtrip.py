"""ONNX to OpenVINO's IR and back: the outputs must be OpenVINO's.

Each case runs as it is, and with every dimension of its inputs unknown, where OpenVINO runs it so too; in every form that the
operators of its model have.

All cases: ``pytest tests/conformance/onnx_roundtrip --conformance=all``; a sample, fixed by a seed, runs by default.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from converters.openvino import convert
from tests.conformance.check import compare, forms, run_model
from tests.conformance.onnx_roundtrip.cases import PARTED, RANDOM, all_cases, inputs, listed, outputs
from tests.conformance.oracle import Oracle, OracleError, Outputs


def test_the_list_holds_the_cases_that_openvino_runs():
    assert len(listed()) > 1300
    assert set(listed()) <= set(all_cases())
    assert set(listed(dynamic=True)) <= set(listed())


def test_the_exceptions_are_cases():
    assert set(RANDOM) | set(PARTED) <= set(listed())


@pytest.mark.conformance
@pytest.mark.parametrize("name", listed())
def test_onnx_roundtrip(name, oracle: Oracle, tmp_path: Path):
    _roundtrip(name, oracle, tmp_path, dynamic=False)


@pytest.mark.conformance
@pytest.mark.parametrize("name", listed(dynamic=True))
def test_onnx_roundtrip_with_unknown_dimensions(name, oracle: Oracle, tmp_path: Path):
    _roundtrip(name, oracle, tmp_path, dynamic=True)


def _roundtrip(name: str, oracle: Oracle, folder: Path, *, dynamic: bool) -> None:
    case = all_cases()[name]
    path = folder / "model.xml"
    arrays = inputs(case)
    oracle.import_onnx(case.model.SerializeToString(), path, dynamic=dynamic)
    expected = _expected(name, oracle, path, arrays)
    _, report = convert(path, folder / "model.onnx")
    for form in forms(report.custom_operators, report.without_body):
        got = run_model(folder / "model.onnx", [arrays], form)
        compare(got, expected, 1e-3, 1e-4, f"kernels={form!r} and OpenVINO", values=name not in RANDOM)


def _expected(name: str, oracle: Oracle, path: Path, arrays: list[np.ndarray]) -> Outputs:
    judge = PARTED[name].judge if name in PARTED else "cpu"
    if judge == "onnx":
        return [outputs(all_cases()[name])]
    which = judge if isinstance(judge, str) else "cpu"
    answer = oracle.run(path, [arrays], names=[which])[which]
    assert not isinstance(answer, OracleError), answer
    if isinstance(judge, str):
        return answer
    # Where OpenVINO gives wrong values, it still says the types and shapes.
    return [[np.asarray(values, a.dtype).reshape(a.shape) for values, a in zip(judge, answer[0], strict=True)]]
