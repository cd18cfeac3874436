"""The choice of environments in `python -m tests.hosts`, and installations that fail."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.folders import ALL_LEFT_OUT
from tests.hosts import __main__ as command
from tests.hosts import environments
from tests.hosts.environments import Environment, NotInstalled

FIRST, SECOND = Environment("first", ()), Environment("second", ())
LEFT_OUT = "{0} is left out: it cannot be exported here: no such class\n"


@pytest.mark.parametrize(
    ("outputs", "words", "faults"),
    [
        ([(0, "bert: host agrees\n")], [["bert"]], []),
        ([(0, "bert: host agrees\n" + LEFT_OUT.format("flux")), (0, "")], [["bert"], ["flux"]], []),
        ([(ALL_LEFT_OUT, LEFT_OUT.format("bert")), (0, "bert: host agrees\n")], [["bert"], ["bert"]], []),
        ([(1, "bert: host DIFFERS\n")], [["bert"]], ["tests.folders in first ended with 1"]),
        ([(0, "bert: Node is left out: no node\n")], [["bert"]], ["bert: Node is left out: no node"]),
        ([(ALL_LEFT_OUT, LEFT_OUT.format("bert"))] * 2, [["bert"], ["bert"]], ["no environment exports bert"]),
    ],
)
def test_models_run_in_the_first_environment_that_exports_them(
    outputs: list[tuple[int, str]], words: list[list[str]], faults: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    given = []

    def started(python: Path, *arguments: str) -> tuple[int, str]:
        given.append(list(arguments[2:]))
        return outputs[len(given) - 1]

    monkeypatch.setattr(command, "python_of", lambda environment, *_: Path(environment.name))
    monkeypatch.setattr(command, "started", started)
    assert command.folders(Path(), [FIRST, SECOND], ["bert"]) == faults
    assert given == words


@pytest.mark.parametrize(
    ("program", "said"),
    [("raise SystemExit('no such package')", "no such package"), ("while True: pass", "no end after 1 s")],
)
def test_failed_installations_name_the_command(program: str, said: str) -> None:
    with pytest.raises(NotInstalled, match=said) as caught:
        environments._install([sys.executable, "-c", program], 1)
    assert "-c" in str(caught.value)


def test_a_sample_without_packages_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def none(*_: object) -> Path:
        raise NotInstalled("pip install torch: no network")

    monkeypatch.setattr(command, "python_of", none)
    monkeypatch.setattr(command, "install_javascript", none)
    monkeypatch.setattr(command, "started", lambda *_: pytest.fail("nothing is installed"))
    assert command.sample(tmp_path) == 0
    assert "not installed: pip install torch: no network" in capsys.readouterr().err


def test_another_checkout_uses_an_environment_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    created = []

    def create(folder: Path, **_: object) -> None:
        created.append(folder)
        (folder / f"lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages").mkdir(parents=True)

    monkeypatch.setattr(environments.venv, "create", create)
    monkeypatch.setattr(environments, "_install", lambda *_: None)
    packages = tmp_path / "current/site-packages"
    monkeypatch.setattr(sys, "path", ["/checkout", str(packages)])
    environments.python_of(FIRST, tmp_path, 1)
    monkeypatch.setattr(sys, "path", ["/another", str(packages)])
    environments.python_of(FIRST, tmp_path, 1)
    assert created == [tmp_path / "first"]
    monkeypatch.setattr(sys, "path", ["/another", str(tmp_path / "other/site-packages")])
    with pytest.raises(FileExistsError):  # the environment is created again
        environments.python_of(FIRST, tmp_path, 1)
