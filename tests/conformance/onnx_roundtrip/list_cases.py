"""Write ``openvino_runs.txt`` and ``openvino_runs_constants.txt``.

The first lists the backend node tests that this OpenVINO reads, writes as IR, and runs from there. The second lists the
others for which this works if all inputs except the first are constants.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from rich.progress import track

from tests.conformance.onnx_roundtrip.cases import LISTS, all_cases, fed, inputs, model
from tests.conformance.oracle import Oracle, OracleError


def main() -> None:
    oracle = Oracle()
    rest = list(all_cases())
    for constants, file in LISTS.items():
        names = [name for name in track(rest) if _runs(oracle, name, constants)]
        file.write_text("\n".join(names) + "\n")
        print(f"{file.name}: {len(names)} of {len(all_cases())}")
        rest = [name for name in rest if name not in set(names)]


def _runs(oracle: Oracle, name: str, constants: bool) -> bool:
    case = all_cases()[name]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.xml"
        try:
            arrays = inputs(case)
            if constants and len(arrays) < 2:
                return False
            names = oracle.import_onnx(model(case, constants=constants), path)
        except (OracleError, TypeError, ValueError):
            return False
        answer = oracle.run(path, [fed(arrays, names)], names=["cpu"])["cpu"]
        return not isinstance(answer, OracleError)


if __name__ == "__main__":
    main()
