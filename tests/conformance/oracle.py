"""OpenVINO as the oracle: the CPU plugin, and the reference kernels as a second result."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import numpy as np

from converters.openvino.runtime.inference import FLOAT32, evaluate, infer
from converters.openvino.runtime.process import OpenVINOError as OracleError
from converters.openvino.runtime.process import OpenVINOProcess, describe_exit, exchange, serve
from tests.worker import processor_time

Outputs = list[list[np.ndarray]]
TIMEOUT = 120


class Oracle(OpenVINOProcess):
    """A process that runs OpenVINO.

    Args:
        timeout: the time limit of a request in seconds of processor time, or ten times as much wall-clock time on a busy
            machine. The start of the process, which loads OpenVINO, is not counted.
    """

    serving = __name__, "serve_again"

    def __init__(self, timeout: float = TIMEOUT) -> None:
        super().__init__(timeout)

    def _start(self) -> subprocess.Popen[bytes]:
        process = super()._start()
        exchange(process, os.getpid)
        return process

    def _awaited(
        self, exchanged: Future[tuple[str, Any]], process: subprocess.Popen[bytes], timeout: float
    ) -> tuple[str, Any]:
        began, used = time.monotonic(), _processor_time(process.pid)
        while True:
            try:
                return exchanged.result(min(1.0, timeout))
            except TimeoutError:
                spent = _processor_time(process.pid) - used
                if max(spent, (time.monotonic() - began) / 10) > timeout:
                    raise

    def run(
        self,
        path: Path,
        runs: list[list[np.ndarray]],
        *,
        state: bool = False,
        names: Sequence[str] = ("cpu", "evaluate"),
        settings: Mapping[str, str] = FLOAT32,
    ) -> dict[str, Outputs | OracleError]:
        """Return the outputs of each run by the CPU plugin (``"cpu"``) and by ``Model.evaluate`` (``"evaluate"``), or the
        error.

        ``names`` selects the runtimes: an unnecessary one may crash, or corrupt the process's memory for the next case.
            ``settings`` are the CPU plugin's.
        """
        answers: dict[str, Outputs | OracleError] = {}
        for name in names:
            try:
                answers[name] = (
                    self._infer(path, runs, state, settings) if name == "cpu" else self._evaluate(path, runs, state)
                )
            except OracleError as error:
                answers[name] = error
        return answers

    def _infer(self, path: Path, runs: list[list[np.ndarray]], state: bool, settings: Mapping[str, str]) -> Outputs:
        return self.ask(infer, str(path), runs, state=state, settings=dict(settings)).outputs

    def _evaluate(self, path: Path, runs: list[list[np.ndarray]], state: bool) -> Outputs:
        if state:
            raise OracleError("Model.evaluate keeps no state")
        return self.ask(evaluate, str(path), runs)

    def import_onnx(self, model: bytes, path: Path, *, dynamic: bool = False) -> list[str]:
        """Let OpenVINO read an ONNX model and write it as IR to ``path``; raise `OracleError` if it cannot.

        ``dynamic`` makes every dimension of every input unknown. Returns the names of the inputs; OpenVINO drops unused
        ones.
        """
        return self.ask(_import_onnx, model, str(path), dynamic)


def _processor_time(process: int) -> float:
    """Return the processor time of the process and its children."""
    try:
        children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    except OSError:
        children = []
    return processor_time(process) + sum(processor_time(int(child)) for child in children)


def serve_again() -> None:
    """Run the process: its child serves requests. If the child crashes, the next one starts without loading OpenVINO
    again.
    """
    if not hasattr(os, "fork"):
        return serve()
    sys.modules["openvino_telemetry"] = None  # type: ignore[assignment]
    import openvino  # noqa: F401

    while True:
        child = os.fork()
        if not child:
            serve()
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if status == 0:
            return None
        code = os.waitstatus_to_exitcode(status)
        answer = ("error", f"OpenVINO crashed: its process ended with {describe_exit(code)}")
        os.write(1, pickle.dumps(answer))


def _import_onnx(model: bytes, path: str, dynamic: bool) -> list[str]:
    import openvino as ov

    imported = ov.Core().read_model(model)
    if dynamic:
        shapes = {port: port.partial_shape for port in imported.inputs}
        imported.reshape({port: [-1] * len(shape) for port, shape in shapes.items() if shape.rank.is_static})
    ov.save_model(imported, path, compress_to_fp16=False)
    return [port.node.friendly_name for port in imported.inputs]
