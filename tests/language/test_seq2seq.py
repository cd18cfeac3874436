"""Decoders of encoder-decoders in OpenVINO's form agree with OpenVINO, without copies from token to token.

They have no attention_mask for their own tokens, and keep the projections of the encoder's output.
"""

from __future__ import annotations

import json
import threading
import zipfile
from collections.abc import Iterator, Mapping
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
from onnx_specops.runtime.variables import METADATA_KEY, Variable, parse_variables

OPERATOR = "ScaledDotProductAttentionWithKVCache"
ARCHIVES = Path(__file__).parent / "seq2seq"
NAMES = sorted(path.stem for path in ARCHIVES.glob("*.zip"))
KERNELS = ["native", "python", "none"]
EXACT = {"INFERENCE_PRECISION_HINT": "f32", "KV_CACHE_PRECISION": "f32", "DYNAMIC_QUANTIZATION_GROUP_SIZE": "0"}
F, SIZE, VOCABULARY = np.float32, 16, 64
Feeds = dict[str, np.ndarray]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("seq2seq")


@cache
def converted(name: str, place: Path) -> Path:
    """Return the .onnx of a decoder, next to its .xml."""
    with zipfile.ZipFile(ARCHIVES / f"{name}.zip") as file:
        file.extractall(place / name)
    path = place / name / "openvino_decoder_model.onnx"
    convert(path.with_suffix(".xml"), path)
    return path


def saved(model: ov.Model, folder: Path, **options: Any) -> Path:
    ov.save_model(model, folder / "model.xml", compress_to_fp16=False)
    convert(folder / "model.xml", folder / "model.onnx", **options)
    return folder / "model.onnx"


def openvino_request(path: Path) -> ov.InferRequest:
    return ov.Core().compile_model(path.with_suffix(".xml"), "CPU", EXACT).create_infer_request()


def session_of(path: Path, kernels: Any = "native") -> onnx_specops.InferenceSession:
    return onnx_specops.InferenceSession(path, kernels=kernels)


def held(path: Path) -> int:
    """Return the number of attention nodes that extend their caches."""
    return sum(node.op_type == OPERATOR for node in onnx.load(path, load_external_data=False).graph.node)


def variables_in(path: Path) -> dict[str, Variable]:
    properties = onnx.load(path, load_external_data=False).metadata_props
    return {v.name: v for v in parse_variables(next(p.value for p in properties if p.key == METADATA_KEY))}


