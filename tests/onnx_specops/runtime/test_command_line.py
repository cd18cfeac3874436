"""``python -m onnx_specops`` prints paths for build systems."""

from __future__ import annotations

from pathlib import Path

import pytest

import onnx_specops
from onnx_specops.__main__ import main
from onnx_specops.runtime import library


def said(capsys: pytest.CaptureFixture[str], argument: str) -> str:
    assert main([argument]) == 0
    return capsys.readouterr().out.removesuffix("\n")


def test_paths_and_versions(capsys: pytest.CaptureFixture[str]) -> None:
    if library.has_library():
        assert said(capsys, "--library-path") == onnx_specops.library_path()
    assert Path(said(capsys, "--cmake-dir"), "onnx_specops-config.cmake").is_file()
    assert said(capsys, "--version") == onnx_specops.__version__
    assert said(capsys, "--opset-version") == str(onnx_specops.OPSET_VERSION)


def test_no_library(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    monkeypatch.setattr(library, "_PATH", tmp_path / "none.so")
    monkeypatch.setattr(library, "installed_package", lambda own, name: None)
    assert main(["--library-path"]) == 1
    streams = capsys.readouterr()
    assert not streams.out and "not built" in streams.err


@pytest.mark.parametrize("arguments", [[], ["--library-path", "--version"], ["model.onnx"]])
def test_one_option_at_a_time(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as raised:
        main(arguments)
    assert raised.value.code == 2
