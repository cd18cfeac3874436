"""ONNX to OpenVINO's IR and back: the outputs must equal OpenVINO's.

Each case runs unchanged, with unknown dimensions, and with all inputs except the first as constants, in every form of its
model's operators.

All cases: ``pytest tests/conformance/onnx_roundtrip --conformance=all``; a sample, fixed by a seed, runs by default.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from converters.openvino import convert
from tests.comparison import assert_all_close
from tests.conformance.check import forms, run_model
from tests.conformance.onnx_roundtrip.cases import (
    KNOWN_DIMENSIONS,
    PARTED,
    RANDOM,
    all_cases,
    fed,
    inputs,
    listed,
    model,
    outputs,
)
from tests.conformance.oracle import Oracle, OracleError, Outputs
from tests.conformance.processors import ROUNDTRIPS_OF_AVX512, depends_on_processor


def test_the_lists_contain_the_cases_that_openvino_runs():
    assert len(listed()) > 1300
    assert len({*listed(), *listed(constants=True)}) == len(listed()) + len(listed(constants=True))
    assert {*listed(), *listed(constants=True)} <= set(all_cases())


def test_the_exceptions_are_cases():
    assert {*RANDOM, *PARTED, *KNOWN_DIMENSIONS, *ROUNDTRIPS_OF_AVX512} <= {*listed(), *listed(constants=True)}


@pytest.mark.conformance
@pytest.mark.parametrize("name", listed())
def test_onnx_roundtrip(name, oracle: Oracle, tmp_path: Path):
    if depends_on_processor(name):
        pytest.skip("OpenVINO gives another result on this processor")
    case, path = all_cases()[name], tmp_path / "model.xml"
    arrays = _imported(name, oracle, path)
    expected = _expected(name, oracle, path, arrays)
    _check(name, path, arrays, expected, "OpenVINO")
    # The other variants must have the same outputs, which do not depend on when dimensions and inputs are known. (The CPU
    # plugin has fewer kernels for unknown dimensions, such as no Convolution of unknown channels and no Tile to an unknown
    # rank, and rounds less in them.)
    if name not in KNOWN_DIMENSIONS:
        arrays = _imported(name, oracle, path, dynamic=True)
        _check(name, path, arrays, expected, "OpenVINO, unknown dimensions")
    if len(inputs(case)) > 1:
        arrays = _imported(name, oracle, path, constants=True)
        _check(name, path, arrays, expected, "OpenVINO, constants")


@pytest.mark.conformance
@pytest.mark.parametrize("name", listed(constants=True))
def test_onnx_roundtrip_of_constants(name, oracle: Oracle, tmp_path: Path):
    path = tmp_path / "model.xml"
    arrays = _imported(name, oracle, path, constants=True)
    _check(name, path, arrays, _expected(name, oracle, path, arrays), "OpenVINO")


def _imported(name: str, oracle: Oracle, path: Path, *, dynamic: bool = False, constants: bool = False) -> list[np.ndarray]:
    """Let OpenVINO write the IR to ``path``; return the inputs."""
    case = all_cases()[name]
    return fed(inputs(case), oracle.import_onnx(model(case, constants=constants), path, dynamic=dynamic))


def _check(name: str, path: Path, arrays: list[np.ndarray], expected: Outputs, who: str) -> None:
    """Convert the IR at ``path`` and compare the outputs of every form."""
    _, report = convert(path, path.with_suffix(".onnx"))
    for form in forms(report.custom_operators, report.without_body):
        got = run_model(path.with_suffix(".onnx"), [arrays], form)
        assert_all_close(got, expected, 1e-3, 1e-4, f"kernels={form!r} and {who}", values=name not in RANDOM)


def _expected(name: str, oracle: Oracle, path: Path, arrays: list[np.ndarray]) -> Outputs:
    judge = PARTED[name].judge if name in PARTED else "cpu"
    if judge == "onnx":
        return [outputs(all_cases()[name])]
    which = judge if isinstance(judge, str) else "cpu"
    answer = oracle.run(path, [arrays], names=[which])[which]
    assert not isinstance(answer, OracleError), answer
    if isinstance(judge, str):
        return answer
    # Types and shapes are OpenVINO's even if its values are wrong.
    return [[np.asarray(values, a.dtype).reshape(a.shape) for values, a in zip(judge, answer[0], strict=True)]]
