"""MatMulCompressed on each instruction set that this processor has."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from onnx_specops.runtime.library import has_library

pytestmark = pytest.mark.skipif(not has_library(), reason="no native library is built here")

PROGRAM = """
import itertools
import numpy as np
from onnx_specops.domain import find
from tests.onnx_specops.native import nodes
from tests.onnx_specops.native.random_products import mat_mul_compressed

def groups_that_do_not_fill_the_depth(rng):
    for (depth, block_size), rows, activations in itertools.product(
        [(384, 256), (640, 256), (896, 512), (160, 64)], [1, 2, 3, 4], ["float", "int8"]
    ):
        blocks = -(-depth // block_size)
        arrays = [
            rng.standard_normal((rows, depth)).astype(np.float32) / 100,
            rng.integers(0, 256, 20 * depth // 2, np.uint8),
            rng.standard_normal((20, blocks)).astype(np.float32),
            rng.integers(0, 16, (20, blocks), np.uint8),
            None,
            None,
        ]
        attributes = {"N": 20, "K": depth, "block_size": block_size, "packed": "uint4", "activations": activations}
        yield "MatMulCompressed", arrays, [1], attributes

rng = np.random.default_rng(0)
drawn = (mat_mul_compressed(rng) for _ in range(120))
for name, arrays, types, attributes in itertools.chain(groups_that_do_not_fill_the_depth(rng), drawn):
    expected = find(name)(*arrays, **attributes).astype(np.float64)
    got = nodes.run(name, arrays, types, attributes)[0].astype(np.float64)
    tolerance = 1e-4 if arrays[0].dtype == np.float32 else 2e-2
    np.testing.assert_allclose(got, expected, rtol=tolerance, atol=1e-5, err_msg=str(attributes))
"""


# Where the processor lacks a set, what it has instead answers: that is right as well.
@pytest.mark.parametrize("name", ["portable", "avx2", "avx512", "avx512_vnni"])
def test_each_instruction_set(name: str) -> None:
    environment = {**os.environ, "ONNX_SPECOPS_SIMD": name, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
