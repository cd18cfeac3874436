"""Attributes that ask for the impossible get an answer or an error, soon and in little memory."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from onnx_specops.runtime.library import has_library

ROOT = Path(__file__).parents[3]


@pytest.mark.skipif(sys.platform != "linux", reason="limits its memory as on Linux")
@pytest.mark.skipif(not has_library(), reason="no native library is built here")
@pytest.mark.parametrize("seed", range(2))
def test_no_attribute_takes_all_time_or_memory(seed: int) -> None:
    path = f"import sys; sys.path.append({str(ROOT)!r})"
    code = f"{path}; from tests.onnx_specops.native import hostile; hostile.main({seed}, 0.25)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    said = done.stdout.splitlines()[-1:]
    assert done.returncode == 0, f"{said}: {done.returncode}\n{done.stderr[-2000:]}"
    answers, errors = (int(word) for word in said[0].split() if word.isdigit())
    assert answers > 50 and errors > 20
