"""Layers of attention with a cache in OpenVINO's form, and OpenVINO's results for them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnxruntime as ort
import openvino as ov
from openvino import opset13 as ops

import onnx_specops
from converters.openvino import Conversion, convert
from converters.passes.attention import Decoder

WIDTH = 32
EXACT = {"INFERENCE_PRECISION_HINT": "f32", "KV_CACHE_PRECISION": "f32", "DYNAMIC_QUANTIZATION_GROUP_SIZE": "0"}
_TYPES = {"tensor(float)": np.float32, "tensor(float16)": np.float16, "tensor(uint8)": np.uint8}
_ERRORS = {"float32": 1e-4, "float16": 2e-3, "uint8": 2e-2}


def floats(value: Any) -> ov.Output:
    return ops.constant(np.asarray(value, np.float32)).output(0)


def whole(value: Any) -> ov.Output:
    return ops.constant(np.asarray(value, np.int64)).output(0)


def parameter(name: str, shape: list[int], dtype: Any) -> Any:
    node = ops.parameter(ov.PartialShape(shape), dtype, name=name)
    node.output(0).get_tensor().set_names({name})
    return node


def dim(value: Any, axis: int) -> Any:
    """Return a dimension, ``[1]``."""
    return ops.gather(ops.shape_of(value), whole([axis]), whole(0))


@dataclass(frozen=True)
class Tokens:
    """The tokens of a layer.

    Attributes:
        rows: ``[sequence, 1]``, the slot of each token of the run.
        columns: ``[1, total]``, the slot of each token.
        mask: ``[batch, total]``, the attention_mask.
        total: ``[1]``, the number of tokens of all runs.
        positions: ``[batch, sequence]``, the position_ids.
        batch: ``[1]``.
    """

    rows: Any
    columns: Any
    mask: Any
    total: Any
    positions: Any
    batch: Any


Change = Callable[[Any, Tokens], Any]


def layer(
    *,
    heads: int = 4,
    groups: int = 2,
    size: int = 16,
    window: int | None = None,
    positions: bool = False,
    scale: Any = None,
    lowest: float = -3.4028235e38,
    query: Change = lambda x, tokens: x,
    key: Change = lambda x, tokens: x,
    value: Change = lambda x, tokens: x,
    past: Change = lambda x, tokens: x,
    held: Change = lambda x, tokens: x,
    products: Change | None = None,
    seen: Change = lambda x, tokens: x,
    bias: Change | None = lambda x, tokens: x,
    mixed: Change = lambda x, tokens: x,
    second: bool = False,
    booleans: bool = False,
    number: int = 0,
    first: Sequence[Any] = (),
    more: Sequence[Any] = (),
) -> ov.Model:
    """Build a layer of attention whose parts can be changed.

    Args:
        heads, groups, size: the number of query heads, the number of key and value heads, and the head size.
        window: the number of tokens that each token attends to.
        positions: whether there is an input position_ids.
        scale: the factor of the attention scores; by default 1 / sqrt(size).
        lowest: the mask's addend for hidden tokens.
        query, key, value: change those of this run, ``[batch, heads, sequence, size]``.
        past: changes the keys or values of earlier runs.
        held: changes the keys and values of all runs.
        products: changes the attention scores, instead of the scale.
        seen: changes the condition that a key is visible, ``[batch, 1, sequence, total]``.
        bias: an addend for the scores, of that shape; ``None`` for no addend.
        mixed: changes the result, ``[batch, heads, sequence, size]``.
        second: whether there is another attention over the caches, whose result is added.
        booleans: whether the attention_mask is boolean.
        number: the number of the layer in the names of its caches.
        first, more: further inputs of the model, before and after the others.
    """
    x = parameter("x", [-1, -1, WIDTH], np.float32)
    given = parameter("attention_mask", [-1, -1], np.bool_ if booleans else np.int64)
    mask = ops.convert(given, "i64") if booleans else given
    beams = parameter("beam_idx", [-1], np.int32)
    inputs = [x, given, beams]
    batch, total = dim(x, 0), dim(mask, 1)
    before = ops.subtract(total, dim(x, 1))
    count = ops.squeeze(dim(x, 1), whole(0))
    rows = ops.add(ops.unsqueeze(ops.range(whole(0), count, whole(1), "i64"), whole(1)), before)
    columns = ops.unsqueeze(ops.range(whole(0), ops.squeeze(total, whole(0)), whole(1), "i64"), whole(0))
    places = ops.unsqueeze(ops.squeeze(rows, whole(1)), whole(0))
    if positions:
        places = parameter("position_ids", [-1, -1], np.int64)
        inputs.append(places)
    tokens = Tokens(rows, columns, mask, total, places, batch)

    condition = ops.less_equal(columns, rows)
    if window is not None:
        condition = ops.logical_and(condition, ops.greater(columns, ops.subtract(rows, whole(window))))
    own = ops.greater(ops.unsqueeze(mask, whole([1, 2])), whole(0))
    condition = seen(ops.logical_and(ops.unsqueeze(condition, whole([0, 1])), own), tokens)

    def projected(seed: int, n: int) -> Any:
        weights = np.random.default_rng(seed).standard_normal((WIDTH, n * size)) * 0.3
        apart = ops.reshape(ops.matmul(x, floats(weights), False, False), whole([0, 0, n, size]), True)
        return ops.transpose(apart, whole([0, 2, 1, 3]))

    caches, assigned = [], []
    for kind, seed, change in (("key", 2, key), ("value", 3, value)):
        name = f"past_key_values.{number}.{kind}"
        empty = ops.broadcast(floats(0), ops.concat([batch, whole([groups, 0, size])], 0))
        read = ops.read_value(empty, name, ov.Type.f32, ov.PartialShape([-1, groups, -1, size]))
        chosen = past(ops.gather(read, beams, whole(0)), tokens)
        present = ops.concat([chosen, change(projected(seed, groups), tokens)], 2)
        assigned.append(ops.assign(present, name))
        present = held(present, tokens)
        if heads != groups:
            length = dim(present, 2)
            apart = ops.concat([batch, whole([groups, heads // groups]), length, whole([size])], 0)
            together = ops.concat([batch, whole([heads]), length, whole([size])], 0)
            present = ops.reshape(ops.broadcast(ops.unsqueeze(present, whole(2)), apart), together, False)
        caches.append(present)

    scores = ops.matmul(query(projected(1, heads), tokens), caches[0], False, True)
    if products is not None:
        scores = products(scores, tokens)
    else:
        scores = ops.multiply(scores, floats(size**-0.5 if scale is None else scale))
    if bias is not None:
        scores = ops.add(scores, bias(ops.select(condition, floats(0), floats(lowest)), tokens))
    values = mixed(ops.matmul(ops.softmax(scores, -1), caches[1], False, False), tokens)
    if second:
        other = ops.add(
            ops.matmul(projected(4, heads), caches[0], False, True), ops.select(condition, floats(0), floats(lowest))
        )
        values = ops.add(values, ops.matmul(ops.softmax(other, -1), caches[1], False, False))
    together = ops.reshape(ops.transpose(values, whole([0, 2, 1, 3])), whole([0, 0, heads * size]), True)
    result = ops.result(together)
    result.output(0).get_tensor().set_names({"logits"})
    return ov.Model([result], assigned, [*first, *inputs, *more])


@dataclass(frozen=True)
class Run:
    """The inputs of one run.

    Attributes:
        x: ``[batch, sequence, width]``, the tokens.
        mask: ``[batch, total]``, the attention mask of all tokens.
        more: further inputs.
    """

    x: np.ndarray
    mask: np.ndarray
    more: dict[str, np.ndarray]

    @property
    def feeds(self) -> dict[str, np.ndarray]:
        positions = np.maximum(self.mask.cumsum(1) - 1, 0)[:, -self.x.shape[1] :]
        rows = np.arange(len(self.x), dtype=np.int32)
        return {"position_ids": positions, "x": self.x, "attention_mask": self.mask, "beam_idx": rows, **self.more}


def runs(*sequences: int, batch: int = 2, seed: int = 0, **more: np.ndarray) -> list[Run]:
    """Return runs with the given numbers of tokens, all of them attended to."""
    generator = np.random.default_rng(seed)
    totals = np.cumsum(sequences)
    return [
        Run(generator.standard_normal((batch, n, WIDTH)).astype(np.float32), np.ones((batch, total), np.int64), more)
        for n, total in zip(sequences, totals, strict=True)
    ]


def hidden(given: Sequence[Run], *slots: int, row: int = 0) -> list[Run]:
    """Return the runs with a mask that hides slots of a row."""
    changed = []
    for run in given:
        mask = run.mask.copy()
        mask[row, [slot for slot in slots if slot < mask.shape[1]]] = 0
        changed.append(Run(run.x, mask, run.more))
    return changed


def causal(_: Any, tokens: Tokens) -> Any:
    """Return the condition that a key is visible, without the attention_mask."""
    return ops.unsqueeze(ops.less_equal(tokens.columns, tokens.rows), whole([0, 1]))


def by_mask(place: str) -> Change:
    """Multiply values by the attention_mask of their tokens: the ``first`` or the ``last`` tokens."""

    def change(x: Any, tokens: Tokens) -> Any:
        count = dim(x, 2)
        begin, end = (whole([0]), count) if place == "first" else (ops.negative(count), whole([2**31 - 1]))
        own = ops.slice(tokens.mask, begin, end, whole([1]), whole([1]))
        return ops.multiply(x, ops.convert(ops.unsqueeze(own, whole([1, 3])), "f32"))

    return change


def by_openvino(model: ov.Model, given: Sequence[Run]) -> list[np.ndarray]:
    """Return the logits of each run."""
    request = ov.Core().compile_model(model.clone(), "CPU", EXACT).create_infer_request()
    names = {name for value in model.inputs for name in value.names}
    return [
        np.array(next(iter(request.infer({k: v for k, v in run.feeds.items() if k in names}).values()))) for run in given
    ]


def by_onnx_runtime(conversion: Conversion, given: Sequence[Run], kernels: Any = "native") -> list[np.ndarray]:
    """Return the same with the converted form for generators; caches are passed from run to run."""
    options = ort.SessionOptions()
    options.log_severity_level = 4
    session = onnx_specops.InferenceSession(conversion.model.SerializeToString(), options, kernels=kernels)
    inputs = ort.InferenceSession.get_inputs(session)
    outputs = [value.name for value in ort.InferenceSession.get_outputs(session)]
    state = {
        value.name: np.zeros([len(given[0].x), value.shape[1], 0, value.shape[3]], _TYPES[value.type])
        for value in inputs
        if value.name.startswith("past_key_values.")
    }
    found = []
    for run in given:
        feeds = {value.name: run.feeds[value.name] for value in inputs if value.name not in state}
        results = dict(zip(outputs, ort.InferenceSession.run(session, outputs, {**feeds, **state}), strict=True))
        found.append(results["logits"])
        state = {name: results[name.replace("past_key_values", "present")] for name in state}
    return found


def decoder_of(conversion: Conversion) -> Decoder:
    assert conversion.report.decoder is not None
    return conversion.report.decoder


def for_generators(model: ov.Model, *, positions: int | None = 64, **options: Any) -> Conversion:
    """Convert the model with caches as inputs and outputs."""
    return convert(model.clone(), form="genai", logits="all", positions=positions, **options)


def agrees(model: ov.Model, given: Sequence[Run], *, kernels: Sequence[Any] = ("native",), **options: Any) -> Decoder:
    """Check agreement with OpenVINO for each kind of kernels; return the converted attention."""
    conversion = for_generators(model, **options)
    error = _ERRORS[decoder_of(conversion).cache]
    expected = by_openvino(model, given)
    for kind in kernels:
        for got, wanted in zip(by_onnx_runtime(conversion, given, kind), expected, strict=True):
            tolerance = error * float(np.nanmax(np.abs(wanted), initial=0))
            np.testing.assert_allclose(got, wanted, rtol=0, atol=tolerance, err_msg=kind, strict=True)
    return decoder_of(conversion)
