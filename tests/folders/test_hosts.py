"""A sample of `python -m tests.folders`, and the table of its results."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.folders import page
from tests.folders.__main__ import merged, runs
from tests.folders.hosts import missing
from tests.folders.language_models import COMPRESSED, CONFIGURATIONS
from tests.folders.subjects import ENCODERS, HYBRIDS, MAKERS, PIPELINES, SPEECH, VISION

ROOT = Path(__file__).parents[2]
RESULTS = json.loads(Path(__file__).with_name("results.json").read_text())


@pytest.mark.parametrize(
    ("name", "host"),
    [("bert-embedding", "optimum-onnx"), ("latent-consistency", "diffusers"), ("llama-int4", "transformers")],
)
def test_hosts_agree_with_openvino(name: str, host: str, tmp_path: Path) -> None:
    if reason := missing(host):
        pytest.skip(reason)
    command = [sys.executable, "-m", "tests.folders", name, "--dry", "--folder", tmp_path]
    path = os.pathsep.join([str(ROOT), *filter(None, sys.path)])
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{name}: {host} agrees" in done.stdout


def test_every_model_was_measured_and_agrees() -> None:
    models = {*ENCODERS, *MAKERS, *PIPELINES, *SPEECH, *VISION, *HYBRIDS, *CONFIGURATIONS, *COMPRESSED}
    assert {row["model"] for row in RESULTS} == models
    assert all(row["agrees"] for row in RESULTS)


def test_the_page_has_the_measurements() -> None:
    for path, rows in page.pages(RESULTS).items():
        before = path.read_text(encoding="utf-8")
        assert rows and page.written(before, rows) == before


def test_the_rows_are_those_of_the_command() -> None:
    made = Counter((model, host) for model in dict.fromkeys(row["model"] for row in RESULTS) for host, _ in runs(model))
    assert Counter((row["model"], row["host"]) for row in RESULTS) == made


def test_new_rows_replace_those_of_the_same_model_and_host() -> None:
    def row(model: str, host: str, error: int) -> dict[str, object]:
        return {"model": model, "host": host, "compared": str(error), "error": error}

    known = [row("a", "x", 1), row("a", "y", 2), row("removed", "x", 3), row("b", "x", 4)]
    new = [row("a", "x", 5), row("a", "x", 6)]
    assert [one["error"] for one in merged(known, new, ["a", "b"])] == [2, 5, 6, 4]
