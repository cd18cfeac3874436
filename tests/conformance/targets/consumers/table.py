"""The consumers of ONNX in the matrix, with their packages, scripts and targets."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from converters.openvino.runtime.process import kill_group
from tests.locking import locked

HERE = Path(__file__).parent


class ConsumerError(RuntimeError):
    """A consumer has no outputs; the message is its own error."""


@dataclass(frozen=True)
class Consumer:
    """A program or library that reads ONNX.

    Attributes:
        name: its name in the matrix.
        script: the script that runs it, in this folder.
        target: its target in `converters.targets`.
        packages: the packages for `pip`, or `npm` for JavaScript; empty if the project's own environment has it.
        timeout: the time limit of a network in seconds.
        error: the relative and absolute tolerance to OpenVINO's results.
    """

    name: str
    script: str
    target: str
    packages: tuple[str, ...] = ()
    timeout: float = 120
    error: tuple[float, float] = (1e-2, 1e-3)

    def here(self) -> Consumer:
        """Return the consumer in the current environment."""
        return replace(self, packages=())

    def python(self, environments: Path) -> str:
        """Return the Python of its environment, which is created if missing."""
        if not self.packages:
            return sys.executable
        folder = environments / self.name
        python = folder / "bin" / "python"
        with locked(environments / f"{self.name}.lock"):
            if not (folder / "ok").exists():
                subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
                subprocess.run([str(python), "-m", "pip", "install", "-q", *self.packages], check=True)
                (folder / "ok").touch()
        return str(python)

    def version(self, environments: Path) -> str:
        """Return the release of its first package."""
        package = (
            re.split("[<>=]", self.packages[0])[0] if self.packages else self.script.partition(".")[0].partition("_")[0]
        )
        command = f"import importlib.metadata as m; print(m.version({package!r}))"
        return f"{package} {subprocess.check_output([self.python(environments), '-c', command], text=True).strip()}"

    def run(self, model: Path, inputs: Path, outputs: list[str], environments: Path) -> list[np.ndarray]:
        """Return the outputs of a model.

        Raises:
            ConsumerError: it does not load or run the model.
        """
        with tempfile.TemporaryDirectory() as name:
            found = Path(name) / "outputs.npz"
            command = [self.python(environments), str(HERE / self.script), str(model), str(inputs), str(found)]
            environment = environment_of(command[0], isolated=bool(self.packages))
            done = completed([*command, "|".join(outputs)], self.timeout, env=environment)
            if not found.exists():
                raise ConsumerError(_reason(done))
            arrays = np.load(found)
            return [arrays[str(index)] for index in range(len(arrays.files))]


class Web(Consumer):
    """onnxruntime-web, whose environment is a folder of Node packages."""

    def version(self, environments: Path) -> str:
        manifest = environments / self.name / "node_modules" / self.packages[0] / "package.json"
        return f"{self.packages[0]} {json.loads(manifest.read_text())['version']}" if manifest.exists() else self.packages[0]

    def run(self, model: Path, inputs: Path, outputs: list[str], environments: Path) -> list[np.ndarray]:
        folder = environments / self.name
        if not (folder / "node_modules" / "onnxruntime-web").exists():
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "package.json").write_text('{"private": true}')
            subprocess.run(["npm", "install", "--silent", *self.packages], cwd=folder, check=True)
        with tempfile.TemporaryDirectory() as name:
            given, found = Path(name) / "inputs.json", Path(name) / "outputs.json"
            arrays = np.load(inputs)
            feeds = [
                {
                    "name": key,
                    "type": arrays[key].dtype.name,
                    "dims": arrays[key].shape,
                    "data": arrays[key].ravel().tolist(),
                }
                for key in arrays.files
            ]
            given.write_text(json.dumps(feeds))
            command = ["node", str(HERE / self.script), str(model), str(given), str(found)]
            done = completed(command, self.timeout, cwd=folder)
            if not found.exists():
                raise ConsumerError(_reason(done))
            return [
                np.array([float(x) for x in output["data"]]).reshape(output["dims"])
                for output in json.loads(found.read_text())
            ]


def environment_of(python: str, *, isolated: bool) -> dict[str, str]:
    """Return the environment variables of a consumer's process; ``isolated``: without this repository's modules."""
    # Programs that a consumer starts by name, such as pip, belong to its own environment.
    path = f"{Path(python).parent}{os.pathsep}{os.defpath}"
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PATH": path, "PIP_NO_INDEX": "1"}
    return environment | {"PYTHONPATH": ""} if isolated else environment


def completed(command: Sequence[str], timeout: float, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a command to its end.

    Raises:
        ConsumerError: it took too long; it was ended with all processes that it started.
    """
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, text=True, start_new_session=True, **pipes, **options) as process:
        try:
            out, err = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired as error:
            raise ConsumerError(f"no answer in {timeout:g} seconds") from error
        finally:
            kill_group(process)
    return subprocess.CompletedProcess(command, process.returncode, out, err)


def _reason(done: subprocess.CompletedProcess[str]) -> str:
    """Return the relevant last line of a process's error output."""
    if done.returncode < 0:
        return f"ends by signal {-done.returncode}: " + " ".join((done.stderr or done.stdout).split())[-300:]
    lines = [line.strip() for line in (done.stderr or done.stdout).splitlines() if line.strip()]
    told = [line for line in lines if "Error" in line or "error" in line or "Exception" in line]
    return " ".join(" | ".join([*told[-2:], *lines[-2:]]).split())[-600:]


CONSUMERS = [
    Consumer("onnxruntime", "onnxruntime_plain.py", "onnxruntime"),
    Web("onnxruntime-web", "onnxruntime_web.mjs", "onnxruntime", ("onnxruntime-web",)),
    Consumer("standard", "onnxruntime_plain.py", "standard"),
    Consumer("openvino", "openvino_runtime.py", "openvino"),
    Consumer("opencv5", "opencv.py", "opencv", ("opencv-python-headless>=5", "numpy")),
    Consumer("opencv4", "opencv.py", "opencv4", ("opencv-python-headless<5", "numpy")),
    Consumer("tract", "tract_runtime.py", "tract", ("tract", "numpy")),
    Consumer("tinygrad", "tinygrad_runtime.py", "tinygrad", ("tinygrad", "numpy"), timeout=240),
    Consumer("mnn", "mnn_runtime.py", "mnn", ("MNN", "numpy")),
    Consumer("ncnn", "ncnn_runtime.py", "ncnn", ("ncnn", "pnnx", "numpy")),
    Consumer("tvm", "tvm_runtime.py", "tvm", ("apache-tvm", "onnx", "numpy"), timeout=240),
    Consumer("iree", "iree_runtime.py", "iree", ("iree-base-compiler", "iree-base-runtime", "onnx", "numpy"), timeout=240),
    Consumer("onnx2torch", "onnx2torch_runtime.py", "onnx2torch", ("onnx2torch", "torch", "onnx", "numpy")),
    Consumer("jaxonnxruntime", "jax_runtime.py", "jax", ("jaxonnxruntime", "jax", "absl-py", "onnx", "numpy")),
    Consumer("qnn", "qnn_runtime.py", "qnn", ("onnxruntime-qnn", "onnxruntime", "numpy"), error=(2e-2, 2e-2)),  # float16
    # Its simulator computes in float16.
    Consumer("rknn", "rknn_runtime.py", "rknn", ("rknn-toolkit2", "setuptools<81"), timeout=240, error=(2e-2, 2e-2)),
    Consumer("webgpu", "webgpu_runtime.py", "webgpu", ("onnxruntime-ep-webgpu", "onnxruntime", "numpy"), timeout=60),
]
