"""Every operator that changed since opset 11 has the same meaning, an adapter, or an error."""

from __future__ import annotations

import onnx
import pytest

from onnx_specops.lowering import OLDEST, ir_version, newest, opset_imports
from onnx_specops.lowering.adapters import adapters
from onnx_specops.lowering.same import EMITTED_LAST, NOT_EMITTED, same_versions


def _changes() -> list[tuple[str, int]]:
    """Return every version of a standard operator after the oldest opset."""
    schemas = [schema for schema in onnx.defs.get_all_schemas_with_history() if schema.domain == ""]
    gone = {schema.name for schema in onnx.defs.get_all_schemas() if schema.domain == "" and schema.deprecated}
    return sorted({(s.name, s.since_version) for s in schemas if s.since_version > OLDEST and s.name not in gone})


@pytest.mark.parametrize(("operator", "version"), _changes())
def test_changed_operators_are_listed_or_have_an_adapter(operator: str, version: int):
    elsewhere = [*NOT_EMITTED.split(), *EMITTED_LAST.split()]
    adapted = any(adapter.opset >= version for adapter in adapters(operator))
    assert adapted or version in same_versions().get(operator, ()) or operator in elsewhere


def test_the_lists_have_no_unknown_operators():
    changes = set(_changes())
    assert {(operator, version) for operator, versions in same_versions().items() for version in versions} <= changes
    assert {*NOT_EMITTED.split(), *EMITTED_LAST.split()} <= {operator for operator, _ in changes}


@pytest.mark.parametrize("opset", range(OLDEST, newest() + 1))
def test_the_ir_version_is_that_of_the_opsets_first_release(opset: int):
    first = next(row for row in onnx.helper.VERSION_TABLE if row[2] >= opset)
    assert ir_version(opset) == first[1]
    assert opset_imports(opset)["ai.onnx.ml"] <= first[3]
