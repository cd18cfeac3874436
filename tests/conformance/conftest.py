"""The oracle's process, and the sample of the conformance cases that runs by default."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from tests.conformance.oracle import Oracle


@pytest.fixture(scope="session")
def oracle() -> Iterator[Oracle]:
    oracle = Oracle()
    yield oracle
    oracle.close()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep a sample of the marked cases, unless all are asked for, and the networks that are asked for."""
    words = config.getoption("--networks").split(",")
    unwanted = [
        item
        for item in items
        if isinstance(item, pytest.Function)
        and item.get_closest_marker("network")
        and words != ["all"]
        and not (any(words) and item.callspec.params["network"].chosen([word for word in words if word]))
    ]
    items[:] = [item for item in items if item not in set(unwanted)]
    config.hook.pytest_deselected(items=unwanted)
    wanted = config.getoption("--conformance")
    if wanted == "all" or config.getoption("keyword"):
        return
    cases = [item for item in items if item.get_closest_marker("conformance")]
    kept = set(random.Random(20260).sample(cases, min(int(wanted), len(cases))))
    dropped = [item for item in cases if item not in kept]
    items[:] = [item for item in items if item not in set(dropped)]
    config.hook.pytest_deselected(items=dropped)
