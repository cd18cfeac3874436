"""Files of a folder that a conversion replaces: the old ones are kept until all new ones are complete."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Self


class SetAside:
    """Existing files, moved to hidden folders next to them while others are written in their places.

    At the end of the ``with`` statement, files that were replaced are deleted, and the others return. If it ends with an
    exception, all return.

    Args:
        paths: the files; those that do not exist are ignored.
    """

    def __init__(self, paths: Iterable[Path]) -> None:
        self._paths = list(dict.fromkeys(paths))
        self._kept: dict[Path, Path] = {}

    def __enter__(self) -> Self:
        try:
            for path in self._paths:
                if path.is_file():
                    kept = Path(tempfile.mkdtemp(prefix=".previous-", dir=path.parent)) / path.name
                    os.replace(path, kept)
                    self._kept[path] = kept
        except BaseException:
            self.restore(self._paths)
            raise
        return self

    def restore(self, paths: Iterable[Path]) -> None:
        """Move files back, also in the place of new ones."""
        for path in paths:
            if kept := self._kept.pop(path, None):
                os.replace(kept, path)
                kept.parent.rmdir()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.restore([path for path in self._kept if error is not None or not path.exists()])
        for kept in self._kept.values():
            shutil.rmtree(kept.parent)
        self._kept.clear()
