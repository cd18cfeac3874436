"""`auto_pad` of data of unknown sizes: with strides of 1, the padding does not depend on them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
import pytest
from openvino import opset13 as ops

import onnx_specops
from converters.openvino import convert
from tests.comparison import assert_close

SHAPE = [-1, 4, -1, -1]


def _numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def _convolved(auto: str, kernel: tuple[int, int] = (3, 4), strides: tuple[int, int] = (1, 1), gaps: int = 1) -> Any:
    def build(x: Any) -> Any:
        return ops.convolution(x, _numbers(5, 4, *kernel), list(strides), [0, 0], [0, 0], [gaps, gaps], auto)

    return build


def _in_groups(x: Any) -> Any:
    return ops.group_convolution(x, _numbers(2, 3, 2, 4, 3), [1, 1], [0, 0], [0, 0], [1, 2], "same_lower")


def _pooled(x: Any) -> Any:
    return ops.avg_pool(x, [1, 1], [0, 0], [0, 0], [3, 2], True, "floor", "same_upper")


@pytest.mark.parametrize(
    ("build", "known"),
    [
        (_convolved("same_upper"), True),
        (_convolved("same_lower"), True),
        (_convolved("same_upper", (2, 3), gaps=3), True),
        (_in_groups, True),
        (_pooled, True),
        (_convolved("same_upper", strides=(1, 2)), False),
        (_convolved("same_lower", strides=(2, 2)), False),
    ],
)
@pytest.mark.parametrize("space", [(7, 6), (1, 1), (2, 9)])
def test_padding(build: Callable[[Any], Any], known: bool, space: tuple[int, int], tmp_path: Path) -> None:
    x = ops.parameter(SHAPE, np.float32, name="x")
    model = ov.Model([build(x)], [x])
    ov.save_model(model, tmp_path / "model.xml", compress_to_fp16=False)
    made, _ = convert(tmp_path / "model.xml", tmp_path / "model.onnx")
    windows = [node for node in made.graph.node if node.op_type in ("Conv", "AveragePool")]
    assert known == ([a.name for node in windows for a in node.attribute].count("auto_pad") == 0)
    data = _numbers(2, 4, *space)
    expected = ov.compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})(data)[0]
    got = onnx_specops.InferenceSession(tmp_path / "model.onnx").run(None, {"x": data})[0]
    assert_close(got, expected, rtol=1e-5, atol=1e-5)
