"""ONNX to OpenVINO's IR and back: the outputs must be OpenVINO's.

Each case runs as it is, and with every dimension of its inputs unknown; in every form that its model's operators have.

All cases: ``pytest tests/conformance/onnx_roundtrip --conformance=all``; a sample, fixed by a seed, runs by default.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from converters.openvino import convert
from tests.conformance.check import compare, forms, run_model
from tests.conformance.onnx_roundtrip.cases import KNOWN_DIMENSIONS, PARTED, RANDOM, all_cases, inputs, listed, outputs
from tests.conformance.oracle import Oracle, OracleError, Outputs


def test_the_list_holds_the_cases_that_openvino_runs():
    assert len(listed()) > 1300
    assert set(listed()) <= set(all_cases())


def test_the_exceptions_are_cases():
    assert set(RANDOM) | set(PARTED) | set(KNOWN_DIMENSIONS) <= set(listed())


@pytest.mark.conformance
@pytest.mark.parametrize("name", listed())
def test_onnx_roundtrip(name, oracle: Oracle, tmp_path: Path):
    model, path = all_cases()[name].model.SerializeToString(), tmp_path / "model.xml"
    oracle.import_onnx(model, path)
    expected = _expected(name, oracle, path)
    _check(name, path, expected, "OpenVINO")
    if name not in KNOWN_DIMENSIONS:
        # The same outputs: what the dimensions are decides them, not when that is known. (The CPU plugin has less kernels
        # for unknown ones: no Convolution of unknown channels, no Tile to an unknown rank; and rounds less in them.)
        oracle.import_onnx(model, path, dynamic=True)
        _check(name, path, expected, "OpenVINO, unknown dimensions")


def _check(name: str, path: Path, expected: Outputs, who: str) -> None:
    """Convert the IR at ``path`` and compare every form's outputs."""
    arrays = inputs(all_cases()[name])
    _, report = convert(path, path.with_suffix(".onnx"))
    for form in forms(report.custom_operators, report.without_body):
        got = run_model(path.with_suffix(".onnx"), [arrays], form)
        compare(got, expected, 1e-3, 1e-4, f"kernels={form!r} and {who}", values=name not in RANDOM)


def _expected(name: str, oracle: Oracle, path: Path) -> Outputs:
    judge = PARTED[name].judge if name in PARTED else "cpu"
    if judge == "onnx":
        return [outputs(all_cases()[name])]
    which = judge if isinstance(judge, str) else "cpu"
    answer = oracle.run(path, [inputs(all_cases()[name])], names=[which])[which]
    assert not isinstance(answer, OracleError), answer
    if isinstance(judge, str):
        return answer
    # Where OpenVINO gives wrong values, it still says the types and shapes.
    return [[np.asarray(values, a.dtype).reshape(a.shape) for values, a in zip(judge, answer[0], strict=True)]]
