"""The variables of converted models in our sessions and ONNX Runtime's, against an OpenVINO infer request."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
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
from converters.validation.onnx_model import OnnxModel
from converters.validation.runtimes import run as run_in
from onnx_specops.runtime.variables import METADATA_KEY

F = np.float32
KERNELS = ["native", "python", "none"]


def accumulator(*, initial: str = "constant", dtype: type = F, name: str = "memory") -> ov.Model:
    """Return a model that adds its input to a variable, and outputs the sum through an operator of the domain."""
    x = ops.parameter([2, 3], dtype, name="x")
    kind = {F: ov.Type.f32, np.float16: ov.Type.f16, np.int32: ov.Type.i32}[dtype]
    start = {
        "constant": lambda: [ops.constant(np.full((2, 3), 5, dtype))],
        "computed": lambda: [ops.multiply(x, ops.constant(dtype(10)))],
        "none": list,
    }[initial]()
    read = ops.read_value(*start, name, kind, ov.PartialShape([2, 3]))
    following = ops.add(read, x)
    indices, axis = ops.constant(np.array([[2, 0, 0], [1, 1, 1]], np.int64)), ops.constant(np.int64(1))
    mixed = ops.scatter_elements_update(following, indices, ops.multiply(x, x), axis, "sum", True)
    mixed.output(0).set_names({"mixed"})
    return ov.Model([ops.result(mixed)], [ops.assign(following, name)], [x])


def cache() -> ov.Model:
    """Return a model with two growing caches, the second reordered by indices, as in language models."""
    x, order = ops.parameter([-1, -1, 4], F, name="x"), ops.parameter([-1], np.int32, name="order")
    zero = ops.constant(np.int64(0))
    batch = ops.gather(ops.shape_of(x), ops.constant(np.array([0])), zero)
    shape = ops.concat([batch, ops.constant(np.array([0, 4]))], 0)
    results, sinks = [], []
    for name in ("past.key", "past.value"):
        start = ops.broadcast(ops.constant(F(0)), shape)
        read = ops.read_value(start, name, ov.Type.f32, ov.PartialShape([-1, -1, 4]))
        known = ops.gather(read, order, zero) if name == "past.value" else read
        grown = ops.concat([known, x], 1)
        sinks.append(ops.assign(grown, name))
        results.append(ops.result(ops.reduce_sum(grown, ops.constant(np.array([1])), False)))
    return ov.Model(results, sinks, [x, order])


def save(model: ov.Model, folder: Path, **options: Any) -> Path:
    """Convert the model; return the path of the .onnx."""
    ov.save_model(model, folder / "model.xml", compress_to_fp16=False)
    convert(folder / "model.xml", folder / "model.onnx", **options)
    return folder / "model.onnx"


def openvino_request(path: Path) -> ov.InferRequest:
    compiled = ov.Core().compile_model(path.with_suffix(".xml"), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    return compiled.create_infer_request()


def session_of(path: Path, kernels: str) -> onnx_specops.InferenceSession:
    if kernels == "native":
        try:
            onnx_specops.library_path()
        except LookupError:
            pytest.skip("the native kernels are not built")
    return onnx_specops.InferenceSession(path, kernels=kernels)  # type: ignore[arg-type]


def equal(got, expected) -> None:
    for a, b in zip(got, expected, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=1e-5)


RUNS = [np.arange(6, dtype=F).reshape(2, 3) + i for i in range(4)]


@pytest.mark.parametrize("kernels", KERNELS)
@pytest.mark.parametrize("initial", ["constant", "computed", "none"])
@pytest.mark.parametrize("dtype", [F, np.float16, np.int32])
def test_the_state_is_kept_and_reset(tmp_path: Path, kernels: str, initial: str, dtype: type) -> None:
    path = save(accumulator(initial=initial, dtype=dtype), tmp_path)
    session, request = session_of(path, kernels), openvino_request(path)
    for step, x in enumerate([*RUNS, *RUNS]):
        if step == len(RUNS) + 1:
            session.reset_state()
            request.reset_state()
        x = x.astype(dtype)
        equal(session.run(None, {"x": x}), list(request.infer([x]).values()))


@pytest.mark.parametrize("kernels", KERNELS)
@pytest.mark.parametrize("variables", ["defaults", "inputs"])
def test_caches_that_grow(tmp_path: Path, kernels: str, variables: str) -> None:
    path = save(cache(), tmp_path, variables=variables)
    session, request = session_of(path, kernels), openvino_request(path)
    generator = np.random.default_rng(0)
    for batch in (2, 3):
        for length, order in ((3, range(batch)), (1, [1] * batch), (2, [batch - 1, *range(batch - 1)])):
            x, order = generator.random((batch, length, 4), F), np.array(order, np.int32)
            equal(session.run(None, {"x": x, "order": order}), list(request.infer([x, order]).values()))
        session.reset_state()
        request.reset_state()


def test_a_session_shows_the_model_s_own_inputs_and_outputs(tmp_path: Path) -> None:
    session = session_of(save(cache(), tmp_path), "none")
    assert [i.name for i in session.get_inputs()] == ["x", "order"]
    assert len(session.get_outputs()) == 2
    assert all("past" not in output.name for output in session.get_outputs())
    feeds = {"x": np.ones((1, 1, 4), F), "order": np.zeros(1, np.int32)}
    assert len(session.run(None, feeds)) == 2
    (first,) = session.run([session.get_outputs()[0].name], feeds)
    np.testing.assert_array_equal(first, np.full((1, 4), 2, F))


def test_a_variable_can_be_requested_and_fed(tmp_path: Path) -> None:
    session = session_of(save(accumulator(), tmp_path), "none")
    mixed, following = session.run(["mixed", "memory.next"], {"x": RUNS[0]})
    np.testing.assert_array_equal(following, RUNS[0] + 5)
    assert mixed.shape == (2, 3)
    (following,) = session.run(["memory.next"], {"x": RUNS[1]})
    np.testing.assert_array_equal(following, RUNS[0] + RUNS[1] + 5)
    (following,) = session.run(["memory.next"], {"x": RUNS[1], "memory": np.zeros((2, 3), F)})
    np.testing.assert_array_equal(following, RUNS[1])
    (following,) = session.run(["memory.next"], {"x": RUNS[1]})
    np.testing.assert_array_equal(following, RUNS[1] * 2)


def test_sessions_are_independent(tmp_path: Path) -> None:
    path = save(accumulator(), tmp_path)
    first, second = session_of(path, "none"), session_of(path, "none")
    for _ in range(3):
        first.run(None, {"x": RUNS[1]})
    (fresh,) = second.run(["memory.next"], {"x": RUNS[0]})
    np.testing.assert_array_equal(fresh, RUNS[0] + 5)
    second.reset_state()
    (kept,) = first.run(["memory.next"], {"x": RUNS[0]})
    np.testing.assert_array_equal(kept, RUNS[1] * 3 + RUNS[0] + 5)


@pytest.mark.parametrize("opset", [21, 13])
@pytest.mark.parametrize("initial", ["constant", "computed", "none"])
def test_variables_as_required_inputs(tmp_path: Path, initial: str, opset: int) -> None:
    """For hosts that feed all inputs: a caller who marks the variables as unset starts again, and so does our session."""
    path = save(accumulator(initial=initial), tmp_path, variables="inputs", opset=opset)
    onnx.checker.check_model(str(path), full_check=True)
    plain, ours, request = ort.InferenceSession(path), session_of(path, "none"), openvino_request(path)
    assert [i.name for i in plain.get_inputs()] == ["x", "memory", "memory.is_set"]
    assert not plain.get_overridable_initializers()
    assert [i.name for i in ours.get_inputs()] == ["x"]
    for _ in range(2):
        held, is_set = np.full((2, 3), 99, F), False
        for x in RUNS:
            expected = list(request.infer([x]).values())
            equal(ours.run(None, {"x": x}), expected)
            feeds = {"x": x, "memory": held, "memory.is_set": np.array(is_set)}
            *outputs, held = plain.run(["mixed", "memory.next"], feeds)
            equal(outputs, expected)
            is_set = True
        request.reset_state()
        ours.reset_state()


def test_an_initial_value_is_stored_with_the_weights(tmp_path: Path) -> None:
    x, start = ops.parameter([300, 300], F, name="x"), np.full((300, 300), 5, F)
    following = ops.add(ops.read_value(ops.constant(start), "memory", ov.Type.f32, ov.PartialShape([300, 300])), x)
    model = ov.Model([ops.result(ops.relu(following))], [ops.assign(following, "memory")], [x])
    (tmp_path / "elsewhere").mkdir()
    path = save(model, tmp_path, variables="inputs", weights="embed").rename(tmp_path / "elsewhere" / "model.onnx")
    feeds = {"x": start, "memory": start * 0, "memory.is_set": np.array(False)}
    (following,) = ort.InferenceSession(path).run(["memory.next"], feeds)
    np.testing.assert_array_equal(following, start * 2)


@pytest.mark.parametrize(
    ("initial", "variables"), [("constant", "inputs"), ("computed", "inputs"), ("computed", "defaults")]
)
def test_fed_values_replace_the_state(tmp_path: Path, initial: str, variables: str) -> None:
    session = session_of(save(accumulator(initial=initial), tmp_path, variables=variables), "none")
    (following,) = session.run(["memory.next"], {"x": RUNS[1], "memory": np.zeros((2, 3), F)})
    np.testing.assert_array_equal(following, RUNS[1])


def test_models_with_required_variables_are_compared(tmp_path: Path) -> None:
    path = save(accumulator(), tmp_path, variables="inputs")
    feeds = {"x": RUNS[1]}
    expected = list(openvino_request(path).infer([RUNS[1]]).values())
    for runtime in ("none", "reference"):
        arrays, _ = run_in(runtime, path, feeds, ["mixed"])
        equal([arrays["mixed"]], expected)
    assert [spec.name for spec in OnnxModel.load(path).inputs] == ["x"]


@pytest.mark.parametrize("kernels", KERNELS)
def test_threads_are_serialized(tmp_path: Path, kernels: str) -> None:
    session = session_of(save(accumulator(), tmp_path), kernels)
    one = np.ones((2, 3), F)
    threads = [threading.Thread(target=lambda: [session.run(None, {"x": one}) for _ in range(20)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (following,) = session.run(["memory.next"], {"x": one})
    np.testing.assert_array_equal(following, one * (5 + 81))


@pytest.mark.parametrize("kernels", KERNELS)
def test_every_run_method_carries_the_state(tmp_path: Path, kernels: str) -> None:
    session = session_of(save(accumulator(), tmp_path), kernels)
    one = np.ones((2, 3), F)
    session.run(None, {"x": one})
    session.run_with_ort_values(["mixed"], {"x": ort.OrtValue.ortvalue_from_numpy(one)})
    done, errors = threading.Event(), []

    def callback(results, user_data, error) -> None:
        errors.append(error)
        done.set()

    session.run_async(["mixed"], {"x": one}, callback, None)
    assert done.wait(60)
    assert errors == [""]
    (following,) = session.run(["memory.next"], {"x": one})
    np.testing.assert_array_equal(following, one * 9)


@pytest.mark.parametrize("kernels", KERNELS)
def test_a_failed_run_keeps_the_state(tmp_path: Path, kernels: str) -> None:
    session = session_of(save(cache(), tmp_path), kernels)
    good = {"x": np.ones((2, 1, 4), F), "order": np.array([0, 1], np.int32)}
    session.run(None, good)
    with pytest.raises(Exception, match="Concat"):
        session.run(None, {"x": np.ones((2, 1, 4), F), "order": np.array([0, 1, 1], np.int32)})
    with pytest.raises(Exception, match="order"):
        session.run(None, {"x": np.ones((2, 1, 4), F)})
    for result in session.run(None, good):
        np.testing.assert_array_equal(result, np.full((2, 4), 2, F))


@pytest.mark.parametrize("initial", ["constant", "computed", "none"])
def test_a_plain_session_starts_each_run_from_the_initial_state(tmp_path: Path, initial: str) -> None:
    path = save(accumulator(initial=initial), tmp_path)
    onnx.checker.check_model(str(path), full_check=True)
    session, request = ort.InferenceSession(str(path)), openvino_request(path)
    assert [i.name for i in session.get_inputs()] == ["x"]
    assert len(session.get_outputs()) == 2
    for x in RUNS:
        request.reset_state()
        equal(session.run(["mixed"], {"x": x}), list(request.infer([x]).values()))


@pytest.mark.parametrize("initial", ["constant", "computed"])
def test_a_plain_session_s_caller_can_carry_the_state(tmp_path: Path, initial: str) -> None:
    """Any runtime's caller can, with the model's metadata."""
    path = save(accumulator(initial=initial), tmp_path)
    session, request = ort.InferenceSession(str(path)), openvino_request(path)
    (variable,) = json.loads(session.get_modelmeta().custom_metadata_map[METADATA_KEY])
    assert variable["name"] == "memory"
    held: dict[str, np.ndarray] = {}
    for x in RUNS:
        mixed, following = session.run(["mixed", variable["output"]], {"x": x, **held})
        held = {variable["input"]: following}
        if "is_set" in variable:
            held[variable["is_set"]] = np.array(True)
        equal([mixed], list(request.infer([x]).values()))
    assert ("is_set" in variable) == (initial == "computed")


def branch() -> ov.Model:
    """Return a model that, if the flag is set, adds its input to a variable that starts as ten times the first input."""
    flag, x = ops.parameter([], np.bool_, name="flag"), ops.parameter([2, 3], F, name="x")
    a, b = ops.parameter([2, 3], F), ops.parameter([2, 3], F)
    read = ops.read_value(ops.multiply(a, ops.constant(F(10))), "memory", ov.Type.f32, ov.PartialShape([2, 3]))
    following = ops.add(read, a)
    then = ov.Model([ops.result(following)], [ops.assign(following, "memory")], [a])
    other = ov.Model([ops.result(ops.relu(b))], [b])
    node = ops.if_op(flag.output(0))
    node.set_then_body(then)
    node.set_else_body(other)
    node.set_input(x.output(0), a, b)
    result = node.set_output(then.get_results()[0], other.get_results()[0])
    result.set_names({"mixed"})
    return ov.Model([result], [flag, x])


def test_a_variable_that_a_run_may_leave_unset(tmp_path: Path) -> None:
    """An output states whether it has a value."""
    path = save(branch(), tmp_path)
    session, request = ort.InferenceSession(str(path)), openvino_request(path)
    (variable,) = json.loads(session.get_modelmeta().custom_metadata_map[METADATA_KEY])
    held: dict[str, np.ndarray] = {}
    for run, x in zip((False, True, False, True), RUNS, strict=True):
        feeds = {"flag": np.array(run), "x": x}
        outputs = ["mixed", variable["output"], variable["is_set_output"]]
        mixed, following, is_set = session.run(outputs, {**feeds, **held})
        held = {variable["input"]: following, variable["is_set"]: is_set}
        equal([mixed], list(request.infer(list(feeds.values())).values()))


def test_assigning_before_reading(tmp_path: Path) -> None:
    """A run reads the value that the previous one assigned, whatever the order of layers in the file."""
    x = ops.parameter([2, 3], F, name="x")
    read = ops.read_value(ops.constant(np.full((2, 3), 5, F)), "memory", ov.Type.f32, ov.PartialShape([2, 3]))
    tripled = ops.multiply(x, ops.constant(F(3)))
    path = save(ov.Model([ops.result(ops.relu(read))], [ops.assign(tripled, "memory")], [x]), tmp_path)
    session, request = session_of(path, "none"), openvino_request(path)
    for x in RUNS:
        equal(session.run(None, {"x": x}), list(request.infer([x]).values()))


@pytest.mark.parametrize("initial", ["constant", "computed"])
def test_a_variable_that_nothing_assigns_keeps_its_initial_value(tmp_path: Path, initial: str) -> None:
    """OpenVINO's CPU plugin rejects such models. By the specification the variable keeps its initial value."""
    x = ops.parameter([2, 3], F, name="x")
    start = ops.multiply(x, ops.constant(F(10))) if initial == "computed" else ops.constant(np.full((2, 3), 5, F))
    read = ops.read_value(start, "memory", ov.Type.f32, ov.PartialShape([2, 3]))
    session = session_of(save(ov.Model([ops.add(read, x)], [x]), tmp_path), "none")
    assert not session.get_overridable_initializers()
    for x in RUNS:
        (got,) = session.run(None, {"x": x})
        np.testing.assert_array_equal(got, x * 11 if initial == "computed" else x + 5)


