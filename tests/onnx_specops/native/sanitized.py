"""A plugin of pytest (``-p tests.onnx_specops.native.sanitized``): the native kernels of the library that
ONNX_SPECOPS_TEST_LIBRARY names."""

from __future__ import annotations

import os
from pathlib import Path

from onnx_specops.runtime import library


def pytest_configure() -> None:
    library._PATH = Path(os.environ["ONNX_SPECOPS_TEST_LIBRARY"])
