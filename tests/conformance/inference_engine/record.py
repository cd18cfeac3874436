"""Record the Inference Engine's results for the cases, and the number of cases that agree.

::

    SPECOPS_INFERENCE_ENGINE=/path/to/python python -m tests.conformance.inference_engine.record [PART ...]

where that Python has ``opencv-python-inference-engine`` 4.3.0.2. With parts of names, the matching cases are run and
compared, and nothing is written.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

import numpy as np

from converters import inference_engine
from converters.inference_engine.baseline import BaselineError, EngineProcess, python
from tests.conformance.inference_engine.case import cases
from tests.conformance.inference_engine.check import ANSWERS, compare, converted

_STORED = 4096
_RECORD = Path(inference_engine.__file__).with_name("conformance.json")


def main(parts: list[str]) -> int:
    """Record the results; return the number of cases that differ."""
    executable = python()
    if executable is None:
        raise SystemExit("SPECOPS_INFERENCE_ENGINE has to name a Python that has opencv-python-inference-engine")
    answers: dict[str, np.ndarray] = {}
    counts: dict[str, tuple[int, int]] = {}
    wrong = refused = 0
    chosen = [case for case in cases().values() if not parts or any(part.lower() in case.key.lower() for part in parts)]
    with EngineProcess(executable) as engine, tempfile.TemporaryDirectory() as folder:
        for case in chosen:
            net = case.net()
            xml, weights = net.save(Path(folder))
            try:
                outputs = engine.run(xml, weights, case.inputs(net), case.shapes, runs=case.runs)
            except BaselineError as error:
                refused += 1
                print(f"REFUSED {case.key}: {error}")
                continue
            if sum(value.size for value in outputs.values()) > _STORED:
                print(f"LARGE {case.key}")
            answers |= {f"{case.key}/{name}": value for name, value in outputs.items()}
            problems = {kind: compare(outputs, got, case.tolerance) for kind, got in converted(case, xml).items()}
            for kernels, problem in problems.items():
                if problem:
                    print(f"WRONG {case.key} ({kernels}): {problem}")
            is_wrong = any(problems.values())
            wrong += is_wrong
            run, agree = counts.get(case.kind, (0, 0))
            counts[case.kind] = run + 1, agree + (not is_wrong)
    print(f"{len(chosen)} cases, {refused} refused, {wrong} wrong")
    if not parts:
        np.savez_compressed(ANSWERS, **answers)  # type: ignore[arg-type]
        _RECORD.write_text(json.dumps(dict(sorted(counts.items())), indent=0) + "\n", encoding="utf-8")
    return wrong + refused


if __name__ == "__main__":
    sys.exit(min(main(sys.argv[1:]), 1))
