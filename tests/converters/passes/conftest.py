"""OpenVINO as the oracle, verification of every replacement, and the same random numbers in every order of the tests."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnx_ir as ir
import pytest
from onnx_ir.passes import PassResult

from converters.passes.running import SelectivePass
from converters.passes.verification import Verifier
from onnx_specops.graphs import all_nodes
from onnx_specops.replacing import checked_by
from tests.conformance.oracle import Oracle


@pytest.fixture(scope="session")
def oracle() -> Iterator[Oracle]:
    """Return OpenVINO in a separate process."""
    oracle = Oracle()
    yield oracle
    oracle.close()


@pytest.fixture(autouse=True)
def _random_numbers(request: pytest.FixtureRequest) -> None:
    """Restart the module's generator ``RNG``. The numbers of a test are independent of the tests before it."""
    if (generator := getattr(request.module, "RNG", None)) is not None:
        generator.bit_generator.state = np.random.default_rng(1).bit_generator.state  # not 0: the module's own numbers


@pytest.fixture(autouse=True)
def verifier(request: pytest.FixtureRequest) -> Iterator[Verifier]:
    """Fail the test if a pass replaces a value by a different one, unless the test is marked ``unverified``."""
    found = Verifier(refuse=False)
    if request.node.get_closest_marker("unverified"):
        yield found
        return
    with checked_by(found):
        yield found
    print("verified", dict(found.verified), "skipped", dict(found.skipped))
    assert not found.differences, "\n".join(map(str, found.differences))


@pytest.fixture(autouse=True)
def _changes_are_expected(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail the test if a pass changes a graph that it says it cannot change."""
    original = SelectivePass.__call__

    def checked(self: SelectivePass, model: ir.Model) -> PassResult:
        operators = {(node.domain, node.op_type) for node in all_nodes(model.graph)}
        result = original(self, model)
        assert not result.modified or self.may_change(operators), f"{type(self).__name__} changes a graph of {operators}"
        return result

    monkeypatch.setattr(SelectivePass, "__call__", checked)
