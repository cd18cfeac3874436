"""The table of OpenVINO's operations: their rules, their ONNX operators, and the results of their conformance cases."""

from __future__ import annotations

import functools
import importlib.resources
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from converters.errors import LayerError
from converters.openvino import rules as _rules  # noqa: F401  (importing it registers the rules)
from converters.openvino import walk
from converters.openvino.coverage.operations import Operation, operations
from converters.openvino.rule import Rule, find_rule

RECORD = importlib.resources.files("converters.openvino.coverage") / "conformance.json"
"""The results of the conformance cases, written by ``python -m tests.conformance.operations.record``."""


@dataclass(frozen=True)
class Coverage:
    """The support of one operation.

    Attributes:
        operation: the operation and its version.
        has_rule: whether it can be converted.
        module: the module of its rule; ``""`` without a rule.
        standard: whether some of its layers become standard ONNX only.
        custom: the domain's operators that other layers become.
        cases: the number of models with it that were compared with OpenVINO.
        passed: the number of those that agreed with all forms of the kernels.
        restrictions: the parts of its specification that are not supported; ``""`` if all are.
    """

    operation: Operation
    has_rule: bool
    module: str
    standard: bool
    custom: Sequence[str]
    cases: int
    passed: int
    restrictions: str

    @property
    def passes(self) -> bool:
        """Whether it was compared with OpenVINO, and all cases agree."""
        return self.has_rule and 0 < self.cases == self.passed

    @property
    def becomes(self) -> str:
        """``"standard"``, ``"custom"``, ``"both"``, or ``""`` if unknown."""
        if self.standard:
            return "both" if self.custom else "standard"
        return "custom" if self.custom else ""


def coverage() -> list[Coverage]:
    """Return the support of all operations of opset1 to opset17, sorted by name and version."""
    return [_coverage(operation) for operation in operations()]


def openvino_version() -> str:
    """Return the OpenVINO release that the cases were compared with."""
    return _record()["openvino"]


def _coverage(operation: Operation) -> Coverage:
    entry = _record()["operations"].get(str(operation), {"standard": False, "custom": [], "cases": 0, "passed": 0})
    structural = operation.name in (*walk.STRUCTURAL, "Constant")
    rule = None if structural else rule_of(operation)
    module = walk.__name__ if structural else rule.function.__module__ if rule else ""
    restrictions = rule.restrictions if rule else ""
    return Coverage(operation, structural or rule is not None, module, restrictions=restrictions, **entry)


@functools.cache
def _record() -> dict[str, Any]:
    return json.loads(RECORD.read_text(encoding="utf-8"))


def rule_of(operation: Operation) -> Rule | None:
    """Return the rule of an operation, or ``None``."""
    try:
        return find_rule(operation.name, operation.version)
    except LayerError:
        return None
