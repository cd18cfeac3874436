"""Shared code of the benchmarks of whole networks: runtimes in separate processes that take turns, and the command line.

python -m benchmarks.networks MODEL INPUTS.npz OUTPUTS.npz KERNELS    # such a process: it runs on request
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np

THREADS = int(os.environ.get("BENCHMARK_THREADS", "2"))
CLOCK = time.process_time if THREADS == 1 else time.perf_counter
PLUGGED = "ours"
BLOCK = 0.6  # seconds of a process's turn, with at least one run


def open_session(
    path: Path, threads: int = THREADS, kernels: str = "none", settings: Mapping[str, str] | None = None
) -> Callable[[Sequence[np.ndarray]], list[np.ndarray]]:
    """Open a model: an .xml in OpenVINO with float32, an .onnx in ONNX Runtime with or without the plugin's kernels.

    ``settings`` are OpenVINO's; by default those of the environment variable BENCHMARK_OPENVINO, as JSON.
    """
    if path.suffix == ".xml":
        import openvino as ov

        options = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY"}
        options |= json.loads(os.environ.get("BENCHMARK_OPENVINO", "{}")) if settings is None else settings
        request = ov.Core().compile_model(path, "CPU", options).create_infer_request()
        return lambda arrays: [np.array(output) for output in request.infer(list(arrays)).values()]
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    providers = ["CPUExecutionProvider"]
    if kernels == "none":
        session = ort.InferenceSession(path, options, providers=providers)
    else:
        import onnx_specops

        session = onnx_specops.InferenceSession(path, options, kernels=kernels, providers=providers)
    names = [value.name for value in session.get_inputs()]
    return lambda arrays: session.run(None, dict(zip(names, arrays, strict=True)))


def serve(model: Path, inputs: Path, outputs: Path, kernels: str) -> None:
    """Load a model, write its outputs, and run it for the seconds in each line of standard input."""
    with np.load(inputs) as file:
        arrays = [file[name] for name in file.files]
    before = _resident()
    started = time.perf_counter()
    run = open_session(model, kernels=kernels)
    loaded = time.perf_counter() - started
    np.savez(outputs, *run(arrays))
    for _ in range(2):
        run(arrays)
    print(json.dumps({"load": loaded, "memory": _resident() - before}), flush=True)
    for line in sys.stdin:
        end, times = CLOCK() + float(line), []
        while not times or CLOCK() < end:
            started = CLOCK()
            run(arrays)
            times.append(CLOCK() - started)
        print(json.dumps(times), flush=True)


def _resident() -> int:
    """Return the resident memory of this process in bytes; 0 if the system does not report it."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


class Contender:
    """A runtime's process.

    Attributes:
        load: seconds until it had loaded the model.
        memory: the bytes of memory that loading needed.
        outputs: the model's outputs there.
        times: of every run, in seconds.
    """

    def __init__(
        self, model: Path, inputs: Path, outputs: Path, kernels: str = "none", environment: Mapping[str, str] | None = None
    ) -> None:
        command = [sys.executable, "-m", "benchmarks.networks", *map(str, (model, inputs, outputs)), kernels]
        given = {**os.environ, **(environment or {})}
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=given)
        ready = self._answer()
        self.load: float = ready["load"]
        self.memory: int = ready["memory"]
        self.times: list[float] = []
        with np.load(outputs) as file:
            self.outputs = [file[name] for name in file.files]

    def run(self, seconds: float) -> None:
        """Run one turn."""
        stream = _stream(self._process.stdin)
        stream.write(f"{seconds}\n")
        stream.flush()
        self.times += self._answer()

    def end(self) -> None:
        """Stop the process."""
        _stream(self._process.stdin).close()
        self._process.wait()

    def _answer(self) -> Any:
        line = _stream(self._process.stdout).readline()
        if not line:
            raise RuntimeError(f"{' '.join(map(str, self._process.args))} ended")  # type: ignore[arg-type]
        return json.loads(line)


def _stream(stream: IO[str] | None) -> IO[str]:
    assert stream is not None
    return stream


def take_turns(folder: Path, runtimes: Mapping[str, str], rounds: int) -> dict[str, Contender]:
    """Measure the runtimes in turns, each round in a different order; return them after their processes have ended.

    Args:
        folder: the folder with the models and ``inputs.npz``.
        runtimes: the file of each runtime; `PLUGGED` has the plugin's kernels.
        rounds: the number of turns of each.
    """
    contenders = {
        runtime: Contender(
            folder / file,
            folder / "inputs.npz",
            folder / f"outputs_{runtime.replace(' ', '_')}.npz",
            "native" if runtime == PLUGGED else "none",
        )
        for runtime, file in runtimes.items()
    }
    order = list(contenders)
    for turn in range(rounds):
        for runtime in order if turn % 2 else order[::-1]:
            contenders[runtime].run(BLOCK)
    for contender in contenders.values():
        contender.end()
    return contenders


def medians(contenders: Mapping[str, Contender]) -> dict[str, float]:
    """Return the median seconds of each runtime."""
    return {runtime: statistics.median(contender.times) for runtime, contender in contenders.items()}


# -- the command line -----------------------------------------------------------------------------------------------------


def parser(module: str, description: str, processor_time: str) -> argparse.ArgumentParser:
    """Return a parser with the common options of the benchmarks; ``processor_time`` is the help text of that option."""
    options = argparse.ArgumentParser(prog=f"python -m {module}", description=description)
    options.add_argument("--only", nargs="*", default=[""], help="networks whose names contain one of these")
    options.add_argument("--folder", type=Path, help="where the models are kept; default: nowhere")
    options.add_argument("--rounds", type=int, default=7, help="turns of each runtime (default: %(default)s)")
    options.add_argument("--processor-time", action="store_true", help=processor_time)
    options.add_argument("--json", action="store_true", help="print the figures for programs")
    return options


def made(module: str, names: Iterable[str], only: Sequence[str], folder: Path | None) -> Iterator[tuple[str, Path]]:
    """Iterate over the requested networks and their folders, in which ``make`` of the module has written the compared files.

    Args:
        module: the benchmark.
        names: the benchmark's networks.
        only: parts of the names of the requested networks; empty for all.
        folder: where the files are kept; ``None`` for a temporary folder.
    """
    with tempfile.TemporaryDirectory() as temporary:
        for name in names:
            if not any(word in name for word in only):
                continue
            place = (folder or Path(temporary)) / name.split(" (")[0].replace(" ", "_")
            if not (place / "inputs.npz").exists():
                # In a separate process, which releases torch's threads and memory.
                script = f"from pathlib import Path; from {module} import make; make({name!r}, Path({str(place)!r}))"
                subprocess.run([sys.executable, "-c", script], check=True)
            yield name, place


if __name__ == "__main__":
    serve(*map(Path, sys.argv[1:4]), sys.argv[4])
