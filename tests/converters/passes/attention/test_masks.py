"""The visible keys of a mask, found by evaluation."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir
import pytest

from converters.passes.attention.masks import Masks, VisibleKeys
from converters.passes.attention.matching import UnsupportedAttention
from converters.passes.attention.probe_shapes import Inputs
from onnx_specops.building import new_value
from tests.converters.passes.graphs import graph

MOST, LEAST = 1 << 22, 4096


def visible_keys(
    window: int | None, positions: int | None, *, buffer: int | None = None, chunk: int | None = None
) -> VisibleKeys:
    """Return the visible keys of a causal mask with a window, sliced from a constant for a number of tokens."""

    def emit(op: Any, data: Any, mask: Any) -> Any:
        total, sequence = op.Shape(mask, start=1, end=2), op.Shape(data, start=1, end=2)
        slots = op.Range(0, op.Squeeze(total, [0]), 1)
        if buffer is not None:
            slots = op.Where(op.LessOrEqual(total, buffer), slots, op.Slice(slots, [0], [buffer], [0]))
        own = op.Add(op.Range(0, op.Squeeze(sequence, [0]), 1), op.Sub(total, sequence))
        rows = op.Unsqueeze(own, [1])
        seen = op.LessOrEqual(slots, rows)
        if window is not None:
            seen = op.And(seen, op.Greater(slots, op.Sub(rows, window)))
        if chunk is not None:
            seen = op.And(seen, op.Equal(op.Div(slots, chunk), op.Div(rows, chunk)))
        return op.Unsqueeze(seen, [0, 1])

    ids, mask = (new_value(ir.DataType.INT64, [None, None], name) for name in ("input_ids", "attention_mask"))
    model = graph(emit, ids, mask)
    return Masks(Inputs(model.graph, {}), positions, most=MOST, least=LEAST).visible_keys(model.graph.outputs[0], True)


@pytest.mark.parametrize("window", [8, 4095, 4096, 4097, 100_000, MOST - 1])
def test_a_window(window: int) -> None:
    """Also for a window that is longer than most texts, if the maximum length of the model is unknown."""
    assert visible_keys(window, None).window == window


@pytest.mark.parametrize("chunk", [7, 16, 100, 8192])
@pytest.mark.parametrize("window", [4, None])
@pytest.mark.parametrize("positions", [None, 16384])
def test_a_window_that_ends_at_chunks(window: int | None, chunk: int, positions: int | None) -> None:
    """The tokens of Llama 4 attend only to those of their chunk."""
    with pytest.raises(UnsupportedAttention, match="all previous tokens or a window"):
        visible_keys(window, positions, chunk=chunk)


def test_no_window() -> None:
    assert visible_keys(None, None).window == -1


@pytest.mark.parametrize(("positions", "found"), [(100, -1), (101, 100), (4096, 100)])
def test_a_window_of_as_many_as_positions_hides_nothing(positions: int, found: int) -> None:
    assert visible_keys(100, positions).window == found


@pytest.mark.parametrize("window", [None, 8, 5000])
def test_a_mask_of_another_size(window: int | None) -> None:
    """It is evaluated at its maximum number of tokens."""
    assert visible_keys(window, None, buffer=8192).window == (window or -1)


def test_a_mask_of_fewer_tokens_than_are_evaluated() -> None:
    with pytest.raises(UnsupportedAttention):
        visible_keys(None, None, buffer=2048)


def test_a_mask_that_hides_other_keys() -> None:
    model = graph(
        lambda op, ids, mask: op.Unsqueeze(op.Greater(mask, 0), [1, 2]),
        *(new_value(ir.DataType.INT64, [None, None], name) for name in ("input_ids", "attention_mask")),
    )
    with pytest.raises(UnsupportedAttention, match="all previous tokens or a window"):
        Masks(Inputs(model.graph, {}), 64, most=MOST, least=LEAST).visible_keys(model.graph.outputs[0], True)
