"""The processes of consumers end at their time limit, and those that they started."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests.conformance.targets.consumers.table import Consumer, ConsumerError
from tests.conformance.targets.processes import Worker

_SCRIPT = """
import subprocess, sys, time
from pathlib import Path

folder = Path(sys.argv[1])
if (folder / "quick").exists():
    raise SystemExit(0)
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
(folder / "pid").write_text(str(child.pid))
time.sleep(600)
"""


@pytest.fixture
def slow(tmp_path: Path) -> Consumer:
    (tmp_path / "slow.py").write_text(_SCRIPT)
    return Consumer("slow", str(tmp_path / "slow.py"), "standard", timeout=3)


def _in_worker(consumer: Consumer, folder: Path) -> str:
    with closing(Worker(consumer, folder, timeout=3)) as worker:
        return worker.run(str(folder))


def _alone(consumer: Consumer, folder: Path) -> str:
    with pytest.raises(ConsumerError) as raised:
        consumer.run(folder, folder / "inputs.npz", [], folder)
    return str(raised.value)


@pytest.mark.skipif(not Path("/proc").exists(), reason="there is no /proc, which lists processes")
@pytest.mark.parametrize("run", [_in_worker, _alone])
def test_children_end_at_the_time_limit(run: Callable[[Consumer, Path], str], slow: Consumer, tmp_path: Path) -> None:
    assert run(slow, tmp_path) == "no answer in 3 seconds"
    child = Path("/proc") / (tmp_path / "pid").read_text()
    limit = time.monotonic() + 10
    while child.exists() and "Z" not in child.joinpath("stat").read_text().rpartition(")")[2].split()[0]:
        assert time.monotonic() < limit, "the child process still runs"
        time.sleep(0.05)


def test_a_worker_runs_again_after_its_time_limit(slow: Consumer, tmp_path: Path) -> None:
    with closing(Worker(slow, tmp_path, timeout=3)) as worker:
        assert worker.run(str(tmp_path)) == "no answer in 3 seconds"
        (tmp_path / "quick").touch()
        assert worker.run(str(tmp_path)) == "SystemExit: 0"
        assert worker.process is not None and os.path.exists(f"/proc/{worker.process.pid}")
