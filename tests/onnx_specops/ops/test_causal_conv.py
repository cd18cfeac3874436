"""CausalConv in all forms agrees with OpenVINO's CPU plugin on the layers that optimum-intel exports."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

from tests.onnx_specops.ops import one_node
from tests.onnx_specops.ops.causal_layers import arrays, feeds, layers
from tests.onnx_specops.ops.openvino_layers import by_openvino

FORMS = ["numpy", "native", "python", "body", "reference"]


def run(form: str, given: dict[str, np.ndarray], constants: tuple[str, ...] = ()) -> list[np.ndarray]:
    return list(one_node.run(form, "CausalConv", given, constants=constants))


@pytest.mark.parametrize("constants", [(), ("weight",)])  # the body is a Conv for a known number of channels
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "shape",
    [
        (1, 1, 32, 4, 4),
        (2, 7, 19, 3, 3),  # three channels besides 16
        (2, 2, 16, 4, 3),  # fewer tokens than the state is long
        (3, 5, 6, 1, 2),
        (1, 40, 33, 5, 6),
        (2, 3, 1, 2, 1),
    ],
)
def test_values(form: str, shape: tuple[int, int, int, int, int], constants: tuple[str, ...]) -> None:
    given = arrays(*shape)
    expected = by_openvino(layers(given, gated=False), feeds(given))
    for got, wanted in zip(run(form, given, constants), expected, strict=True):
        assert got.shape == wanted.shape
        np.testing.assert_allclose(got, wanted, atol=1e-6 * np.abs(wanted).max(), rtol=1e-5)


@pytest.mark.parametrize("form", FORMS)
def test_onnx_has_the_same_operator(form: str) -> None:
    given = arrays(2, 6, 5, 4, 3)
    node = helper.make_node("CausalConvWithState", ["x", "weight", "", "past_state"], ["y", "present"])
    names = ("x", "weight", "past_state", "y", "present")
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in names]
    model = helper.make_model(
        helper.make_graph([node], "one", values[:3], values[3:]), opset_imports=[helper.make_opsetid("", 27)]
    )
    inputs = {"x": given["x"].transpose(0, 2, 1), "weight": given["weight"].T[:, None], "past_state": given["past_state"]}
    y, present = ReferenceEvaluator(model).run(None, inputs)
    got = run(form, given)
    np.testing.assert_allclose(got[0], y.transpose(0, 2, 1), atol=1e-5)
    np.testing.assert_array_equal(got[1], present)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"weight": (3, 4)}, "weight has the shape"),
        ({"past_state": (1, 6, 3)}, "past_state has the shape"),
        ({"past_state": (2, 6, 1)}, "weight has 3 rows; expected 1 to 2"),
        ({"weight": (0, 6)}, "weight has 0 rows; expected 1 to 4"),
    ],
)
def test_errors(form: str, changes: dict[str, tuple[int, ...]], message: str) -> None:
    given = arrays(2, 5, 6, 3, 3) | {name: np.ones(shape, np.float32) for name, shape in changes.items()}
    with pytest.raises(Exception, match=message if form in ("numpy", "native", "python") else None):
        run(form, given)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("shape", [(2, 0, 6, 3, 4), (0, 3, 6, 3, 4), (2, 3, 0, 3, 4)])
def test_empty_tensors(form: str, shape: tuple[int, int, int, int, int]) -> None:
    given = arrays(*shape)
    y, present = run(form, given)
    assert y.shape == given["x"].shape
    if not shape[1]:
        np.testing.assert_array_equal(present, given["past_state"])
