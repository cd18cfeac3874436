"""The decoders with cross-attention that are converted to onnxruntime-genai's form."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import openvino as ov
import pytest
from openvino import opset13 as ops

from converters.convert import convert_with
from converters.errors import ConversionError
from converters.options import Options
from converters.passes.attention import Decoder
from converters.passes.attention.cross import Projections, expose_encoder_decoder
from converters.source import Emitted

F = np.float32
HEADS, SIZE = 2, 8
WIDTH = HEADS * SIZE
Make = Callable[[ov.Node], ov.Node]


def heads(x: ov.Node) -> ov.Node:
    return ops.transpose(ops.reshape(x, np.array([0, 0, HEADS, SIZE]), True), np.array([0, 2, 1, 3]))


def product(x: ov.Node, seed: int, width: int = WIDTH) -> ov.Node:
    weights = np.random.default_rng(seed).standard_normal((WIDTH, width)).astype(F)
    return ops.matmul(x, ops.constant(weights), False, False)


def decoder(
    *, kept: Make = lambda x: x, states_later: bool = False, cross_of_tokens: bool = False, cross: bool = True
) -> ov.Model:
    """Build a layer of self-attention and cross-attention with variables, as optimum-intel exports them."""
    ids = ops.parameter([-1, -1], np.int64, name="input_ids")
    states = ops.parameter([-1, -1, WIDTH], F, name="encoder_hidden_states")
    beams = ops.parameter([-1], np.int32, name="beam_idx")
    for node in (ids, states, beams):
        node.output(0).set_names({node.get_friendly_name()})
    table = np.random.default_rng(0).standard_normal((32, WIDTH)).astype(F)
    x = ops.gather(ops.constant(table), ids, np.int64(0))
    sinks = []

    def variable(name: str, initial: ov.Node) -> ov.Node:
        return ops.read_value(initial, name, np.float32, ov.PartialShape([-1, HEADS, -1, SIZE]))

    def attention(query: ov.Node, keys: ov.Node, values: ov.Node) -> ov.Node:
        scores = ops.softmax(ops.matmul(heads(query), keys, False, True), -1)
        mixed = ops.transpose(ops.matmul(scores, values, False, False), np.array([0, 2, 1, 3]))
        return ops.reshape(mixed, np.array([0, 0, WIDTH]), True)

    batch = ops.gather(ops.shape_of(ids), np.array([0]), np.int64(0))
    empty = ops.broadcast(F(0), ops.concat([batch, np.array([HEADS, 0, SIZE])], 0))
    caches = []
    for number, name in enumerate(("past_key_values.0.key", "past_key_values.0.value")):
        past = ops.gather(variable(name, empty), beams, np.int64(0))
        present = ops.concat([past, heads(product(x, 1 + number))], 2)
        sinks.append(ops.assign(present, name))
        caches.append(present)
    x = ops.add(x, attention(product(x, 3), *caches))
    if cross:
        crossed = []
        for number in range(2):
            taken = x if cross_of_tokens else states
            read = variable(f"cross.{number}", heads(product(taken, 4 + number)))
            sinks.append(ops.assign(kept(read), f"cross.{number}"))
            crossed.append(read)
        x = ops.add(x, attention(product(x, 6), *crossed))
    if states_later or not cross:
        x = ops.add(x, ops.reduce_mean(states, np.array([1]), True))
    logits = ops.result(product(x, 7, 32))
    logits.output(0).set_names({"logits"})
    return ov.Model([logits], sinks, [ids, states, beams])


def exposed(model: ov.Model, folder: Path) -> tuple[Decoder, Projections]:
    found = []

    def adapt(emitted: Emitted) -> Decoder:
        found.append(expose_encoder_decoder(emitted.model, emitted.variables))
        emitted.variables = []
        return found[0][0]

    ov.save_model(model, folder / "decoder.xml", compress_to_fp16=False)
    convert_with(folder / "decoder.xml", folder / "decoder.onnx", Options(), adapt=adapt)
    return found[0]


def test_caches_of_both_kinds(tmp_path: Path) -> None:
    found, projections = exposed(decoder(), tmp_path)
    assert (found.layers, found.heads, found.groups, found.size) == (1, HEADS, HEADS, SIZE)
    assert list(projections.outputs) == ["present_key_cross_0", "present_value_cross_0"]
    assert [node.op_type for node in projections.nodes].count("MatMul") == 2


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (
            lambda: decoder(kept=lambda x: ops.multiply(x, F(2))),
            "no variable stores values computed from the encoder's output",
        ),
        (lambda: decoder(states_later=True), "ReduceMean reads encoder_hidden_states in every run"),
        (lambda: decoder(cross_of_tokens=True), "not only from encoder_hidden_states"),
        (lambda: decoder(cross=False), "no variable stores values computed from the encoder's output"),
    ],
)
def test_other_decoders_are_rejected(model: Callable[[], ov.Model], reason: str, tmp_path: Path) -> None:
    with pytest.raises(ConversionError, match=reason):
        exposed(model(), tmp_path)
