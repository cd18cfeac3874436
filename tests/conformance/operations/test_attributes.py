"""Every attribute of a layer that OpenVINO visits is read by its rule."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

import openvino as ov

from converters.openvino.rule import find_rule
from converters.openvino.walk import STRUCTURAL
from tests.conformance.case import Case
from tests.conformance.operations.cases import CASES

_ATTEMPTS = 3  # the number of cases that are tried per operation, because OpenVINO does not read some
_SPELLINGS = {"Relu": "ReLU", "PRelu": "PReLU", "Softmax": "SoftMax"}
_STRUCTURAL = {*STRUCTURAL, "Constant"}


def visited(case: Case, folder: Path) -> Mapping[str, object] | None:
    """Return the attributes of the case's operation by OpenVINO's names; ``None`` if OpenVINO does not read the case."""
    try:
        model = ov.Core().read_model(case.save(folder))
    except RuntimeError:
        return None
    names = {case.operation, _SPELLINGS.get(case.operation, case.operation)}
    spelled = {key for key, value in _SPELLINGS.items() if value in names}
    return next((op.get_attributes() for op in model.get_ops() if op.get_type_name() in names | spelled), None)


def test_every_attribute_that_openvino_visits_is_in_the_rule(tmp_path: Path) -> None:
    cases: dict[tuple[str, str], list[Case]] = defaultdict(list)
    for case in CASES:
        if case.version != "extension" and case.operation not in _STRUCTURAL:
            cases[case.operation, case.version].append(case)
    missing, unread = [], []
    for (operation, version), some in cases.items():
        known = {name.replace("_", "-") for name in find_rule(_SPELLINGS.get(operation, operation), version).attributes}
        for case in some[:_ATTEMPTS]:
            attributes = visited(case, tmp_path)
            if attributes is not None:
                own = {name.rpartition(".")[2].replace("_", "-") for name in attributes}  # the last part of a group's name
                missing += [f"{operation} of {version}: {name}" for name in sorted(own - known)]
                break
        else:
            unread.append(f"{operation} of {version}")
    assert not missing
    assert not unread
    assert len(cases) > 230
