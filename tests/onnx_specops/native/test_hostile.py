"""Attributes that ask for the impossible get an answer or an error, soon and in little memory."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from onnx_specops.runtime.library import has_library
from tests.onnx_specops.native import hostile

ROOT = Path(__file__).parents[3]

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="limits time and memory as on Linux"),
    pytest.mark.skipif(not has_library(), reason="no native library is built here"),
]


@pytest.mark.parametrize("seed", range(2))
def test_no_attribute_takes_all_time_or_memory(seed: int) -> None:
    path = f"import sys; sys.path.append({str(ROOT)!r})"
    code = f"{path}; from tests.onnx_specops.native import hostile; hostile.main({seed}, 0.25)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    said = done.stdout.splitlines()[-1:]
    assert done.returncode == 0, f"{said}: {done.returncode}\n{done.stderr[-2000:]}"
    answers, errors = (int(word) for word in said[0].split() if word.isdigit())
    assert answers > 50 and errors > 20


@pytest.mark.parametrize("seed", range(2, 6))
def test_the_native_kernels_in_this_process(seed: int) -> None:
    """For sanitizers, which need more address space than any limit leaves them."""
    outcomes = [hostile.refused("native", node) for node in hostile.hostile_nodes(np.random.default_rng(seed), 0.05)]
    assert any(outcomes) and not all(outcomes)
