"""examples/node and examples/web compared with OpenVINO, and the domain's operators in both compared with the record.

npm ci --ignore-scripts --prefix examples && pytest tests/hosts/test_javascript.py      (the web: apt-get install chromium)
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
import pytest

from converters.openvino import convert
from tests.hosts.javascript import EXAMPLES, ROOT, missing, node, served
from tests.hosts.record import HOSTS, RECORD, measured
from tests.hosts.subjects import subjects, with_bodies, write

CPU = {"INFERENCE_PRECISION_HINT": "f32"}
Tensors = dict[str, dict[str, Any]]


def need(host: str) -> None:
    if reason := missing(host):
        pytest.skip(reason)


def in_node(model: Path) -> dict[str, Tensors]:
    need("node")
    return json.loads(node(EXAMPLES / "node" / "recommender.mjs", model))


def on_the_page(model: Path) -> dict[str, Tensors]:
    need("web")
    with served({"/models/": model.parent, "/": EXAMPLES}) as url:
        picture = model.with_name("page.png")
        said = json.loads(node(EXAMPLES / "web" / "look.mjs", f"{url}web/?model=/models/{model.name}", picture))
    assert picture.read_bytes().startswith(b"\x89PNG")
    return said


@pytest.mark.parametrize("run", [in_node, on_the_page])
def test_a_recommender_without_the_plugin(run: Callable[[Path], dict[str, Tensors]], tmp_path: Path) -> None:
    xml = ROOT / "models" / "recommender_int" / "model.xml"
    convert(xml, tmp_path / "model.onnx")
    said = run(tmp_path / "model.onnx")
    model = ov.Core().compile_model(xml, "CPU", CPU)
    types = {port.any_name: port.element_type.to_dtype() for port in model.inputs}
    results = model({n: np.array(t["data"], types[n]).reshape(t["dims"]) for n, t in said["inputs"].items()})
    expected = {port.any_name: results[port] for port in model.outputs}
    assert sorted(said["outputs"]) == ["best_items", "best_probabilities", "probabilities", "user_ids"]
    for name, tensor in said["outputs"].items():
        got = np.array(tensor["data"]).reshape(tensor["dims"])
        np.testing.assert_allclose(got, expected[name], rtol=1e-4, atol=1e-6, err_msg=name)


def test_a_page_reports_missing_parts(tmp_path: Path) -> None:
    need("web")
    with served({"/": EXAMPLES}) as url:
        said = json.loads(node(EXAMPLES / "web" / "look.mjs", f"{url}web/?model=none.onnx"))
    assert said["error"].startswith("none.onnx: 404")


def test_variables_are_passed_by_the_caller(tmp_path: Path) -> None:
    need("node")
    xml = EXAMPLES / "stateful" / "model.xml"
    convert(xml, tmp_path / "model.onnx", variables="inputs")
    runs = [json.loads(line) for line in node(EXAMPLES / "node" / "stateful.mjs", tmp_path / "model.onnx").splitlines()]
    request = ov.Core().compile_model(xml, "CPU", CPU).create_infer_request()
    assert len(runs) == 4
    for run in runs:
        event = np.array(run["inputs"]["event"]["data"], np.float32).reshape(1, 4)
        expected = request.infer({"event": event})[request.model_outputs[0]]
        np.testing.assert_allclose(run["outputs"]["interest"]["data"], expected[0], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("host", HOSTS)
def test_the_record_has_the_current_operators(host: str) -> None:
    """(Missing ones are "not measured" in docs/operators.md.)"""
    entries = json.loads(RECORD.read_text())[host]["operators"]
    assert entries.keys() <= set(with_bodies()), "python -m tests.hosts.record"
    assert all(entry["models"] == entry["agree"] + len(entry["faults"]) for entry in entries.values())


@pytest.mark.parametrize("host", HOSTS)
def test_operators_run_as_recorded(host: str, tmp_path: Path) -> None:
    """Runs a few of them; `python -m tests.hosts.record` runs all."""
    need(host)
    found = list(subjects(tmp_path / "ir", ["EmbeddingBagOffsetsSum", "NonMaxSuppression", "ROIAlign", "VocabularyTable"]))
    (tmp_path / "models").mkdir()
    entries = json.loads(RECORD.read_text())[host]["operators"]
    for name, entry in measured(host, found, write(found, tmp_path / "models")).items():
        assert entry == entries[name]


def test_a_wrong_result_is_detected(tmp_path: Path) -> None:
    need("node")
    (subject, *_) = subjects(tmp_path / "ir", ["ErfInv"])
    outputs = {name: array + 1 for name, array in subject.outputs.items()}
    (tmp_path / "models").mkdir()
    changed = [dataclasses.replace(subject, outputs=outputs)]
    entry = measured("node", changed, write(changed, tmp_path / "models"))["ErfInv"]
    assert entry["agree"] == 0 and "differs" in entry["faults"][0]
