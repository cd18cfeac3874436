"""The same function of several arguments, each call in a process of its own."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any, TypeVar

_Call = TypeVar("_Call", bound=tuple[Any, ...])

_GRACE_SECONDS = 10.0  # seconds that an interrupted process has to remove what it began


@dataclass(frozen=True)
class ProcessFailure:
    """How a process ended that gave no answer.

    Attributes:
        code: its exit code, negative for a signal.
        told: the last line that it wrote to standard output or error.
    """

    code: int
    last_line: str

    @property
    def killed(self) -> bool:
        """Whether it was killed, as the system does to a process that takes too much memory."""
        return self.code == -9

    @property
    def reason(self) -> str:
        """What it told at last, or its signal or exit code."""
        if self.last_line:
            return self.last_line
        with contextlib.suppress(ValueError):
            return signal.Signals(-self.code).name
        return f"exit code {self.code}"


def call_in_processes(function: Callable[..., Any], calls: Sequence[_Call], count: int) -> Iterator[tuple[_Call, Any]]:
    """Call a function of a module with each of several arguments, ``count`` at a time; gives each as it ends.

    Nothing of what a process does to itself, or to memory, reaches the others. What it writes to standard output and error
    is not shown.

    Args:
        function: it is found by its name; what it is given and returns is pickled.
        calls: the arguments of each call.
        count: how many processes there are at a time.

    Returns:
        The arguments, with what the function returned; with an `ProcessFailure` where the process gave no answer.
    """
    pending = list(reversed(calls))
    running: dict[Any, tuple[SpawnProcess, _Call, Path]] = {}
    with tempfile.TemporaryDirectory(prefix="specops-") as folder:
        try:
            while pending or running:
                while pending and len(running) < count:
                    arguments = pending.pop()
                    output_path = Path(folder, str(len(pending)))
                    process, receiver = _started(function, arguments, output_path)
                    running[receiver] = process, arguments, output_path
                ready = wait(list(running))
                for receiver in [one for one in running if one in ready]:
                    process, arguments, output_path = running.pop(receiver)
                    yield arguments, _result(process, receiver, output_path)
        finally:
            _stop([process for process, _, _ in running.values()])


def _started(function: Callable[..., Any], arguments: tuple[Any, ...], output_path: Path) -> tuple[SpawnProcess, Connection]:
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    # It ends with us, whatever happens.
    process = context.Process(target=_run_child, args=(function, arguments, sender, str(output_path)), daemon=True)
    with _deferred_interrupts():
        process.start()
    sender.close()  # of which the process has its own: without ours, its end is the end of what there is to receive
    return process, receiver


def _run_child(function: Callable[..., Any], arguments: tuple[Any, ...], sender: Connection, output_path: str) -> None:
    """The process: what the function returns is sent, what else is written goes into a file."""
    with open(output_path, "wb") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    if _HAS_MASKS:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    sender.send(function(*arguments))


_HAS_MASKS = hasattr(signal, "pthread_sigmask")


@contextlib.contextmanager
def _deferred_interrupts() -> Iterator[None]:
    """Keeps an interruption from us, and from a process that is started, until it can be dealt with."""
    if not _HAS_MASKS:
        yield
        return
    resource_tracker.ensure_running()  # its start, which is due with the first process, lets interruptions through again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _result(process: SpawnProcess, receiver: Connection, output_path: Path) -> Any:
    """What a process sent, or how it ended without."""
    with receiver:
        try:
            answer = receiver.recv()
        except (EOFError, OSError, pickle.UnpicklingError):
            process.join()
            lines = output_path.read_text(errors="replace").strip().splitlines() if output_path.is_file() else []
            return ProcessFailure(process.exitcode or 0, lines[-1] if lines else "")
    process.join()
    return answer


def _stop(processes: Sequence[SpawnProcess]) -> None:
    """End processes, which remove what they began."""
    for process in processes:
        if sys.platform == "win32" or process.pid is None:
            process.terminate()
        else:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGINT)
    for process in processes:
        process.join(_GRACE_SECONDS)
        process.kill()
        process.join()
