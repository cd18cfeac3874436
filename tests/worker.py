"""A process for functions that may crash, hang or exhaust the memory, with their outcomes."""

from __future__ import annotations

import importlib
import multiprocessing
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from multiprocessing.connection import Connection
from typing import Any

_TAIL = 4000


class Lost(Exception):
    """The process crashed, timed out, or used too much memory; ``said`` is the end of its standard error."""

    def __init__(self, message: str, said: str) -> None:
        super().__init__(message)
        self.said = said

    def __str__(self) -> str:
        return f"{self.args[0]}\n{self.said}" if self.said else str(self.args[0])


class Worker:
    """A process for consecutive calls. It starts with the first call, and again after it was lost.

    Args:
        seconds: the time limit of a call in processor time, or ten times as much wall-clock time on a busy machine.
        memory: the limit for the growth of resident memory during a call, in bytes; ``None`` for no limit.
        environment: environment variables of this process.
    """

    def __init__(self, seconds: float, memory: int | None = None, environment: Mapping[str, str] | None = None) -> None:
        self.seconds, self.memory, self.environment = seconds, memory, dict(environment or {})
        self._process: Any = None
        self._connection: Connection | None = None
        self._errors = tempfile.NamedTemporaryFile()  # noqa: SIM115  (lives as long as the worker)

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def ask(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call a function of some module in the process; return its result or raise its exception.

        Raises:
            Lost: the process ended, timed out, or used too much memory.
        """
        try:
            connection = self._connection or self._start(function.__module__)
            connection.send((function, arguments))
            if not self._answers(connection):
                raise self._lost(f"did not respond within {self.seconds:g} s")
            answer, error, taken = connection.recv()
        except (EOFError, OSError):
            raise self._lost("crashed") from None
        if self.memory is not None and taken > self.memory:
            raise self._lost(f"took {taken / 2**20:.0f} MiB")
        if error is not None:
            raise error
        return answer

    def close(self) -> None:
        """End the process; the next call starts another."""
        if self._connection is not None:
            self._connection.close()
            self._process.kill()
            self._process.join()
            self._connection = self._process = None

    def _answers(self, connection: Connection) -> bool:
        """Wait for a result; return whether there is one in time."""
        began, used = time.monotonic(), processor_time(self._process.pid)
        while not connection.poll(min(1.0, self.seconds)):
            spent = processor_time(self._process.pid) - used
            if max(spent, (time.monotonic() - began) / 10) > self.seconds:
                return False
        return True

    def _lost(self, message: str) -> Lost:
        self._process.join(1 if message == "crashed" else 0)
        code = self._process.exitcode
        if message == "crashed" and code is not None:
            message = f"crashed: {signal.Signals(-code).name if code < 0 else f'exit code {code}'}"
        self.close()
        self._errors.seek(max(0, self._errors.seek(0, os.SEEK_END) - _TAIL))
        return Lost(message, self._errors.read().decode(errors="replace"))

    def _start(self, module: str) -> Connection:
        self._errors.truncate(0)
        context = multiprocessing.get_context("spawn")
        self._connection, other = context.Pipe()
        self._process = context.Process(target=_serve, args=(other, self._errors.name, list(sys.path)))
        kept = {name: os.environ.get(name) for name in self.environment}
        os.environ.update(self.environment)
        try:
            self._process.start()
        finally:
            for name, value in kept.items():
                if value is None:
                    del os.environ[name]
                else:
                    os.environ[name] = value
        other.close()
        # Loading the modules does not count as the call's time.
        self._connection.send((_prepare, (module,)))
        self._connection.recv()
        return self._connection


def _prepare(module: str) -> None:
    importlib.import_module(module)


def processor_time(process: int) -> float:
    """Return the processor time of a process in seconds; 0 if unknown."""
    try:
        with open(f"/proc/{process}/stat") as file:
            fields = file.read().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _serve(connection: Connection, errors: str, path: list[str]) -> None:
    sys.path[:] = path
    os.dup2(os.open(errors, os.O_WRONLY | os.O_APPEND), 2)
    while True:
        try:
            function, arguments = connection.recv()
        except EOFError:
            return
        before = reset_peak()
        answer = error = None
        try:
            answer = function(*arguments)
        except BaseException as raised:
            error = raised
        taken = status("VmHWM") - before
        try:
            connection.send((answer, error, taken))
        except Exception:  # an exception that cannot be pickled
            connection.send((None, RuntimeError(f"{type(error).__name__}: {error}"), taken))


def reset_peak() -> int:
    """Reset the peak of resident memory; return the resident bytes."""
    try:
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")
    except OSError:  # another system, or no permission: the peak counts from the start
        pass
    return status("VmRSS")


def status(name: str) -> int:
    """Return a value in bytes from ``/proc/self/status``; 0 if there is no such file."""
    try:
        with open("/proc/self/status") as file:
            return next((int(line.split()[1]) * 1024 for line in file if line.startswith(name)), 0)
    except OSError:
        return 0
