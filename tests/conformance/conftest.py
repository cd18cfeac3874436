"""The oracle's process, and the sample of conformance cases that runs by default."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import TypeVar

import pytest

from tests.conformance.case import Case
from tests.conformance.oracle import Oracle

T = TypeVar("T")


@pytest.fixture(scope="session")
def oracle() -> Iterator[Oracle]:
    oracle = Oracle()
    yield oracle
    oracle.close()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep a sample of the marked cases, unless all are requested, and the requested networks."""
    words = config.getoption("--networks").split(",")
    unwanted = {
        item
        for item in items
        if isinstance(item, pytest.Function)
        and item.get_closest_marker("network")
        and words != ["all"]
        and not (any(words) and item.callspec.params["network"].chosen([word for word in words if word]))
    }
    items[:] = [item for item in items if item not in unwanted]
    config.hook.pytest_deselected(items=list(unwanted))
    wanted = config.getoption("--conformance")
    if wanted == "all" or config.getoption("keyword"):
        return
    cases = [item for item in items if isinstance(item, pytest.Function) and item.get_closest_marker("conformance")]
    kept = sample({item: (item.nodeid, _operation(item)) for item in cases}, int(wanted))
    dropped = {item for item in cases if item not in kept}
    items[:] = [item for item in items if item not in dropped]
    config.hook.pytest_deselected(items=list(dropped))


def _operation(item: pytest.Function) -> str | None:
    """Return the operation and version of a case of the operations' suite."""
    case = item.callspec.params.get("case")
    return f"{case.operation}-{case.version}" if isinstance(case, Case) else None


def sample(cases: Mapping[T, tuple[str, str | None]], every: int) -> set[T]:
    """Select one case of each operation, and about one in ``every`` of all.

    The hash of its name decides for each case. A new case does not change the selection of others, except within its
    operation.

    Args:
        cases: each with its name, and its operation if any.
        every: the sampling interval.
    """
    numbers = {case: int.from_bytes(hashlib.sha256(name.encode()).digest()[:8]) for case, (name, _) in cases.items()}
    first: dict[str, T] = {}
    for case, (_, operation) in cases.items():
        if operation is not None and (operation not in first or numbers[case] < numbers[first[operation]]):
            first[operation] = case
    return {*first.values(), *(case for case, number in numbers.items() if number % every == 0)}
