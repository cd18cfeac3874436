"""OpenVINO's operations in a consumer: ``python -m tests.conformance.targets.operations FOLDER CONSUMER [--only NAME]``.

With ``--scale 100``, inputs of floats are a hundred times as large: kernels that compute exponentials may overflow.

Each case of tests/conformance/operations is converted for the consumer's target, with the shapes of its inputs. The
consumer's results are compared with those of ONNX Runtime's CPU for the same file. A wrong result is the worst outcome: such
an operator gets another form for the target, or the target lacks it.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort

from converters.openvino import convert
from converters.openvino.reader.read import read
from converters.passes.simplification.constants import RANDOM
from converters.validation.compare import Tolerance, compare
from tests.conformance.case import Case
from tests.conformance.operations.cases import CASES
from tests.conformance.targets.consumers.table import CONSUMERS
from tests.conformance.targets.processes import Worker


def made(
    case: Case, target: Any, path: Path, scale: float = 1
) -> tuple[list[np.ndarray], list[str], dict[str, np.ndarray]] | str:
    """Return ONNX Runtime's outputs of a case, their names and the inputs; or why there is no file."""
    with tempfile.TemporaryDirectory() as folder:
        xml = case.save(Path(folder))
        shapes: dict[str, list[int]] = {}
        try:
            proto, _ = convert(xml, path, target=target)
        except Exception as error:
            if "--input-shape" not in str(error):
                return f"not converted: {' '.join(str(error).split())[-300:]}"
            names = [layer.name for layer in read(xml).layers if layer.type == "Parameter"]
            shapes = {name: list(array.shape) for name, array in zip(names, case.inputs[0], strict=True)}
            try:
                proto, _ = convert(xml, path, target=target, input_shapes=shapes)
            except Exception as again:
                return f"not converted: {' '.join(str(again).split())[-300:]}"
    if any(node.op_type in RANDOM for node in proto.graph.node):
        return "random"
    try:
        session = ort.InferenceSession(path, providers=["CPUExecutionProvider"])
        arrays = [np.asarray(array) for array in case.inputs[0]]
        if scale != 1:
            arrays = [array * array.dtype.type(scale) if array.dtype.kind == "f" else array for array in arrays]
        feeds = {value.name: array for value, array in zip(session.get_inputs(), arrays, strict=False)}
        return session.run(None, feeds), [value.name for value in session.get_outputs()], feeds
    except Exception as error:
        return f"ONNX Runtime: {' '.join(str(error).split())[:200]}"


def judge(worker: Worker, case: Case, folder: Path, scale: float = 1) -> str:
    """Return ``""`` if the consumer agrees with ONNX Runtime, otherwise the reason."""
    path, inputs, outputs = folder / "model.onnx", folder / "inputs.npz", folder / "outputs.npz"
    outputs.unlink(missing_ok=True)
    expected = made(case, worker.consumer.target, path, scale)
    if isinstance(expected, str):
        return expected
    arrays, names, feeds = expected
    if any(array.dtype == object for array in feeds.values()):
        return "strings"
    if scale != 1 and not all(np.isfinite(array).all() for array in arrays if array.dtype.kind == "f"):
        return "not finite"
    np.savez(inputs, **feeds)  # type: ignore[arg-type]
    if error := worker.run(str(path), str(inputs), str(outputs), "|".join(names)):
        return f"error: {error}"
    try:
        found = np.load(outputs)
        got = [found[str(index)] for index in range(len(found.files))]
    except Exception as error:
        return f"error: {error}"
    if len(got) != len(arrays):
        return f"wrong: {len(got)} outputs, not {len(arrays)}"
    for index, (a, b) in enumerate(zip(got, arrays, strict=True)):
        if a.size != b.size:
            return f"wrong: output {index} has the shape {list(a.shape)}, not {list(b.shape)}"
        outcome = compare(a.reshape(b.shape).astype(b.dtype), b, Tolerance(*worker.consumer.error))
        if not outcome.agrees:
            return f"wrong: output {index}, largest error {outcome.max_absolute}"
    return ""


def main() -> None:
    """Run the cases."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("consumer", choices=[consumer.name for consumer in CONSUMERS])
    parser.add_argument("--only", default="", help="cases whose names contain it")
    parser.add_argument("--every", type=int, default=1, help="run one in this number of cases")
    parser.add_argument("--scale", type=float, default=1, help="the factor of float inputs")
    arguments = parser.parse_args()
    consumer = next(one for one in CONSUMERS if one.name == arguments.consumer)
    counts: Counter[str] = Counter()
    results = {}
    cases = [case for case in CASES if arguments.only in case.id][:: arguments.every]
    suffix = "" if arguments.scale == 1 else f"-{arguments.scale:g}"
    path = arguments.folder / f"operations-{consumer.name}{suffix}.json"
    with tempfile.TemporaryDirectory() as folder, closing(Worker(consumer, arguments.folder / "environments")) as worker:
        for case in cases:
            reason = judge(worker, case, Path(folder), arguments.scale)
            counts[reason.partition(":")[0] or "agrees"] += 1
            results[case.id] = reason
            if reason.startswith(("wrong", "ONNX")):
                print(f"{case.id:60} {reason[:200]}", flush=True)
            path.write_text(json.dumps(results, indent=1))
    print(consumer.name, dict(counts), f"of {len(cases)}; all of them in {path}")


if __name__ == "__main__":
    main()
