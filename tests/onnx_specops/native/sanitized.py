"""A plugin of pytest (``-p tests.onnx_specops.native.sanitized``): the native kernels of the library that
ONNX_SPECOPS_TEST_LIBRARY names, and of the tests that are collected the part that ONNX_SPECOPS_TEST_PART names: ``1/3`` is
every third of them, from the second on."""

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
