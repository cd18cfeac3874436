"""Calls in separate processes, which may end in any way."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from pathlib import Path

import pytest

from converters.cli.processes import ProcessFailure, call_in_processes


def square(number: int) -> int:
    print("not shown")
    return number * number


def end(how: str) -> int:
    print("first\nlast words", file=sys.stderr, flush=True)
    if how == "error":
        raise KeyError("lost")
    if how == "exit":
        os._exit(7)
    os.kill(os.getpid(), getattr(signal, how))
    return 0


def wait(folder: str, name: str) -> None:
    Path(folder, name).touch()
    try:
        time.sleep(600)
    finally:
        Path(folder, name).unlink()


def test_each_call_has_a_result(capfd: pytest.CaptureFixture[str]) -> None:
    found = dict(call_in_processes(square, [(number,) for number in range(3)], 2))
    assert found == {(0,): 0, (1,): 1, (2,): 4}
    assert capfd.readouterr() == ("", "")


@pytest.mark.skipif(sys.platform == "win32", reason="has no signals")
def test_failed_processes_do_not_affect_others() -> None:
    calls = [("error",), ("exit",), ("SIGKILL",)]
    found = dict(call_in_processes(end, calls, 3))
    assert found[("error",)] == ProcessFailure(1, "KeyError: 'lost'")
    assert found[("exit",)] == ProcessFailure(7, "last words") and not found[("exit",)].killed
    assert found[("SIGKILL",)].killed
    assert ProcessFailure(-signal.SIGSEGV, "").reason == "SIGSEGV" and ProcessFailure(7, "").reason == "exit code 7"


@pytest.mark.skipif(sys.platform == "win32", reason="has no signals")
def test_interrupted_processes_can_clean_up(tmp_path: Path) -> None:
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it

    def interrupt() -> None:
        while not (tmp_path / "begun").exists():
            time.sleep(0.02)
        main = threading.main_thread().ident
        assert main is not None
        signal.pthread_kill(main, signal.SIGINT)

    threading.Thread(target=interrupt, daemon=True).start()
    try:
        with pytest.raises(KeyboardInterrupt):
            list(call_in_processes(wait, [(str(tmp_path), "begun")], 1))
    finally:
        signal.signal(signal.SIGINT, handler)
    assert not list(tmp_path.iterdir())
