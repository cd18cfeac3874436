"""Errors: their faults, their causes, and the exit codes of the command."""

from __future__ import annotations

import types
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from converters.cli.app import app
from converters.errors import (
    REPORT,
    ConversionError,
    Fault,
    InternalError,
    Malformed,
    MalformedError,
    Problem,
    Problems,
    Unsupported,
    UnsupportedError,
    short,
)
from converters.openvino import convert
from converters.openvino.inspection import inspect
from converters.openvino.rule import find_rule
from converters.openvino.rules import activations
from converters.passes.finish import InsertCasts
from tests.converters.openvino.reader import ir_text

UNSUPPORTED, MALFORMED, INTERNAL = Fault.UNSUPPORTED, Fault.MALFORMED, Fault.INTERNAL


def problem(fault: Fault, cause: BaseException | None = None) -> Problem:
    return Problem(f"{fault} it is", fault=fault, cause=cause)


@pytest.mark.parametrize(
    ("faults", "kind"),
    [
        ([UNSUPPORTED], UnsupportedError),
        ([MALFORMED], MalformedError),
        ([INTERNAL], InternalError),
        ([UNSUPPORTED, MALFORMED], MalformedError),
        ([MALFORMED, UNSUPPORTED], MalformedError),
        ([UNSUPPORTED, INTERNAL, MALFORMED], InternalError),
        ([INTERNAL, UNSUPPORTED], InternalError),
    ],
)
def test_the_worst_problem_determines_the_error_class(faults: list[Fault], kind: type[ConversionError]) -> None:
    error = ConversionError.of(problem(fault) for fault in faults)
    assert type(error) is kind
    assert [found.fault for found in error.problems] == faults
    assert str(error).splitlines() == [f"{fault} it is" for fault in faults]


def test_a_common_problem_is_reported_once() -> None:
    places = [Problem("it is odd", "model.xml", line, f"y{line}", "Relu", line, "mend it") for line in range(1, 13)]
    error = ConversionError.of([*places[:2], problem(MALFORMED), *places[2:]])
    assert str(error).splitlines() == [
        'model.xml:1: layer "y1" (Relu, id 1): it is odd; mend it (and 11 more like it, lines 2, 3, 4, 5, 6, 7, 8, 9, ...)',
        "malformed it is",
    ]
    assert len(error.problems) == 13


def test_a_single_problem() -> None:
    error = ConversionError.of(problem(UNSUPPORTED))
    assert (type(error), error.problems) == (UnsupportedError, (problem(UNSUPPORTED),))


def test_the_cause_is_that_of_the_worst_problem() -> None:
    causes = [ValueError("lesser"), KeyError("worst"), TypeError("later")]
    found = [problem(MALFORMED, causes[0]), problem(INTERNAL), problem(INTERNAL, causes[1]), problem(INTERNAL, causes[2])]
    assert ConversionError.of(found).__cause__ is causes[1]
    assert ConversionError.of([problem(MALFORMED), problem(UNSUPPORTED, causes[0])]).__cause__ is None


def test_comparisons_of_problems_ignore_causes() -> None:
    assert problem(MALFORMED, ValueError("one")) == problem(MALFORMED, KeyError("other"))
    assert problem(MALFORMED) != problem(UNSUPPORTED)


def test_a_problem_as_text() -> None:
    place = {"file": "model.xml", "line": 7, "layer_name": "a\nb", "layer_type": "Relu", "layer_id": 3}
    text = 'model.xml:7: layer "a\\nb" (Relu, id 3): it is odd; mend it'
    assert str(Problem("it is odd", **place, remedy="mend it")) == text
    assert str(Problem("it is odd", line=7)) == "line 7: it is odd"
    assert str(Problem("it is odd", layer_name="y")) == 'layer "y": it is odd'
    assert short("x" * 300) == "x" * 200 + "..."


def test_many_problems_are_truncated() -> None:
    problems = Problems("model.xml")
    for _ in range(999):
        problems.add("once more")
    with pytest.raises(MalformedError, match="once more") as caught:
        problems.add("once more")
    assert len(caught.value.problems) == len(problems) == 1000


# -- exceptions of rules -------------------------------------------------------------------------------------------------


def model(folder: Path, *types_of_layers: str) -> Path:
    """Write a chain of layers of these types, each on a separate line."""
    layers, edges = [ir_text.parameter()], []
    for i, kind in enumerate(types_of_layers, 1):
        layers.append(ir_text.layer(i, kind, inputs=[(2,)], outputs=[(2,)]))
        edges.append(ir_text.edge(i - 1, min(i - 1, 1), i, 0))
    layers.append(ir_text.result(len(types_of_layers) + 1))
    edges.append(ir_text.edge(len(types_of_layers), 1, len(types_of_layers) + 1, 0))
    return ir_text.write(folder, ir_text.net(layers, edges))


def in_our_code(function: Callable) -> Callable:
    """Move the function into a module of rules."""
    return types.FunctionType(function.__code__, vars(activations), function.__name__)


def stacked(op, data):
    return np.stack(5)


def mistaken(op, data):
    return data.no_such_attribute


def failing(op, data):
    raise AssertionError("a claim of ours")


def odd(op, data):
    raise Malformed("its colour is red")


