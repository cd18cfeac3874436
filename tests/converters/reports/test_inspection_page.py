"""``specops inspect --report``."""

from __future__ import annotations

from pathlib import Path

from tests.converters.cli.specops import as_json, save_dense, specops
from tests.converters.reports.pages import load, text_of


def test_the_contents_of_a_model(tmp_path: Path) -> None:
    model = save_dense(tmp_path / "model.xml")
    result = specops("inspect", model, "--report", tmp_path / "report.html", "--json")
    assert result.exit_code == 0, result.output
    held = as_json(result)["contents"]
    assert held["weights_bytes"] == 32 * 32 * 4
    assert held["weights"] == [{"element_type": "f32", "constants": 1, "elements": 1024, "bytes": 4096}]
    assert held["inputs"] == [{"name": "x", "element_type": "f32", "dims": [None, 32], "layout": ""}]
    assert held["precisions"] == {"f32": 3}
    assert held["largest"][0]["taken_by"] == ["MatMul"]
    page = load(tmp_path / "report.html")
    assert "all layers can be converted" in page.xpath("//header")[0].text_content()
    assert "MatMul" in text_of(page, "layers") and "4.0 KiB" in text_of(page, "weights")


def test_unsupported_layers(tmp_path: Path) -> None:
    model = save_dense(tmp_path / "model.xml")
    model.write_text(model.read_text().replace('type="ReLU"', 'type="Magic&lt;b&gt;Layer"'))
    result = specops("inspect", model, "--report", tmp_path / "report.html")
    assert result.exit_code == 1, result.output
    assert "Magic<b>Layer" in text_of(load(tmp_path / "report.html"), "problems")
