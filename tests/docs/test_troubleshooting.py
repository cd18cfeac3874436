"""docs/troubleshooting.md quotes messages that exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

_OF_ONNX_RUNTIME = ("is not a registered function/op", "Current official support for domain ai.onnx is till opset")
"""Messages of ONNX Runtime."""


def _quoted() -> list[str]:
    """Return the literal parts of the quoted messages: those between placeholders."""
    text = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
    headings = re.findall(r"^\*\*([^*]+)\*\*:", text, re.MULTILINE)
    messages = [message for heading in headings for message in re.findall(r"`([^`]+)`", heading) if " " in message]
    parts = (
        part.strip() for message in messages for part in re.split(r"\.\.\.|\bNAME\b|\bN\b|onnx_specops:|\(-1\)", message)
    )
    return [part for part in parts if len(part) > 8]


def _literals() -> list[str]:
    """Return the strings in the sources of both packages, including the literal parts of f-strings."""
    return [
        node.value
        for package in ("converters", "onnx_specops")
        for path in (ROOT / package).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]


@pytest.fixture(scope="module")
def literals() -> list[str]:
    return _literals()


@pytest.mark.parametrize("part", _quoted())
def test_the_quoted_messages_exist(part: str, literals: list[str]) -> None:
    assert part in _OF_ONNX_RUNTIME or any(part in literal for literal in literals)
