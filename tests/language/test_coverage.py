"""Every operation that openvino_tokenizers registers has a rule."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

import converters.openvino.rules  # noqa: F401
from converters.errors import Malformed, Unsupported
from converters.openvino.rule import find_rule

REGISTERED = re.compile(rb"OpExtensionI(\d+)(\w+)EE\0")
VERSIONS = ("extension", "openvino_tokenizers")


def registered() -> set[str]:
    """Return the operations of the installed library, by the type names that it passes to OpenVINO as extensions."""
    package = importlib.util.find_spec("openvino_tokenizers")
    if package is None or package.origin is None:
        pytest.skip("openvino_tokenizers is not installed")
    libraries = sorted((Path(package.origin).parent / "lib").glob("libopenvino_tokenizers.so*"))
    if not libraries:
        pytest.skip("its library is not one of Linux")
    found = REGISTERED.findall(libraries[0].read_bytes())
    return {name.decode() for length, name in found if int(length) == len(name)}


def has_rule(name: str) -> bool:
    for version in VERSIONS:
        try:
            find_rule(name, version)
        except (Malformed, Unsupported):
            continue
        return True
    return False


def test_every_operation_has_a_rule() -> None:
    names = registered()
    assert len(names) >= 33
    assert not {name for name in names if not has_rule(name)}
