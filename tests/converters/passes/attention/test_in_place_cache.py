"""Attention that extends its caches in place, with near misses: each agrees with OpenVINO."""

from __future__ import annotations

from typing import Any

import numpy as np
import openvino as ov
import pytest
from openvino import opset13 as ops

import onnx_specops
from converters.openvino import convert
from tests.converters.passes.language_models import by_mask, by_openvino, causal, dim, floats, hidden, layer, runs, whole

OPERATOR = "onnx_specops.ScaledDotProductAttentionWithKVCache"


def _last(count: int, axis: int) -> Any:
    """Return the last elements along an axis."""
    return lambda x, _: ops.slice(x, whole([-count]), whole([2**31 - 1]), whole([1]), whole([axis]))


def _below(lowest: float) -> Any:
    """Return scores whose keys are hidden by a condition instead."""

    def change(x: Any, tokens: Any) -> Any:
        return ops.select(ops.less_equal(tokens.columns, tokens.rows), ops.multiply(x, floats(0.25)), floats(lowest))

    return change


def _biased(*shape: int) -> Any:
    numbers = np.random.default_rng(0).standard_normal(shape)
    return lambda x, _: ops.add(x, floats(numbers))


def _by_tokens(x: Any, tokens: Any) -> Any:
    return ops.divide(x, ops.convert(ops.squeeze(tokens.total, whole(0)), "f32"))


@pytest.mark.parametrize(
    ("changes", "in_place"),
    [
        ({}, 1),
        ({"groups": 4}, 1),
        ({"groups": 1}, 1),
        ({"query": lambda x, _: ops.multiply(x, floats(0.5))}, 1),
        ({"query": _last(1, 2)}, 0),  # the last token, with the masks of all
        ({"products": lambda x, _: ops.divide(x, floats(4))}, 1),
        ({"products": _by_tokens}, 0),
        ({"products": lambda x, _: ops.multiply(x, floats(np.arange(1, 5).reshape(4, 1, 1)))}, 0),
        ({"products": lambda x, _: ops.multiply(ops.tanh(x), floats(5))}, 1),
        ({"products": lambda x, _: ops.multiply(ops.sinh(ops.tanh(x)), floats(5))}, 0),
        ({"products": _below(-1e4)}, 0),  # with a mask in addition
        ({"bias": _biased(1, 4, 1, 1)}, 1),
        ({"bias": _biased(2, 1, 1, 1)}, 1),
        ({"bias": lambda x, _: ops.multiply(x, floats(0.5))}, 1),
        ({"held": lambda x, _: ops.multiply(x, floats(1))}, 1),
        ({"held": lambda x, _: ops.multiply(x, floats(2))}, 0),
        ({"held": _last(16, 2), "bias": _last(16, 3)}, 0),  # a window that the first runs fill
        ({"past": lambda x, _: ops.multiply(x, floats(1))}, 1),
        ({"past": lambda x, _: ops.multiply(x, floats(0.5))}, 0),
        ({"past": by_mask("first"), "seen": causal}, 0),
        ({"held": by_mask("last"), "seen": causal}, 0),
        ({"key": by_mask("last"), "value": by_mask("last"), "seen": causal}, 1),
        ({"past": _last(4, 2)}, 0),
        ({"past": _last(16, 2)}, 0),
        ({"key": lambda x, _: ops.multiply(x, floats(0.5)), "value": lambda x, _: ops.relu(x)}, 1),
        ({"mixed": lambda x, _: ops.relu(x)}, 1),
    ],
)
def test_conditions(changes: dict[str, Any], in_place: int) -> None:
    model = layer(**changes)
    given = hidden(runs(4, 1) if "past" in changes else runs(12, 8, 1), 2, 3)
    conversion = convert(model.clone())
    assert conversion.report.nodes.get(OPERATOR, 0) == in_place
    session = onnx_specops.InferenceSession(conversion.model.SerializeToString())
    for run, wanted in zip(given, by_openvino(model, given), strict=True):
        got = session.run(None, {name: run.feeds[name] for name in ("x", "attention_mask", "beam_idx")})[0]
        np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-4 * float(np.abs(wanted).max()), strict=True)


def _third(number: float) -> Any:
    """Return keys with a number as the third token."""

    def change(x: Any, tokens: Any) -> Any:
        columns = ops.slice(tokens.columns, ops.negative(dim(x, 2)), whole([2**31 - 1]), whole([1]), whole([1]))
        return ops.select(ops.equal(ops.unsqueeze(columns, whole([0, 3])), whole(2)), floats(number), x)

    return change


