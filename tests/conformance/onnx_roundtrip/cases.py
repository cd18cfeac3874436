"""ONNX's own backend node tests, as far as OpenVINO reads and runs them.

``openvino_runs.txt`` names them; ``python -m tests.conformance.onnx_roundtrip.list_cases`` makes it anew.
"""

from __future__ import annotations

import contextlib
import functools
import io
import warnings
from pathlib import Path

import numpy as np
import onnx

LIST = Path(__file__).with_name("openvino_runs.txt")

# Random by nature: each runtime draws its own numbers, so that only shapes and types can be compared.
RANDOM = {
    "test_bernoulli": "draws with no seed",
    "test_bernoulli_double": "draws with no seed",
    "test_bernoulli_seed": "draws with a seed that ONNX gives no generator for",
    "test_bernoulli_expanded": "draws with no seed",
    "test_bernoulli_double_expanded": "draws with no seed",
    "test_bernoulli_seed_expanded": "draws with a seed that ONNX gives no generator for",
}


@functools.cache
def all_cases() -> dict[str, object]:
    """Every backend node test of the installed onnx, by name."""
    from onnx.backend.test.case.node import collect_testcases

    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        cases = collect_testcases(None)
    return {case.name: case for case in cases}


def listed() -> list[str]:
    """The names of the cases that OpenVINO reads and runs."""
    return LIST.read_text().split() if LIST.is_file() else []


def inputs(case) -> list[np.ndarray]:
    """The inputs of the case's first data set."""
    return [_array(value) for value in case.data_sets[0][0]]


def _array(value) -> np.ndarray:
    if isinstance(value, onnx.TensorProto):
        return onnx.numpy_helper.to_array(value)
    if isinstance(value, (list, dict)) or value is None:
        raise TypeError("sequences, maps and optionals are no tensors")
    return np.asarray(value)
