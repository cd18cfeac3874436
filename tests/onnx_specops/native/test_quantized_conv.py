"""QuantizedConv with each instruction set of this processor: the integers of the NumPy kernel."""

from __future__ import annotations

import numpy as np
import onnxruntime as ort
import pytest

import onnx_specops
from tests.native import needs_library
from tests.onnx_specops.native.each_set import Nodes
from tests.onnx_specops.native.quantized_convs import cases
from tests.onnx_specops.ops.one_node import one_node
from tests.processor import instruction_sets

pytestmark = needs_library


@pytest.fixture(scope="module")
def convolutions(tmp_path_factory: pytest.TempPathFactory) -> Nodes:
    return Nodes(((case.node, case.check) for case in cases()), tmp_path_factory.mktemp("convolutions"))


@pytest.mark.parametrize("name", instruction_sets("portable", "avx2", "avx2_vnni", "avx512", "avx512_vnni", "amx"))
def test_each_instruction_set(name: str, convolutions: Nodes) -> None:
    convolutions.check(name)


_ADDEND = {
    "addend": np.zeros(0, np.uint8),
    "addend_scale": np.zeros(0, np.float32),
    "addend_zero_point": np.zeros(0, np.uint8),
    "sum_scale": np.zeros(0, np.float32),
    "sum_zero_point": np.zeros(0, np.uint8),
}
"""The constants of nodes without an addend in a model that also adds tensors."""


def test_strides_and_padding_that_are_much_larger_than_the_input() -> None:
    """The padded input would have more bytes than 64 bits count. Only one result has a pixel that is not padding."""
    x = np.full((1, 1, 1, 1, 64), 9, np.uint8)
    given = {
        "W": np.ones((1, 64, 1, 1, 1), np.int8),
        "scale": np.ones(1, np.float32),
        "bias": np.full(1, 5, np.float32),
        "x_zero_point": np.array(7, np.uint8),
        "y_zero_point": np.array(1, np.uint8),
    }
    attributes = {
        "channels": 64,
        "kernel": "1,1,1",
        "strides": "999999,1,999999",
        "pads": "999999,15000,999999,999999,15000,999999",
    }
    model = one_node("QuantizedConv", {"X": x, **given}, attributes, list(given))
    (y,) = onnx_specops.InferenceSession(model.SerializeToString(), kernels="native").run(None, {"X": x})
    expected = np.full((1, 3, 30001, 3, 1), 6, np.uint8)
    expected[0, 1, 15000, 1] = 64 * 2 + 6
    np.testing.assert_array_equal(y, expected)


@pytest.mark.parametrize(
    ("more", "computed", "packed"),
    [({}, [], True), (_ADDEND, [], True), ({}, ["scale"], False), (_ADDEND, ["scale"], False)],
    ids=["omitted", "empty", "omitted, a scale at run time", "empty, a scale at run time"],
)
def test_weights_are_packed_once(more: dict[str, np.ndarray], computed: list[str], packed: bool) -> None:
    """Weights that change in place after the session was created have no effect: the kernel uses its packed copy."""
    rng = np.random.default_rng(0)
    given = {
        "X": rng.integers(0, 256, (1, 3, 3, 8)).astype(np.uint8),
        "W": rng.integers(-128, 128, (8, 8, 3, 3)).astype(np.int8),
        "scale": np.full(8, 1e-4, np.float32),
        "bias": np.zeros(8, np.float32),
        "x_zero_point": np.array(3, np.uint8),
        "y_zero_point": np.array(5, np.uint8),
        **more,
    }
    feeds = {name: given[name] for name in ("X", *computed)}
    model = one_node("QuantizedConv", given, {"channels": 8, "kernel": "3,3"}, [name for name in given if name not in feeds])
    weights = ort.OrtValue.ortvalue_from_numpy(given["W"])
    options = ort.SessionOptions()
    options.add_initializer("W", weights)
    session = onnx_specops.InferenceSession(model.SerializeToString(), options, kernels="native")
    (before,) = session.run(None, feeds)
    weights.update_inplace(np.zeros_like(given["W"]))
    (after,) = session.run(None, feeds)
    assert np.array_equal(before, after) == packed