def new(op, data):
    raise Unsupported("its colour is new", "paint it")


def invalid(op, data):
    raise ValueError("no such shape")


@pytest.fixture
def rule_is(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable], None]:
    """Replace the rule of Relu."""
    monkeypatch.setattr(activations, "Malformed", Malformed, raising=False)
    monkeypatch.setattr(activations, "Unsupported", Unsupported, raising=False)

    def put(function: Callable) -> None:
        monkeypatch.setattr(find_rule("Relu", "opset1"), "function", function)

    return put


ENDS = [
    (new, UnsupportedError, 1, "its colour is new; paint it"),
    (odd, MalformedError, 2, "its colour is red; check that the file is intact"),
    (
        invalid,
        MalformedError,
        2,
        "its inputs or attributes are inconsistent: no such shape; check that the file is intact",
    ),
    (mistaken, InternalError, 3, "internal error: AttributeError: 'Value' object has no attribute 'no_such_attribute'"),
    (failing, InternalError, 3, "internal error: AssertionError: a claim of ours"),
]


def specops(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.mark.parametrize(("function", "kind", "code", "message"), ENDS, ids=[row[0].__name__ for row in ENDS])
def test_exceptions_of_rules(tmp_path: Path, rule_is, function, kind, code: int, message: str) -> None:
    rule_is(in_our_code(function))
    path = model(tmp_path, "ReLU")
    with pytest.raises(kind) as caught:
        convert(path)
    (found,) = caught.value.problems
    assert (found.fault, found.layer_name, found.layer_type, found.layer_id) == (kind.fault, "ReLU_1", "ReLU", 1)
    assert path.read_text().splitlines()[found.line - 1].startswith('<layer id="1"')
    assert f"(ReLU, id 1): {message}" in str(caught.value)
    assert caught.value.__cause__ is found.cause is not None
    assert (found.remedy == REPORT) == (kind is InternalError)
    for command in ("convert", "inspect"):
        result = specops(command, path)
        assert result.exit_code == code
        assert "Traceback" not in result.output
    result = specops("convert", path, "--debug")
    assert result.exit_code == code
    assert "Traceback (most recent call last)" in result.stderr
    assert f"in {function.__name__}" in result.stderr


def test_library_errors_are_faults_of_the_file(tmp_path: Path, rule_is) -> None:
    """NumPy and ONNX raise TypeError and similar errors about their arguments."""
    rule_is(in_our_code(stacked))
    with pytest.raises(MalformedError, match="are inconsistent: "):
        convert(model(tmp_path, "ReLU"))


def test_an_error_in_an_external_rule_is_reported_with_its_line(tmp_path: Path, rule_is) -> None:
    rule_is(mistaken)  # this module is not part of the package
    with pytest.raises(ConversionError, match=r"its rule fails .*test_errors\.py, line") as caught:
        convert(model(tmp_path, "ReLU"))
    (found,) = caught.value.problems
    assert (found.fault, found.layer_name) == (Fault.USAGE, "ReLU_1")
    assert found.remedy.startswith("correct the rule")


def test_problems_of_every_kind_at_once(tmp_path: Path, rule_is) -> None:
    rule_is(in_our_code(mistaken))
    path = model(tmp_path, "Magic", "ReLU", "Concat")
    with pytest.raises(InternalError) as caught:
        convert(path, tmp_path / "model.onnx")
    assert [found.fault for found in caught.value.problems] == [UNSUPPORTED, INTERNAL, MALFORMED]
    assert isinstance(caught.value.__cause__, AttributeError)
    assert not (tmp_path / "model.onnx").exists()
    assert [found.fault for found in inspect(path).problems] == [UNSUPPORTED, INTERNAL, MALFORMED]
    assert specops("convert", path).exit_code == 3
    rule_is(in_our_code(new))
    assert specops("convert", path).exit_code == 2


def test_an_error_in_a_pass_is_an_internal_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(self: object, found: object) -> None:
        raise KeyError("no such value")

    monkeypatch.setattr(InsertCasts, "call", fails)
    path = model(tmp_path, "ReLU")
    with pytest.raises(InternalError, match="internal error: KeyError: 'no such value'") as caught:
        convert(path)
    (found,) = caught.value.problems
    assert found.file == str(path) and found.remedy == REPORT
    assert specops("convert", path).exit_code == 3


@pytest.mark.parametrize(("size", "fits"), [(2**60, True), (2**61, False)])
def test_results_of_more_elements_than_64_bits_count(tmp_path: Path, size: int, fits: bool) -> None:
    tiled = ir_text.layer(2, "Tile", inputs=[(2,), (2,)], outputs=[(size, 4)])
    layers = [ir_text.parameter(), ir_text.const(1, "i64", (2,), 16, precision="I64"), tiled, ir_text.result(3, (size, 4))]
    edges = [ir_text.edge(0, 0, 2, 0), ir_text.edge(1, 0, 2, 1), ir_text.edge(2, 2, 3, 0)]
    path = ir_text.write(tmp_path, ir_text.net(layers, edges), np.array([size, 2], np.int64).tobytes())
    if fits:
        convert(path)
    else:
        with pytest.raises(MalformedError, match="has 9,223,372,036,854,775,808 elements; expected at most"):
            convert(path)
