"""The stored tables of ONNX Runtime's kernels."""

from __future__ import annotations

from pathlib import Path

import pytest
from onnxruntime.capi import onnxruntime_pybind11_state as state

from converters.openvino import convert
from onnx_specops import kernels

MODEL = Path(__file__).parents[2] / "models" / "recommender_int" / "model.xml"


def test_conversion_does_not_ask_the_installed_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The list of its kernels loads all execution providers. CUDA's raises an error on a machine without a GPU."""

    def fails() -> None:
        raise RuntimeError("CUDA failure 100: no CUDA-capable device is detected")

    monkeypatch.setattr(state, "get_all_opkernel_def", fails)
    kernels._stored.cache_clear()
    convert(MODEL, tmp_path / "model.onnx")


def test_types_of_one_release_only() -> None:
    """ONNX Runtime 1.32 has Max for int8, and the oldest release does not."""
    (newest,) = kernels.kernels("", "Max", 13, portable=False) or []
    (both,) = kernels.kernels("", "Max", 13, portable=True) or []
    assert newest["T"] > both["T"]


def test_operators_of_the_newest_release_only() -> None:
    old, new = kernels._stored(kernels.OLDEST), kernels._stored(kernels.NEWEST)
    assert new.keys() > old.keys()
    domain, operator = sorted(new.keys() - old.keys())[0]
    version = new[domain, operator][0][0]
    assert kernels.kernels(domain, operator, version, portable=True) == kernels.kernels(
        domain, operator, version, portable=False
    )
