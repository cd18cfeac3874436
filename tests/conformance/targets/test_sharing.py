"""Results of several drivers in one file."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.conformance.targets.sharing import add_results


def test_results_of_several_drivers_are_joined(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    found = [{f"consumer{i % 3}": {"target": {f"network{i}": ""}}, "versions": {f"consumer{i % 3}": "1"}} for i in range(24)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda one: add_results(path, one), found))
    results = json.loads(path.read_text())
    assert sum(len(results[f"consumer{i}"]["target"]) for i in range(3)) == len(found)
    assert results["versions"] == {f"consumer{i}": "1" for i in range(3)}


def test_a_new_result_replaces_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    path.write_text(json.dumps({"mnn": {"target": {"a": "wrong", "b": ""}, "direct": {"a": ""}}}))
    results = add_results(path, {"mnn": {"target": {"a": ""}}})
    assert results == json.loads(path.read_text()) == {"mnn": {"target": {"a": "", "b": ""}, "direct": {"a": ""}}}
