"""The logits of the last token equal those of the full computation, and nothing is computed for the other tokens."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import openvino as ov
import pytest
from openvino import opset13 as ops

import onnx_specops
from converters.openvino import convert
from converters.openvino.opened import opened
from converters.openvino.walk import emit
from converters.passes.attention.last_token import keep_last_token
from converters.passes.attention.probe_shapes import Inputs
from onnx_specops.building import Builder, new_value
from tests.converters.cli.specops import as_json, specops
from tests.language.test_models import NAMES, folders

EXACT = {"INFERENCE_PRECISION_HINT": "f32", "KV_CACHE_PRECISION": "f32"}
LAYERS = 2


@pytest.fixture(scope="module")
def place(shared: Path) -> Path:
    return shared


def source(name: str, place: Path) -> Path:
    return folders(name, place)[0] / "openvino_model.xml"


@cache
def converted(name: str, place: Path, logits: Any) -> Path:
    if logits == "last":
        _, target, written = folders(name, place)
        path, report = target / "model.onnx", written.report
    else:
        path = place / f"{name}.{logits}.onnx"
        report = convert(source(name, place), path, form="genai", positions=128, logits=logits).report
    assert report.decoder is not None and report.decoder.logits == logits
    return path


def runs(session: onnx_specops.InferenceSession, masks: list[np.ndarray]) -> list[np.ndarray]:
    """Return the logits of runs of random tokens with the given masks."""
    names = {value.name for value in session.get_inputs()}
    draw, past, found = np.random.default_rng(0), 0, []
    for mask in masks:
        rows, tokens = len(mask), mask.shape[1] - past
        feeds = {"input_ids": draw.integers(1, 320, (rows, tokens)), "attention_mask": mask}
        if "position_ids" in names:
            feeds["position_ids"] = np.tile(np.arange(past, past + tokens), (rows, 1))
        found.append(session.run(["logits"], feeds)[0])
        past = mask.shape[1]
    session.reset_state()
    return found


def filled(lengths: list[int], more: int = 0) -> np.ndarray:
    """Return a mask for rows of the given lengths, padded on the right, with more tokens after them."""
    mask = np.arange(max(lengths)) < np.array(lengths)[:, None]
    return np.concatenate([mask, np.ones((len(lengths), more), bool)], 1).astype(np.int64)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kernels", ["native", "none"])
def test_logits_equal_those_of_all_tokens(name: str, kernels: Any, place: Path) -> None:
    last, whole = (
        onnx_specops.InferenceSession(converted(name, place, logits), kernels=kernels) for logits in ("last", "all")
    )
    assert [value.shape[1:] for value in last.get_outputs() if value.name == "logits"] == [[1, 320]]
    for masks in (
        [filled([7]), filled([7], 1), filled([7], 4)],
        [filled([9, 9, 9]), filled([9, 9, 9], 1)],
        [filled([4, 9, 1])],
        [filled([1, 1])],
    ):
        past = 0
        for one, all_, mask in zip(runs(last, masks), runs(whole, masks), masks, strict=True):
            ends = [int(np.flatnonzero(row[past:])[-1]) for row in mask]
            wanted = np.stack([row[[end]] for row, end in zip(all_, ends, strict=True)])
            assert one.shape == (len(mask), 1, 320)
            np.testing.assert_allclose(one, wanted, atol=2e-5 * np.abs(wanted).max())
            past = mask.shape[1]


@pytest.mark.parametrize("name", NAMES)
def test_logits_equal_openvino(name: str, place: Path) -> None:
    model = ov.Core().read_model(source(name, place))
    names = {port.any_name for port in model.inputs}
    ids = np.random.default_rng(0).integers(1, 320, (1, 7))  # the same as in `runs`
    feeds = {
        "input_ids": ids,
        "attention_mask": np.ones((1, 7), np.int64),
        "position_ids": np.arange(7)[None],
        "beam_idx": np.zeros(1, np.int32),
    }
    request = ov.compile_model(model, "CPU", EXACT).create_infer_request()
    request.infer({name: feeds[name] for name in names})
    wanted = request.get_tensor("logits").data[:, -1:]
    (got,) = runs(onnx_specops.InferenceSession(converted(name, place, "last")), [filled([7])])
    np.testing.assert_allclose(got, wanted, atol=1e-4 * np.abs(wanted).max())


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_computed_for_the_other_tokens(name: str, place: Path) -> None:
    """The selection is after the last attention, and after the last mixture of experts, which mixes rows of tokens."""
    nodes = onnx.load(converted(name, place, "last")).graph.node
    selected = [node.output[0] for node in nodes if node.name.startswith("last_token/Gather")]
    assert 1 <= len(selected) <= 3
    behind, operators = set(selected), []
    for node in nodes:
        if behind.intersection(node.input):
            behind.update(node.output)
            operators.append(node.op_type)
    experts = name in ("gptoss", "mixtral")
    assert operators.count("MatMul") == 1 if experts else operators.count("MatMul") >= 3
    assert not {"Softmax", "GroupQueryAttention"}.intersection(operators)


def graph_of(model: ov.Model, place: Path) -> tuple[ir.Graph, Inputs]:
    """Return a graph with inputs ``x`` [batch, tokens, 4] and optionally attention_mask."""
    ov.save_model(model, place / "model.xml", compress_to_fp16=False)
    with opened(place / "model.xml", None) as file:
        graph = emit(file).model.graph
    return graph, Inputs(graph, {})


def of_one_output(make: Any, place: Path) -> tuple[ir.Graph, Inputs]:
    x = ops.parameter([-1, -1, 4], np.float32, name="x")
    x.output(0).set_names({"x"})
    return graph_of(ov.Model([make(x)], [x], "m"), place)


def test_a_model_without_a_mask(tmp_path: Path) -> None:
    weights = np.random.default_rng(0).standard_normal((4, 5)).astype(np.float32)
    graph, inputs = of_one_output(lambda x: ops.matmul(ops.tanh(x), weights, False, False), tmp_path)
    assert keep_last_token(graph, inputs)
    assert [node.op_type for node in graph] == ["Slice", "Tanh", "MatMul"]


@pytest.mark.parametrize(
    "make",
    [
        lambda x: ops.reduce_mean(x, [1], True),  # a single token
        lambda x: ops.reshape(x, [-1, 4], False),  # rank 2
        lambda x: ops.transpose(x, [1, 0, 2]),
    ],
    ids=["one", "rows", "transposed"],
)
def test_other_outputs_are_unchanged(make: Any, tmp_path: Path) -> None:
    graph, inputs = of_one_output(make, tmp_path)
    before = [node.op_type for node in graph]
    assert not keep_last_token(graph, inputs)
    assert [node.op_type for node in graph] == before


@pytest.mark.parametrize(
    "make",
    [
        lambda x: ops.cum_sum(x, 1),
        lambda x: ops.softmax(x, 1),
        lambda x: ops.subtract(x, ops.reduce_max(x, [0], True)),  # over the rows
        lambda x: ops.matmul(ops.matmul(x, x, False, True), x, False, False),
        lambda x: ops.slice(x, [-1], [-(2**31)], [-1], [1]),
    ],
    ids=["sum", "softmax", "maximum", "products", "reversed"],
)
def test_token_mixing_stays_before_the_selection(make: Any, tmp_path: Path) -> None:
    graph, inputs = of_one_output(make, tmp_path)
    before = [node.op_type for node in graph]
    assert keep_last_token(graph, inputs)
    assert [node.op_type for node in graph] == [*before, "Slice"]


def test_values_of_all_tokens_with_other_consumers_stay(tmp_path: Path) -> None:
    """Another output depends on the input of the logits."""
    x = ops.parameter([-1, -1, 4], np.float32, name="x")
    inner = ops.exp(x)
    logits = ops.tanh(inner)
    logits.output(0).set_names({"logits"})
    graph, inputs = graph_of(ov.Model([ops.abs(inner), logits], [x], "m"), tmp_path)
    assert keep_last_token(graph, inputs)
    assert [node.op_type for node in graph if node.op_type != "Abs"] == ["Exp", "Slice", "Tanh"]


def test_logits_with_another_consumer_stay(tmp_path: Path) -> None:
    x = ops.parameter([-1, -1, 4], np.float32, name="x")
    logits = ops.tanh(x)
    logits.output(0).set_names({"logits"})
    graph, inputs = graph_of(ov.Model([logits, ops.reduce_max(logits, [-1])], [x], "m"), tmp_path)
    assert not keep_last_token(graph, inputs)


def test_a_constant_by_position_is_not_selected() -> None:
    x = new_value(ir.DataType.FLOAT, [None, None, 4], "x")
    graph = ir.Graph([x], [], nodes=[], opset_imports={"": 21})
    op = Builder(graph)
    position = op.Unsqueeze(op.Cast(op.Range(0, op.Squeeze(op.Shape(x, start=1, end=2), [0]), 1), to=1), [1])
    graph.outputs.append(op.Tanh(op.Add(x, position)))
    assert keep_last_token(graph, Inputs(graph, {}))
    assert [node.op_type for node in graph][-3:] == ["Add", "Slice", "Tanh"]


def test_the_command(place: Path) -> None:
    folder = source("llama", place).parent
    for options, size in (([], 1), (["--logits", "last"], 1), (["--logits", "all"], 0)):
        as_json(specops("convert", folder, "-o", place / "out", "--genai", "--json", *options))
        dims = onnx.load(place / "out" / "model.onnx").graph.output[0].type.tensor_type.shape.dim
        assert dims[1].dim_value == size
    result = specops("convert", folder, "-o", place / "out", "--logits", "all")
    assert result.exit_code == 2 and "it requires --genai" in result.stderr
    with pytest.raises(ValueError, match="logits must be 'last' or 'all', not 'first'"):
        convert(folder / "openvino_model.xml", form="genai", logits="first")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="logits requires form='genai'"):
        convert(folder / "openvino_model.xml", logits="last")
