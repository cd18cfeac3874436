"""Files that a conversion replaces."""

from pathlib import Path

import pytest

from converters.folders.set_aside import SetAside


@pytest.fixture
def paths(tmp_path: Path) -> list[Path]:
    found = [tmp_path / "a/model.onnx", tmp_path / "b/model.onnx", tmp_path / "b/model.onnx.data"]
    for path in found:
        path.parent.mkdir(exist_ok=True)
        path.write_text("old")
    return found


def _texts(folder: Path) -> dict[str, str]:
    return {path.relative_to(folder).as_posix(): path.read_text() for path in folder.rglob("*") if path.is_file()}


def test_replaced_files_are_deleted_and_others_return(paths: list[Path], tmp_path: Path) -> None:
    with SetAside([*paths, tmp_path / "absent"]):
        assert not any(path.exists() for path in paths)
        paths[0].write_text("new")
    assert _texts(tmp_path) == {"a/model.onnx": "new", "b/model.onnx": "old", "b/model.onnx.data": "old"}
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["a", "b", "model.onnx", "model.onnx", "model.onnx.data"]


def test_files_return_in_the_place_of_new_ones(paths: list[Path], tmp_path: Path) -> None:
    with SetAside(paths) as previous:
        paths[0].write_text("new")
        previous.restore(paths)
    assert set(_texts(tmp_path).values()) == {"old"} and len(_texts(tmp_path)) == 3


def test_an_interruption_restores_all(paths: list[Path], tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), SetAside(paths):
        paths[0].write_text("new")
        raise KeyboardInterrupt
    assert set(_texts(tmp_path).values()) == {"old"} and len(_texts(tmp_path)) == 3


def test_a_symbolic_link_remains(paths: list[Path], tmp_path: Path) -> None:
    link = tmp_path / "link.onnx"
    link.symlink_to(paths[0])
    with SetAside([link]):
        paths[0].write_text("new")
    assert link.is_symlink() and link.read_text() == "new"
    with SetAside([link]) as previous:
        paths[0].write_text("newer")
        previous.restore([link])
    assert link.is_symlink() and link.read_text() == "new"
