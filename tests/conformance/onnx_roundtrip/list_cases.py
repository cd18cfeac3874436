"""Writes ``openvino_runs.txt``: the backend node tests that this OpenVINO reads, writes as IR, and runs from there."""

from __future__ import annotations

import tempfile
from pathlib import Path

from rich.progress import track

from tests.conformance.onnx_roundtrip.cases import LIST, all_cases, inputs
from tests.conformance.oracle import Oracle, OracleError


def main() -> None:
    oracle = Oracle()
    runs = []
    for name, case in track(all_cases().items()):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.xml"
            try:
                arrays = inputs(case)
                oracle.import_onnx(case.model.SerializeToString(), path)
            except (OracleError, TypeError):
                continue
            if not isinstance(oracle.run(path, [arrays], names=["cpu"])["cpu"], OracleError):
                runs.append(name)
    LIST.write_text("\n".join(runs) + "\n")
    print(f"{len(runs)} of {len(all_cases())}")


if __name__ == "__main__":
    main()
