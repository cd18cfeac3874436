"""Language models in OpenVINO's form: caches that are extended in place agree with an OpenVINO infer request."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import openvino as ov
import pytest
from openvino import opset13 as ops

import onnx_specops
from converters.openvino import convert
from onnx_specops.runtime.variables import METADATA_KEY, parse_variables

OPERATOR = "ScaledDotProductAttentionWithKVCache"
ARCHIVES = Path(__file__).parent / "models"
NAMES = sorted(path.stem for path in ARCHIVES.glob("*.zip"))
KERNELS = ["native", "python", "none"]
EXACT = {"INFERENCE_PRECISION_HINT": "f32", "KV_CACHE_PRECISION": "f32", "DYNAMIC_QUANTIZATION_GROUP_SIZE": "0"}
F = np.float32


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("held")


@cache
def converted(name: str, place: Path) -> Path:
    """Return the .onnx of a model, next to its .xml."""
    folder = place / name
    with zipfile.ZipFile(ARCHIVES / f"{name}.zip") as file:
        file.extractall(folder)
    convert(folder / "openvino_model.xml", folder / "openvino_model.onnx")
    return folder / "openvino_model.onnx"


def openvino_request(path: Path) -> ov.InferRequest:
    return ov.Core().compile_model(path.with_suffix(".xml"), "CPU", EXACT).create_infer_request()


def attentions(path: Path) -> int:
    return sum(node.op_type == OPERATOR for node in onnx.load(path, load_external_data=False).graph.node)


def steps(generator: np.random.Generator) -> Iterator[tuple[np.ndarray, np.ndarray, list[int]]]:
    """Yield tokens, attention_mask and beam_idx: left-padded rows that are reordered, duplicated and removed."""
    mask = np.ones((2, 5), np.int64)
    mask[1, :2] = 0
    yield generator.integers(3, 200, (2, 5)), mask, [0, 1]
    for beams, count in ([0, 1], 1), ([1, 0], 1), ([0, 1], 3), ([0, 0, 1], 1), ([2], 2), ([0, 0], 66), ([1, 1], 1):
        mask = np.concatenate([mask[beams], np.ones((len(beams), count), np.int64)], axis=1)
        yield generator.integers(3, 200, (len(beams), count)), mask, beams


def feeds_of(path: Path, tokens: np.ndarray, mask: np.ndarray, beams: list[int]) -> dict[str, np.ndarray]:
    """Return the feeds that the model has inputs for."""
    feeds = {
        "input_ids": tokens,
        "attention_mask": mask,
        "position_ids": np.maximum(mask.cumsum(1) - 1, 0)[:, -tokens.shape[1] :],
        "beam_idx": np.array(beams, np.int32),
    }
    names = {value.name for value in onnx.load(path, load_external_data=False).graph.input}
    return {name: value for name, value in feeds.items() if name in names}


def filled_up(feeds: dict[str, np.ndarray], more: int) -> dict[str, np.ndarray]:
    """Pad the attention_mask beyond all tokens, as many programs feed one of fixed length."""
    return {**feeds, "attention_mask": np.pad(feeds["attention_mask"], [(0, 0), (0, more)])}


@cache
def recorded(path: Path, texts: int, more: int = 0) -> list[list[tuple[dict[str, np.ndarray], np.ndarray]]]:
    """Return feeds and OpenVINO's logits of each step of texts, each from the initial state; all kernels share them."""
    request, generator, found = openvino_request(path), np.random.default_rng(0), []
    for _ in range(texts):
        runs = [filled_up(feeds_of(path, *step), more) for step in steps(generator)]
        found.append([(feeds, next(iter(request.infer(feeds).values())).copy()) for feeds in runs])
        request.reset_state()
    return found


