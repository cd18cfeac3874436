"""Which of OpenVINO's operations have a rule, what they become, and how many conformance cases of each pass."""

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
"""What came of the conformance cases; ``python -m tests.conformance.operations.record`` writes it."""


@dataclass(frozen=True)
class Coverage:
    """What the converter makes of one operation.

    Attributes:
        operation: the operation and its version.
        has_rule: whether it can be converted.
        module: the module that converts it, ``""`` where none does.
        standard: whether there are layers of it that become standard ONNX alone.
        custom: the domain's operators that other layers of it become.
        cases: how many models with it were compared with OpenVINO.
        passed: how many of them agreed in every form of the kernels.
        restrictions: what of its specification cannot be converted, ``""`` where all can.
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
        """Whether it was compared with OpenVINO, and agrees in every case."""
        return self.has_rule and 0 < self.cases == self.passed

    @property
    def becomes(self) -> str:
        """``"standard"``, ``"custom"``, ``"both"``, or ``""`` where nothing is known."""
        if self.standard:
            return "both" if self.custom else "standard"
        return "custom" if self.custom else ""


def coverage() -> list[Coverage]:
    """Every operation of opset1 to opset17, by name and version."""
    return [_coverage(operation) for operation in operations()]


def openvino_version() -> str:
    """The OpenVINO release that the cases were compared with."""
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
    """The rule that converts an operation, ``None`` where there is none."""
    try:
        return find_rule(operation.name, operation.version)
    except LayerError:
        return None
