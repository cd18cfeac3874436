"""A loop over the tokens of a Mamba 2 becomes one node; near misses remain."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import onnx_specops
from converters.openvino import convert
from tests.onnx_specops.ops.openvino_layers import by_openvino, saved
from tests.onnx_specops.ops.state_space_layers import NAMES, arrays, layers

OPERATOR = "onnx_specops.StateSpaceScan"


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ({}, True),
        ({"joined": False}, True),
        ({"added": "difference"}, False),
        ({"limit": 3.0}, False),
        ({"summed": -2}, False),
        ({"keeps": False}, False),
        ({"late": True}, False),
        ({"first": True}, False),
        ({"reverse": True}, False),
        ({"trips": -1}, False),
        ({"more": True}, False),
        ({"stops": True}, False),
        ({"by_element": True}, False),
        ({"offset": True}, False),
        ({"routed": True}, True),
        ({"rows": 2}, True),
        ({"rows": 1}, False),
    ],
)
def test_conditions(options: dict[str, Any], found: bool, tmp_path: Path) -> None:
    given = arrays(2, 5, 4, 4, 2, 4)  # as many heads as channels and elements, so that shapes do not distinguish them
    if options.get("rows") == 1:
        given = {name: array if name == "decay" else array[:1] for name, array in given.items()}
    model = layers(given, **options)
    converted, report = convert(saved(model, tmp_path))
    assert (OPERATOR in report.nodes) is found and ("Loop" in report.nodes) is not found
    expected = by_openvino(model, given)
    got = onnx_specops.InferenceSession(converted.SerializeToString()).run(None, {name: given[name] for name in NAMES})
    for one, other in zip(got, expected, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6 * np.abs(other).max(), rtol=1e-5, strict=True)


@pytest.mark.parametrize(
    ("groups", "repeated", "tiles"), [(1, "each", False), (2, "each", False), (4, "each", False), (2, "all", True)]
)
def test_gates_of_groups_are_not_repeated(groups: int, repeated: str, tiles: bool, tmp_path: Path) -> None:
    given = arrays(2, 3, 4, 3, groups, 5)
    model = layers(given, repeated=repeated)
    converted, report = convert(saved(model, tmp_path))
    assert OPERATOR in report.nodes and ("Tile" in report.nodes) is tiles
    got = onnx_specops.InferenceSession(converted.SerializeToString()).run(None, {name: given[name] for name in NAMES})
    for one, other in zip(got, by_openvino(model, given), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6 * np.abs(other).max(), rtol=1e-5, strict=True)


def test_the_outputs_are_not_joined(tmp_path: Path) -> None:
    _, report = convert(saved(layers(arrays(1, 2, 2, 3, 1, 4)), tmp_path))
    assert "Concat" not in report.nodes and "Slice" not in report.nodes


def test_the_body_replaces_it_below_opset_21(tmp_path: Path) -> None:
    given = arrays(2, 6, 4, 3, 2, 8)
    model = layers(given)
    converted, report = convert(saved(model, tmp_path), opset=17)
    assert OPERATOR not in report.nodes and report.inlined == ["StateSpaceScan"]
    got = onnx_specops.InferenceSession(converted.SerializeToString()).run(None, {name: given[name] for name in NAMES})
    for one, other in zip(got, by_openvino(model, given), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6 * np.abs(other).max(), rtol=1e-5, strict=True)
