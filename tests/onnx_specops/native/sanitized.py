"""A pytest plugin (``-p tests.onnx_specops.native.sanitized``) for instrumented and cross-compiled builds.

It uses the native library in ONNX_SPECOPS_TEST_LIBRARY, and selects the part of the tests in ONNX_SPECOPS_TEST_PART: ``1/3``
is every third test, from the second on.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from onnx_specops.runtime import library


def pytest_configure() -> None:
    library._PATH = Path(os.environ["ONNX_SPECOPS_TEST_LIBRARY"])


@pytest.hookimpl(trylast=True)  # after -k
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    first, step = (int(number) for number in os.environ["ONNX_SPECOPS_TEST_PART"].split("/"))
    items[:] = items[first::step]
