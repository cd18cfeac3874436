"""Files in a folder that a conversion replaces. The old files are kept until all new files are complete."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from converters.outputs import move_away


class SetAside:
    """Existing files, which are moved to temporary names while new files are written in their place.

    At the end of the ``with`` statement, files that were replaced are deleted, and the others are moved back. If it ends
    with an exception, all files are moved back. A path that is a symbolic link remains a link, and the file that it points
    to is replaced.

    Args:
        paths: the files; those that do not exist are ignored.
    """

    def __init__(self, paths: Iterable[Path]) -> None:
        self._paths = list(dict.fromkeys(paths))
        self._undo: dict[Path, ExitStack] = {}
        self._kept: list[Path] = []

    def __enter__(self) -> Self:
        try:
            for path in self._paths:
                if path.is_file():
                    undo = self._undo[path] = ExitStack()
                    self._kept += move_away(Path(os.path.realpath(path)), undo)
        except BaseException:
            self.restore(self._paths)
            raise
        return self

    def restore(self, paths: Iterable[Path]) -> None:
        """Move files back, and overwrite new files."""
        for path in paths:
            self._undo.pop(path, ExitStack()).close()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.restore([path for path in self._paths if error is not None or not path.exists()])
        for path in self._kept:
            path.unlink(missing_ok=True)
