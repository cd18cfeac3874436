"""The calls of pip to the build backend for the project's dependencies."""

from __future__ import annotations

import subprocess
import sys
from email import message_from_string
from pathlib import Path

ROOT = Path(__file__).parents[2]
PREPARE = """
import sys
started = []
sys.addaudithook(lambda event, arguments: started.append(arguments[0]) if event == "subprocess.Popen" else None)
sys.path.insert(0, "backend")
import specops_build
name = specops_build.prepare_metadata_for_build_wheel(sys.argv[1])
print("started", name, *started, sep="\\n")
"""


def test_metadata_needs_no_compiler(tmp_path: Path) -> None:
    """``pip install --dry-run`` starts no program: neither CMake nor a compiler."""
    done = subprocess.run(
        [sys.executable, "-c", PREPARE, tmp_path], cwd=ROOT, capture_output=True, text=True, encoding="utf-8", timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr
    name, *started = done.stdout.split("started\n")[-1].splitlines()
    assert not started
    metadata = message_from_string((tmp_path / name / "METADATA").read_text(encoding="utf-8"))
    assert metadata["Name"] == "onnx-specops"
    assert any(requirement.startswith("onnxruntime") for requirement in metadata.get_all("Requires-Dist", []))
