"""OpenVINO's process, as the conformance suites have it."""

from tests.conformance.conftest import oracle

__all__ = ["oracle"]
