"""Traversal of graphs."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest

from onnx_specops.building import Builder, Value, constant_value
from onnx_specops.graphs import computed_before, constant_list
from tests.converters.passes.graphs import floats, graph


def _inputs_of(value: ir.Value) -> list[ir.Value] | None:
    node = value.producer()
    if node is not None and node.op_type == "Sin":
        return None
    return [] if node is None else [given for given in node.inputs if given is not None]


def _result(emit) -> ir.Value:
    return graph(emit, floats("x", 2)).graph.outputs[0]


def _doubled(op: Builder, x: Value, count: int = 60) -> Value:
    for _ in range(count):
        x = op.Add(x, x)
    return x


def test_each_value_is_found_once_and_after_its_inputs() -> None:
    result = _result(lambda op, x: op.Mul(_doubled(op, x), x))
    found = computed_before(result, _inputs_of)
    assert found is not None and len(found) == len(set(found)) == 62
    assert found[-1] is result and found[0].name == "x"
    places = {value: place for place, value in enumerate(found)}
    assert all(places[given] < places[value] for value in found for given in _inputs_of(value) or ())


@pytest.mark.parametrize(("most", "found"), [(60, False), (61, True)])
def test_the_number_of_values_is_limited(most: int, found: bool) -> None:
    assert (computed_before(_result(_doubled), _inputs_of, most) is not None) == found


def test_a_long_chain() -> None:
    found = computed_before(_result(lambda op, x: _doubled(op, x, 5000)), _inputs_of, 10_000)
    assert found is not None and len(found) == 5001


def test_a_value_that_must_not_occur() -> None:
    assert computed_before(_result(lambda op, x: op.Add(_doubled(op, x), op.Sin(x))), _inputs_of) is None


@pytest.mark.parametrize(
    ("array", "numbers"),
    [
        (np.int64([1, -2]), [1, -2]),
        (np.uint8([[3], [255]]), [3, 255]),
        (np.float32([0.5]), None),
        (np.float32([np.nan, 1]), None),
        (np.float64([2]), None),
    ],
)
def test_lists_are_constants_with_integers(array: np.ndarray, numbers: list[int] | None) -> None:
    assert constant_list(constant_value(array, name="c")) == numbers
