"""QuantizedConv with each instruction set of this processor: the integers of the NumPy kernel."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.native import needs_library

pytestmark = needs_library

PROGRAM = """
import numpy as np
from onnx_specops.domain import find
from tests.onnx_specops.native import nodes
from tests.onnx_specops.ops.cases_quantized_conv import CASES

def compare(name, arrays, attributes):
    operator = find("QuantizedConv")
    expected = operator(*arrays, **operator.node_attributes(attributes))
    got = nodes.run("QuantizedConv", arrays, [nodes.element_type(arrays[5])], attributes)[0]
    if expected.dtype == np.uint8 and attributes.get("function", "none") in ("none", "clip", "prelu"):
        np.testing.assert_array_equal(got, expected, err_msg=name)
    else:
        atol = 1.01 if expected.dtype == np.uint8 else 1e-4
        np.testing.assert_allclose(got.astype(np.float64), expected, rtol=1e-5, atol=atol)

for case in CASES:
    if not case.error:
        compare(case.id, [case.inputs.get(name) for name in find(case.op).inputs], dict(case.attributes))

rng = np.random.default_rng(0)
for columns in (*range(1, 36), 63, 64, 65):  # every number of columns that a vector may leave over
    for depthwise in (False, True):
        channels = columns if depthwise else 5
        count = int(rng.integers(1, 20))
        x, addend = (rng.integers(0, 256, (1, count, size)).astype(np.uint8) for size in (channels, columns))
        w = rng.integers(-128, 128, (columns, 1 if depthwise else channels, 1)).astype(np.int8)
        zeros = rng.integers(0, 256, (2, columns)).astype(np.uint8)
        factors = rng.uniform(0.01, 0.02, (4, columns)).astype(np.float32)
        arrays = [x, w, factors[0], factors[1], np.uint8(7), zeros[0], None, None, addend, factors[2] * 40, np.uint8(99),
                  factors[3] * 40, zeros[1], rng.standard_normal(columns).astype(np.float32)]
        arrays = [None if array is None else np.asarray(array) for array in arrays]
        compare(str(columns), arrays, {"channels": channels, "kernel": "1", "group": columns if depthwise else 1})
"""


# If the processor lacks a set, its best set is used instead, which must also be correct.
@pytest.mark.parametrize("name", ["portable", "avx2", "avx512", "avx512_vnni"])
def test_each_instruction_set(name: str) -> None:
    environment = {**os.environ, "ONNX_SPECOPS_SIMD": name, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
