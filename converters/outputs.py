"""Files that come into being whole or not at all, and never in place of what they are made of.

Each is written beside its place, under a name of its own, and moved there once all of them are complete. Whatever happens
before, a full disk, a limit, an interruption, leaves the files of before as they were.
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
    """An output that would take the place of an input."""


def reject_inputs(outputs: Iterable[Path], inputs: Iterable[Path]) -> None:
    """Raises `OverInputError` where an output is one of the inputs: the same file, by whatever name or link."""
    taken = {_identity(path): path for path in inputs}
    for output in outputs:
        identity = _identity(output)
        if identity is not None and identity in taken:
            path = taken[identity]
            which = "an input" if output == path else f"the same file as the input {path}"
            raise OverInputError(f"{output} is {which}, which would be overwritten")


def _identity(path: Path) -> tuple[int, int] | None:
    """What tells a file from others; ``None`` where there is none."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return None
    return status.st_dev, status.st_ino


class Outputs:
    """Several files that appear together when the block ends well, in the order in which they were opened.

    ::

        with Outputs(inputs=[xml, bin]) as outputs:
            with outputs.open(data_path) as file:
                file.write(...)
            with outputs.open(onnx_path) as file:
                file.write(...)

    An ``OSError`` names the file at whose place it was written, not the one beside it. A path that is a symbolic link stays
    one; the file that it leads to is replaced. Devices and pipes, as ``/dev/null``, are written to as they are.

    Args:
        inputs: files that no output may take the place of.
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
        """A file to write in place of the one at ``path``.

        Args:
            path: where it will be.
            linked: whether the file there may be an input by another name: it is not written to, only the name goes.

        Raises:
            OverInputError: it is one of the inputs.
            OSError: it cannot be written; ``filename`` is ``path``.
        """
        if not linked or self._is_input(path):
            reject_inputs([path], self._inputs)
        with _named(path):
            file: IO[bytes] = path.open("wb", buffering=0) if _is_special(path) else self._beside(path)
            try:
                yield file
                file.close()
            finally:
                with contextlib.suppress(OSError):  # what could not be written cannot be flushed either
                    file.close()

    def link(self, path: Path, source: Path) -> None:
        """Another name for the file ``source``, in place of what is at ``path``; an ``OSError`` where there can be none."""
        if _identity(path) == _identity(source):
            return
        reject_inputs([path], self._inputs)
        with _named(path):
            move = _Move.to(path)
            os.link(os.path.realpath(source), move.beside)
            self._moves.append(move)

    def remove(self, path: Path) -> None:
        """Removes the file at ``path`` when the others appear; an input stays."""
        if not self._is_input(path):
            self._removed.append(path)

    def _is_input(self, path: Path) -> bool:
        """Whether an input is in that place, and not only the same file by another name."""
        return any(os.path.realpath(path) == os.path.realpath(other) for other in self._inputs)

    def _beside(self, path: Path) -> IO[bytes]:
        move = _Move.to(path)
        file = move.beside.open("xb")
        self._moves.append(move)
        with contextlib.suppress(OSError):  # there is none before
            move.beside.chmod(stat.S_IMODE(move.target.stat().st_mode))
        return file

    def _commit(self) -> None:
        """Moves every file to its place; where one cannot be moved, those before it are put back."""
        with contextlib.ExitStack() as undo:
            for number, move in enumerate(self._moves):
                with _named(move.path):
                    if number < len(self._moves) - 1:
                        self._removed += _aside(move.target, undo)
                    os.replace(move.beside, move.target)
            undo.pop_all()
        for path in self._removed:
            path.unlink(missing_ok=True)


class _Move(NamedTuple):
    """A file that is written ``beside`` its place, the ``target`` that the ``path`` leads to."""

    path: Path
    beside: Path
    target: Path

    @classmethod
    def to(cls, path: Path) -> _Move:
        target = Path(os.path.realpath(path))
        return cls(path, _hidden(target), target)


def _aside(target: Path, undo: contextlib.ExitStack) -> list[Path]:
    """Takes away what is in a place, to put it back where another file cannot be moved; returns where it is then."""
    kept = _hidden(target)
    try:
        os.replace(target, kept)
    except FileNotFoundError:
        undo.callback(target.unlink, missing_ok=True)
        return []
    undo.callback(os.replace, kept, target)
    return [kept]


def _hidden(target: Path) -> Path:
    """A name beside its place, of no file so far."""
    return target.with_name(f".specops-{secrets.token_hex(8)}")


def _is_special(path: Path) -> bool:
    """Whether there is a device or a pipe, which takes bytes but no other file in its place."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    return not stat.S_ISREG(mode)


@contextlib.contextmanager
def _named(path: Path) -> Iterator[None]:
    """An ``OSError`` within names the path."""
    try:
        yield
    except OSError as error:
        if error.filename == str(path):
            raise
        raise OSError(error.errno or 0, error.strerror or str(error), str(path)) from error
