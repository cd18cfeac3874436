"""Options of the test suite."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--conformance",
        default="300",
        metavar="N|all",
        help="how many conformance cases to run: a sample fixed by a seed, or all (default: %(default)s)",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "conformance: compared with OpenVINO; sampled unless --conformance=all")
