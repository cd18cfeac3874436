"""Writes ``openvino_runs.txt`` and ``openvino_runs_dynamic.txt``.

These name the backend node tests that this OpenVINO reads, writes as IR, and runs from there: as they are, and with every
dimension of their inputs unknown.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from rich.progress import track

from tests.conformance.onnx_roundtrip.cases import LISTS, all_cases, inputs
from tests.conformance.oracle import Oracle, OracleError


def main() -> None:
    oracle = Oracle()
    for dynamic, file in LISTS.items():
        names = [name for name in track(all_cases()) if _runs(oracle, name, dynamic)]
        file.write_text("\n".join(names) + "\n")
        print(f"{file.name}: {len(names)} of {len(all_cases())}")


def _runs(oracle: Oracle, name: str, dynamic: bool) -> bool:
    case = all_cases()[name]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.xml"
        try:
            arrays = inputs(case)
            oracle.import_onnx(case.model.SerializeToString(), path, dynamic=dynamic)
        except (OracleError, TypeError):
            return False
        return not isinstance(oracle.run(path, [arrays], names=["cpu"])["cpu"], OracleError)


if __name__ == "__main__":
    main()