def encoded(rows: int, length: int, seed: int = 0) -> Feeds:
    """Return an encoder's output, whose last row is shorter."""
    mask = np.ones((rows, length), np.int64)
    mask[-1, length // 2 + 1 :] = 0
    states = np.random.default_rng(seed).standard_normal((rows, length, SIZE)).astype(F)
    return {"encoder_hidden_states": states, "encoder_attention_mask": mask, "attention_mask": mask}


def tokens(count: int, beams: list[int], seed: int = 0) -> Feeds:
    generator = np.random.default_rng(seed)
    return {
        "input_ids": generator.integers(4, VOCABULARY, (len(beams), count)),
        "x": generator.standard_normal((len(beams), count, SIZE)).astype(F),
        "beam_idx": np.array(beams, np.int32),
    }


def steps(rows: int) -> Iterator[Feeds]:
    """Yield the runs of one text: reordered rows, more tokens than the capacity."""
    own, other, past = list(range(rows)), list(range(rows))[::-1], 0
    for number, (count, beams) in enumerate(
        ((3, own), (1, own), (1, other), (2, [0] * rows), (66, own), (1, other), (1, other))
    ):
        mask = np.ones((rows, past + count), np.int64)
        mask[:, 1] = 0
        positions = np.arange(past, past + count)
        yield {**tokens(count, beams, number), "cache_position": positions, "decoder_attention_mask": mask}
        past += count


TEXTS = ((1, 5), (3, 9), (2, 3))
"""Rows of each text, and the length of the encoder's output."""


def named(names: Any, feeds: Mapping[str, np.ndarray]) -> Feeds:
    """Return the feeds that a model has inputs for."""
    return {name: value for name, value in feeds.items() if name in names}


def own_names(session: ort.InferenceSession) -> list[str]:
    return [value.name for value in session.get_inputs()]


def agree(got: np.ndarray, wanted: np.ndarray, tolerance: float = 1e-4) -> None:
    np.testing.assert_allclose(got, wanted, atol=tolerance * np.abs(wanted).max())


def follow(session: onnx_specops.InferenceSession, path: Path, texts: Any = TEXTS, tolerance: float = 1e-4) -> None:
    """Compare runs of texts with OpenVINO's, each from the initial state."""
    request = openvino_request(path)
    for number, (rows, length) in enumerate(texts):
        for run in steps(rows):
            feeds = named(own_names(session), {**encoded(rows, length, number), **run})
            for got, wanted in zip(session.run(None, feeds), request.infer(feeds).values(), strict=True):
                agree(got, wanted, tolerance)
        session.reset_state()
        request.reset_state()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kernels", KERNELS)
def test_a_session_agrees_with_openvino(name: str, kernels: Any, place: Path) -> None:
    path = converted(name, place)
    assert held(path) == 2
    session = session_of(path, kernels)
    kept = [v.input for v in variables_in(path).values() if v.is_set]
    assert len(kept) >= 4  # the keys and values of two layers, and possibly their inputs
    growing = [v.input for v in variables_in(path).values() if v.axis == 2]
    assert len(growing) == 4
    assert sorted(session._state.in_place) == sorted(kept + growing if kernels == "native" else kept)
    follow(session, path)


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_copied_from_token_to_token(name: str, place: Path) -> None:
    """The addresses of the variables do not change."""
    session = session_of(converted(name, place))
    places = []
    for number in range(3):
        session.run(None, named(own_names(session), {**encoded(2, 7), **tokens(1, [0, 1], number)}))
        state = session._state
        lie = {name: memory.value.data_ptr() for name, memory in state._caches._memory.items()}
        places.append(lie | {v.input: state._values[v.input].data_ptr() for v in state._kept})
    assert places[0] == places[1] == places[2]


OPTIONS: list[dict[str, Any]] = [
    {"opset": 11},
    {"opset": 17},
    {"contrib": False},
    {"precision": "float16"},
    {"variables": "inputs"},
    {"variables": "inputs", "opset": 13},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_other_ways_to_convert(name: str, options: dict[str, Any], place: Path, tmp_path: Path) -> None:
    source, path = converted(name, place), tmp_path / "model.onnx"
    convert(source.with_suffix(".xml"), path, **options)
    follow(session_of(path), source, TEXTS[1:], 0.05 if "precision" in options else 1e-4)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("variables", ["defaults", "inputs"])
def test_the_caller_of_a_plain_session_passes_the_variables(name: str, variables: Any, place: Path, tmp_path: Path) -> None:
    """The host follows docs/hosts.md and does not know the meaning of the variables."""
    source, path = converted(name, place), tmp_path / "model.onnx"
    convert(source.with_suffix(".xml"), path, variables=variables)
    session, ours, request = ort.InferenceSession(path), session_of(path, "none"), openvino_request(source)
    carried = variables_in(path).values()
    required = {value.name: value for value in session.get_inputs()}
    assert all((v.input in required) == (variables == "inputs") for v in carried)
    for rows, length in TEXTS[1:]:
        state: Feeds = {}
        if variables == "inputs":
            for v in carried:
                value = required[v.input]
                dims = [rows if i == 0 else dim if isinstance(dim, int) else 0 for i, dim in enumerate(value.shape)]
                state[v.input] = np.zeros(dims, np.int64 if value.type == "tensor(int64)" else F)
                state |= {v.is_set: np.array(False)} if v.is_set else {}
        for run in steps(rows):
            feeds = named(own_names(ours), {**encoded(rows, length), **run})
            outputs = [value.name for value in session.get_outputs()]
            results = dict(zip(outputs, session.run(None, {**feeds, **state}), strict=True))
            agree(results["logits"], next(iter(request.infer(feeds).values())))
            state = {v.input: results[v.output] for v in carried}
            state |= {v.is_set: np.array(True) for v in carried if v.is_set}
        request.reset_state()


def test_variables_in_the_caller_s_memory(place: Path) -> None:
    """One block of memory with extra capacity for a cache, and one for a constant variable, as input and output."""
    path = converted("t5", place)
    options = ort.SessionOptions()
    onnx_specops.register(options)
    session, request, carried = ort.InferenceSession(path, options), openvino_request(path), variables_in(path).values()
    shapes = {value.name: value.shape for value in session.get_overridable_initializers()}
    own = [name for name in own_names(session) if name not in shapes]
    values = {v.input: np.zeros((2, shapes[v.input][1], 96, shapes[v.input][3]), F) for v in carried if v.axis >= 0}
    memory = {name: ort.OrtValue.ortvalue_from_numpy(array) for name, array in values.items()}
    counter = next(v for v in carried if v.name == "past_length")
    past = 0
    for run in steps(2):
        feeds = named(own, {**encoded(2, 5), **run})
        if run["beam_idx"].tolist() == [0, 0]:
            feeds["beam_idx"] = np.array([0, 1], np.int32)
        binding = session.io_binding()
        feeds[counter.input] = np.array(past, np.int64)
        for name, value in feeds.items():
            binding.bind_ortvalue_input(name, ort.OrtValue.ortvalue_from_numpy(value))
        given = [v for v in carried if v is not counter]
        for v in given:
            if v.input in memory:
                binding.bind_ortvalue_input(v.input, memory[v.input])
                binding.bind_ortvalue_output(v.output, memory[v.input])
                if v.is_set:
                    binding.bind_ortvalue_input(v.is_set, ort.OrtValue.ortvalue_from_numpy(np.array(True)))
            else:
                binding.bind_output(v.output)
        binding.bind_output("logits")
        session.run_with_iobinding(binding)
        *following, logits = binding.get_outputs()
        assert all(
            a.data_ptr() == memory[v.input].data_ptr() for v, a in zip(given, following, strict=True) if v.input in memory
        )
        memory = {v.input: value for v, value in zip(given, following, strict=True)}
        agree(logits.numpy(), next(iter(request.infer(named(own, feeds)).values())))
        past += feeds["input_ids"].shape[1]


def const(*numbers: int) -> ov.Node:
    return ops.constant(np.array(numbers, np.int64))


def heads(x: ov.Node, seed: int) -> ov.Node:
    """Reshape [batch, tokens, 16] to [batch, 2, tokens, 8]."""
    weights = np.random.default_rng(seed).standard_normal((SIZE, SIZE)).astype(F) / 4
    split = ops.reshape(ops.matmul(x, ops.constant(weights), False, False), const(0, 0, 2, 8), True)
    return ops.transpose(split, const(0, 2, 1, 3))


def decoder(
    *,
    taken: str = "",
    kept: str = "plain",
    shared: bool = False,
    beams_given: bool = False,
    slots: bool = False,
    masked: str = "",
) -> ov.Model:
    """Build two layers, each with self-attention and cross-attention.

    Args:
        taken: another output: the ``"keys"`` of the second layer, or the ``"kept"`` ones of the first.
        kept: the projections of the encoder's output: ``"plain"``, with rows that are ``"gathered"``, or ``"replaced"`` by
            their double in each run.
        shared: whether the second layer has no cache of its own.
        beams_given: whether beam_idx is an output, too.
        slots: whether an input has the slots of a run's tokens in the caches; each token attends to those before it.
        masked: ``"attention_mask"`` masks the encoder's output; ``"both"`` adds decoder_attention_mask for past tokens.
    """
    x, encoder = ops.parameter([-1, -1, SIZE], F, name="x"), ops.parameter([-1, -1, SIZE], F, name="encoder_hidden_states")
    order, zero = ops.parameter([-1], np.int32, name="beam_idx"), ops.constant(np.int64(0))
    inputs = [x, encoder, order]
    sinks: list[ov.Node] = []
    given: list[ov.Node] = []
    seen: list[ov.Node] = []
    if masked:
        inputs.append(ops.parameter([-1, -1], np.int64, name="attention_mask"))
        seen.append(ops.unsqueeze(ops.convert(inputs[-1], bool), const(1, 2)))
    if masked == "both":
        inputs.append(ops.parameter([-1, -1], np.int64, name="decoder_attention_mask"))
    if slots:
        inputs.append(ops.parameter([-1], np.int64, name="cache_position"))

    def cached(name: str, new: ov.Node) -> ov.Node:
        batch = ops.gather(ops.shape_of(x), const(0), zero)
        start = ops.broadcast(ops.constant(F(0)), ops.concat([batch, const(2, 0, 8)], 0))
        read = ops.read_value(start, name, ov.Type.f32, ov.PartialShape([-1, 2, -1, 8]))
        grown = ops.concat([ops.gather(read, order, zero), new], 2)
        sinks.append(ops.assign(grown, name))
        return grown

    def crossed(name: str, seed: int) -> ov.Node:
        read = ops.read_value(heads(encoder, seed), name, ov.Type.f32, ov.PartialShape([-1, 2, -1, 8]))
        value = ops.gather(read, order, zero) if kept == "gathered" else read
        following = ops.multiply(value, ops.constant(F(2))) if kept == "replaced" else value
        sinks.append(ops.assign(following, name))
        return value

    def before(keys: ov.Node) -> list[ov.Node]:
        """Return which keys are visible to the tokens of the run."""
        if masked == "both":
            return [ops.unsqueeze(ops.convert(inputs[-1], bool), const(1, 2))]
        if not slots:
            return []
        total = ops.gather(ops.shape_of(keys), ops.constant(np.int64(2)), zero)
        every = ops.range(zero, total, ops.constant(np.int64(1)), "i64")
        return [ops.unsqueeze(ops.less_equal(every, ops.unsqueeze(inputs[-1], const(1))), const(0, 1))]

    def joined(mixed: ov.Node) -> ov.Node:
        return ops.reshape(ops.transpose(mixed, const(0, 2, 1, 3)), const(0, 0, SIZE), True)

    state: ov.Node = x
    keys = values = None
    for layer in range(2):
        if keys is None or not shared:
            keys = cached(f"past.{layer}.key", heads(state, 10 * layer))
            values = cached(f"past.{layer}.value", heads(state, 10 * layer + 1))
        mixed = ops.scaled_dot_product_attention(heads(state, 10 * layer + 2), keys, values, *before(keys))
        state = ops.add(state, joined(mixed))
        cross_keys, cross_values = (crossed(f"cross.{layer}.{i}", 10 * layer + 3 + i) for i in range(2))
        mixed = ops.scaled_dot_product_attention(heads(state, 10 * layer + 5), cross_keys, cross_values, *seen)
        state = ops.add(state, joined(mixed))
        if taken == "keys" and layer == 1:
            given.append(ops.reduce_sum(keys, const(2), False))
        if taken == "kept" and layer == 0:
            given.append(ops.relu(cross_keys))
    if beams_given:
        given.append(ops.convert(order, F))
    results = [ops.result(node) for node in (state, *given)]
    return ov.Model(results, sinks, inputs)


@pytest.mark.parametrize("kernels", KERNELS)
@pytest.mark.parametrize(
    ("settings", "attentions", "kept"),
    [
        ({}, 2, 4),
        ({"taken": "keys"}, 1, 4),
        ({"taken": "kept"}, 2, 4),
        ({"kept": "gathered"}, 2, 0),
        ({"kept": "replaced"}, 2, 0),
        ({"shared": True}, 0, 4),
        ({"beams_given": True}, 2, 4),
        ({"masked": "attention_mask"}, 1, 4),
        ({"masked": "both"}, 2, 4),
        ({"slots": True}, 2, 4),
    ],
    ids=[
        "plain",
        "keys taken",
        "kept taken",
        "kept gathered",
        "kept replaced",
        "shared",
        "beams taken",
        "mask of another name",
        "masks of both",
        "cache_position",
    ],
)
def test_forms_of_decoders(settings: dict[str, Any], attentions: int, kept: int, kernels: Any, tmp_path: Path) -> None:
    """Caches with other consumers are unchanged individually; gathered rows are gathered."""
    path = saved(decoder(**settings), tmp_path)
    assert held(path) == attentions
    session = session_of(path, kernels)
    assert len(session._state.in_place) == kept + (2 * attentions if kernels == "native" else 0)
    follow(session, path, TEXTS[1:])


@pytest.fixture
def both(tmp_path: Path) -> tuple[onnx_specops.InferenceSession, ov.InferRequest]:
    path = saved(decoder(), tmp_path)
    return session_of(path), openvino_request(path)


def feeds_of(count: int, beams: list[int], seed: int = 0) -> Feeds:
    feeds = {**encoded(len(beams), 5), **tokens(count, beams, seed)}
    return named(("x", "beam_idx", "encoder_hidden_states"), feeds)


def first(request: ov.InferRequest, feeds: Feeds) -> np.ndarray:
    return next(iter(request.infer(feeds).values())).copy()


def test_a_failed_run_changes_nothing(both: Any) -> None:
    """For every kind of failure: rows out of range, reordered rows, capacity for many more tokens."""
    session, request = both
    agree(session.run(None, feeds_of(4, [0, 1]))[0], first(request, feeds_of(4, [0, 1])))
    bad = {**feeds_of(100, [1, 0]), "x": np.zeros((2, 100, 7), F)}
    for feeds, message in (
        (feeds_of(1, [0, 2]), "beam_idx selects a row outside the 2 rows of the previous run"),
        (bad, "imension"),
        ({**bad, "beam_idx": np.array([0, 1], np.int32)}, "imension"),
        (named(("beam_idx", "encoder_hidden_states"), bad), "pass x"),
        ({**feeds_of(1, [0, 1]), "past_length": np.array(5)}, "past_length is 5, but the caches contain 4 tokens"),
    ):
        with pytest.raises(Exception, match=message):
            session.run(None, feeds)
    for seed, beams in enumerate(([1, 0], [1, 1], [0, 1])):
        agree(session.run(None, feeds_of(1, beams, seed))[0], first(request, feeds_of(1, beams, seed)))


def test_a_shorter_past(both: Any) -> None:
    """A caller who feeds past_length continues from there."""
    session, request = both
    session.run(None, feeds_of(3, [0, 1]))
    session.run(None, feeds_of(5, [0, 1], 1))
    request.infer(feeds_of(3, [0, 1]))
    got = session.run(None, {**feeds_of(2, [0, 1], 2), "past_length": np.array(3)})[0]
    agree(got, first(request, feeds_of(2, [0, 1], 2)))
    for value in (-1, 5):
        again = {**feeds_of(1, [1, 0], 3), "past_length": np.array(value)}
        agree(session.run(None, again)[0], first(request, feeds_of(1, [1, 0], 3)))
        session.run(None, {**feeds_of(0, [1, 0]), "past_length": np.array(5)})
        request.reset_state()
        for count, beams, seed in ((3, [0, 1], 0), (2, [0, 1], 2)):
            request.infer(feeds_of(count, beams, seed))


@pytest.mark.parametrize("kernels", KERNELS)
def test_variables_that_cannot_be_shortened(tmp_path: Path, kernels: Any) -> None:
    """The keys that are an output are not a cache that counts its tokens."""
    session = session_of(saved(decoder(taken="keys"), tmp_path), kernels)
    session.run(None, feeds_of(3, [0, 1]))
    with pytest.raises(ValueError, match="past_length is passed, but not all variables of the model can return"):
        session.run(None, {**feeds_of(1, [0, 1]), "past_length": np.array(2)})


@pytest.mark.parametrize("kernels", KERNELS)
def test_variables_belong_to_the_session(tmp_path: Path, kernels: Any) -> None:
    """A caller who requests it gets a copy without extra capacity."""
    path = saved(decoder(), tmp_path)
    session, request = session_of(path, kernels), openvino_request(path)
    names = [next(iter(o.name for o in session.get_outputs())), "past.0.key.next", "cross.0.0.next", "past_length.next"]
    for number, count in enumerate((3, 1, 2)):
        wanted = first(request, feeds_of(count, [0, 1], number))
        got, keys, kept, length = session.run(names, feeds_of(count, [0, 1], number))
        agree(got, wanted)
        state = {variable.name: variable.state.data.copy() for variable in request.query_state()}
        agree(keys, state["past.0.key"])
        agree(kept, state["cross.0.0"])
        assert length == keys.shape[2]
        keys[...], kept[...] = 99, 99


def test_caches_fed_by_the_caller(both: Any) -> None:
    """The caller gets the requested outputs, and the session's state is unchanged."""
    session, request = both
    names = [session.get_outputs()[0].name, *session._state.outputs]
    fresh = dict(zip(names, session.run(names, feeds_of(3, [0, 1])), strict=True))
    request.infer(feeds_of(3, [0, 1]))
    session.run(None, feeds_of(1, [0, 1], 1))
    carried = {v.input: fresh[v.output] for v in session._state.variables if v.input != "past_length"}
    agree(session.run(None, {**feeds_of(1, [1, 0], 5), **carried})[0], first(request, feeds_of(1, [1, 0], 5)))
    request.reset_state()
    for seed, count in ((0, 3), (1, 1)):
        request.infer(feeds_of(count, [0, 1], seed))
    agree(session.run(None, feeds_of(1, [0, 1], 2))[0], first(request, feeds_of(1, [0, 1], 2)))


def test_constant_variables_fed_by_the_caller(both: Any) -> None:
    """The fed value is used and kept; the caller's memory is not written to."""
    session, _ = both
    session.run(None, feeds_of(3, [0, 1]))
    doubled = {}
    for variable in session._state._kept:
        array = session._state._values[variable.input].numpy() * 2
        doubled[variable.input] = array
    before = {name: array.copy() for name, array in doubled.items()}
    session.run(None, {**feeds_of(1, [0, 1], 1), **doubled})
    session.run(None, feeds_of(1, [0, 1], 2))
    for name, array in before.items():
        np.testing.assert_array_equal(doubled[name], array)
        np.testing.assert_array_equal(session._state._values[name].numpy(), array)


def test_threads_are_serialized(both: Any) -> None:
    session, request = both
    feeds = feeds_of(1, [0, 1])
    session.run(None, feeds)
    threads = [threading.Thread(target=lambda: [session.run(None, feeds) for _ in range(20)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for _ in range(81):
        request.infer(feeds)
    agree(session.run(None, feeds)[0], first(request, feeds))


@pytest.mark.parametrize("length", ["x", "nowhere"])
def test_an_invalid_number_of_tokens(tmp_path: Path, length: str) -> None:
    model = onnx.load(saved(decoder(), tmp_path))
    entry = next(p for p in model.metadata_props if p.key == METADATA_KEY)
    entries = json.loads(entry.value)
    for item in entries:
        item |= {"past_length": length} if "axis" in item else {}
    entry.value = json.dumps(entries)
    if length == "x":
        with pytest.raises(ValueError, match=r"damaged: .* contains a number of tokens, x, that is not an integer variable"):
            onnx_specops.InferenceSession(model.SerializeToString())
    else:  # variables without an input or output are left to the caller
        session = onnx_specops.InferenceSession(model.SerializeToString())
        assert not [name for name in session._state.in_place if name.startswith("past")]
