"""Files that are written together or not at all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def created(folder: Path) -> Iterator[None]:
    """Create a folder and its parents. After the block, remove those of them that are empty."""
    new = [path for path in (folder, *folder.parents) if not path.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    try:
        yield
    finally:
        for path in new:
            if not path.is_dir() or any(path.iterdir()):
                break
            path.rmdir()


@contextmanager
def all_or_none(folder: Path, models: Sequence[str]) -> Iterator[None]:
    """Create a folder for models. If the block fails, remove the models that it wrote, their weights, and an empty folder.

    Args:
        folder: the output folder.
        models: the names of the .onnx files.
    """
    with created(folder):
        there = {path for path in folder.iterdir() if path.is_file()}
        try:
            yield
        except BaseException:
            for name in models:
                for path in (folder / name, folder / f"{name}.data"):
                    if path not in there:
                        path.unlink(missing_ok=True)
            raise