@pytest.mark.parametrize("kernels", ["native", "python", "none"])
@pytest.mark.parametrize("number", [np.inf, np.nan])
@pytest.mark.parametrize(
    "mask",
    [
        {"products": _below(-np.inf)},
        {"products": _below(-3.4028235e38)},
        {"products": _below(-1e30)},
        {"bias": lambda x, _: x},
    ],
)
def test_hidden_keys_that_are_not_numbers(mask: dict[str, Any], number: float, kernels: Any) -> None:
    """A condition replaces their scores, and an addend does not."""
    model = layer(key=_third(number), **{"bias": None, **mask})
    given = runs(5, 1)
    conversion = convert(model.clone())
    assert conversion.report.nodes.get(OPERATOR, 0) == 1
    session = onnx_specops.InferenceSession(conversion.model.SerializeToString(), kernels=kernels)
    first, *_ = wanted = by_openvino(model, given)
    assert np.isnan(first[:, :2]).any() == ("bias" in mask) and np.isnan(first[:, 2:]).all()
    for run, expected in zip(given, wanted, strict=True):
        got = session.run(None, {name: run.feeds[name] for name in ("x", "attention_mask", "beam_idx")})[0]
        np.testing.assert_allclose(got, expected, rtol=0, atol=1e-4 * float(np.nanmax(np.abs(expected), initial=0)))


def _hidden(lowest: float, seen: list[Any]) -> Any:
    """Return scores whose keys the attention_mask hides, too; by the first condition in ``seen``, which receives it."""

    def change(x: Any, tokens: Any) -> Any:
        own = ops.greater(ops.unsqueeze(tokens.mask, whole([1, 2])), whole(0))
        seen.append(ops.logical_and(causal(x, tokens), own))
        return ops.select(seen[0], ops.multiply(x, floats(0.25)), floats(lowest))

    return change


@pytest.mark.parametrize("lowest", [-np.inf, -3.4028235e38])
@pytest.mark.parametrize("boolean", [False, True])
def test_rows_without_visible_keys(lowest: float, boolean: bool) -> None:
    """A Softmax gives NaN for scores of -inf, and equal weights for the lowest number."""

    model = layer(products=_hidden(lowest, []), bias=None) if boolean else layer(lowest=lowest)
    given = hidden(runs(5, 1), *range(6))
    conversion = convert(model.clone())
    assert conversion.report.nodes.get(OPERATOR, 0) == 1
    session = onnx_specops.InferenceSession(conversion.model.SerializeToString())
    for run, wanted in zip(given, by_openvino(model, given), strict=True):
        got = session.run(None, {name: run.feeds[name] for name in ("x", "attention_mask", "beam_idx")})[0]
        assert np.isnan(wanted[0]).all() == np.isinf(lowest)
        np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-4 * float(np.nanmax(np.abs(wanted))), strict=True)


def test_two_scores_of_hidden_keys_under_one_mask() -> None:
    """Equal weights for all keys in one layer, and NaN in the other, where the mask hides all keys."""

    seen: list[Any] = []
    one = layer(products=_hidden(-3.4028235e38, seen), bias=None)
    other = layer(products=_hidden(-np.inf, seen), bias=None, number=1, more=one.get_parameters())
    for port, own in zip(one.inputs, other.inputs, strict=False):
        own.replace(port.get_node().output(0))
    layers = (one, other)
    results = [model.get_results()[0] for model in layers]
    results[1].output(0).get_tensor().set_names({"second"})
    sinks = [sink for model in layers for sink in model.get_sinks()]
    both = ov.Model(results, sinks, one.get_parameters())
    given = hidden(runs(5, 1), *range(6))
    conversion = convert(both.clone())
    assert conversion.report.nodes.get(OPERATOR, 0) == 2
    session = onnx_specops.InferenceSession(conversion.model.SerializeToString())
    for run, wanted in zip(given, by_openvino(both, given), strict=True):
        got = session.run(None, {name: run.feeds[name] for name in ("x", "attention_mask", "beam_idx")})
        assert not np.isnan(got[0]).any() and np.isnan(got[1][0]).all()
        np.testing.assert_allclose(got[0], wanted, rtol=0, atol=1e-4 * float(np.abs(wanted).max()), strict=True)