def agree(got: np.ndarray, wanted: np.ndarray) -> None:
    np.testing.assert_allclose(got, wanted, atol=1e-4 * np.abs(wanted).max())


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kernels", KERNELS)
def test_a_session_agrees_with_openvino(name: str, kernels: Any, place: Path) -> None:
    """Including padded rows."""
    path = converted(name, place)
    assert attentions(path) == 2
    session = onnx_specops.InferenceSession(path, kernels=kernels)
    assert bool(session._state.in_place) == (kernels == "native")
    for text in recorded(path, texts=2):
        for feeds, wanted in text:
            agree(session.run(None, feeds)[0], wanted)
        session.reset_state()


@pytest.mark.parametrize("name", sorted({*NAMES} - {"bloom"}))  # OpenVINO rejects it: that model does not slice the mask
@pytest.mark.parametrize("kernels", KERNELS)
@pytest.mark.parametrize("more", [1, 90])
def test_a_longer_mask(name: str, kernels: Any, more: int, place: Path) -> None:
    """The caches determine the number of past tokens, not the length of the mask."""
    path = converted(name, place)
    session = onnx_specops.InferenceSession(path, kernels=kernels)
    for feeds, wanted in recorded(path, 1, more)[0]:
        agree(session.run(None, feeds)[0], wanted)


@pytest.mark.parametrize("variables", ["defaults", "inputs"])
def test_the_caller_of_a_plain_session_passes_the_cache(variables: Any, place: Path, tmp_path: Path) -> None:
    source = converted("llama", place)
    path = tmp_path / "model.onnx"
    convert(source.with_suffix(".xml"), path, variables=variables)
    request, session = openvino_request(source), ort.InferenceSession(path)
    held = parse_variables(session.get_modelmeta().custom_metadata_map[METADATA_KEY])
    assert all(v.axis == 2 and v.in_place and v.native and v.beams == "beam_idx" and not v.is_set for v in held)
    required = {value.name: value.shape for value in session.get_inputs()}
    assert all((v.input in required) == (variables == "inputs") for v in held)
    state = {}
    if variables == "inputs":
        state = {v.input: np.zeros((2, required[v.input][1], 0, required[v.input][3]), F) for v in held}
    for tokens, mask, beams in steps(np.random.default_rng(1)):
        feeds = filled_up(feeds_of(source, tokens, mask, beams), len(beams))
        results = dict(zip([o.name for o in session.get_outputs()], session.run(None, {**feeds, **state}), strict=True))
        agree(results["logits"], next(iter(request.infer(feeds).values())))
        state = {v.input: results[v.output] for v in held}


@pytest.mark.parametrize("options", [{"opset": 11}, {"opset": 17}, {"contrib": False}, {"precision": "float16"}])
def test_other_ways_to_convert(options: dict[str, Any], place: Path, tmp_path: Path) -> None:
    source = converted("gptoss", place)
    path = tmp_path / "model.onnx"
    convert(source.with_suffix(".xml"), path, **options)
    request, session = openvino_request(source), onnx_specops.InferenceSession(path)
    for tokens, mask, beams in steps(np.random.default_rng(2)):
        feeds = feeds_of(source, tokens, mask, beams)
        wanted = next(iter(request.infer(feeds).values()))
        tolerance = 0.05 if "precision" in options else 1e-4
        np.testing.assert_allclose(session.run(None, feeds)[0], wanted, atol=tolerance * np.abs(wanted).max())


def test_rows_out_of_range(place: Path) -> None:
    path = converted("llama", place)
    session = onnx_specops.InferenceSession(path)
    feeds = feeds_of(path, np.full((2, 3), 5), np.ones((2, 3), np.int64), [0, 1])
    session.run(None, feeds)
    after = feeds_of(path, np.full((2, 1), 5), np.ones((2, 4), np.int64), [0, 2])
    with pytest.raises(ValueError, match="beam_idx selects a row outside the 2 rows of the previous run"):
        session.run(None, after)
    session.run(None, {**after, "beam_idx": np.array([1, 1], np.int32)})


