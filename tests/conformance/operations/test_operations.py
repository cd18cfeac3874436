"""Every operation of OpenVINO's opsets against OpenVINO itself.

All cases: ``pytest tests/conformance/operations --conformance=all``; a sample runs by default, with one of each operation.
With ``--opset=13`` each is converted at that opset, with ``--target=standard`` for that target.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance.check import check
from tests.conformance.operations.cases import CASES
from tests.conformance.opsets import check_at
from tests.conformance.oracle import Oracle


def test_case_names_are_unique():
    names = [case.id for case in CASES]
    assert len(names) == len(set(names)), sorted({name for name in names if names.count(name) > 1})


@pytest.mark.conformance
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_operation(case, oracle: Oracle, tmp_path: Path, pytestconfig: pytest.Config):
    opset = pytestconfig.getoption("--opset")
    target = pytestconfig.getoption("--target")
    if opset is None and target == "onnxruntime":
        check(case, oracle, tmp_path)
    else:
        check_at(opset, case, oracle, tmp_path, target)
