"""A sample of what `tests.compatibility` and ``--conformance=all --opset=N`` look at as a whole."""

from __future__ import annotations

import random

import onnx
import pytest

from tests.compatibility.report import Results, table, written
from tests.compatibility.runner import difference
from tests.compatibility.subjects import CHOSEN
from tests.conformance.operations.cases import CASES
from tests.conformance.opsets import check_at

OPSETS = (11, 13, 17, onnx.defs.onnx_opset_version())
_chosen = random.Random(20261).sample(CASES, 24 * len(OPSETS))
SAMPLE = [(opset, case) for i, opset in enumerate(OPSETS) for case in _chosen[i :: len(OPSETS)]]


@pytest.mark.parametrize(("opset", "case"), SAMPLE, ids=[f"{opset}-{case.id}" for opset, case in SAMPLE])
def test_a_case_at_another_opset(opset, case, oracle, tmp_path):
    check_at(opset, case, oracle, tmp_path)


def test_the_chosen_cases_exist():
    assert all(any(case.id.startswith(prefix) for case in CASES) for prefix in CHOSEN)


def test_the_page_tells_what_agrees_and_why_the_others_do_not():
    from collections import Counter, defaultdict

    faults = {"1.18.1": {13: {"a@13": "", "b@13": "does not load: [ONNXRuntimeError] : 9 : NOT_IMPLEMENTED : Cos(7)"}}}
    results = Results(3, (13, 21), faults, defaultdict(Counter, {13: Counter(["c: opset 13 cannot say DFT"])}))
    assert table(results).splitlines()[2:] == ["| 13 | 2 | 1 |", "| 21 | 3 | not read |"]
    page = written(results)
    assert "- b: does not load: NOT_IMPLEMENTED : Cos(7) (1.18.1 at 13)" in page
    assert "- not converted: c: DFT (13)" in page


def test_a_runner_tells_shapes_types_and_numbers_apart():
    import numpy as np

    subject = {"rtol": 1e-4, "atol": 1e-5, "values": True}
    one = np.ones(2, np.float32)
    assert difference(one, one + 1e-6, subject) == ""
    assert difference(one, one + 1, subject) == "numbers"
    assert difference(one, one.astype(np.int64), subject).startswith("types")
    assert difference(one, np.ones(3, np.float32), subject).startswith("shapes")
