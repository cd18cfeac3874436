"""Ctrl-C during a conversion, and a full disk."""

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
    """Return the command's exit code and output after an interruption."""
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
        # A shell's background jobs ignore it and pass that setting on.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    try:
        until = time.monotonic() + 240
        while not (folder / "begun").exists() and time.monotonic() < until and process.poll() is None:
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGINT)  # like a terminal: to the command and all its children
        out, err = process.communicate(timeout=240)
    finally:
        process.kill()
    return process.returncode, out, err


@pytest.mark.skipif(sys.platform == "win32", reason="no signals between processes")
@pytest.mark.parametrize("jobs", [1, 2])
def test_ctrl_c(tmp_path: Path, jobs: int) -> None:
    """Previous files remain, no partial file is left, and the exit code is the one that shells expect."""
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
