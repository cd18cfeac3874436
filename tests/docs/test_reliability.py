"""docs/reliability.md names tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
TESTS = ROOT / "tests"


def test_every_promise_has_its_test() -> None:
    found = 0
    for row in (ROOT / "docs" / "reliability.md").read_text().splitlines():
        path = None
        for name in re.findall(r"`([\w/]+\.py(?:::\w+)?|test_\w+)`", row) if row.startswith("| ") else ():
            if "/" in name:  # a test without a file is in the previous file
                path = TESTS / name.partition("::")[0]
            assert path is not None and path.is_file(), name
            test = name.rpartition("::")[2]
            assert test.endswith(".py") or f"def {test}(" in path.read_text(), name
            found += 1
    assert found > 30
