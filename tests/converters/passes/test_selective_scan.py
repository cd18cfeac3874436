"""The layers of Mamba's recurrence become one node; near misses remain."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import onnx_specops
from converters.openvino import convert
from tests.onnx_specops.ops.openvino_layers import by_openvino, saved
from tests.onnx_specops.ops.scan_layers import NAMES, arrays, layers

OPERATOR = "onnx_specops.SelectiveScan"


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ({}, True),
        ({"epsilon": 1e-5}, True),
        ({"epsilon": 0.0}, True),
        ({"epsilon": 0.5}, False),  # not a guard of a division
        ({"turned": False}, False),
        ({"token": 0}, False),
        ({"sliced": True}, True),
        ({"sliced": True, "token": 4}, False),  # the last one of five tokens only
        ({"summed": -2}, False),
        ({"all_states": True}, False),
        ({"twice": True}, False),
        ({"limit": 50.0}, False),
        ({"rows": 2}, True),
        ({"rows": 1}, False),
    ],
)
def test_conditions(options: dict[str, Any], found: bool, tmp_path: Path) -> None:
    given = arrays(2, 6, 4, 4)  # as many channels as state elements, so that shapes do not distinguish them
    given["x"] *= 20
    if options.get("rows") == 1:
        given["state"] = given["state"][:1]
    model = layers(given["decay"], **options)
    converted, report = convert(saved(model, tmp_path))
    assert (OPERATOR in report.nodes) is found
    expected = by_openvino(model, given)
    got = onnx_specops.InferenceSession(converted.SerializeToString()).run(None, {name: given[name] for name in NAMES})
    for one, other in zip(got, expected, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5 * np.abs(other).max(), rtol=1e-4, strict=True)


def test_decay_in_16_bits(tmp_path: Path) -> None:
    given = arrays(1, 3, 40, 16)
    _, report = convert(saved(layers(given["decay"]), tmp_path, compressed=True))
    assert OPERATOR in report.nodes


def test_the_body_replaces_it_below_opset_21(tmp_path: Path) -> None:
    given = arrays(2, 6, 4, 8)
    model = layers(given["decay"])
    converted, report = convert(saved(model, tmp_path), opset=17)
    assert OPERATOR not in report.nodes and report.inlined == ["SelectiveScan"]
    got = onnx_specops.InferenceSession(converted.SerializeToString()).run(None, {name: given[name] for name in NAMES})
    np.testing.assert_allclose(got[0], by_openvino(model, given)[0], atol=1e-4, strict=True)