def test_a_variable_with_the_name_of_an_input(tmp_path: Path) -> None:
    """A variable with the same name as an input."""
    path = save(accumulator(name="x"), tmp_path)
    session, request = session_of(path, "none"), openvino_request(path)
    for x in RUNS:
        equal(session.run(None, {"x": x}), list(request.infer([x]).values()))


def with_metadata(path: Path, text: str) -> bytes:
    model = onnx.load(path)
    del model.metadata_props[:]
    model.metadata_props.add(key=METADATA_KEY, value=text)
    return model.SerializeToString()


@pytest.mark.parametrize("text", ["", "[]", '[{"name": "a", "input": "b", "output": "c"}]'])
def test_metadata_of_unknown_variables(tmp_path: Path, text: str) -> None:
    """Their inputs and outputs are then ordinary ones."""
    session = onnx_specops.InferenceSession(with_metadata(save(accumulator(), tmp_path), text), kernels="none")
    assert len(session.get_outputs()) == 2
    session.reset_state()
    first = session.run(None, {"x": RUNS[1]})
    equal(session.run(None, {"x": RUNS[1]}), first)


ENTRY = {"name": "memory", "input": "memory", "output": "memory.next"}


@pytest.mark.parametrize(
    "hostile",
    [
        *("{", "[" * 100_000, "null", "5", "{}", "[1]", "[[]]", '[{"name": "a"}]'),
        *(
            [ENTRY | {"more": 1}],
            [ENTRY | {"input": ["x"]}],
            [ENTRY | {"output": {}}],
            [ENTRY | {"is_set": 3}],
            [ENTRY, ENTRY],
        ),
        *([ENTRY | {"axis": axis}] for axis in ("x", 1.5, True, -2, 1, 99, 10**30)),
        *([ENTRY | {"input": "x", "axis": axis}] for axis in (2, 10**30)),
    ],
)
def test_damaged_metadata_are_an_error(tmp_path: Path, hostile: object) -> None:
    """No crash, no invented state, no silently ignored variable."""
    text = hostile if isinstance(hostile, str) else json.dumps(hostile)
    with pytest.raises(ValueError, match=r"the model's metadata is damaged: onnx_specops\.variables contains"):
        onnx_specops.InferenceSession(with_metadata(save(accumulator(), tmp_path), text), kernels="none")


@pytest.mark.parametrize("dtype", [F, np.float16, np.int32])
def test_lists_are_converted_as_in_onnxruntime(tmp_path: Path, dtype: type) -> None:
    session = session_of(save(accumulator(dtype=dtype), tmp_path), "none")
    expected = [session.run(None, {"x": x.astype(dtype)}) for x in RUNS]
    session.reset_state()
    for x, outputs in zip(RUNS, expected, strict=True):
        equal(session.run(None, {"x": x.astype(int).tolist()}), outputs)


def test_models_without_variables(tmp_path: Path) -> None:
    x = ops.parameter([2], F, name="x")
    session: Callable = session_of(save(ov.Model([ops.relu(x)], [x]), tmp_path), "none")
    session.reset_state()
    assert session.run(None, {"x": np.array([-1, 1], F)})[0].tolist() == [0, 1]
