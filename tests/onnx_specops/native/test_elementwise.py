"""Elementwise with each instruction set of this processor: random programs, against the NumPy kernel."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.native import needs_library
from tests.processor import instruction_sets

pytestmark = needs_library

PROGRAM = """
import numpy as np
from onnx_specops.domain import find
from tests.onnx_specops.native import nodes, random_elementwise as made

operator = find("Elementwise")
for seed in range(400):
    rng = np.random.default_rng(seed)
    exact = seed % 2 == 0
    arrays, attributes = made.random_program(rng, made.EXACT if exact else tuple(made.ARGUMENTS))
    expected = operator(*arrays, **operator.node_attributes(attributes))
    got = nodes.run("Elementwise", arrays, [nodes.element_type(arrays[1])], attributes)[0]
    assert got.shape == expected.shape, (seed, got.shape, expected.shape)
    floats = operator(arrays[0], np.float32(0), None, *arrays[3:], **operator.node_attributes(attributes))
    finite = np.isfinite(floats)  # rounding NaN is undefined
    if exact:
        np.testing.assert_array_equal(got[finite], expected[finite], err_msg=f"{seed} {attributes}")
    elif expected.dtype == np.uint8:
        np.testing.assert_allclose(got[finite].astype(int), expected[finite].astype(int), atol=1, err_msg=str(seed))
    else:
        np.testing.assert_allclose(got[finite], expected[finite], rtol=1e-3, atol=1e-4, err_msg=f"{seed} {attributes}")
"""


@pytest.mark.parametrize("name", instruction_sets("portable", "avx2", "avx512"))
def test_each_instruction_set(name: str) -> None:
    environment = {**os.environ, "ONNX_SPECOPS_SIMD": name, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
