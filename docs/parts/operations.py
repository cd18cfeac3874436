"""docs/operations.md: OpenVINO's operations and their conversion."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from converters.openvino.coverage.table import Coverage, coverage, openvino_version
from docs.parts.markdown import source, table
from docs.parts.operators import forms_of
from onnx_specops.domain import DOMAIN, find


def rows() -> Iterator[str]:
    """The number of operations that have a rule and pass their cases, and the table of operations."""
    covered = coverage()
    ruled, passing = sum(row.has_rule for row in covered), sum(row.passes for row in covered)
    cases = sum(row.cases for row in covered)
    yield f"{ruled} of {len(covered)} operation versions have a rule. {passing} pass all their test cases in"
    yield f"`tests/conformance/operations`. These {cases:,} cases compare the results with OpenVINO {openvino_version()}."
    yield ""
    headings = (
        *("operation", "versions", "becomes", f"operators of `{DOMAIN}`", "implementations", "cases"),
        *("rule", "restrictions"),
    )
    alike = groupby(covered, key=lambda row: (row.operation.name, row.module, row.standard, row.custom, row.restrictions))
    yield from table(headings, (_row(list(versions)) for _, versions in alike))


def _row(versions: Sequence[Coverage]) -> tuple[str, ...]:
    row = versions[0]
    return (
        row.operation.name,
        ", ".join(str(version.operation.number) for version in versions),
        row.becomes if row.has_rule else "**no rule**",
        ", ".join(f"[{name}](operators.md#{name.lower()})" for name in row.custom),
        ", ".join(_common_forms(row.custom)),
        str(sum(version.passed for version in versions)),
        source(row.module),
        row.restrictions,
    )


def _common_forms(names: Sequence[str]) -> list[str]:
    forms = [forms_of(find(name)) for name in names]
    return [form for form in (forms[0] if forms else []) if all(form in others for others in forms)]
