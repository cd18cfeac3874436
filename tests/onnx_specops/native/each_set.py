"""Nodes that run with each instruction set of this processor.

A process selects an instruction set once, so each set needs a process, which runs many nodes in one session. The results
that the nodes should give are computed only once, by the process of the tests.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np

from converters.validation.ort_values import run_session
from tests.onnx_specops.native.nodes import Node, feeds_of_all, model_of_all, session

Check = Callable[[Sequence[np.ndarray]], None]
"""Raises an AssertionError if a node's outputs are not the expected ones."""

_AT_ONCE = 64
"""The nodes of a session. Creating and destroying a session costs more than running a small node."""


class Nodes:
    """Nodes and the checks of their outputs.

    Args:
        cases: each node, and the check of its outputs.
        folder: for the models and their outputs.
    """

    def __init__(self, cases: Iterable[tuple[Node, Check]], folder: Path) -> None:
        found = list(cases)
        self._checks = [check for _, check in found]
        self._counts = [len(types) for (_, _, types, _), _ in found]
        self._folder = folder
        pieces = [[node for node, _ in found[first : first + _AT_ONCE]] for first in range(0, len(found), _AT_ONCE)]
        _given(folder).write_bytes(pickle.dumps([(model_of_all(piece), feeds_of_all(piece)) for piece in pieces]))

    def check(self, name: str) -> None:
        """Run the nodes with an instruction set (a value of ``ONNX_SPECOPS_SIMD``), and check their outputs."""
        environment = {**os.environ, "ONNX_SPECOPS_SIMD": name, "PYTHONPATH": os.pathsep.join(sys.path)}
        command = [sys.executable, "-m", "tests.onnx_specops.native.each_set", str(self._folder), name]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[-2000:]
        outputs = iter(pickle.loads(_results(self._folder, name).read_bytes()))
        for check, count in zip(self._checks, self._counts, strict=True):
            check([next(outputs) for _ in range(count)])
        assert next(outputs, None) is None


def _given(folder: Path) -> Path:
    return folder / "nodes.pickle"


def _results(folder: Path, name: str) -> Path:
    return folder / f"{name}.pickle"


def main(folder: Path, name: str) -> None:
    """Run the nodes in this process, and store their outputs."""
    outputs: list[np.ndarray] = []
    for model, feeds in pickle.loads(_given(folder).read_bytes()):
        outputs += run_session(session(model), feeds)
    _results(folder, name).write_bytes(pickle.dumps(outputs))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
