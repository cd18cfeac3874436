"""Which of OpenVINO's operations have a rule, and what they become."""

from __future__ import annotations

import functools
import importlib.resources
import json
from dataclasses import dataclass

from converters.openvino import rules as _rules  # noqa: F401  (importing it registers the rules)
from converters.openvino.conversion import STRUCTURAL
from converters.openvino.operations import Operation, operations
from converters.openvino.rule import Unsupported, find_rule

RECORD = importlib.resources.files("converters.openvino") / "becomes.json"
"""What the operations of the conformance cases became; ``python -m tests.conformance.operations.record`` writes it."""


@dataclass(frozen=True)
class Coverage:
    """What the converter makes of one operation.

    Attributes:
        operation: the operation and its version.
        has_rule: whether it can be converted.
        standard: whether there are layers of it that become standard ONNX alone.
        custom: the domain's operators that other layers of it become.
    """

    operation: Operation
    has_rule: bool
    standard: bool
    custom: tuple[str, ...]

    @property
    def becomes(self) -> str:
        """``"standard"``, ``"custom"``, ``"both"``, or ``""`` where nothing is known."""
        if self.standard:
            return "both" if self.custom else "standard"
        return "custom" if self.custom else ""


def coverage() -> list[Coverage]:
    """Every operation of opset1 to opset17, by name and version."""
    return [
        Coverage(
            operation,
            _has_rule(operation),
            bool(_record().get(str(operation), {}).get("standard")),
            tuple(_record().get(str(operation), {}).get("custom", ())),
        )
        for operation in operations()
    ]


@functools.cache
def _record() -> dict[str, dict]:
    return json.loads(RECORD.read_text(encoding="utf-8"))


def _has_rule(operation: Operation) -> bool:
    if operation.name in (*STRUCTURAL, "Constant"):
        return True
    try:
        find_rule(operation.name, operation.version)
    except Unsupported:
        return False
    return True
