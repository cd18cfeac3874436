"""Progress is shown on a terminal for long operations, and nowhere else."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from converters.cli import batch, console
from converters.cli.console import progress
from tests.converters.cli.specops import as_json, save_dense, specops


class Clock:
    """A clock that advances by ``step`` seconds whenever it is read."""

    def __init__(self, step: float = 0.0) -> None:
        self.now, self.step = 0.0, step

    def __call__(self) -> float:
        self.now += self.step
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(console, "clock", clock)
    return clock


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[io.StringIO]:
    """Return standard error, as a terminal."""
    screen = io.StringIO()
    made = Console(file=screen, force_terminal=True, color_system=None, width=100)
    for module in (batch, console):
        monkeypatch.setattr(module, "err", made)
    return screen


def test_short_operations_show_no_progress(terminal: io.StringIO, clock: Clock) -> None:
    with progress(as_json=False) as step:
        bar = step.__self__  # type: ignore[attr-defined]
        step("converting")
        clock.now = 0.9
        bar.refresh()
    assert "converting" not in terminal.getvalue()


def test_long_operations_show_progress_until_they_end(terminal: io.StringIO, clock: Clock) -> None:
    with progress(as_json=False) as step:
        bar = step.__self__  # type: ignore[attr-defined]
        step("converting")
        clock.now = 75
        bar.refresh()
        assert "converting ..." in terminal.getvalue() and "0:01:15" in terminal.getvalue()
        step("ONNX Runtime", 3, 12)
        bar.refresh()
        assert "ONNX Runtime 3 of 12" in terminal.getvalue()
        assert bar.tasks[0].percentage == 25
        step("times of the layers")
        assert bar.tasks[0].total is None
    assert terminal.getvalue().endswith("\x1b[2K")  # the line is cleared


@pytest.mark.parametrize("late", [True, False])
def test_a_conversion_and_a_validation(terminal: io.StringIO, clock: Clock, tmp_path: Path, late: bool) -> None:
    clock.step = 2.0 * late
    xml = save_dense(tmp_path / "model.xml")
    assert specops("convert", xml).exit_code == 0
    assert ("converting ..." in terminal.getvalue()) == late
    (tmp_path / "samples").mkdir()
    for name in "abc":
        np.savez(tmp_path / "samples" / f"{name}.npz", x=np.ones((2, 32), np.float32))
    arguments = ("--runtime", "openvino", "--runtime", "none", "--inputs", tmp_path / "samples")
    assert specops("validate", xml, *arguments).exit_code == 0
    assert ("ONNX Runtime, no plugin" in terminal.getvalue()) == late


def test_a_folder(terminal: io.StringIO, tmp_path: Path) -> None:
    for name in "ab":
        save_dense(tmp_path / f"{name}.xml")
    assert specops("convert", tmp_path).exit_code == 0
    assert "converting" in terminal.getvalue()


def test_no_progress_for_programs(terminal: io.StringIO, clock: Clock, tmp_path: Path) -> None:
    clock.step = 2.0
    xml = save_dense(tmp_path / "model.xml")
    for arguments in (
        ["convert", xml],
        ["convert", tmp_path],
        ["validate", xml, "--runtime", "none", "--runtime", "native"],
    ):
        as_json(specops(*arguments, "--json"))
    assert terminal.getvalue() == ""


def test_no_progress_without_a_terminal(
    terminal: io.StringIO, clock: Clock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(console, "err", Console(file=terminal, force_terminal=False))
    clock.step = 2.0
    assert specops("convert", save_dense(tmp_path / "model.xml"), "--check").exit_code == 0
    assert terminal.getvalue() == ""
