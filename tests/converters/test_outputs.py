"""Files are written completely or not at all, and never over an input."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from converters.outputs import Outputs, OverInputError, reject_inputs

links = pytest.mark.skipif(sys.platform == "win32", reason="links need rights that users lack there")


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_files_appear_when_all_are_complete(tmp_path: Path) -> None:
    with Outputs() as outputs:
        for name in ("data", "model"):
            with outputs.open(tmp_path / name) as file:
                file.write(name.encode())
            assert not (tmp_path / name).exists()
    assert names(tmp_path) == {"data", "model"}
    assert (tmp_path / "model").read_bytes() == b"model"


@pytest.mark.parametrize("kind", [KeyboardInterrupt, OSError, ValueError])
def test_a_failure_keeps_the_previous_files(tmp_path: Path, kind: type[BaseException]) -> None:
    (tmp_path / "data").write_bytes(b"before")
    with pytest.raises(kind), Outputs() as outputs:
        with outputs.open(tmp_path / "data") as file:
            file.write(b"after")
        with outputs.open(tmp_path / "model") as file:
            file.write(b"half")
            raise kind
    assert names(tmp_path) == {"data"}
    assert (tmp_path / "data").read_bytes() == b"before"


@pytest.mark.parametrize("before", [True, False])
def test_a_failed_move_restores_the_previous_files(tmp_path: Path, before: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if before:
        (tmp_path / "data").write_bytes(b"before")
    replace = os.replace

    def refuse(source: Path, target: Path) -> None:
        if target == tmp_path / "model":
            raise PermissionError(13, "Permission denied", str(source))
        replace(source, target)

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(PermissionError) as error, Outputs() as outputs:
        for name in ("data", "model"):
            with outputs.open(tmp_path / name) as file:
                file.write(b"after")
    assert error.value.filename == str(tmp_path / "model")
    assert names(tmp_path) == ({"data"} if before else set())
    assert not before or (tmp_path / "data").read_bytes() == b"before"


def test_errors_name_the_requested_file(tmp_path: Path) -> None:
    for path, kind in ((tmp_path / "none" / "model", FileNotFoundError), (tmp_path, IsADirectoryError)):
        with pytest.raises(kind) as error, Outputs() as outputs, outputs.open(path):
            pass
        assert error.value.filename == str(path)


def test_a_file_keeps_its_permissions(tmp_path: Path) -> None:
    path = tmp_path / "model"
    path.touch(mode=0o640)
    path.chmod(0o640)
    mode = path.stat().st_mode
    with Outputs() as outputs, outputs.open(path) as file:
        file.write(b"after")
    assert (path.stat().st_mode, path.read_bytes()) == (mode, b"after")


@links
def test_a_link_remains_a_link(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "model").symlink_to("folder/real")
    for content in (b"first", b"second"):
        with Outputs() as outputs, outputs.open(tmp_path / "model") as file:
            file.write(content)
        assert (tmp_path / "folder" / "real").read_bytes() == content
    assert os.readlink(tmp_path / "model") == "folder/real"
    assert names(tmp_path / "folder") == {"real"}


@links
def test_devices() -> None:
    with Outputs() as outputs, outputs.open(Path("/dev/null")) as file:
        file.write(b"content")
    assert Path("/dev/null").is_char_device()


@links
@pytest.mark.parametrize("link", [None, os.symlink, os.link])
def test_no_output_is_an_input(tmp_path: Path, link) -> None:
    source, output = tmp_path / "model.xml", tmp_path / "model.xml"
    source.write_bytes(b"before")
    if link is not None:
        output = tmp_path / "output"
        link(source, output)
    with pytest.raises(OverInputError, match="overwritten"):
        reject_inputs([output], [tmp_path / "none", source])
    with pytest.raises(OverInputError), Outputs([source]) as outputs, outputs.open(output):
        pass
    assert source.read_bytes() == b"before"
    reject_inputs([tmp_path / "none"], [tmp_path / "none"])
