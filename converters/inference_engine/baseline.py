"""The Inference Engine in a separate process, as the baseline of `validate` and of the tests."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import selectors
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from lxml import etree

from converters.inference_engine.translate import VERSIONS
from converters.source import BaselineError

ENVIRONMENT = "SPECOPS_INFERENCE_ENGINE"
"""The environment variable with the path of a Python that has ``opencv-python-inference-engine``."""

_SCRIPT = Path(__file__).with_name("engine.py")
_LIBRARY = "libinference_engine_c_api.so"


def python() -> str | None:
    """Return the Python that has the Inference Engine: the one in `ENVIRONMENT`, or this one; ``None`` for neither."""
    given = os.environ.get(ENVIRONMENT)
    if given:
        return given
    try:
        spec = importlib.util.find_spec("cv2")
    except (ImportError, ValueError):
        return None
    folders = [] if spec is None else list(spec.submodule_search_locations or ())
    return sys.executable if any((Path(folder) / _LIBRARY).exists() for folder in folders) else None


class EngineProcess:
    """A process with the Inference Engine, which restarts after a crash.

    It runs files without the ``<statistics>`` of an 8-bit calibration, in floats, as converted files do. With them, its
    results depend on the processor: it computes in integers, or fails.

    Args:
        executable: the Python that has the Inference Engine.
        seconds: the time limit for one model.
    """

    def __init__(self, executable: str, seconds: float = 120) -> None:
        self._executable, self._seconds = executable, seconds
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> EngineProcess:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def run(
        self,
        xml: Path,
        bin_path: Path,
        inputs: Mapping[str, np.ndarray],
        shapes: Mapping[str, Sequence[int]] | None = None,
        runs: int = 1,
    ) -> dict[str, np.ndarray]:
        """Return the model's outputs by name, from the last of ``runs`` runs.

        Raises:
            BaselineError: the Inference Engine cannot run the model.
        """
        with tempfile.TemporaryDirectory(prefix="specops-") as folder:
            given, made = Path(folder) / "inputs.npz", Path(folder) / "outputs.npz"
            np.savez(given, **inputs)  # type: ignore[arg-type]
            job: dict[str, Any] = {"bin": str(bin_path), "inputs": str(given), "outputs": str(made)}
            job["xml"] = str(_in_floats(xml, Path(folder)))
            job["runs"] = runs
            if shapes:
                job["shapes"] = {name: list(dims) for name, dims in shapes.items()}
            answer = self._request(json.dumps(job))
            if "error" in answer:
                raise BaselineError(answer["error"])
            with np.load(made) as outputs:
                return dict(outputs)

    def interface(self, xml: Path, bin_path: Path) -> dict[str, dict[str, list[int]]]:
        """Return the dimensions of ``inputs`` and ``outputs`` by name."""
        with tempfile.TemporaryDirectory(prefix="specops-") as folder:
            answer = self._request(json.dumps({"xml": str(_in_floats(xml, Path(folder))), "bin": str(bin_path)}))
        if "error" in answer:
            raise BaselineError(str(answer["error"]))
        return answer

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def _request(self, line: str) -> dict:
        if self._process is None or self._process.poll() is not None:
            self.close()
            environment = {"OMP_NUM_THREADS": "1", **os.environ}
            environment.pop("PYTHONPATH", None)
            try:
                self._process = subprocess.Popen(
                    [self._executable, str(_SCRIPT)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    text=True,
                    env=environment,
                )
            except OSError as error:
                raise BaselineError(
                    f"{ENVIRONMENT}={self._executable} is not a Python interpreter: {error.strerror}"
                ) from None
        process = self._process
        assert process.stdin is not None and process.stdout is not None
        try:
            process.stdin.write(line + "\n")
            process.stdin.flush()
        except BrokenPipeError:
            self.close()
            raise BaselineError("the Inference Engine does not start") from None
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            if not selector.select(self._seconds):
                self.close()
                raise BaselineError(f"the Inference Engine took more than {self._seconds:.0f} s")
        answer = process.stdout.readline()
        if not answer:
            code = process.wait()
            self.close()
            reason = f": {self._executable} needs NumPy and opencv-python-inference-engine" if code == 1 else ""
            raise BaselineError(f"the Inference Engine exited (exit code {code}){reason}")
        return json.loads(answer)


def _in_floats(xml: Path, folder: Path) -> Path:
    """Return the path of a file without ``<statistics>``: the file itself, or a copy in ``folder``."""
    content = xml.read_bytes()
    if b"<statistics" not in content:
        return xml
    try:
        root = etree.fromstring(content, etree.XMLParser(resolve_entities=False, no_network=True))
    except etree.XMLSyntaxError:  # the Inference Engine reports it
        return xml
    for element in root.findall("statistics"):
        root.remove(element)
    copy = folder / "model.xml"
    copy.write_bytes(etree.tostring(root))
    return copy


_VERSION = re.compile(rb"<net\s[^>]*?version\s*=\s*[\"']([0-9]+)[\"']")


def weights_of_old_ir(xml: Path) -> Path | None:
    """Return the .bin next to an IR of versions 2 to 7; ``None`` for any other file."""
    try:
        with xml.open("rb") as file:
            found = _VERSION.search(file.read(65536))
    except OSError:
        return None
    return xml.with_suffix(".bin") if found is not None and int(found[1][:9]) in VERSIONS else None
