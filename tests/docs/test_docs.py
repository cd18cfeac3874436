"""The pages in docs/ agree with the code."""

from __future__ import annotations

import doctest
import importlib
import inspect
import json
import re
import subprocess
import sys
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from types import ModuleType
from urllib.parse import urlsplit
from urllib.request import url2pathname

import pytest
from typer.testing import CliRunner

import converters.openvino
import onnx_specops.generation
from converters.cli import data, diff
from converters.cli.app import app
from converters.openvino.coverage.departures import declared_departures
from converters.openvino.rule import EVERYWHERE, OPENVINO_RELEASE, Departure
from onnx_specops.domain import operators
from onnx_specops.runtime.library import library_path
from tests.native import BUILT, OF_PCRE2, needs_library

ROOT = Path(__file__).parents[2]


@pytest.fixture
def parts() -> ModuleType:
    """Return the package docs.parts, which is not installed."""
    return importlib.import_module("docs.parts")


def test_the_tables_are_up_to_date() -> None:
    """The tables come from the installed package, so the root of the checkout is last on the path."""
    script = f"import sys; sys.path.append({str(ROOT)!r}); from docs.make import main; sys.exit(main(check=True))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def _is_of_another_checkout() -> bool:
    """Return whether the library belongs to an installation from another directory than this one."""
    if Path(library_path()).is_relative_to(ROOT):
        return False
    package = Path(library_path()).parents[2]
    (installed,) = metadata.distributions(name="onnx-specops", path=[str(package)])
    origin = json.loads(installed.read_text("direct_url.json") or "{}").get("url", "")
    return origin.startswith("file:") and url2pathname(urlsplit(origin).path) != str(ROOT)


@needs_library
def test_native_kernels_match_the_library(parts: ModuleType) -> None:
    if _is_of_another_checkout():
        pytest.skip("the installed library was built in another checkout; build this one's as CONTRIBUTING.md describes")
    written = {operator.name for operator in operators() if "native" in parts.operators.forms_of(operator)}
    assert written == BUILT | OF_PCRE2


def test_lists_of_docstrings_become_markdown(parts: ModuleType) -> None:
    doc = "Sums.\n\nInputs:\n    x: ``[N]``,\n        any.\n    y, z: more\n\nOutput: the sum."
    assert list(parts.markdown.as_markdown(doc)) == [
        *("Sums.", "", "Inputs:", "", "- `x`: ``[N]``,", "  any.", "- `y, z`: more", "", "Output: the sum."),
    ]


def test_sections_of_docstrings_become_markdown(parts: ModuleType) -> None:
    doc = "Adds.\n\nArgs:\n    x: ``[N]``,\n        any.\n    y, z: more.\n\nReturns:\n    The sum.\n\nAfter it."
    assert list(parts.python_api.as_markdown(doc)) == [
        *("Adds.", "", "**Arguments:**", "", "- `x`: `[N]`,", "  any.", "- `y, z`: more.", ""),
        *("**Returns:**", "", "The sum.", "", "After it."),
    ]


def test_the_python_page_lists_every_public_name() -> None:
    text = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
    for module in (converters.openvino, onnx_specops, onnx_specops.generation):
        constants = {name for name in module.__all__ if name.isupper() and module is onnx_specops.generation}
        assert [name for name in module.__all__ if name not in constants and name not in text] == []


@pytest.mark.parametrize("command", ["run", "validate", "diff", "inspect", "weights", "generate", "convert"])
def test_the_command_s_page_lists_every_option(command: str) -> None:
    text = (ROOT / "docs" / "command.md").read_text(encoding="utf-8")
    (section,) = re.findall(rf"^## specops {command}\b(.*?)(?=^## specops|\Z)", text, re.MULTILINE | re.DOTALL)
    found = CliRunner().invoke(app, [command, "--help"], env={"COLUMNS": "400", "TERM": "dumb"})
    flags = set(re.findall(r"(?<![\w-])--[a-z][a-z0-9-]+", found.output)) - {"--help", "--json", "--debug"}
    assert found.exit_code == 0 and len(flags) > 3
    assert [flag for flag in sorted(flags) if flag not in section] == []


@pytest.mark.parametrize("operator", [operator.name for operator in operators()])
def test_the_examples_of_operators(operator: str) -> None:
    example = ROOT / "docs" / "operator_examples" / f"{operator}.txt"
    found = doctest.testfile(str(example), module_relative=False, encoding="utf-8")
    assert found.attempted >= 3 and not found.failed


@pytest.mark.parametrize(
    "page",
    [
        "README.md",
        "CONTRIBUTING.md",
        "CHANGELOG.md",
        "examples/cpp/README.md",
        "examples/web/README.md",
        *(f"docs/{path.name}" for path in sorted((ROOT / "docs").glob("*.md"))),
        "models/README.md",
    ],
)
def test_links_have_targets(page: str) -> None:
    path = ROOT / page
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", path.read_text(encoding="utf-8")):
        if "://" not in target:
            assert (path.parent / target).exists(), target


_DEPARTURES = list(dict.fromkeys([*EVERYWHERE, *(stated.departure for stated in declared_departures())]))


@pytest.mark.parametrize("departure", _DEPARTURES, ids=lambda departure: departure.where)
def test_departures_are_written_in_one_style(departure: Departure) -> None:
    """They are phrases, without a capital letter and a full stop."""
    assert departure.release == OPENVINO_RELEASE
    for text in filter(None, (departure.where, departure.cpu, departure.specification, departure.reference)):
        assert re.fullmatch(r"[a-z0-9`(](.|\n)*[^.\s]", text), text
        assert "  " not in text and "\n" not in text, text
        assert text.count("`") % 2 == 0, text
        assert not re.search(r"CPU|OpenVINO's", departure.cpu), "the column names it"


def test_a_departure_has_a_counterpart() -> None:
    with pytest.raises(ValueError, match="the specification or of the reference kernel"):
        Departure(where="u8", cpu="bounds", follows="cpu")
    with pytest.raises(ValueError, match="follows the specification"):
        Departure(where="u8", cpu="bounds", reference="wraps", follows="specification")


@pytest.mark.parametrize(
    "source",
    [
        *(data.conversion, data.inspection, data.coverage, data.validation, data.operators, data.array),
        *(data.comparison, data.distribution, data.times, diff.as_data),
    ],
)
def test_every_field_of_the_command_is_documented(source: Callable[..., object]) -> None:
    text = (ROOT / "docs" / "command.md").read_text(encoding="utf-8")
    fields = re.findall(r'"(\w+)": ', inspect.getsource(source))
    assert fields
    assert [field for field in fields if f"`{field}`" not in text] == []
