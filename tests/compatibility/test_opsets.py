"""A sample of `tests.compatibility` and of ``--conformance=all --opset=N``."""

from __future__ import annotations

import random

import onnx
import pytest

from tests.compatibility.report import Results, table, written
from tests.compatibility.runner import difference
from tests.compatibility.subjects import CHOSEN
from tests.conformance.operations.cases import CASES
from tests.conformance.opsets import check_at
from tests.conformance.processors import depends_on_processor

OPSETS = (11, 13, 17, onnx.defs.onnx_opset_version())
_chosen = random.Random(20261).sample(CASES, 24 * len(OPSETS))
KERNEL = "Could not find an implementation for Cos(7) node with name 'x/Cos'"
SAMPLE = [(opset, case) for i, opset in enumerate(OPSETS) for case in _chosen[i :: len(OPSETS)]]


@pytest.mark.parametrize(("opset", "case"), SAMPLE, ids=[f"{opset}-{case.id}" for opset, case in SAMPLE])
def test_a_case_at_another_opset(opset, case, oracle, tmp_path):
    if depends_on_processor(case.id):
        pytest.skip("OpenVINO gives another result on this processor")
    check_at(opset, case, oracle, tmp_path)


def test_the_chosen_cases_exist():
    assert all(any(case.id.startswith(prefix) for case in CASES) for prefix in CHOSEN)


def test_the_page_has_agreements_and_reasons():
    faults = {
        release: {
            opset: {f"a@{opset}": "", f"b@{opset}": "does not load: [ONNXRuntimeError] : 9 : NOT_IMPLEMENTED : " + why}
            for opset in (13, 17, 21)
        }
        for release, why in (("1.18.1", KERNEL), ("1.20.1", KERNEL), ("1.31.1", ""))
    }
    faults["1.31.1"] = {opset: dict.fromkeys(by_model, "") for opset, by_model in faults["1.31.1"].items()}
    del faults["1.18.1"][21]
    refused = {
        opset: {"c": [f"opset {opset} cannot represent DFT"], "d": [f"opset {opset} cannot represent DFT"]}
        for opset in (13, 17)
    }
    results = Results(4, (13, 17, 21, 28), faults, refused)
    assert table(results).splitlines()[2:] == [
        "| 13 | 2 | 1 | 1 | 2 |",
        "| 17 | 2 | 1 | 1 | 2 |",
        "| 21 | 4 | - | 1 | 2 |",
        "| 28 | 4 | - | - | - |",
    ]
    page = written(results).splitlines()
    assert "| DFT | c, d | 13 to 17 |" in page
    assert "| does not load: no kernel of Cos(7) for its types | b | 1.18.1: 13 to 17; 1.20.1: 13 to 21 |" in page


def test_a_runner_distinguishes_shapes_types_and_numbers():
    import numpy as np

    subject = {"rtol": 1e-4, "atol": 1e-5, "values": True}
    one = np.ones(2, np.float32)
    assert difference(one, one + 1e-6, subject) == ""
    assert difference(one, one + 1, subject) == "numbers"
    assert difference(one, one.astype(np.int64), subject).startswith("types")
    assert difference(one, np.ones(3, np.float32), subject).startswith("shapes")
