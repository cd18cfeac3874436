"""Failures in our process or in a child process give one JSON document and the documented exit code."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from converters.cli.failures import problems_of
from tests.converters.cli import forked
from tests.converters.cli.specops import save_dense

ROOT = Path(__file__).parents[3]
# A rules file may run any code. Here it replaces parts of ours.
BROKEN = """
import os, signal
from converters.errors import Fault, InternalError, Problem
from converters.openvino.walk import _Walk
whole = _Walk.layers
def broken(walk, op, graph):
    {}
    whole(walk, op, graph)
_Walk.layers = broken
"""


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return save_dense(tmp_path / "model.xml")


def specops(*arguments: object, path: Path | None = None) -> tuple[int, dict, str]:
    """Run the command in a process; return the exit code, the JSON document on standard output, and standard error.

    Args:
        path: the first folder of the modules that the process imports, and its working directory.
    """
    if path is None:
        done = forked.specops(*arguments, "--json")
    else:
        places = [str(place) for place in (path, ROOT, os.environ.get("PYTHONPATH")) if place]
        command = [sys.executable, "-m", "converters.cli", *map(str, arguments), "--json"]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(places)}
        done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=path)
    assert done.stdout.count("\n") == 1, (done.stdout, done.stderr)
    return done.returncode, json.loads(done.stdout), done.stderr


def with_rules(model: Path, code: str) -> tuple[Path, str, Path]:
    path = model.with_name("rules.py")
    path.write_text(code)
    return model, "--rules", path


@pytest.mark.parametrize(
    ("statement", "code", "fault", "said"),
    [
        ("raise KeyError('lost')", 3, "internal", "internal error: KeyError: 'lost'"),
        ("raise MemoryError('1 TiB')", 2, "malformed", "not enough memory: 1 TiB"),
        ("raise RecursionError('deep')", 3, "internal", "internal error: RecursionError: deep"),
        ("raise SystemExit(0)", 3, "internal", "internal error: SystemExit: 0"),
        (
            "raise InternalError([Problem('odd', fault=Fault.INTERNAL)])",
            3,
            "internal",
            "odd",
        ),
        ("raise KeyboardInterrupt", 130, "malformed", "interrupted"),
    ],
)
def test_internal_errors(model: Path, statement: str, code: int, fault: str, said: str) -> None:
    ended, document, told = specops("convert", *with_rules(model, BROKEN.format(statement)))
    (problem,) = document["problems"]
    assert (ended, problem["fault"]) == (code, fault), problem
    assert said in problem["message"]
    assert not told
    assert not model.with_suffix(".onnx").exists()


@pytest.mark.parametrize("command", ["inspect", "validate"])
def test_internal_errors_of_other_commands(model: Path, command: str) -> None:
    ended, document, told = specops(command, *with_rules(model, BROKEN.format("raise KeyError('lost')")))
    assert (ended, told) == (3, "")
    assert "internal error: KeyError: 'lost'" in document["problems"][0]["message"]


@pytest.mark.parametrize("statement", ["raise KeyError('lost')", "raise SystemExit(0)", "import nothing_of_that_name"])
def test_rules_files_that_fail(model: Path, statement: str) -> None:
    """Errors in a rules file are bad input."""
    ended, document, told = specops("convert", *with_rules(model, statement))
    assert (ended, told) == (2, "")
    assert "rules.py fail: " in document["problems"][0]["message"]


@pytest.mark.parametrize("command", ["convert", "inspect"])
@pytest.mark.parametrize("statement", ["return data.absent", "return op.Relu(data, 1, 2, 3)", "return {}['absent']"])
def test_a_rule_that_fails(model: Path, statement: str, command: str) -> None:
    """The error blames the rule, not the model."""
    code = f"""
from converters.openvino.rule import rule

@rule("ReLU", since="opset1")
def relu(op, data):
    {statement}
"""
    ended, document, told = specops(command, *with_rules(model, code))
    (problem,) = document["problems"]
    assert (ended, told, problem["fault"], problem["remedy"]) == (
        2,
        "",
        "usage",
        "correct the rule, or check that the file is intact",
    )
    assert problem["layer"]["type"] == "ReLU" if "layer" in problem else problem["layer_type"] == "ReLU"
    assert "rules.py, line 6" in problem["message"]


@pytest.mark.skipif(sys.platform == "win32", reason="has no signals")
@pytest.mark.parametrize(
    ("name", "code", "said"), [("SIGSEGV", 3, "ended with"), ("SIGABRT", 3, "ended with"), ("SIGKILL", 2, "out of memory")]
)
def test_a_child_process_that_crashes(model: Path, name: str, code: int, said: str) -> None:
    """One of several conversions: the others are complete, and the failure is reported."""
    crash = f"if walk.source.path.stem == 'model': os.kill(os.getpid(), signal.{name})"
    _, *rules = with_rules(model, BROKEN.format(crash))
    other = save_dense(model.with_name("other.xml"))
    ended, document, told = specops("convert", model, other, "--jobs", "2", *rules, "-o", model.parent)
    assert (ended, told) == (code, "")
    assert (document["converted"], document["failed"]) == (1, 1)
    crashed, whole = document["conversions"]
    assert said in crashed["problems"][0]["message"] and "problems" not in whole
    assert other.with_suffix(".onnx").exists() and not model.with_suffix(".onnx").exists()


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("import os; os.abort()", "OpenVINO crashed: its process ended with"),
        ("print('much', flush=True); import os; os._exit(0)", "OpenVINO crashed: its process ended with exit code 0"),
        ("raise MemoryError('1 TiB')", "MemoryError: 1 TiB"),
    ],
)
def test_a_crash_of_openvino(model: Path, code: str, said: str) -> None:
    """A difference: one of the runtimes has no result."""
    stub = model.parent / "stub"
    (stub / "openvino").mkdir(parents=True)
    (stub / "openvino" / "__init__.py").write_text(code)
    ended, document, told = specops("validate", model, path=stub)
    assert (ended, told) == (1, "")
    assert not document["agrees"]
    errors = {result["runtime"]: result["error"] for result in document["runtimes"]}
    assert said in errors.pop("openvino")
    assert not any(errors.values())


@pytest.mark.skipif(sys.platform == "win32", reason="pipes end otherwise there")
@pytest.mark.parametrize("arguments", [["ops"], ["ops", "--json"], ["inspect", "--all-operations"]], ids=" ".join)
def test_a_closed_pipe(arguments: list[str]) -> None:
    """The command exits silently, like other commands in a pipe."""
    read, written = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "converters.cli", *arguments]
    done = subprocess.run(command, stdout=written, stderr=subprocess.PIPE, text=True, timeout=300)
    os.close(written)
    assert done.returncode == 141
    assert done.stderr == ""


@pytest.mark.parametrize(("module", "extra"), [("markupsafe", "report"), ("jinja2", "report"), ("PIL", "images")])
def test_a_missing_extra_is_reported(module: str, extra: str) -> None:
    (problem,) = problems_of(ModuleNotFoundError(f"No module named {module!r}", name=module))
    assert f"onnx-specops[{extra}]" in problem.message and problem.fault != "internal"
