"""Processes that several tests share, because they load the generators, OpenVINO and the converter for seconds."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.conformance.oracle import Oracle
from tests.conformance.random.models import Loaded
from tests.worker import Worker


@pytest.fixture(scope="session")
def oracle() -> Iterator[Oracle]:
    """Return an oracle that starts quickly after a crash, which many of these tests provoke."""
    with Loaded() as oracle:
        yield oracle


@pytest.fixture(scope="session")
def idle() -> Iterator[list[Worker]]:
    """Return the processes that judge models, when no test uses them."""
    workers: list[Worker] = []
    yield workers
    for worker in workers:
        worker.close()
