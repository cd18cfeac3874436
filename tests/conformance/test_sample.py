"""The sample of the conformance cases."""

from __future__ import annotations

from tests.conformance.conftest import sample

CASES = {number: (f"case {number}", f"operation {number % 40}" if number % 3 else None) for number in range(3000)}


def test_every_operation_is_in_the_sample() -> None:
    kept = sample(CASES, 100)
    assert {CASES[case][1] for case in kept} - {None} == {operation for _, operation in CASES.values()} - {None}
    assert 40 < len(kept) < 110


def test_added_cases_do_not_change_the_selection_of_others() -> None:
    """Except that a new case may replace that of its operation."""
    before = sample(CASES, 100)
    after = sample(CASES | {3000: ("case 3000", "operation 7"), 3001: ("case 3001", None)}, 100)
    assert len(before ^ after) <= 3
    assert {CASES[case][1] for case in before - after} <= {"operation 7"}
