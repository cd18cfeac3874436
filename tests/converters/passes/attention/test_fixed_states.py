"""States of a fixed size become inputs and outputs only if zeros begin them and beam_idx selects their rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import openvino as ov
import openvino.opset15 as ops
import pytest

from converters.errors import ConversionError
from converters.openvino import convert


def _model(*, initial: float = 0.0, select: bool = True, twice: bool = False, half: bool = False) -> ov.Model:
    """Return a model with a cache of keys and values and the state of a convolution.

    Args:
        initial: the state's initial value.
        select: whether beam_idx selects its rows.
        twice: whether the state is also used without the selection.
        half: whether the state is float16.
    """
    kind = np.float16 if half else np.float32
    ids = ops.parameter([-1, -1], np.int64, "input_ids")
    mask = ops.parameter([-1, -1], np.int64, "attention_mask")
    beams = ops.parameter([-1], np.int32, "beam_idx")
    count = ops.gather(ops.shape_of(ids), [0], 0)
    table = np.random.default_rng(0).standard_normal((16, 4)).astype(np.float32)
    embedded = ops.gather(table, ids, 0)  # [batch, tokens, 4]

    zeros = ops.broadcast(ops.constant(np.array(initial, kind)), ops.concat([count, np.array([4, 3])], 0))
    state = ops.read_value(zeros, "conv", kind, [-1, 4, 3])
    rows = ops.gather(state, beams, 0) if select else state
    whole = ops.concat([ops.convert(rows, "f32"), ops.transpose(embedded, [0, 2, 1])], 2)
    last = ops.slice(whole, [-3], [2**31], [1], [2])
    if twice:
        last = ops.add(last, ops.reduce_mean(ops.convert(state, "f32"), [0], keep_dims=True))
    kernel = np.full((4, 1, 1, 4), 0.25, np.float32)
    mixed = ops.transpose(ops.group_convolution(whole, kernel, [1], [0], [0], [1]), [0, 2, 1])

    def cached(value: Any, name: str) -> tuple[Any, Any]:
        heads = ops.unsqueeze(value, [1])
        empty = ops.broadcast(ops.constant(np.float32(0)), ops.concat([count, np.array([1, 0, 4])], 0))
        past = ops.gather(ops.read_value(empty, name, np.float32, [-1, 1, -1, 4]), beams, 0)
        now = ops.concat([past, heads], 2)
        return now, ops.assign(now, name)

    (keys, one), (values, other) = cached(mixed, "key"), cached(embedded, "value")
    scores = ops.matmul(ops.unsqueeze(mixed, [1]), keys, False, True)
    weights = ops.softmax(ops.add(scores, ops.unsqueeze(ops.log(ops.convert(mask, "f32")), [1, 2])), -1)
    result = ops.squeeze(ops.matmul(weights, values, False, False), [1])
    output = ops.result(result)
    for value, name in ((ids, "input_ids"), (mask, "attention_mask"), (beams, "beam_idx"), (result, "logits")):
        value.output(0).set_names({name})
    sinks = [ops.assign(ops.convert(last, "f16") if half else last, "conv"), one, other]
    return ov.Model([output], sinks, [ids, mask, beams])


def _inputs(model: ov.Model, tmp_path: Path) -> list[str]:
    ov.save_model(model, tmp_path / "model.xml", compress_to_fp16=False)
    convert(tmp_path / "model.xml", tmp_path / "model.onnx", form="genai")
    return [value.name for value in onnx.load(tmp_path / "model.onnx").graph.input]


def test_the_state_is_an_input(tmp_path: Path) -> None:
    assert _inputs(_model(), tmp_path)[-1] == "past.1.conv"


@pytest.mark.parametrize("change", [{"initial": 1.0}, {"select": False}, {"twice": True}, {"half": True}])
def test_near_misses(change: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(ConversionError, match="the variable conv is not a cache"):
        _inputs(_model(**change), tmp_path)
