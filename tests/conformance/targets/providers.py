"""Networks with a provider of ONNX Runtime: ``python -m tests.conformance.targets.providers PROVIDER FOLDER``.

Each subfolder of FOLDER has an IR, ``model.xml``, and its inputs, ``inputs.npz``. The provider's results are compared with
those of the CPU provider for the same file, without kernels; pytest compares the CPU provider's with OpenVINO's. The machine
needs the provider's package, for example onnxruntime-gpu, and no OpenVINO.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import numpy as np
import onnxruntime as ort

import onnx_specops
from converters.openvino import convert
from converters.validation.compare import Tolerance, compare
from converters.validation.ort_values import run_session
from tests.conformance.providers import CPU, providers_of
from tests.worker import Lost, Worker

RESULTS = Path(__file__).parent / "providers.json"
TOLERANCE = Tolerance(1e-3, 1e-4)
_ASSIGNMENTS = "session.record_ep_graph_assignment_info"
_RUNS = 9


def session_of(model: Path, provider: str, threads: int) -> ort.InferenceSession:
    """Return a session of the bodies with a provider."""
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.add_session_config_entry(_ASSIGNMENTS, "1")
    options.intra_op_num_threads = threads
    return onnx_specops.InferenceSession(model, options, providers_of(provider), kernels="none")


def judge(folder: Path, provider: str, target: str, threads: int) -> dict[str, Any]:
    """Convert a network and run it with both providers, in a separate process.

    Returns:
        "problem": ``""`` if they agree, otherwise the reason.
        "error": the largest absolute error.
        "nodes": the number of nodes that the provider runs.
        "cpu": the operators that the CPU provider runs instead, with their numbers.
        "seconds": the median times of a run with the provider and with the CPU provider, with the copies of arrays.
    """
    path = folder / f"{target}.onnx"
    convert(folder / "model.xml", path, target=target)
    arrays = list(np.load(folder / "inputs.npz").values())
    outputs, seconds, found = [], [], {}
    for name in (provider, CPU):
        session = session_of(path, name, threads)
        feeds = {value.name: array for value, array in zip(session.get_inputs(), arrays, strict=True)}
        session.reset_state()
        outputs.append(run_session(session, feeds))
        taken = []
        for _ in range(_RUNS):
            began = time.perf_counter()
            run_session(session, feeds)
            taken.append(time.perf_counter() - began)
        seconds.append(statistics.median(taken))
        found = found or _assigned(session)
    problems, largest = [], 0.0
    for index, (got, expected) in enumerate(zip(*outputs, strict=True)):
        outcome = compare(got, expected, TOLERANCE)
        largest = max(largest, outcome.max_absolute or 0.0)
        if not outcome.agrees:
            problems.append(f"output {index}: {outcome.note or f'largest error {outcome.max_absolute}'}")
    nodes = found.pop(provider, Counter())
    return {
        "problem": "; ".join(problems),
        "error": float(largest),
        "nodes": sum(nodes.values()),
        "cpu": dict(sum(found.values(), Counter())),
        "seconds": seconds,
    }


def _assigned(session: ort.InferenceSession) -> dict[str, Counter[str]]:
    """Return the number of nodes of each provider and operator."""
    found: dict[str, Counter[str]] = {}
    for part in session.get_provider_graph_assignment_info():
        found.setdefault(part.ep_name, Counter()).update(node.op_type for node in part.get_nodes())
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("provider")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--target", default="onnxruntime")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1, help="threads of a session, or 0 for one of each core")
    parser.add_argument("--output", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    workers: SimpleQueue[Worker] = SimpleQueue()
    for _ in range(arguments.jobs):
        workers.put(Worker(300))

    def result(folder: Path) -> dict[str, Any]:
        worker = workers.get()
        try:
            return dict(worker.ask(judge, folder, arguments.provider, arguments.target, arguments.threads))
        except Lost as lost:
            return {"problem": f"{lost.args[0]}: {' '.join(lost.said.split())[-300:]}"}
        except Exception as error:  # of the converter or of ONNX Runtime
            return {"problem": f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"}
        finally:
            workers.put(worker)

    folders = sorted(path.parent for path in arguments.folder.glob("*/model.xml"))
    results: dict[str, Any] = {}
    with ThreadPoolExecutor(arguments.jobs) as pool:
        for folder, found in zip(folders, pool.map(result, folders), strict=True):
            results[folder.name] = found
            print(f"{folder.name}: {found}", flush=True)
            arguments.output.write_text(json.dumps(results, indent=1) + "\n")
    while not workers.empty():
        workers.get().close()


if __name__ == "__main__":
    main()
