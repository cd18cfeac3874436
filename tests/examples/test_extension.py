"""The example of docs/extending.md: a layer of an extension, its rule, and its operator with kernel and body."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.converters.cli import forked

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "extension"
RULES, EXTENSION = EXAMPLE / "sparsemax_rules.py", EXAMPLE / "sparsemax_openvino.py"


def specops(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Run the command in a separate process, because rules stay registered."""
    return forked.specops(*arguments, COLUMNS="200")


@pytest.mark.parametrize("axis", [1, -1, 0])
def test_every_form_agrees_with_the_extension(tmp_path: Path, axis: int) -> None:
    for suffix in (".xml", ".bin"):
        (tmp_path / f"model{suffix}").write_bytes((EXAMPLE / f"sparsemax{suffix}").read_bytes())
    xml = tmp_path / "model.xml"
    xml.write_text(re.sub(r'<data axis="1" */>', f'<data axis="{axis}" />', xml.read_text()))
    done = specops("validate", xml, "--rules", RULES, "--extension", EXTENSION, "--shape", "x=6x8", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    runtimes = {result["runtime"]: result for result in json.loads(done.stdout)["runtimes"]}
    assert set(runtimes) >= {"openvino", "python", "none", "reference"}
    for name in ("openvino", "python", "none", "reference"):
        assert runtimes[name]["agrees"] and not runtimes[name]["skipped"], runtimes[name]


def test_converted_and_checked_at_once(tmp_path: Path) -> None:
    target = tmp_path / "model.onnx"
    done = specops("convert", EXAMPLE / "sparsemax.xml", "-o", target, "--rules", RULES, "--extension", EXTENSION, "--check")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "agree: OpenVINO, CPU" in done.stdout


def test_inspected() -> None:
    done = specops("inspect", EXAMPLE / "sparsemax.xml", "--rules", RULES)
    assert done.returncode == 0 and "onnx_specops.Sparsemax" in done.stdout, done.stdout + done.stderr


def test_an_axis_out_of_range_is_a_fault_of_the_file(tmp_path: Path) -> None:
    xml = tmp_path / "model.xml"
    xml.write_text(re.sub(r'<data axis="1" */>', '<data axis="2" />', (EXAMPLE / "sparsemax.xml").read_text()))
    (tmp_path / "model.bin").write_bytes((EXAMPLE / "sparsemax.bin").read_bytes())
    done = specops("convert", xml, "--rules", RULES)
    assert done.returncode == 2
    assert "error: axis is 2 for a rank of 2" in done.stderr


def test_an_installed_package_provides_rules(tmp_path: Path) -> None:
    """A module with its entry points, as pip installs it."""
    site = tmp_path / "site"
    information = site / "sparsemax-1.0.dist-info"
    information.mkdir(parents=True)
    (site / "sparsemax_rules.py").write_bytes(RULES.read_bytes())
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: sparsemax\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text("[onnx_specops.rules]\nsparsemax = sparsemax_rules\n")
    command = [sys.executable, "-m", "converters.cli", "convert", EXAMPLE / "sparsemax.xml", "-o", tmp_path / "model.onnx"]
    settings = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), str(site)]), "COLUMNS": "200"}
    done = subprocess.run(command, capture_output=True, text=True, env=settings)
    assert done.returncode == 0, done.stderr
    (site / "sparsemax_rules.py").write_text("1 / 0")
    done = subprocess.run(command, capture_output=True, text=True, env=settings)
    assert done.returncode == 2
    assert "the rules sparsemax_rules of sparsemax fail: ZeroDivisionError" in done.stderr


def test_an_existing_name_in_the_domain_is_rejected(tmp_path: Path) -> None:
    rules = tmp_path / "mine.py"
    rules.write_text(
        "from onnx_specops.domain import operator\n\n"
        "@operator(inputs={'x': 'T'}, outputs={'y': 'T'}, types={'T': ('float',)})\n"
        "def ErfInv(x):\n    return x\n"
    )
    done = specops("convert", EXAMPLE / "sparsemax.xml", "-o", tmp_path / "model.onnx", "--rules", rules)
    assert done.returncode == 2
    assert "declares an operator ErfInv already" in done.stderr


@pytest.mark.parametrize(
    ("text", "message"), [("x = 1", "no class derived from openvino.Op"), ("1 / 0", "ZeroDivisionError")]
)
def test_invalid_extensions(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "mine.py").write_text(text)
    done = specops("validate", EXAMPLE / "sparsemax.xml", "--rules", RULES, "--extension", tmp_path / "mine.py")
    assert done.returncode == 1
    assert message in done.stdout + done.stderr


def test_the_page_matches_the_example() -> None:
    """Every function on the page has the signature of the example's, and the rule is complete."""
    page, source = (ROOT / "docs" / "extending.md").read_text(), RULES.read_text()
    shown = [block for block in re.findall(r"```python\n(.*?)```", page, re.S) if "def " in block]
    functions = [node for block in shown for node in ast.walk(ast.parse(block)) if isinstance(node, ast.FunctionDef)]
    real = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef)]
    headers = {ast.unparse(node.args) + "|".join(map(ast.unparse, node.decorator_list)) for node in real}
    assert len(functions) == 4
    assert {ast.unparse(node.args) + "|".join(map(ast.unparse, node.decorator_list)) for node in functions} == headers
    rule = next(block for block in shown if "@rule" in block)
    assert rule[rule.index("@rule") :] in source
