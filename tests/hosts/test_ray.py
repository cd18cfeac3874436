"""The examples of Ray on this machine, in separate processes.

pip install '.[ray]' && pytest tests/hosts/test_ray.py
"""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
import zipfile
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
import pytest

from converters.folders.genai import write_genai
from converters.openvino import convert

ROOT = Path(__file__).parents[2]
BATCH, LANGUAGE_MODEL = ROOT / "examples" / "ray_batch.py", ROOT / "examples" / "ray_language_model.py"
XML = ROOT / "models" / "recommender_int" / "model.xml"
LLAMA = ROOT / "tests" / "language" / "models" / "llama.zip"
PROMPTS = ["Once upon a time", "The converter", "file, line, layer and remedy", "a"]
ROWS, TOKENS, END = 300, 10, 0

pytestmark = pytest.mark.skipif(
    not all(map(importlib.util.find_spec, ("ray", "pyarrow", "starlette"))), reason="pip install '.[ray]'"
)


def settings() -> dict[str, str]:
    """Return the environment of an example. Ray's workers have low priority by default, so that they hardly start on a busy
    machine.
    """
    path = os.pathsep.join(sys.path)
    return os.environ | {"PYTHONPATH": path, "RAY_USAGE_STATS_ENABLED": "0", "RAY_worker_niceness": "0"}


def example(script: Path, *arguments: object) -> str:
    command = [sys.executable, str(script), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, env=settings(), timeout=900)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


def test_two_workers_agree_with_openvino(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    convert(XML, tmp_path / "model.onnx")
    source, target = tmp_path / "requests.parquet", tmp_path / "scored"
    example(BATCH, "make", source, "--rows", ROWS)
    said = example(BATCH, "score", tmp_path / "model.onnx", source, target, "--workers", 2, "--block", 32)
    assert "2 workers: " in said

    spec = importlib.util.spec_from_file_location("ray_batch", BATCH)
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


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Return the folder of a language model, and its conversion for onnxruntime-genai."""
    pytest.importorskip("onnxruntime_genai")
    place = tmp_path_factory.mktemp("ray")
    with zipfile.ZipFile(LLAMA) as file:
        file.extractall(place / "IR")
    write_genai(place / "IR", place / "OUT", convert)
    (place / "OUT/tokenizer.json").write_bytes((place / "IR/tokenizer.json").read_bytes())
    return place / "IR", place / "OUT"


@pytest.fixture(scope="module")
def texts(folders: tuple[Path, Path]) -> dict[str, list[int]]:
    """Return OpenVINO's most likely tokens after each prompt, up to the end token."""
    tokenizers = pytest.importorskip("tokenizers")
    read = tokenizers.Tokenizer.from_file(str(folders[0] / "tokenizer.json"))
    decoder = ov.Core().compile_model(folders[0] / "openvino_model.xml", "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    found: dict[str, list[int]] = {}
    for prompt in PROMPTS:
        request, ids, past = decoder.create_infer_request(), read.encode(prompt).ids, 0
        found[prompt] = []
        while len(found[prompt]) < TOKENS:
            feeds = {
                "input_ids": np.array([ids]),
                "attention_mask": np.ones((1, past + len(ids)), np.int64),
                "position_ids": np.arange(past, past + len(ids))[None],
                "beam_idx": np.zeros(1, np.int32),
            }
            past += len(ids)
            ids = [int(request.infer(feeds)["logits"][0, -1].argmax())]
            if ids == [END]:
                break
            found[prompt] += ids
    return found


@pytest.fixture
def service(folders: tuple[Path, Path]) -> Iterator[str]:
    """Start the service with two replicas, and return its address when it answers."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, str(LANGUAGE_MODEL), "serve", str(folders[1]), "--replicas", "2", "--port", str(port)]
    started = subprocess.Popen(command, env=settings(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    until = time.monotonic() + 300
    try:
        while time.monotonic() < until and started.poll() is None:
            try:
                posted(f"http://127.0.0.1:{port}/", {"prompt": "a", "tokens": 1})
                break
            except OSError:
                time.sleep(0.5)
        else:
            started.kill()
            pytest.fail(f"no answer: {started.communicate()[0][-3000:]}")
        yield f"http://127.0.0.1:{port}/"
    finally:
        started.send_signal(signal.SIGINT)
        try:
            started.communicate(timeout=120)
        except subprocess.TimeoutExpired:
            started.kill()


def posted(address: str, document: Mapping[str, Any]) -> dict[str, Any]:
    request = urllib.request.Request(address, data=json.dumps(document).encode())
    with urllib.request.urlopen(request, timeout=120) as answer:
        found: dict[str, Any] = json.load(answer)
    return found


def test_two_replicas_answer_in_batches(service: str, texts: dict[str, list[int]]) -> None:
    def answered(number: int) -> tuple[str, int, dict[str, Any]]:
        prompt, tokens = PROMPTS[number % len(PROMPTS)], TOKENS - number % 3
        return prompt, tokens, posted(service, {"prompt": prompt, "tokens": tokens})

    answers: list[tuple[str, int, dict[str, Any]]] = []
    until = time.monotonic() + 120
    with ThreadPoolExecutor(24) as pool:  # the service answers before its second replica has started
        while len({answer["replica"] for _, _, answer in answers}) < 2 and time.monotonic() < until:
            answers += pool.map(answered, range(48))
    assert all(answer["ids"] == texts[prompt][:tokens] for prompt, tokens, answer in answers)
    assert len({answer["replica"] for _, _, answer in answers}) == 2
    assert max(answer["batch"] for _, _, answer in answers) > 1

    for wrong in ({"tokens": 3}, {"prompt": ""}, {"prompt": "word " * 60}, {"prompt": "a", "tokens": 65}):
        with pytest.raises(urllib.error.HTTPError) as caught:
            posted(service, wrong)
        assert caught.value.code == 400 and "error" in json.load(caught.value)


def test_two_actors_write_openvinos_tokens(folders: tuple[Path, Path], texts: dict[str, list[int]], tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    prompts = PROMPTS * 6
    pq.write_table(pa.table({"prompt": prompts}), tmp_path / "prompts.parquet", row_group_size=4)
    command = ("write", folders[1], tmp_path / "prompts.parquet", tmp_path / "texts", "--tokens", TOKENS, "--workers", 2)
    example(LANGUAGE_MODEL, *command)
    rows = pq.read_table(tmp_path / "texts").to_pylist()
    assert sorted(row["prompt"] for row in rows) == sorted(prompts)
    assert all(row["ids"] == texts[row["prompt"]] for row in rows)
