"""OpenVINO's process, as in the conformance suites."""

from tests.conformance.conftest import oracle

__all__ = ["oracle"]