def attention(
    *,
    mask: str = "condition",
    beams: bool = True,
    taken: str = "",
    scale: float | None = 0.5,
    batch_size: int = -1,
    other: bool = False,
) -> ov.Model:
    """Build attention with a cache and two heads.

    Args:
        mask: the use of the attention_mask: ``"none"`` (there is no such input), ``"condition"``, ``"added"``,
            ``"infinite"`` (added, -inf), or ``"constant"`` (without effect).
        beams: whether rows are reordered.
        taken: another output: the ``"sum"`` of the keys, their ``"shape"``, the ``"keys"``, or the ``"past"`` keys.
        batch_size: the number of rows, if fixed.
        other: whether another input of data precedes the tokens, with another length.
        scale: the scale of the scores with a mask; by default 1 / sqrt(head size). ``None``: by the number of tokens.
    """
    x = ops.parameter([batch_size, -1, 16], F, name="x")
    inputs, sinks = [x], []
    if other:
        inputs.insert(0, ops.parameter([-1, -1, 16], F, name="other"))

    def const(*numbers: int) -> ov.Node:
        return ops.constant(np.array(numbers, np.int64))

    zero = ops.constant(np.int64(0))
    order = ops.parameter([-1], np.int32, name="beam_idx")
    batch = ops.gather(ops.shape_of(x), const(0), zero)

    def heads(seed: int) -> ov.Node:
        weights = np.random.default_rng(seed).standard_normal((16, 16)).astype(F) / 4
        split = ops.reshape(ops.matmul(x, ops.constant(weights), False, False), const(0, 0, 2, 8), True)
        return ops.transpose(split, const(0, 2, 1, 3))

    def cached(name: str, new: ov.Node) -> tuple[ov.Node, ov.Node]:
        start = ops.broadcast(ops.constant(F(0)), ops.concat([batch, const(2, 0, 8)], 0))
        read = ops.read_value(start, name, ov.Type.f32, ov.PartialShape([-1, 2, -1, 8]))
        grown = ops.concat([ops.gather(read, order, zero) if beams else read, new], 2)
        sinks.append(ops.assign(grown, name))
        return read, grown

    (past, keys), (_, values) = cached("past.key", heads(1)), cached("past.value", heads(2))
    extra = {
        "": list,
        "sum": lambda: [ops.reduce_sum(keys, const(2), False)],
        "shape": lambda: [ops.convert(ops.shape_of(keys), F)],
        "keys": lambda: [keys],
        "past": lambda: [past],
    }[taken]()
    if beams:
        inputs.append(order)
    given: list[ov.Node] = []
    if mask != "none":
        attention_mask = ops.parameter([-1, -1], np.int64, name="attention_mask")
        inputs.append(attention_mask)
        seen = ops.unsqueeze(ops.convert(attention_mask, bool), const(1, 2))
        if mask == "constant":
            seen = ops.logical_or(seen, ops.constant(True))
        lowest = F(-np.inf) if mask == "infinite" else np.finfo(F).min
        added = ops.select(seen, ops.constant(F(0)), ops.constant(lowest))
        given = [added if mask in ("added", "infinite") else seen]
        total = ops.gather(ops.shape_of(attention_mask), ops.constant(np.int64(1)), zero)
        by_length = ops.divide(ops.constant(F(2)), ops.convert(total, F))
        given.append(by_length if scale is None else ops.constant(F(scale)))
    mixed = ops.scaled_dot_product_attention(heads(3), keys, values, *given)
    if other:
        mixed = ops.add(mixed, ops.reduce_mean(inputs[0], const(0, 1, 2), False))
    results = [ops.result(node) for node in (mixed, *extra)]
    return ov.Model(results, sinks, inputs)


