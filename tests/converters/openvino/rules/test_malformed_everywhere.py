"""Errors common to all operations: too few or too many inputs, unknown or missing attributes."""

from __future__ import annotations

import contextlib

import pytest

from converters.errors import Malformed
from converters.openvino.rule import Rule, rules
from onnx_specops.domain import find
from tests.converters.openvino.rules.malformed import assert_named

# The reader itself requires the bodies, or the type, of these.
_READ_FIRST = {"If", "Loop", "TensorIterator", "Convert"}
RULES = [rule for found in rules().values() for rule in found if rule.operation not in _READ_FIRST]
SHAPE = (2, 3)


def refused(folder, rule: Rule, count: int, data: str, message: str) -> None:
    assert_named(folder, rule.operation, rule.since, data, [SHAPE] * count, SHAPE, message)


def named(rule: Rule) -> str:
    return f"{rule.operation}-{rule.since}"


@pytest.mark.parametrize("rule", [rule for rule in RULES if rule.min_inputs], ids=named)
def test_too_few_inputs(tmp_path, rule: Rule):
    refused(tmp_path, rule, rule.min_inputs - 1, "", f"it has {rule.min_inputs - 1} inputs, but {rule.operation}")


@pytest.mark.parametrize("rule", [rule for rule in RULES if rule.max_inputs is not None], ids=named)
def test_too_many_inputs(tmp_path, rule: Rule):
    assert rule.max_inputs is not None
    refused(tmp_path, rule, rule.max_inputs + 1, "", f"it has {rule.max_inputs + 1} inputs, but {rule.operation}")


@pytest.mark.parametrize("rule", RULES, ids=named)
def test_an_attribute_that_openvino_does_not_read(rule: Rule):
    remarks: list[str] = []
    texts = {name: "" for name, attribute in rule.attributes.items() if attribute.required}
    with contextlib.suppress(Malformed):  # attributes without a value
        rule.parse({"colour": "red", **texts}, remarks.append)
    assert remarks == [f"the attribute colour of {rule.operation}"]


@pytest.mark.parametrize("rule", [rule for rule in RULES if any(a.required for a in rule.attributes.values())], ids=named)
def test_missing_attributes(tmp_path, rule: Rule):
    required = [name for name, attribute in rule.attributes.items() if attribute.required]
    refused(tmp_path, rule, rule.min_inputs, "", ".*".join(f"the attribute '{name}' is missing" for name in required))


def test_a_body_that_fails(tmp_path, monkeypatch: pytest.MonkeyPatch):
    def emit_body(op, *inputs, **attributes):
        raise RuntimeError("the square is no cube")

    monkeypatch.setattr(find("Inverse"), "_body", emit_body)
    assert_named(tmp_path, "Inverse", "opset14", "", [(2, 2)], (2, 2), "are inconsistent.*the square is no cube")
