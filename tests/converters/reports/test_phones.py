"""Report pages in a window as wide as a phone's: no page scrolls sideways."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import openvino as ov
import pytest
from openvino import opset13 as ops

from converters.openvino import convert
from tests.converters.cli.specops import specops
from tests.hosts.javascript import EXAMPLES, missing, node

LONG = "a_name_of_a_layer_that_has_no_place_to_break/" * 4


def test_no_page_scrolls_sideways(tmp_path: Path) -> None:
    if reason := missing("web"):
        pytest.skip(reason)
    x = ops.parameter([-1, 3, 64, 64], np.float32, name="image")
    value: ov.Output | ov.Node = x
    for i in range(6):
        size = 3 if i == 0 else 8
        value = ops.convolution(value, np.ones((8, size, 3, 3), np.float32) / 72, [1, 1], [1, 1], [1, 1], [1, 1])
        value.set_friendly_name(f"{LONG}{i}")
        value = ops.relu(value)
    model = tmp_path / "model.xml"
    ov.save_model(ov.Model([value], [x]), model, compress_to_fp16=False)
    convert(model, tmp_path / "model.onnx")
    commands = {
        "inspect": ("inspect", model),
        "validate": ("validate", model),
        "diff": ("diff", tmp_path / "model.onnx", tmp_path / "model.onnx"),
    }
    pages = []
    for name, command in commands.items():
        pages.append(tmp_path / f"{name}.html")
        result = specops(*command, "--report", pages[-1])
        assert result.exit_code == 0, result.output
    lines = node(Path(__file__).with_name("width.mjs"), EXAMPLES, *pages).splitlines()
    for name, sizes in zip(commands, map(json.loads, lines), strict=True):
        assert sizes["content"] <= sizes["window"] == 360, name