def follow(model: ov.Model, folder: Path, *, held: bool, kernels: Any = "native") -> onnx_specops.InferenceSession:
    """Compare some runs with OpenVINO's; return the session."""
    ov.save_model(model, folder / "model.xml", compress_to_fp16=False)
    convert(folder / "model.xml", folder / "model.onnx")
    assert attentions(folder / "model.onnx") == held
    session, request = (
        onnx_specops.InferenceSession(folder / "model.onnx", kernels=kernels),
        openvino_request(folder / "model.onnx"),
    )
    generator, total = np.random.default_rng(0), 0
    names = [value.name for value in session.get_inputs()]
    for count, beams in ((4, [0, 1]), (1, [1, 0]), (2, [1, 1]), (1, [0, 1])):
        total += count
        mask = np.ones((2, total), np.int64)
        mask[0, :2] = 0
        feeds = {
            "x": generator.standard_normal((2, count, 16)).astype(F),
            "beam_idx": np.array(beams, np.int32),
            "attention_mask": mask,
            "other": np.full((2, 7, 16), count, F),
        }
        feeds = {name: value for name, value in feeds.items() if name in names}
        for got, wanted in zip(session.run(None, feeds), request.infer(feeds).values(), strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5)
    return session


@pytest.mark.parametrize("kernels", KERNELS)
@pytest.mark.parametrize(
    ("model", "in_place"),
    [
        (lambda: attention(), True),
        (lambda: attention(mask="added", scale=0.25), True),
        (lambda: attention(mask="none"), True),
        (lambda: attention(beams=False), True),
        (lambda: attention(taken="shape"), True),
        (lambda: attention(batch_size=2), True),
        (lambda: attention(other=True), True),
    ],
    ids=["condition", "added", "no mask", "no beams", "shapes", "fixed batch", "other data"],
)
def test_forms_of_attention(tmp_path: Path, model: Callable[[], ov.Model], in_place: bool, kernels: Any) -> None:
    session = follow(model(), tmp_path, held=True, kernels=kernels)
    assert bool(session._state.in_place) == (in_place and kernels == "native")


