"""examples/ray_batch.py on this machine, in a separate process.

pip install 'ray[data]' && pytest tests/hosts/test_ray.py
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import openvino as ov
import pytest

from converters.openvino import convert

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "ray_batch.py"
XML = ROOT / "models" / "recommender_int" / "model.xml"
ROWS = 300


@pytest.mark.skipif(not all(map(importlib.util.find_spec, ("ray", "pyarrow"))), reason="pip install 'ray[data]'")
def test_two_workers_agree_with_openvino(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    convert(XML, tmp_path / "model.onnx")
    # (Ray's workers have low priority, so that they hardly start on a busy machine.)
    settings = os.environ | {
        "PYTHONPATH": os.pathsep.join(sys.path),
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_worker_niceness": "0",
    }

    def example(*arguments: object) -> str:
        command = [sys.executable, str(EXAMPLE), *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True, env=settings, timeout=900)
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
        return done.stdout

    source, target = tmp_path / "requests.parquet", tmp_path / "scored"
    example("make", source, "--rows", ROWS)
    said = example("score", tmp_path / "model.onnx", source, target, "--workers", 2, "--block", 32)
    assert "2 workers: " in said

    spec = importlib.util.spec_from_file_location("ray_batch", EXAMPLE)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    requests, scored = pq.read_table(source).to_pydict(), pq.read_table(target).to_pydict()
    batch = {name: np.array(values) for name, values in requests.items()}
    model = ov.Core().compile_model(XML, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    results = model(module.feeds(batch))
    expected = {port.any_name: results[port][:-1] for port in model.outputs}  # without the padding row
    assert len(scored["visitor"]) == ROWS

    # Blocks arrive in any order, so they are compared as a set of rows.
    def rows(visitors, items, probabilities):
        found = [(int(v), tuple(map(int, i)), np.asarray(p)) for v, i, p in zip(visitors, items, probabilities, strict=True)]
        return sorted(found, key=lambda row: (row[:2], row[2].tolist()))

    got = rows(scored["visitor"], scored["items"], scored["probabilities"])
    wanted = rows(batch["visitor"], expected["best_items"], expected["best_probabilities"])
    for (*ids, probabilities), (*wanted_ids, wanted_probabilities) in zip(got, wanted, strict=True):
        assert ids == wanted_ids
        np.testing.assert_allclose(probabilities, wanted_probabilities, rtol=1e-4, atol=1e-6)
