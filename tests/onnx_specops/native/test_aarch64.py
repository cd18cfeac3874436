"""The command that tests the kernels on an emulated AArch64: missing programs, and stored results of OpenVINO."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import numpy as np
import pytest

from tests.conformance.oracle import Oracle
from tests.onnx_specops.native import aarch64
from tests.onnx_specops.ops import case
from tests.onnx_specops.ops.test_forms import CASES


def test_missing_programs_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SystemExit, match=r"lacks the Debian packages g\+\+-aarch64-linux-gnu, qemu-user"):
        aarch64.main(tmp_path / "folder", [])
    assert not (tmp_path / "folder").exists()


def test_results_are_stored_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = [each for each in CASES if each.layer is not None and each.expected is None][:2]
    asked = []

    def computed(of: case.Case, *_: object) -> np.ndarray:
        asked.append(of)
        return np.full(2, len(asked))

    monkeypatch.setattr(case, "_computed", computed)
    monkeypatch.setenv(case.STORED, str(tmp_path))
    oracle = cast(Oracle, None)
    assert [case.answer(each, oracle, tmp_path)[0] for each in (one, one, other)] == [1, 1, 2]
    monkeypatch.delenv(case.STORED)
    assert case.answer(one, oracle, tmp_path)[0] == 3
