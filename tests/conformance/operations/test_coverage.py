"""The list of operations equals OpenVINO's, each operation has cases, and their record is up to date."""

from __future__ import annotations

from pathlib import Path

import openvino as ov

from converters.openvino.coverage.operations import operations, read_headers
from converters.openvino.coverage.table import coverage
from tests.conformance.operations.record import cases_by_operation

LEAST = 4


def test_the_operations_match_openvinos_headers() -> None:
    assert operations() == read_headers(Path(ov.__file__).parent / "include")


def test_every_operation_has_cases() -> None:
    cases = cases_by_operation()
    counts = {str(operation): len(cases[operation.name, operation.version]) for operation in operations()}
    assert {name: count for name, count in counts.items() if count < LEAST} == {}


def test_every_operation_has_a_rule_and_passes() -> None:
    assert [str(row.operation) for row in coverage() if not row.passes] == []


def test_the_record_is_up_to_date() -> None:
    cases = cases_by_operation()
    stale = [str(row.operation) for row in coverage() if row.cases != len(cases[row.operation.name, row.operation.version])]
    assert stale == [], "python -m tests.conformance.operations.record, then python -m docs.make"
