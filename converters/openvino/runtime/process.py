"""OpenVINO in a separate process, because it crashes or hangs on some models."""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import subprocess
import sys
import weakref
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from converters.openvino.runtime.inference import EXACT, LayerOutput, infer
from converters.source import BaselineError, Inference

TIMEOUT = 600.0
"""The time limit in seconds for reading, compiling and inferring a model."""

# The maximum number of retries with fewer layers at a time.
_ATTEMPTS = 60

_PACKAGES = ("openvino", "openvino_tokenizers")


class OpenVINOError(BaselineError):
    """OpenVINO rejected the model, failed, crashed or hung."""


class OpenVINOTimeout(OpenVINOError):
    """OpenVINO did not respond in time."""


class OpenVINOProcess:
    """A process that runs OpenVINO. It starts with the first request, and again after a crash.

    Args:
        timeout: the time limit of a request in seconds; `TIMEOUT` by default.
    """

    serving = __name__, "serve"
    """The module and function that the process runs."""

    def __init__(self, timeout: float | None = None) -> None:
        self.timeout = timeout
        self._process: subprocess.Popen[bytes] | None = None
        self._end: Callable[[], object] = lambda: None

    def __enter__(self) -> OpenVINOProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def ask(self, function: Callable[..., Any], *arguments: Any, **keywords: Any) -> Any:
        """Call a function of a module in the process, and return its result.

        Raises:
            OpenVINOError: with the function's exception, or how its process ended.
            ModuleNotFoundError: OpenVINO is not installed.
        """
        process = self._process or self._start()
        timeout = TIMEOUT if self.timeout is None else self.timeout
        with ThreadPoolExecutor(1) as thread:
            exchanged = thread.submit(exchange, process, function, *arguments, **keywords)
            try:
                kind, answer = self._awaited(exchanged, process, timeout)
            except BaseException as error:
                self.close()  # this ends the thread, too
                if isinstance(error, TimeoutError):
                    raise OpenVINOTimeout(f"OpenVINO did not respond within {timeout:g} s") from None
                raise
        if kind == "ended":
            self.close()
            raise OpenVINOError(f"OpenVINO crashed: its process ended with {answer}")
        if kind == "missing":
            package = answer.replace("_", "-")
            raise ModuleNotFoundError(f'{package} is not installed: pip install "onnx-specops[openvino]"', name=answer)
        if kind == "error":
            raise OpenVINOError(answer)
        return answer

    def _awaited(
        self, exchanged: Future[tuple[str, Any]], process: subprocess.Popen[bytes], timeout: float
    ) -> tuple[str, Any]:
        """Return the response of the process. Raise `TimeoutError` if it takes too long."""
        return exchanged.result(timeout)

    def close(self) -> None:
        """End the process. The next request starts another."""
        self._process = None
        self._end()

    def _start(self) -> subprocess.Popen[bytes]:
        module, function = self.serving
        start = f"import sys; sys.path[:] = {sys.path!r}; from {module} import {function}; {function}()"
        self._process = subprocess.Popen(
            [sys.executable, "-c", start],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self._end = weakref.finalize(self, kill_group, self._process)
        return self._process


def exchange(
    process: subprocess.Popen[bytes], function: Callable[..., Any], *arguments: Any, **keywords: Any
) -> tuple[str, Any]:
    """Send a request to the process and wait. Return the kind of the response, and the response."""
    assert process.stdin is not None and process.stdout is not None
    # Pickled twice, so that a request that cannot be unpickled gives an error response instead of a crash.
    question = pickle.dumps(pickle.dumps((function, arguments, keywords)))
    try:
        process.stdin.write(question)
        process.stdin.flush()
        return pickle.load(process.stdout)
    except (OSError, EOFError, pickle.UnpicklingError):
        return "ended", describe_exit(process.wait())


def kill_group(process: subprocess.Popen[Any]) -> None:
    """End a process that leads a session, and its child processes, because they keep its pipes open."""
    if hasattr(os, "killpg") and process.returncode is None:
        with contextlib.suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            try:
                pipe.close()
            except OSError:  # the rest of a request that is not read any more
                continue


def describe_exit(code: int) -> str:
    """Describe how a process ended by its exit code, which is negative for a signal."""
    if code >= 0:
        return f"exit code {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"


def serve() -> None:
    """Run in the child process: read requests from stdin and respond on stdout, to which OpenVINO itself may not write."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    # OpenVINO does not need it. Each import would start another process to send telemetry.
    sys.modules["openvino_telemetry"] = None  # type: ignore[assignment]
    while True:
        try:
            question = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        try:
            function, arguments, keywords = pickle.loads(question)
            answer = ("value", function(*arguments, **keywords))
        except ImportError as error:
            name = (error.name or "").partition(".")[0]
            answer = ("missing", name) if name in _PACKAGES else ("error", f"{type(error).__name__}: {error}")
        except Exception as error:
            answer = ("error", f"{type(error).__name__}: {error}")
        pickle.dump(answer, answers)
        answers.flush()


def run_openvino(
    path: Path,
    arrays: Sequence[np.ndarray],
    layers: Sequence[LayerOutput] = (),
    timeout: float | None = None,
    extensions: Sequence[str] = (),
    settings: Mapping[str, str] = EXACT,
) -> Inference:
    """Infer the IR once for the outputs, and again for the time, in a separate process.

    Further runs return the layers' values, because more outputs change how OpenVINO computes.

    Args:
        path: the .xml.
        arrays: the inputs in the model's order.
        layers: further values to return. A value is ``None`` if OpenVINO cannot return it, because some layers fail with a
            second consumer.
        timeout: seconds until the process is ended; `TIMEOUT` by default.
        extensions: see `converters.openvino.runtime.extensions.new_core`.
        settings: the CPU plugin's settings.

    Raises:
        OpenVINOError: with OpenVINO's own message, or how its process ended.
        ModuleNotFoundError: openvino is not installed.
    """
    with OpenVINOProcess(timeout) as process:

        def ask(wanted: Sequence[LayerOutput] = (), *, timed: bool = False) -> Inference:
            options = {"timed": timed, "extensions": list(extensions), "settings": dict(settings)}
            return process.ask(infer, str(path), [list(arrays)], layers=list(wanted), **options)

        plain = ask(timed=True)
        attempts = _ATTEMPTS
        values: dict[LayerOutput, np.ndarray | None] = {}
        pending = [list(layers)] if layers else []
        while pending and attempts:
            group = pending.pop()
            attempts -= 1
            try:
                values |= zip(group, ask(group).layers, strict=True)
            except OpenVINOError:
                if len(group) > 1:  # one of them cannot be returned
                    middle = len(group) // 2
                    pending += [group[middle:], group[:middle]]
        return Inference(plain.outputs, [values.get(layer) for layer in layers], plain.seconds)
