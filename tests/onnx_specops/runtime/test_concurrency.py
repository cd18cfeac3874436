"""Threads and forks, as promised in docs/reliability.md."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import onnx
import openvino as ov
import pytest
from openvino import opset13 as ops

import onnx_specops
from converters.openvino import convert
from tests.native import needs_library
from tests.onnx_specops.runtime.graphs import TABLE, sum_of_rows

ROOT = Path(__file__).parents[3]
KERNELS = [
    pytest.param("native", marks=needs_library),
    "python",
    "none",
]


def has_body() -> bytes:
    return onnx_specops.add_bodies(sum_of_rows()).SerializeToString()


def right(session: onnx_specops.InferenceSession, seed: int) -> bool:
    indices = np.random.default_rng(seed).integers(0, 4, 5)
    (found,) = session.run(None, {"indices": indices})
    return bool((found == TABLE[indices].sum(0, keepdims=True)).all())


@pytest.mark.parametrize("kernels", KERNELS)
def test_threads_share_a_session(kernels: str) -> None:
    session = onnx_specops.InferenceSession(has_body(), kernels=kernels)  # type: ignore[arg-type]
    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(lambda seed: right(session, seed), range(200)))


@pytest.mark.parametrize("kernels", KERNELS)
def test_threads_create_sessions(kernels: str) -> None:
    def made(seed: int) -> bool:
        return right(onnx_specops.InferenceSession(has_body(), kernels=kernels), seed)  # type: ignore[arg-type]

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(made, range(20)))


def test_threads_convert(tmp_path: Path) -> None:
    """Each thread converts its own model to the same bytes as a single thread."""
    for i in range(8):
        x = ops.parameter([2, 4], np.float32, name="x")
        weights = ops.constant(np.random.default_rng(i).random((4, 4), np.float32))
        ov.save_model(ov.Model([ops.relu(ops.matmul(x, weights, False, False))], [x]), tmp_path / f"{i}.xml")
    alone = [convert(tmp_path / f"{i}.xml").model.SerializeToString() for i in range(8)]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda i: convert(tmp_path / f"{i}.xml").model.SerializeToString(), range(8)))
    assert together == alone


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.parametrize("kernels", KERNELS)
def test_a_forked_process_creates_its_own_sessions(kernels: str, tmp_path: Path) -> None:
    """The parent has created and run sessions and converted. No lock or state breaks the child."""
    onnx.save(onnx_specops.add_bodies(sum_of_rows()), tmp_path / "model.onnx")
    code = f"""
        import os, sys
        sys.path.append({str(ROOT)!r})
        import numpy as np, onnx_specops
        from converters.openvino import convert
        from tests.onnx_specops.runtime.test_concurrency import right

        def work():
            convert("models/recommender/model.xml")
            return right(onnx_specops.InferenceSession({str(tmp_path / "model.onnx")!r}, kernels={kernels!r}), 1)

        assert work()
        child = os.fork()
        if child == 0:
            os._exit(0 if work() else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert work()
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, cwd=ROOT, timeout=300
    )
    assert done.returncode == 0, done.stderr


def _in_a_process(path: str) -> bool:
    return right(onnx_specops.InferenceSession(path), 3)


def test_spawned_processes(tmp_path: Path) -> None:
    onnx.save(onnx_specops.add_bodies(sum_of_rows()), tmp_path / "model.onnx")
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        assert all(pool.map(_in_a_process, [str(tmp_path / "model.onnx")] * 4))
