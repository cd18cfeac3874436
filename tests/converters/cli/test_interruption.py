"""Ctrl-C in the middle of a conversion, and a disk that is full."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.converters.cli.specops import as_json, save_dense, specops

SLOW = """
import time, pathlib, sys
pathlib.Path(__file__).with_name("begun").touch()
time.sleep(600)
"""


def interrupted(folder: Path, *arguments: object) -> tuple[int, str, str]:
    """The command's exit code and what it said, when it was interrupted in the middle of its work."""
    (folder / "slow.py").write_text(SLOW)
    command = [sys.executable, "-m", "converters.cli", "convert", *map(str, arguments), "--rules", str(folder / "slow.py")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        start_new_session=True,
        # A shell's background jobs ignore it, and hand that on.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    try:
        until = time.monotonic() + 240
        while not (folder / "begun").exists() and time.monotonic() < until and process.poll() is None:
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to the command and to all that it started
        out, err = process.communicate(timeout=240)
    finally:
        process.kill()
    return process.returncode, out, err


@pytest.mark.skipif(sys.platform == "win32", reason="no signals between processes")
@pytest.mark.parametrize("jobs", [1, 2])
def test_ctrl_c(tmp_path: Path, jobs: int) -> None:
    """The files of before stay; nothing half written is left; the code is the one that shells know."""
    save_dense(tmp_path / "a.xml")
    models: list[object] = [tmp_path / "a.xml"]
    if jobs > 1:
        models.append(save_dense(tmp_path / "b.xml"))
    (tmp_path / "a.onnx").write_bytes(b"before")
    before = {path.name for path in tmp_path.iterdir()} | {"slow.py", "begun", "__pycache__"}
    code, _, err = interrupted(tmp_path, *models, "--jobs", jobs)
    assert code == 130
    assert err.splitlines()[-1] == "error: interrupted"
    assert "Traceback" not in err
    assert {path.name for path in tmp_path.iterdir()} <= before
    assert (tmp_path / "a.onnx").read_bytes() == b"before"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
@pytest.mark.parametrize("command", ["convert", "run"])
def test_a_full_disk(tmp_path: Path, command: str) -> None:
    xml = save_dense(tmp_path / "model.xml")
    assert specops("convert", xml).exit_code == 0
    arguments = (xml, "-o") if command == "convert" else (xml.with_suffix(".onnx"), "--outputs")
    result = specops(command, *arguments, "/dev/full", "--json")
    assert result.exit_code == 2
    (problem,) = as_json(result)["problems"]
    assert (problem["message"], problem["file"]) == ("No space left on device", "/dev/full")
