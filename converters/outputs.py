"""Atomic output files that never overwrite the inputs that they are made from.

Each file is written next to its path under a temporary name. All files are moved into place once they are complete. If
anything fails before that (a full disk, a limit, an interruption), the previous files are unchanged.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import IO, NamedTuple


class OverInputError(ValueError):
    """An output would overwrite an input."""


def reject_inputs(outputs: Iterable[Path], inputs: Iterable[Path]) -> None:
    """Raise `OverInputError` if an output is the same file as an input, under any name or link."""
    taken = {_identity(path): path for path in inputs}
    for output in outputs:
        identity = _identity(output)
        if identity is not None and identity in taken:
            path = taken[identity]
            which = "an input" if output == path else f"the same file as the input {path}"
            raise OverInputError(f"{output} is {which} and would be overwritten")


def _identity(path: Path) -> tuple[int, int] | None:
    """Return the identity of a file; ``None`` if it does not exist."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return None
    return status.st_dev, status.st_ino


class Outputs:
    """Several files that appear together, in the order in which they were opened, if the block succeeds.

    ::

        with Outputs(inputs=[xml, bin]) as outputs:
            with outputs.open(data_path) as file:
                file.write(...)
            with outputs.open(onnx_path) as file:
                file.write(...)

    An ``OSError`` names the final path, not the temporary one. A path that is a symbolic link remains a link, and the file
    that it points to is replaced. Devices and pipes, such as ``/dev/null``, are written directly.

    Args:
        inputs: files that no output may overwrite.
    """

    def __init__(self, inputs: Iterable[Path] = ()) -> None:
        self._inputs = list(inputs)
        self._moves: list[_Move] = []
        self._removed: list[Path] = []

    def __enter__(self) -> Outputs:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        try:
            if kind is None:
                self._commit()
        finally:
            for move in self._moves:
                move.beside.unlink(missing_ok=True)

    @contextlib.contextmanager
    def open(self, path: Path, *, linked: bool = False) -> Iterator[IO[bytes]]:
        """Open a file that will replace the one at ``path``.

        Args:
            path: the final path.
            linked: whether the existing file may be another name of an input. Only the name is replaced then.

        Raises:
            OverInputError: the path is one of the inputs.
            OSError: the file cannot be written; ``filename`` is ``path``.
        """
        if not linked or self._is_input(path):
            reject_inputs([path], self._inputs)
        with _with_path(path):
            file: IO[bytes] = path.open("wb", buffering=0) if _is_special(path) else self._beside(path)
            try:
                yield file
                file.close()
            finally:
                with contextlib.suppress(OSError):  # a file that could not be written cannot be flushed either
                    file.close()

    def link(self, path: Path, source: Path) -> None:
        """Replace ``path`` by another name of the file ``source``. Raises ``OSError`` if the file system does not support
        it.
        """
        if _identity(path) == _identity(source):
            return
        reject_inputs([path], self._inputs)
        with _with_path(path):
            move = _Move.to(path)
            os.link(os.path.realpath(source), move.beside)
            self._moves.append(move)

    def remove(self, path: Path) -> None:
        """Remove the file at ``path`` when the others appear, unless it is an input."""
        if not self._is_input(path):
            self._removed.append(path)

    def _is_input(self, path: Path) -> bool:
        """Return whether the path itself is an input, not only another name of one."""
        return any(os.path.realpath(path) == os.path.realpath(other) for other in self._inputs)

    def _beside(self, path: Path) -> IO[bytes]:
        move = _Move.to(path)
        file = move.beside.open("xb")
        self._moves.append(move)
        with contextlib.suppress(OSError):  # the file does not exist yet
            move.beside.chmod(stat.S_IMODE(move.target.stat().st_mode))
        return file

    def _commit(self) -> None:
        """Move all files into place. If one cannot be moved, restore those before it."""
        with contextlib.ExitStack() as undo:
            for number, move in enumerate(self._moves):
                with _with_path(move.path):
                    if number < len(self._moves) - 1:
                        self._removed += move_away(move.target, undo)
                    os.replace(move.beside, move.target)
            undo.pop_all()
        for path in self._removed:
            path.unlink(missing_ok=True)


class _Move(NamedTuple):
    """A file at the temporary path ``beside`` that will replace ``target``, to which ``path`` resolves."""

    path: Path
    beside: Path
    target: Path

    @classmethod
    def to(cls, path: Path) -> _Move:
        target = Path(os.path.realpath(path))
        return cls(path, _temporary_name(target), target)


def move_away(target: Path, undo: contextlib.ExitStack) -> list[Path]:
    """Move an existing file away, and return its temporary path.

    ``undo`` restores the file, also in the place of a new one. If there is no file, it removes a new one.
    """
    kept = _temporary_name(target)
    try:
        os.replace(target, kept)
    except FileNotFoundError:
        undo.callback(target.unlink, missing_ok=True)
        return []
    undo.callback(os.replace, kept, target)
    return [kept]


def _temporary_name(target: Path) -> Path:
    """Return an unused temporary name next to the target."""
    return target.with_name(f".specops-{secrets.token_hex(8)}")


def _is_special(path: Path) -> bool:
    """Return whether the path is a device or a pipe, which can be written but not replaced."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    return not stat.S_ISREG(mode)


@contextlib.contextmanager
def _with_path(path: Path) -> Iterator[None]:
    """Set the path of any ``OSError`` in the block."""
    try:
        yield
    except OSError as error:
        if error.filename == str(path):
            raise
        raise OSError(error.errno or 0, error.strerror or str(error), str(path)) from error
