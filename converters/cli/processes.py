"""Parallel calls of a function, each in its own process."""

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

_GRACE_SECONDS = 10.0  # the time that an interrupted process has to clean up


@dataclass(frozen=True)
class ProcessFailure:
    """The end of a process that did not return a result.

    Attributes:
        code: its exit code, negative for a signal.
        last_line: the last line of its standard output or error.
    """

    code: int
    last_line: str

    @property
    def killed(self) -> bool:
        """Whether it was killed, probably because the system ran out of memory."""
        return self.code == -9

    @property
    def reason(self) -> str:
        """Its last line of output, or its signal or exit code if it wrote none."""
        if self.last_line:
            return self.last_line
        with contextlib.suppress(ValueError):
            return signal.Signals(-self.code).name
        return f"exit code {self.code}"


def call_in_processes(function: Callable[..., Any], calls: Sequence[_Call], count: int) -> Iterator[tuple[_Call, Any]]:
    """Call a function with several sets of arguments, ``count`` at a time, each in its own process.

    A crash or a lack of memory in one process does not affect the others. Their standard output and error are hidden.

    Args:
        function: a function that can be imported by name. Its arguments and result are pickled.
        calls: the arguments of each call.
        count: the number of parallel processes.

    Yields:
        The arguments and the result of each call as it ends, or a `ProcessFailure` if the process did not return a result.
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
    # A daemon ends with the parent process.
    process = context.Process(target=_run_child, args=(function, arguments, sender, str(output_path)), daemon=True)
    with _deferred_interrupts():
        process.start()
    sender.close()  # otherwise the end of the child's copy would not end the pipe
    return process, receiver


def _run_child(function: Callable[..., Any], arguments: tuple[Any, ...], sender: Connection, output_path: str) -> None:
    """Run the function in the child process. Send its result, and redirect all output to a file."""
    with open(output_path, "wb") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    if _HAS_MASKS:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    sender.send(function(*arguments))


_HAS_MASKS = hasattr(signal, "pthread_sigmask")


@contextlib.contextmanager
def _deferred_interrupts() -> Iterator[None]:
    """Defer interruptions of this process and of a child that is being started."""
    if not _HAS_MASKS:
        yield
        return
    resource_tracker.ensure_running()  # the first process would start it, and its start unblocks interruptions
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _result(process: SpawnProcess, receiver: Connection, output_path: Path) -> Any:
    """Receive the result of a process, or return how it ended without one."""
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
    """Interrupt processes, so that they clean up, and wait for them."""
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
