"""OpenVINO as the oracle; and every replacement that a test of a pass makes is evaluated."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from converters.passes.verification import Verifier
from onnx_specops.replacing import checked_by
from tests.conformance.oracle import Oracle


@pytest.fixture(scope="module")
def oracle() -> Iterator[Oracle]:
    """OpenVINO, in a process of its own."""
    oracle = Oracle()
    yield oracle
    oracle.close()


@pytest.fixture(autouse=True)
def verifier(request: pytest.FixtureRequest) -> Iterator[Verifier]:
    """Fails the test where a pass emits what does not compute the same, unless it is marked ``unverified``."""
    found = Verifier(refuse=False)
    with checked_by(found):
        yield found
    print("verified", dict(found.verified), "skipped", dict(found.skipped))
    assert not found.differences or request.node.get_closest_marker("unverified"), "\n".join(map(str, found.differences))
