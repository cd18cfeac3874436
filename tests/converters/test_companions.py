"""The companion files of a model's folder are copied completely or not at all, and never over each other."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path
from typing import IO

import pytest

from converters.folders.companions import copy_companions, places
from converters.outputs import OverInputError
from tests.converters.test_outputs import links


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "llm"
    (made / "part").mkdir(parents=True)
    for name in ("config.json", "part/config.json", "vocab.txt"):
        (made / name).write_text(f"new {name}")
    return made


def files(folder: Path) -> dict[str, str]:
    return {path.relative_to(folder).as_posix(): path.read_text() for path in folder.rglob("*") if path.is_file()}


def test_all_companions_are_copied(folder: Path, tmp_path: Path) -> None:
    copy_companions(places(folder, tmp_path / "out"), {tmp_path / "out" / "more.json": b"more"})
    assert files(tmp_path / "out") == {**files(folder), "more.json": "more"}


@pytest.mark.parametrize("spelling", [".", "part/.."])
def test_companions_in_their_own_folder_are_unchanged(folder: Path, spelling: str) -> None:
    assert places(folder, folder / spelling) == {}


@links
def test_another_name_of_their_folder(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(folder)
    assert places(folder, tmp_path / "link") == {}


def test_an_inner_folder_is_not_copied_into_itself(folder: Path) -> None:
    for _ in range(2):
        copy_companions(places(folder, folder / "onnx"))
    assert {name for name in files(folder) if name.startswith("onnx/")} == {
        "onnx/config.json", "onnx/part/config.json", "onnx/vocab.txt",
    }  # fmt: skip


@links
@pytest.mark.parametrize("link", [os.link, os.symlink])
def test_no_companion_overwrites_another(folder: Path, tmp_path: Path, link) -> None:
    before = files(folder)
    (tmp_path / "out").mkdir()
    link(folder / "vocab.txt", tmp_path / "out" / "config.json")
    with pytest.raises(OverInputError, match=r"config\.json is the same file as the input .*vocab\.txt"):
        copy_companions(places(folder, tmp_path / "out"))
    assert files(folder) == before
    assert files(tmp_path / "out") == {"config.json": "new vocab.txt"}


@pytest.mark.parametrize("fails", [1, 2, 3])
def test_a_full_disk_keeps_the_previous_files(
    folder: Path, tmp_path: Path, fails: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "out"
    (target / "part").mkdir(parents=True)
    (target / "config.json").write_text("old")
    (target / "part" / "config.json").write_text("old too")
    (target / "more.json").write_text("old as well")
    before = files(target)
    calls = 0

    def copy(source: IO[bytes], file: IO[bytes]) -> None:
        nonlocal calls
        calls += 1
        file.write(source.read(3))
        if calls == fails:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        file.write(source.read())

    monkeypatch.setattr(shutil, "copyfileobj", copy)
    with pytest.raises(OSError, match="No space left") as error:
        copy_companions(places(folder, target), {target / "more.json": b"more"})
    assert Path(error.value.filename).name in ("config.json", "vocab.txt")
    assert files(target) == before
