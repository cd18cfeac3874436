"""ScaledDotProductAttentionWithKVCache in all forms agrees with OpenVINO's attention over the same keys and values."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import openvino as ov
import pytest
from onnx import TensorProto, helper
from openvino import opset13 as ops

import onnx_specops
from tests.onnx_specops.native import random_in_place_attention
from tests.onnx_specops.native.random_in_place_attention import LOWEST, NAMES, SCALE

F = np.float32
KERNELS = ["native", "python", "none"]


def model_of(feeds: dict[str, np.ndarray], softcap: float = 0.0, mask_replaces: int = 0) -> bytes:
    types = {name: helper.np_dtype_to_tensor_dtype(array.dtype) for name, array in feeds.items()}
    outputs = ("Y", "present_key", "present_value")
    node = helper.make_node(
        "ScaledDotProductAttentionWithKVCache",
        [name if name in feeds else "" for name in NAMES],
        outputs,
        domain="onnx_specops",
        scale=SCALE,
        softcap=softcap,
        mask_replaces=mask_replaces,
    )
    graph = helper.make_graph(
        [node],
        "attention",
        [helper.make_tensor_value_info(name, types[name], [None] * feeds[name].ndim) for name in NAMES if name in feeds],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, [None] * 4) for name in outputs],
    )
    imports = [helper.make_opsetid("", 21), helper.make_opsetid("onnx_specops", 1)]
    return onnx_specops.add_bodies(helper.make_model(graph, opset_imports=imports, ir_version=10)).SerializeToString()


def session_of(feeds: dict[str, np.ndarray], kernels: Any, **attributes: Any) -> onnx_specops.InferenceSession:
    options = ort.SessionOptions()
    options.log_severity_level = 4
    return onnx_specops.InferenceSession(model_of(feeds, **attributes), options, kernels=kernels)


def present(past: np.ndarray, new: np.ndarray, feeds: dict[str, np.ndarray]) -> np.ndarray:
    """Return the cache with the new tokens."""
    length = int(feeds.get("past_length", past.shape[2]))
    rows = feeds.get("beam_idx", np.arange(len(new)))
    total = length + new.shape[2]
    whole = np.zeros((*new.shape[:2], max(past.shape[2], total), new.shape[3]), F)
    if past.shape[2]:
        whole[:, :, : past.shape[2]] = past[rows]
    whole[:, :, length:total] = new
    return whole


def openvino_attention(feeds: dict[str, np.ndarray], keys: np.ndarray, values: np.ndarray, softcap: float) -> np.ndarray:
    """Compute OpenVINO's MatMul, Softmax and MatMul for each head."""
    times = feeds["query"].shape[1] // keys.shape[1]
    total = int(feeds.get("past_length", feeds["past_key"].shape[2])) + feeds["key"].shape[2]
    arrays = [feeds["query"], *(np.repeat(array[:, :, :total], times, axis=1) for array in (keys, values))]
    inputs = [ops.parameter(array.shape, F) for array in arrays]
    products = ops.multiply(ops.matmul(inputs[0], inputs[1], False, True), ops.constant(F(SCALE)))
    if softcap:
        products = ops.multiply(ops.tanh(ops.divide(products, ops.constant(F(softcap)))), ops.constant(F(softcap)))
    if "attention_mask" in feeds:
        products = ops.add(products, ops.constant(feeds["attention_mask"]))
    if "sink" in feeds:
        column = np.broadcast_to(feeds["sink"][:, None, None], (*arrays[0].shape[:3], 1))
        products = ops.concat([products, ops.constant(np.ascontiguousarray(column))], 3)
    shares = ops.softmax(products, 3)
    bounds = [np.array([number], np.int64) for number in (0, total, 1, 3)]
    shares = ops.slice(shares, *(ops.constant(bound) for bound in bounds))
    model = ov.Model([ops.result(ops.matmul(shares, inputs[2], False, False))], inputs)
    compiled = ov.Core().compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    return next(iter(compiled(arrays).values()))


