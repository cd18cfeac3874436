"""A loop over the tokens of the gated delta rule becomes one node; near misses remain."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx_ir.passes.common import RemoveUnusedNodesPass

import onnx_specops
from converters.openvino import convert
from converters.passes.gated_delta_rule import _ordered
from onnx_specops.building import Builder, Value
from onnx_specops.runtime.library import has_library
from tests.converters.passes.graphs import floats, graph
from tests.onnx_specops.ops.gated_delta_layers import NAMES, arrays, layers
from tests.onnx_specops.ops.openvino_layers import by_openvino, saved

OPERATOR = "onnx_specops.GatedDeltaRule"


def agree(converted: Any, model: Any, given: dict[str, np.ndarray], digits: float = 1e-5, **options: Any) -> None:
    session = onnx_specops.InferenceSession(converted.SerializeToString(), **options)
    got = session.run(None, {name: given[name] for name in NAMES})
    for one, other in zip(got, by_openvino(model, given), strict=True):
        np.testing.assert_allclose(one, other, atol=digits / 5 * np.abs(other).max(), rtol=digits, strict=True)


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ({}, True),
        ({"transposed": False}, True),
        ({"joined": False}, True),
        ({"swapped": True}, True),
        ({"early": True}, False),
        ({"late": True}, False),
        ({"added": "difference"}, False),
        ({"error": "sum"}, False),
        ({"error": "value"}, False),
        ({"rate": "value"}, False),
        ({"factor": "sigmoid"}, False),
        ({"forgets": False}, False),
        ({"limit": 3.0}, False),
        ({"summed": -1}, False),
        ({"keeps": False}, False),
        ({"first": True}, False),
        ({"reverse": True}, False),
        ({"trips": -1}, False),
        ({"more": True}, False),
        ({"stops": True}, False),
        ({"by_row": True}, False),
        ({"known": False}, False),  # the sizes of a head are 1 in all runs that are tried
        ({"known": False, "summed": -1}, False),
        ({"rows": 2}, True),
        ({"rows": 1}, False),
    ],
)
def test_conditions(options: dict[str, Any], found: bool, tmp_path: Path) -> None:
    given = arrays(2, 5, 4, 2, 4, 4)  # as many heads as rows and columns, so that shapes do not distinguish them
    if options.get("rows") == 1:
        given = {name: array[:1] for name, array in given.items()}
    model = layers(given, **options)
    converted, report = convert(saved(model, tmp_path))
    assert (OPERATOR in report.nodes) is found and ("Loop" in report.nodes) is not found
    agree(converted, model, given)


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize(
    ("groups", "repeated", "tiles"), [(1, "each", False), (2, "each", False), (4, "each", False), (2, "all", True)]
)
def test_keys_of_groups_are_not_repeated(groups: int, repeated: str, tiles: bool, transposed: bool, tmp_path: Path) -> None:
    given = arrays(2, 3, 4, groups, 5, 3)
    model = layers(given, repeated=repeated, transposed=transposed)
    converted, report = convert(saved(model, tmp_path))
    assert OPERATOR in report.nodes and ("Tile" in report.nodes) is tiles
    agree(converted, model, given)


@pytest.mark.parametrize("prepared", ["normalized", "scaled", "shifted"])
def test_nodes_between_a_repetition_and_the_loop(prepared: str, tmp_path: Path) -> None:
    """Normalized and scaled heads are computed for each group; an offset for each head needs the repeated heads."""
    given = arrays(2, 3, 4, 2, 5, 3)
    model = layers(given, prepared=prepared)
    converted, report = convert(saved(model, tmp_path))
    assert OPERATOR in report.nodes and ("Tile" in report.nodes) is (prepared == "shifted")
    agree(converted, model, given)


def test_nothing_is_transposed_or_joined(tmp_path: Path) -> None:
    _, report = convert(saved(layers(arrays(1, 2, 2, 1, 3, 4)), tmp_path))
    assert not {"Concat", "Slice", "Transpose"} & set(report.nodes)


KERNELS: list[onnx_specops.Kernels] = [*(["native"] if has_library() else []), "none"]


@pytest.mark.parametrize("options", [{}, {"contrib": False}, {"opset": 23}])
def test_options_with_the_operator(options: dict[str, Any], tmp_path: Path) -> None:
    given = arrays(2, 6, 4, 2, 3, 8)
    model = layers(given)
    converted, report = convert(saved(model, tmp_path), **options)
    assert OPERATOR in report.nodes
    for kernels in KERNELS:
        agree(converted, model, given, kernels=kernels)


def test_the_body_replaces_it_below_opset_21(tmp_path: Path) -> None:
    given = arrays(2, 6, 4, 2, 3, 8)
    model = layers(given)
    converted, report = convert(saved(model, tmp_path), opset=17)
    assert OPERATOR not in report.nodes and report.inlined == ["GatedDeltaRule"]
    agree(converted, model, given)


@pytest.mark.parametrize("options", [{"contrib": False}, {"opset": 17}, {"opset": 23}, {"precision": "float32"}])
@pytest.mark.parametrize("miss", [{"early": True}, {"limit": 3.0}, {"error": "value"}, {"reverse": True}])
def test_near_misses_with_options(miss: dict[str, Any], options: dict[str, Any], tmp_path: Path) -> None:
    given = arrays(2, 5, 4, 2, 4, 4)
    model = layers(given, **miss)
    converted, report = convert(saved(model, tmp_path), **options)
    assert OPERATOR not in report.nodes and not report.inlined and "Loop" in report.nodes
    for kernels in KERNELS:
        agree(converted, model, given, kernels=kernels)


@pytest.mark.parametrize(
    ("options", "digits", "has_operator"), [({"precision": "float16"}, 1e-2, True), ({"target": "standard"}, 1e-5, False)]
)
@pytest.mark.parametrize("miss", [{}, {"early": True}])
def test_precision_and_target(
    options: dict[str, Any], digits: float, has_operator: bool, miss: dict[str, Any], tmp_path: Path
) -> None:
    given = arrays(1, 6, 2, 1, 4, 4)
    model = layers(given, **miss)
    converted, report = convert(saved(model, tmp_path), **options)
    found = has_operator and not miss
    assert (OPERATOR in report.nodes) is found and not report.inlined and ("Loop" in report.nodes) is not found
    agree(converted, model, given, digits)


@pytest.mark.parametrize("tokens", [1, 4, 5])
@pytest.mark.parametrize(("options", "found"), [({}, True), ({"transposed": False}, True), ({"late": True}, False)])
def test_a_fixed_number_of_tokens(options: dict[str, Any], found: bool, tokens: int, tmp_path: Path) -> None:
    """All runs that are tried have it."""
    given = arrays(2, tokens, 4, 2, 4, 4)
    model = layers(given, **options)
    model.reshape({name: given[name].shape for name in NAMES})
    converted, report = convert(saved(model, tmp_path))
    assert (OPERATOR in report.nodes) is found and ("Loop" in report.nodes) is not found
    agree(converted, model, given)


@pytest.mark.parametrize("options", [{}, {"first": True}, {"reverse": True}])
@pytest.mark.parametrize("fixed", [False, True])
def test_tokens_that_no_run_varies(options: dict[str, Any], fixed: bool, tmp_path: Path) -> None:
    """The third dimension of an input is 1 in all runs that are tried, where first, last and all tokens are the same."""
    given = arrays(2, 5, 4, 4, 3, 6)
    given = {name: array if name == "past_state" else array.swapaxes(1, 2).copy() for name, array in given.items()}
    model = layers(given, given_in_order=True, **options)
    if fixed:
        model.reshape({name: given[name].shape for name in NAMES})
    converted, report = convert(saved(model, tmp_path))
    assert (OPERATOR in report.nodes) is (fixed and not options)
    agree(converted, model, given)


@pytest.mark.parametrize("tokens", [0, 1, 2])
def test_few_tokens(tokens: int, tmp_path: Path) -> None:
    given = arrays(2, tokens, 4, 2, 3, 8)
    model = layers(given, joined=tokens > 0)
    converted, report = convert(saved(model, tmp_path))
    assert OPERATOR in report.nodes
    if tokens:
        agree(converted, model, given)
    else:
        got = onnx_specops.InferenceSession(converted.SerializeToString()).run(None, given)
        assert got[0].shape == (2, 0, 4, 8)
        np.testing.assert_array_equal(got[1], given["past_state"], strict=True)


@pytest.mark.parametrize("transposed", [True, False])
def test_a_transposition_before_many_products(transposed: bool) -> None:
    def emit(op: Builder, x: Value) -> Value:
        value = op.Transpose(x, perm=[0, 2, 1, 3]) if transposed else op.Neg(x)
        for _ in range(1500):
            value = op.Mul(value, 1.0)
        return _ordered(op, value, [0, 2, 1, 3])

    model = graph(emit, floats("x", 2, 3, 4, 5))
    RemoveUnusedNodesPass()(model)
    kinds = [node.op_type for node in model.graph]
    assert kinds == [*([] if transposed else ["Neg", "Transpose"]), *["Mul"] * 1500]
