"""Options of the test suite."""

from __future__ import annotations

import gc
import os
import sys
from pathlib import Path

# Threads of NumPy's matrix multiplications take the processor from the other workers. NumPy reads this when it is imported.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import onnxruntime as ort
import pytest

# Imports and the collection of tests create objects that live until the end.
gc.disable()

# The tests' own modules come from the checkout, and the packages from their installation. Therefore the root is last on the
# path, and child processes do not put their working directory first.
sys.path.append(str(Path(__file__).parents[1]))
os.environ["PYTHONSAFEPATH"] = "1"


class _SessionOptions(ort.SessionOptions):  # type: ignore[misc]
    """Session options whose threads wait for work without spinning. Spinning takes the processor from the other workers."""

    def __init__(self) -> None:
        super().__init__()
        self.add_session_config_entry("session.intra_op.allow_spinning", "0")


ort.SessionOptions = _SessionOptions


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--conformance",
        default="50",
        metavar="N|all",
        help="which conformance cases to run: one of each operation and one in N of all, or all (default: %(default)s)",
    )
    parser.addoption(
        "--opset",
        type=int,
        metavar="N",
        help="convert the operations' conformance cases at this opset; unsupported cases are skipped with the reason",
    )
    parser.addoption(
        "--target",
        default="onnxruntime",
        help="convert the operations' conformance cases for this target; unsupported cases are skipped with the reason",
    )
    parser.addoption(
        "--provider",
        default="CPUExecutionProvider",
        help="run the conformance suites with this execution provider of the installed onnxruntime, without kernels",
    )
    parser.addoption(
        "--networks",
        default="",
        metavar="all|WORD,...",
        help="the whole networks to build from their libraries and run: all, or those whose names or families contain a "
        "word (default: none; those in tests/conformance/models/files always run)",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Give each worker of ``-n`` consecutive tests: those of a module share its fixtures, such as converted models."""
    if getattr(config.option, "numprocesses", None) and config.option.dist == "no":
        config.option.dist = "worksteal"


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


def pytest_configure(config: pytest.Config) -> None:
    from tests.conformance import providers

    providers.choose(config.getoption("--provider"))
    config.addinivalue_line("markers", "conformance: compared with OpenVINO; sampled unless --conformance=all")
    config.addinivalue_line("markers", "network: a whole network, built from its library; with --networks")
