"""Each case agrees with the Inference Engine, with each kind of kernels."""

from __future__ import annotations

from pathlib import Path

import pytest

from converters.inference_engine.rule import layer_rules
from tests.conformance.inference_engine.case import cases
from tests.conformance.inference_engine.check import answers, compare, converted

WITHOUT_ANSWERS = {
    "BatchToSpace": "the Inference Engine crashes when it reads one",
    "Assign": "a Memory layer that writes; the cases of ReadValue contain it",
    "Copy": "the Inference Engine rejects it",
    "Fill": "its inputs are constants, and the Inference Engine folds it",
    "Range": "its inputs are constants, and the Inference Engine folds it",
    "ScatterUpdate": "the Inference Engine rejects it in files of version 7",
    "SpaceToBatch": "the Inference Engine crashes when it reads one",
    "Sqrt": "the Inference Engine rejects it",
}
"""Layer types with a rule and without a case, with the reason."""


@pytest.mark.parametrize("key", sorted(cases()))
def test_results_equal_the_inference_engine(key: str, tmp_path: Path) -> None:
    case = cases()[key]
    xml, _ = case.net().save(tmp_path)
    expected = answers()[key]
    for kernels, got in converted(case, xml).items():
        assert not compare(expected, got, case.tolerance), kernels


def test_each_layer_type_has_four_cases_or_more() -> None:
    counts: dict[str, int] = {}
    for case in cases().values():
        counts[case.kind.lower()] = counts.get(case.kind.lower(), 0) + 1
    few = [kind for kind in layer_rules() if counts.get(kind.lower(), 0) < 4 and kind not in WITHOUT_ANSWERS]
    assert not few


def test_each_case_has_one_recorded_result() -> None:
    assert set(answers()) == set(cases())
