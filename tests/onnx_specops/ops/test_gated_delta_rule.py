"""GatedDeltaRule in all forms agrees with OpenVINO's CPU plugin on the layers that optimum-intel exports."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

from tests.onnx_specops.ops import one_node
from tests.onnx_specops.ops.gated_delta_layers import NAMES, arrays, layers
from tests.onnx_specops.ops.openvino_layers import by_openvino

FORMS = ["numpy", "native", "python", "body", "reference"]


def run(form: str, given: dict[str, np.ndarray]) -> list[np.ndarray]:
    return list(one_node.run(form, "GatedDeltaRule", given))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "shape",
    [
        (1, 1, 2, 1, 16, 32),
        (2, 7, 6, 3, 5, 16),
        (2, 3, 4, 2, 19, 35),  # three columns besides 32
        (1, 65, 3, 3, 128, 64),
        (1, 5, 2, 2, 8, 17),  # one column besides 16
        (3, 2, 1, 1, 1, 1),
        (2, 4, 4, 1, 3, 20),
    ],
)
def test_values(form: str, shape: tuple[int, int, int, int, int, int]) -> None:
    given = arrays(*shape)
    expected = by_openvino(layers(given), given)
    for got, wanted in zip(run(form, given), expected, strict=True):
        assert got.shape == wanted.shape
        np.testing.assert_allclose(got, wanted, atol=2e-6 * np.abs(wanted).max(), rtol=1e-5)


@pytest.mark.parametrize("form", FORMS)
def test_onnx_has_the_same_rule(form: str) -> None:
    """ONNX's LinearAttention has one head of keys for each head of values, and packs heads."""
    given = arrays(2, 9, 3, 3, 8, 20)
    packed = {name: array.reshape(2, 9, -1) for name, array in given.items() if name != "past_state"}
    packed["past_state"] = given["past_state"]
    node = helper.make_node(
        "LinearAttention",
        [*NAMES],
        ["output", "present"],
        q_num_heads=3,
        kv_num_heads=3,
        scale=1.0,
        update_rule="gated_delta",
    )
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in (*NAMES, "output", "present")]
    graph = helper.make_graph([node], "one", values[:6], values[6:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 27)])
    output, present = ReferenceEvaluator(model).run(None, packed)
    got = run(form, given)
    np.testing.assert_allclose(got[0].reshape(output.shape), output, atol=1e-5)
    np.testing.assert_allclose(got[1], present, atol=1e-5)


@pytest.mark.parametrize("form", FORMS)
def test_infinite_and_vanishing_numbers(form: str) -> None:
    given = arrays(1, 3, 4, 4, 4, 16)
    given["decay"][0, 1] = -500, -90, 60, 0
    given["value"][0, 1, 3, 0] = np.inf
    given["past_state"][0, 0] = 1e38  # the sum of the state's rows is infinite before it decays
    given["key"][0, 1, 0] = 4
    expected = by_openvino(layers(given), given)
    for got, wanted in zip(run(form, given), expected, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"decay": (2, 5, 3)}, "decay has the shape"),
        ({"beta": (2, 5, 1)}, "beta has the shape"),
        ({"key": (2, 5, 2, 7)}, "key has the shape"),
        ({"past_state": (1, 4, 8, 3)}, "past_state has the shape"),
        ({"query": (2, 4, 2, 8), "key": (2, 4, 2, 8)}, "query has the shape"),
        ({"query": (2, 5, 3, 8), "key": (2, 5, 3, 8)}, "value has 4 heads; expected a multiple of 3"),
        ({"query": (2, 5, 0, 8), "key": (2, 5, 0, 8)}, "value has 4 heads; expected a multiple of 0"),
    ],
)
def test_errors(form: str, changes: dict[str, tuple[int, ...]], message: str) -> None:
    given = arrays(2, 5, 4, 2, 8, 3) | {name: np.ones(shape, np.float32) for name, shape in changes.items()}
    with pytest.raises(Exception, match=message if form in ("numpy", "native", "python") else None):
        run(form, given)


@pytest.mark.parametrize("form", FORMS[:-1])  # ONNX's evaluator cannot join the outputs of no iterations
def test_no_tokens(form: str) -> None:
    given = arrays(2, 0, 4, 2, 8, 3)
    output, present = run(form, given)
    assert output.shape == (2, 0, 4, 3)
    np.testing.assert_array_equal(present, given["past_state"])


@pytest.mark.parametrize("form", FORMS)
def test_an_empty_state(form: str) -> None:
    output, present = run(form, arrays(2, 5, 4, 2, 0, 3))
    assert present.shape == (2, 4, 0, 3) and not output.any() and output.shape == (2, 5, 4, 3)
