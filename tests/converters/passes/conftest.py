"""OpenVINO as the oracle, and verification of every replacement in tests of passes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from converters.passes.verification import Verifier
from onnx_specops.replacing import checked_by
from tests.conformance.oracle import Oracle


@pytest.fixture(scope="module")
def oracle() -> Iterator[Oracle]:
    """Return OpenVINO in a separate process."""
    oracle = Oracle()
    yield oracle
    oracle.close()


@pytest.fixture(autouse=True)
def verifier(request: pytest.FixtureRequest) -> Iterator[Verifier]:
    """Fail the test if a pass replaces a value by a different one, unless the test is marked ``unverified``."""
    found = Verifier(refuse=False)
    with checked_by(found):
        yield found
    print("verified", dict(found.verified), "skipped", dict(found.skipped))
    assert not found.differences or request.node.get_closest_marker("unverified"), "\n".join(map(str, found.differences))
