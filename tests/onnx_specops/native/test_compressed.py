"""MatMulCompressed, attention and normalization with each instruction set, and weights with kept panels."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence

import numpy as np
import pytest

from onnx_specops.domain import find
from tests.native import needs_library
from tests.onnx_specops.native.each_set import Check, Nodes
from tests.onnx_specops.native.nodes import Node
from tests.onnx_specops.native.random_products import (
    attention,
    mat_mul_compressed,
    quantized_attention,
    quantized_layer_normalization,
)
from tests.processor import instruction_sets

pytestmark = needs_library


def _groups_that_do_not_fill_the_depth(rng: np.random.Generator) -> Iterator[Node]:
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


def _floats(rng: np.random.Generator) -> Iterator[Node]:
    """Weights in float32: columns that do not fill four parts, and rows beyond those that are multiplied without a copy."""
    for columns, depth, rows in itertools.product([1, 3, 4, 7, 37], [1, 15, 16, 33, 512], [1, 2, 4, 5, 16, 17]):
        a = rng.standard_normal((rows, depth)).astype(np.float32) / 100
        b = rng.standard_normal((columns, depth)).astype(np.float32)
        bias = rng.standard_normal(columns).astype(np.float32) / 100 if rows % 2 else None
        yield "MatMulCompressed", [a, b, None, None, None, bias], [1], {"N": columns, "K": depth, "block_size": depth}


def _random_nodes() -> Iterator[Node]:
    rng = np.random.default_rng(0)
    yield from _floats(rng)
    yield from _groups_that_do_not_fill_the_depth(rng)
    yield from (mat_mul_compressed(rng) for _ in range(130))
    for make in (attention, quantized_attention, quantized_layer_normalization):
        yield from (make(rng) for _ in range(40))


def _case(node: Node) -> tuple[Node, Check]:
    name, arrays, types, attributes = node
    with np.errstate(all="ignore"):
        expected = find(name)(*arrays, **attributes).astype(np.float64)

    def check(outputs: Sequence[np.ndarray]) -> None:
        got = outputs[0].astype(np.float64)
        if types == [2]:  # sums in another order are other levels at most 1 in 100 times
            assert np.abs(got - expected).max(initial=0) <= 1, attributes
            assert np.count_nonzero(got != expected) <= 1 + got.size // 100, attributes
            return
        tolerance = 1e-4 if arrays[0].dtype == np.float32 else 2e-2
        np.testing.assert_allclose(got, expected, rtol=tolerance, atol=1e-5, err_msg=str(attributes))

    return node, check


@pytest.fixture(scope="module")
def random_nodes(tmp_path_factory: pytest.TempPathFactory) -> Nodes:
    return Nodes(map(_case, _random_nodes()), tmp_path_factory.mktemp("compressed"))


@pytest.mark.parametrize("name", instruction_sets("portable", "avx2", "avx2_vnni", "avx512", "avx512_vnni"))
def test_each_instruction_set(name: str, random_nodes: Nodes) -> None:
    random_nodes.check(name)


KEPT = """
import itertools
import ml_dtypes
import numpy as np
import onnx
from onnx import numpy_helper
import onnx_specops
from onnx_specops.domain import find
from tests.onnx_specops.native import nodes

rng = np.random.default_rng(0)
cases = itertools.product([np.float16, ml_dtypes.bfloat16], [0, 1], [(40, 96), (33, 600), (300, 1030)], ["plain", "scaled"])
for type_, transposed, (columns, depth), kind in cases:
    b = (rng.standard_normal((columns, depth) if transposed else (depth, columns)) / 10).astype(type_)
    blocks = -(-depth // 256)
    scales = rng.standard_normal((columns, blocks) if transposed else (blocks, columns)).astype(np.float32)
    bias = rng.standard_normal(columns).astype(np.float32)
    arrays = [np.zeros((1, 1), np.float32), b, scales if kind == "scaled" else None, None, None, bias]
    attributes = {"N": columns, "K": depth, "block_size": 256, "transB": transposed}
    attributes["function"] = "gelu" if kind == "scaled" else "none"
    model = onnx.load_from_string(nodes.model("MatMulCompressed", arrays, [1], attributes))
    for name, array in (("i1", b), ("i2", scales), ("i5", bias)):
        index = [value.name for value in model.graph.input].index(name) if name in model.graph.node[0].input else -1
        if index >= 0:
            del model.graph.input[index]
            model.graph.initializer.append(numpy_helper.from_array(array, name))
    session = onnx_specops.InferenceSession(model.SerializeToString())
    for rows in (2, 30, 1, 11, 600, 5):  # few rows before and after the weights are kept, and several blocks
        a = rng.standard_normal((rows, depth)).astype(np.float32)
        expected = find("MatMulCompressed")(a, *arrays[1:], **attributes)
        np.testing.assert_allclose(session.run(None, {"i0": a})[0], expected, rtol=1e-3, atol=1e-3)
"""


@pytest.mark.parametrize("limit", ["", "0", "1"])
def test_kept_panels(limit: str) -> None:
    """Constant 16-bit weights, with memory for all panels, for none, and for some."""
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(sys.path),
        **({"ONNX_SPECOPS_KEPT_MIB": limit} if limit else {}),
    }
    done = subprocess.run([sys.executable, "-c", KEPT], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
