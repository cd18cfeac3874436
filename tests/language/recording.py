"""Models with OpenVINO's results, recorded in a separate process because openvino_tokenizers changes OpenVINO's
factories.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def recorded_by(module: str, folder: Path) -> list[Path]:
    """Return the results that ``main(folder)`` of a module of this package writes next to each model."""
    command = "import sys; sys.path.append(sys.argv[1]); import importlib, pathlib; "
    command += "importlib.import_module(sys.argv[2]).main(pathlib.Path(sys.argv[3]))"
    given = [str(ROOT), f"tests.language.{module}", str(folder)]
    subprocess.run([sys.executable, "-c", command, *given], check=True, capture_output=True)
    return sorted(folder.glob("*.json"))
