"""A convolution over a state and the values of a run becomes one node; near misses remain."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
import pytest
from openvino import opset14 as ops

import onnx_specops
from converters.openvino import convert
from onnx_specops.runtime.library import has_library
from tests.onnx_specops.ops.causal_layers import arrays, feeds, layers
from tests.onnx_specops.ops.openvino_layers import by_openvino, saved

OPERATOR = "onnx_specops.CausalConv"


def agree(converted: Any, model: Any, inputs: dict[str, np.ndarray], digits: float = 1e-5, **options: Any) -> None:
    session = onnx_specops.InferenceSession(converted.SerializeToString(), **options)
    for one, other in zip(session.run(None, inputs), by_openvino(model, inputs), strict=True):
        np.testing.assert_allclose(one, other, atol=digits / 5 * np.abs(other).max(), rtol=digits, strict=True)


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ({}, True),
        ({"gated": False}, True),
        ({"bias": True}, True),
        ({"shared": True}, True),
        ({"squared": True}, True),
        ({"length": 3}, True),  # as long as ONNX's
        ({"transposed": False}, False),
        ({"grouped": True}, False),
        ({"stride": 2, "tokens": 1}, False),
        ({"dilation": 2, "length": 6}, False),
        ({"pads": (0, 1)}, False),
        ({"pads": (1, 0)}, False),
        ({"swapped": True}, False),
        ({"earlier": 1, "length": 5}, False),
        ({"longer": 1}, False),
        ({"state": "first"}, False),
        ({"state": "fewer"}, False),
        ({"more": True}, False),
        ({"known": False, "kernel": 2}, False),  # its length is 1 in all runs that are tried
    ],
)
def test_conditions(options: dict[str, Any], found: bool, tmp_path: Path) -> None:
    options = dict(options)
    given = arrays(2, options.pop("tokens", 5), 6, options.pop("kernel", 4), options.pop("length", 4))
    model, inputs = layers(given, **options), feeds(given, transposed=options.get("transposed", True))
    converted, report = convert(saved(model, tmp_path))
    assert (OPERATOR in report.nodes) is found and bool({"Conv", "onnx_specops.VolumeConv"} & set(report.nodes)) is not found
    agree(converted, model, inputs)


def test_nothing_is_transposed_or_joined(tmp_path: Path) -> None:
    _, report = convert(saved(layers(arrays(1, 2, 6, 4, 4)), tmp_path))
    assert not {"Concat", "Slice", "Transpose"} & set(report.nodes)


@pytest.mark.parametrize("tokens", [1, 4, 5])
@pytest.mark.parametrize(
    ("options", "found"), [({}, True), ({"state": "first"}, False), ({"state": "fewer"}, False), ({"longer": 1}, False)]
)
def test_a_fixed_number_of_tokens(options: dict[str, Any], found: bool, tokens: int, tmp_path: Path) -> None:
    """All runs that are tried have it."""
    given = arrays(2, tokens, 6, 4, 4)
    model, inputs = layers(given, **options), feeds(given)
    model.reshape({name: array.shape for name, array in inputs.items()})
    converted, report = convert(saved(model, tmp_path))
    assert (OPERATOR in report.nodes) is found
    agree(converted, model, inputs)


@pytest.mark.parametrize("fixed", [False, True])
def test_tokens_that_no_run_varies(fixed: bool, tmp_path: Path) -> None:
    """The third dimension of an input is 1 in all runs that are tried."""
    given = arrays(2, 5, 6, 4, 4)
    model, inputs = layers(given, between=True), feeds(given, transposed=False)
    if fixed:
        model.reshape({name: array.shape for name, array in inputs.items()})
    converted, report = convert(saved(model, tmp_path))
    assert (OPERATOR in report.nodes) is fixed
    agree(converted, model, inputs)


@pytest.mark.parametrize("first", ["output", "state"])
def test_the_next_state_may_be_used_before_the_convolution(first: str, tmp_path: Path) -> None:
    """Layers are in the order in which the results need them."""
    given = arrays(2, 5, 6, 4, 4)
    original = layers(given)
    output, state = (result.input_value(0) for result in original.get_results())
    results = [ops.result(value) for value in (output, ops.relu(state))]
    model = ov.Model(results if first == "output" else results[::-1], original.get_parameters())
    converted, report = convert(saved(model, tmp_path))
    assert OPERATOR in report.nodes and "Conv" not in report.nodes
    agree(converted, model, feeds(given))


@pytest.mark.parametrize("options", [{}, {"contrib": False}, {"opset": 23}])
def test_options_with_the_operator(options: dict[str, Any], tmp_path: Path) -> None:
    given = arrays(2, 6, 20, 4, 4)
    model = layers(given)
    converted, report = convert(saved(model, tmp_path), **options)
    assert OPERATOR in report.nodes
    for kernels in [*(["native"] if has_library() else []), "none"]:
        agree(converted, model, feeds(given), kernels=kernels)


@pytest.mark.parametrize("opset", [13, 17])
def test_the_body_replaces_it_below_opset_21(opset: int, tmp_path: Path) -> None:
    given = arrays(2, 6, 20, 4, 4)
    model = layers(given)
    converted, report = convert(saved(model, tmp_path), opset=opset)
    assert OPERATOR not in report.nodes and report.inlined == ["CausalConv"] and "Conv" in report.nodes
    agree(converted, model, feeds(given))


@pytest.mark.parametrize("options", [{"contrib": False}, {"opset": 17}, {"opset": 23}, {"precision": "float32"}])
@pytest.mark.parametrize("miss", [{"state": "fewer"}, {"longer": 1}, {"grouped": True}, {"swapped": True}])
def test_near_misses_with_options(miss: dict[str, Any], options: dict[str, Any], tmp_path: Path) -> None:
    given = arrays(2, 5, 6, 4, 4)
    model = layers(given, **miss)
    converted, report = convert(saved(model, tmp_path), **options)
    assert OPERATOR not in report.nodes and not report.inlined
    agree(converted, model, feeds(given))


@pytest.mark.parametrize(
    ("options", "digits", "has_operator"), [({"precision": "float16"}, 1e-2, True), ({"target": "standard"}, 1e-5, False)]
)
@pytest.mark.parametrize("miss", [{}, {"state": "fewer"}])
def test_precision_and_target(
    options: dict[str, Any], digits: float, has_operator: bool, miss: dict[str, Any], tmp_path: Path
) -> None:
    given = arrays(1, 6, 4, 4, 4)
    model = layers(given, **miss)
    converted, report = convert(saved(model, tmp_path), **options)
    found = has_operator and not miss
    assert (OPERATOR in report.nodes) is found and not report.inlined and (found or "Conv" in report.nodes)
    agree(converted, model, feeds(given), digits)