def drawn(seed: int) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Return random inputs of a node, with random optional inputs, and its attributes besides the scale."""
    _, arrays, _, attributes = random_in_place_attention.attention(np.random.default_rng(seed))
    del attributes["scale"]
    return {name: array for name, array in zip(NAMES, arrays, strict=True) if array is not None}, attributes


@pytest.mark.parametrize("seed", range(60))
def test_every_form_agrees_with_openvino(seed: int) -> None:
    feeds, attributes = drawn(seed)
    keys, values = (present(feeds[f"past_{name}"], feeds[name], feeds) for name in ("key", "value"))
    wanted = openvino_attention(feeds, keys, values, attributes["softcap"])
    for kernels in KERNELS:
        mixed, got_keys, got_values = session_of(feeds, kernels, **attributes).run(None, feeds)
        np.testing.assert_allclose(mixed, wanted, rtol=1e-4, atol=1e-5)
        np.testing.assert_array_equal(got_keys, keys)
        np.testing.assert_array_equal(got_values, values)


def plain(batch: int = 2, heads: int = 2, sequence: int = 3, room: int = 4, size: int = 8) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    shapes = {name: (batch, heads, room if "past" in name else sequence, size) for name in NAMES[:5]}
    return {name: rng.standard_normal(shape).astype(F) for name, shape in shapes.items()}


@pytest.mark.parametrize("kernels", KERNELS)
def test_a_mask_that_hides_all_tokens(kernels: Any) -> None:
    """With the lowest number all keys have equal weights. With minus infinity the result is 0, as in OpenVINO's fused
    attention.
    """
    feeds = plain()
    mask = np.zeros((2, 1, 3, 7), F)
    mask[0, 0, 0], mask[1, 0, 2] = LOWEST, -np.inf
    mixed, _, values = session_of(feeds | {"attention_mask": mask}, kernels).run(None, feeds | {"attention_mask": mask})
    np.testing.assert_allclose(mixed[0, :, 0], values[0].mean(axis=1), rtol=1e-4, atol=1e-5)
    assert not mixed[1, :, 2].any() and not np.isnan(mixed).any()


@pytest.mark.parametrize("kernels", KERNELS)
@pytest.mark.parametrize("number", [np.inf, np.nan])
@pytest.mark.parametrize(("lowest", "replaces", "is_hidden"), [
    (-np.inf, 1, True), (LOWEST, 1, True), (-1e30, 1, True), (-1e29, 1, False), (-np.inf, 0, False), (-1e29, 0, False),
])  # fmt: skip
@pytest.mark.parametrize("sequence", [1, 3, 7])
def test_a_hidden_key_that_is_not_a_number(
    kernels: Any, number: float, lowest: float, replaces: int, is_hidden: bool, sequence: int
) -> None:
    """With ``mask_replaces``, its score is that of the mask. Otherwise, it is infinite or NaN."""
    feeds = plain(sequence=sequence, room=70)
    feeds["attention_mask"] = np.zeros((2, 1, 1, 70 + sequence), F)
    feeds["attention_mask"][..., 3] = lowest
    feeds["query"][..., 2] = 1
    wanted = session_of(feeds, kernels).run(None, feeds)[0]
    feeds["past_key"][:, :, 3, 2] = number
    got = session_of(feeds, kernels, mask_replaces=replaces).run(None, feeds)[0]
    if is_hidden:
        np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6)
    else:
        assert np.isnan(got).all()


@pytest.mark.parametrize("kernels", KERNELS)
@pytest.mark.parametrize(("added", "is_zero"), [(-np.inf, True), (np.nan, False), (np.inf, False), (LOWEST, False)])
def test_one_finite_score_among_infinities(kernels: Any, added: float, is_zero: bool) -> None:
    """The result is 0 only if all scores are minus infinity."""
    feeds = plain() | {"attention_mask": np.full((2, 1, 3, 7), -np.inf, F)}
    feeds["attention_mask"][..., 4] = added
    mixed, _, values = session_of(feeds, kernels).run(None, feeds)
    if added == LOWEST:
        np.testing.assert_array_equal(mixed, np.repeat(values[:, :, 4:5], 3, axis=2))
    else:
        np.testing.assert_array_equal(mixed, np.full_like(mixed, 0 if is_zero else np.nan))


@pytest.mark.parametrize("kernels", KERNELS)
@pytest.mark.parametrize("sink", [0.0, -np.inf])
def test_a_sink_without_visible_keys(kernels: Any, sink: float) -> None:
    feeds = plain() | {"attention_mask": np.full((2, 1, 3, 7), -np.inf, F), "sink": np.full(2, sink, F)}
    np.testing.assert_array_equal(session_of(feeds, kernels).run(None, feeds)[0], np.zeros((2, 2, 3, 8), F))


@pytest.mark.parametrize("kernels", KERNELS)
@pytest.mark.parametrize("place", ["query", "key", "past_value", "attention_mask", "sink"])
def test_nan_is_propagated(kernels: Any, place: str) -> None:
    feeds = plain() | {"attention_mask": np.zeros((2, 2, 3, 7), F), "sink": np.zeros(2, F)}
    feeds[place] = feeds[place].copy()
    feeds[place].reshape(-1)[0] = np.nan
    assert np.isnan(session_of(feeds, kernels).run(None, feeds)[0][0, 0, 0]).any()


@pytest.mark.parametrize("kernels", KERNELS)
@pytest.mark.parametrize("changed", [{"batch": 0}, {"heads": 0}, {"sequence": 0}, {"size": 0}, {"room": 0}])
def test_empty_dimensions(kernels: Any, changed: dict[str, int]) -> None:
    feeds = plain(**changed)
    results = session_of(feeds, kernels).run(None, feeds)
    assert results[0].shape == feeds["query"].shape
    for got, name in zip(results[1:], ("key", "value"), strict=True):
        np.testing.assert_array_equal(got, present(feeds[f"past_{name}"], feeds[name], feeds))


WRONG: dict[str, tuple[dict[str, np.ndarray], str]] = {
    "heads that share no keys": ({"query": np.zeros((2, 3, 3, 8), F)}, "3 query heads are not a multiple of 2 key heads"),
    "keys of another size": ({"key": np.zeros((2, 2, 3, 4), F)}, "do not match"),
    "a cache of other heads": ({"past_key": np.zeros((2, 1, 4, 8), F)}, "do not match"),
    "caches of different room": ({"past_value": np.zeros((2, 2, 5, 8), F)}, "do not match"),
    "more tokens than there is room": ({"past_length": np.array(5)}, r"past_length = 5 is out of range \[0, 4\]"),
    "fewer than no tokens": ({"past_length": np.array(-1)}, r"past_length = -1 is out of range \[0, 4\]"),
    "rows that do not follow": ({"past_key": np.zeros((3, 2, 4, 8), F), "past_value": np.zeros((3, 2, 4, 8), F)}, "3 rows"),
    "a row that is not there": ({"beam_idx": np.array([0, 2], np.int32)}, r"out of \[-2, 2\)"),
    "too few beams": ({"beam_idx": np.array([1], np.int32)}, "beam_idx has the shape"),
    "a mask of fewer tokens": ({"attention_mask": np.zeros((1, 1, 3, 6), F)}, "attention_mask has the shape"),
    "a mask of other queries": ({"attention_mask": np.zeros((1, 1, 2, 7), F)}, "attention_mask has the shape"),
    "sinks of other heads": ({"sink": np.zeros(3, F)}, "sink has the shape"),
}


@pytest.mark.parametrize("kernels", KERNELS)
@pytest.mark.parametrize("what", WRONG)
def test_invalid_inputs(kernels: Any, what: str) -> None:
    """Bodies fail too, with any message."""
    feeds, message = WRONG[what]
    feeds = plain() | feeds
    session = session_of(feeds, kernels)
    with pytest.raises(Exception, match=None if kernels == "none" else message):
        session.run(None, feeds)


@pytest.mark.parametrize("kernels", KERNELS)
@pytest.mark.parametrize("beams", [None, [0, 1], [1, 0], [1, 1], [-1, 0]])
def test_a_cache_that_is_input_and_output(kernels: Any, beams: list[int] | None) -> None:
    feeds = plain(room=9) | {"past_length": np.array(4)}
    if beams is not None:
        feeds["beam_idx"] = np.array(beams)
    keys, values = (present(feeds[f"past_{name}"], feeds[name], feeds) for name in ("key", "value"))
    wanted = openvino_attention(feeds, keys, values, softcap=0.0)
    session = session_of(feeds, kernels)
    binding = session.io_binding()
    lent = {name: ort.OrtValue.ortvalue_from_numpy(feeds[name].copy()) for name in ("past_key", "past_value")}
    for name, array in feeds.items():
        binding.bind_ortvalue_input(name, lent.get(name) or ort.OrtValue.ortvalue_from_numpy(array))
    binding.bind_output("Y")
    for name in ("key", "value"):
        binding.bind_ortvalue_output(f"present_{name}", lent[f"past_{name}"])
    session.run_with_iobinding(binding)
    np.testing.assert_allclose(binding.get_outputs()[0].numpy(), wanted, rtol=1e-4, atol=1e-5)
    for value, array in zip(lent.values(), (keys, values), strict=True):
        np.testing.assert_array_equal(value.numpy(), array)


def test_shape_inference() -> None:
    feeds = plain()
    inferred = onnx.shape_inference.infer_shapes(onnx.load_from_string(model_of(feeds)), strict_mode=True, data_prop=True)
    assert [len(value.type.tensor_type.shape.dim) for value in inferred.graph.output] == [4, 4, 4]