@pytest.mark.parametrize("kernels", KERNELS)
@pytest.mark.parametrize("mask", ["condition", "added", "infinite"])
def test_rows_without_visible_keys(tmp_path: Path, mask: str, kernels: Any) -> None:
    """OpenVINO's fused attention gives 0 if -inf hides all keys, and the mean of all values for a condition or a number."""
    session = follow(attention(mask=mask), tmp_path, held=True, kernels=kernels)
    # The operator itself returns 0.
    assert "ReduceMax" not in {node.op_type for node in onnx.load(tmp_path / "model.onnx").graph.node}
    request, total = openvino_request(tmp_path / "model.onnx"), 0
    session.reset_state()
    for count in (3, 1, 70, 2):
        total += count
        x = np.random.default_rng(total).standard_normal((2, count, 16)).astype(F)
        seen = np.ones((2, total), np.int64)
        seen[1] = 0
        feeds = {"x": x, "beam_idx": np.arange(2, dtype=np.int32), "attention_mask": seen}
        wanted = next(iter(request.infer(feeds).values()))
        assert np.isfinite(wanted).all() and wanted[1].any() == (mask != "infinite")
        np.testing.assert_allclose(session.run(None, feeds)[0], wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kernels", KERNELS)
@pytest.mark.parametrize("mask", ["condition", "added", "infinite"])
def test_rows_without_visible_keys_without_beams(tmp_path: Path, mask: str, kernels: Any) -> None:
    """OpenVINO does not fuse attention without reordered rows: the result is NaN, or the mean of all values for a number."""
    session = follow(attention(mask=mask, beams=False), tmp_path, held=True, kernels=kernels)
    request, total = openvino_request(tmp_path / "model.onnx"), 0
    session.reset_state()
    for count in (3, 1, 70, 2):
        total += count
        x = np.random.default_rng(total).standard_normal((2, count, 16)).astype(F)
        seen = np.ones((2, total), np.int64)
        seen[1] = 0
        feeds = {"x": x, "attention_mask": seen}
        wanted = next(iter(request.infer(feeds).values()))
        assert np.isnan(wanted[1]).all() == (mask != "added")
        np.testing.assert_allclose(session.run(None, feeds)[0], wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("taken", ["sum", "keys", "past"])
def test_a_cache_with_another_consumer_stays_a_variable(tmp_path: Path, taken: str) -> None:
    """Memory with extra capacity is not a valid output."""
    follow(attention(taken=taken), tmp_path, held=False)


def test_a_factor_that_changes_with_the_tokens(tmp_path: Path) -> None:
    follow(attention(scale=None), tmp_path, held=False)


@pytest.mark.parametrize("kernels", KERNELS)
def test_a_failed_run_changes_nothing(tmp_path: Path, kernels: Any) -> None:
    """Its rows had been reordered and memory had been allocated before the failure."""
    session, request = follow(attention(), tmp_path, held=True, kernels=kernels), openvino_request(tmp_path / "model.onnx")
    session.reset_state()
    generator = np.random.default_rng(1)

    def feeds(count: int, total: int, beams: list[int], width: int = 16) -> dict[str, np.ndarray]:
        x = generator.standard_normal((2, count, width)).astype(F)
        return {"x": x, "beam_idx": np.array(beams, np.int32), "attention_mask": np.ones((2, total), np.int64)}

    first, then = feeds(4, 4, [0, 1]), feeds(1, 5, [1, 0])
    np.testing.assert_allclose(session.run(None, first)[0], next(iter(request.infer(first).values())), rtol=1e-4, atol=1e-5)
    with pytest.raises(Exception, match="imension"):
        session.run(None, feeds(96, 100, [1, 0], width=7))
    np.testing.assert_allclose(session.run(None, then)[0], next(iter(request.infer(then).values())), rtol=1e-4, atol=1e-5)


def test_a_mask_without_effect(tmp_path: Path) -> None:
    """The attention_mask need not have the length of the cache in this case, but it has."""
    follow(attention(mask="constant"), tmp_path, held=True)


@pytest.mark.parametrize("kernels", KERNELS)
def test_other_variables_are_passed_on(tmp_path: Path, kernels: Any) -> None:
    """A session with variables of all kinds."""
    model = attention()
    x = model.inputs[0].get_node()
    total = ops.read_value(ops.constant(np.zeros((1, 1, 16), F)), "total", ov.Type.f32, ov.PartialShape([1, 1, 16]))
    following = ops.add(total, ops.reduce_mean(x, ops.constant(np.array([0, 1])), True))
    model.add_sinks([ops.assign(following, "total")])
    model.add_results([ops.result(following)])
    session = follow(model, tmp_path, held=True, kernels=kernels)
    assert sorted(session._state.in_place) == (["past.key", "past.value"] if kernels == "native" else [])


def test_a_cache_in_the_caller_s_memory(place: Path) -> None:
    """One block of memory with extra capacity as input and output."""
    path = converted("llama", place)
    options = ort.SessionOptions()
    onnx_specops.register(options)
    session, request = ort.InferenceSession(path, options), openvino_request(path)
    entries = json.loads(session.get_modelmeta().custom_metadata_map[METADATA_KEY])
    shapes = {value.name: value.shape for value in session.get_overridable_initializers()}
    memory = {e["input"]: np.zeros((2, shapes[e["input"]][1], 96, shapes[e["input"]][3]), F) for e in entries}
    values = {name: ort.OrtValue.ortvalue_from_numpy(array) for name, array in memory.items()}
    generator, total = np.random.default_rng(3), 0
    for count, beams in ((5, [0, 1]), (1, [1, 0]), (3, [0, 1]), (1, [1, 1])):
        total += count
        feeds = feeds_of(path, generator.integers(3, 200, (2, count)), np.ones((2, total), np.int64), beams)
        binding = session.io_binding()
        for name, value in feeds.items():
            binding.bind_cpu_input(name, value)
        for entry in entries:
            binding.bind_ortvalue_input(entry["input"], values[entry["input"]])
            binding.bind_ortvalue_output(entry["output"], values[entry["input"]])
        binding.bind_output("logits")
        session.run_with_iobinding(binding)
        (logits,) = (value.numpy() for value in binding.get_outputs()[-1:])
        agree(logits, next(iter(request.infer(feeds).values())))
    assert all(array[:, :, :total].any() and not array[:, :, total:].any() for array in memory.values())
