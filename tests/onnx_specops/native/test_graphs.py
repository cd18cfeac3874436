"""Type and shape inference in ONNX Runtime, and the registration of the library."""

from __future__ import annotations

import threading

import numpy as np
import onnxruntime as ort
import pytest
from onnx import TensorProto, numpy_helper

import onnx_specops
from tests.onnx_specops.native import nodes

F32, F64, I64 = TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.INT64
TABLE, INDICES, OFFSETS = np.ones((4, 3), np.float32), np.array([0, 1, 3]), np.array([0, 2])
DATA, AT, UPDATES, AXIS = np.zeros((3, 4), np.float64), np.ones((1, 4), np.int8), np.ones((1, 4)), np.array(0)
PROBS, SAMPLES = np.full((2, 3), 0.5, np.float32), np.array(5)


@pytest.mark.parametrize(
    ("op", "inputs", "type_", "attributes", "expected"),
    [
        ("EmbeddingBagOffsetsSum", [TABLE, INDICES, OFFSETS], F32, {}, [[2, 2, 2], [1, 1, 1]]),
        ("ScatterElementsUpdate", [DATA, AT, UPDATES, AXIS], F64, {}, [[0] * 4, [1] * 4, [0] * 4]),
        ("Multinomial", [PROBS * [[1, 0, 0]], SAMPLES], I64, {"with_replacement": 1}, [[0] * 5] * 2),
    ],
)
def test_output_types_are_inferred(op, inputs, type_, attributes, expected) -> None:
    inputs = [array.astype(np.float32) if op == "Multinomial" and array.ndim else array for array in inputs]
    assert nodes.run(op, inputs, [type_], attributes, followed=True)[0].tolist() == expected


def test_shapes_are_inferred() -> None:
    dimensions = [["rows", 3], ["n"], ["bags"]]
    model = nodes.model("EmbeddingBagOffsetsSum", [TABLE, INDICES, OFFSETS], [F32], dimensions=dimensions)
    assert nodes.session(model).get_outputs()[0].shape == ["bags", 3]
    dimensions = [["a", 4], [1, "c"], [1, "c"], []]
    model = nodes.model("ScatterElementsUpdate", [DATA, AT, UPDATES, AXIS], [F64], dimensions=dimensions)
    assert nodes.session(model).get_outputs()[0].shape == ["a", 4]


def test_an_omitted_input_in_the_middle() -> None:
    weights = np.array([1, 2, 3], np.float32)
    given = nodes.run("EmbeddingBagOffsetsSum", [TABLE, INDICES, OFFSETS, None, weights], [F32], followed=True)
    assert given[0].tolist() == [[3, 3, 3], [3, 3, 3]]


def test_empty_tensors_represent_omitted_inputs() -> None:
    empty = [np.zeros(0, np.int64), np.zeros(0, np.float32)]
    given = nodes.run("EmbeddingBagOffsetsSum", [TABLE, INDICES, np.array([0, 3]), *empty], [F32])
    assert given[0].tolist() == [[3, 3, 3], [0, 0, 0]]


@pytest.mark.parametrize(
    ("op", "inputs", "type_", "attributes", "message"),
    [
        (
            "EmbeddingBagOffsetsSum",
            [TABLE, INDICES.astype(np.int8), OFFSETS.astype(np.int8)],
            F32,
            {},
            r"tensor\(int8\)",
        ),
        (
            "EmbeddingBagOffsetsSum",
            [TABLE, INDICES.astype(np.int32), OFFSETS],
            F32,
            {},
            "EmbeddingBagOffsetsSum",
        ),
        (
            "ScatterElementsUpdate",
            [DATA, AT.astype(np.float32), UPDATES, AXIS],
            F64,
            {},
            "ScatterElementsUpdate: indices has the element type float32; expected one of int8, int16",
        ),
        (
            "ScatterElementsUpdate",
            [DATA, AT, UPDATES.astype(np.float32), AXIS],
            F64,
            {},
            "ScatterElementsUpdate",
        ),
        (
            "ScatterElementsUpdate",
            [DATA, AT, UPDATES, AXIS],
            F64,
            {"reduction": "median"},
            "ScatterElementsUpdate: attribute reduction = 'median' is not one of none, sum",
        ),
        ("Multinomial", [PROBS, SAMPLES], I64, {}, "Multinomial: attribute with_replacement is missing"),
        ("Multinomial", [PROBS.astype(np.int32), SAMPLES], I64, {"with_replacement": 1}, r"tensor\(int32\)"),
    ],
)
def test_unsupported_nodes_fail_at_session_creation(op, inputs, type_, attributes, message) -> None:
    with pytest.raises(Exception, match=message):
        nodes.session(nodes.model(op, inputs, [type_], attributes))


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("log_probs", 1.5, "log_probs is not an integer"),
        ("log_probs", "1", "log_probs is not an integer"),
        ("log_probs", [1, 0], "log_probs is not an integer"),
        ("log_probs", np.array([1]), "log_probs is not an integer"),
        ("op_seed", ["a"], "op_seed is not an integer"),
    ],
)
def test_an_attribute_of_another_type_is_not_reported_as_missing(name, value, message) -> None:
    value = numpy_helper.from_array(value) if isinstance(value, np.ndarray) else value
    with pytest.raises(Exception, match=f"Multinomial: attribute {message}"):
        nodes.session(nodes.model("Multinomial", [PROBS, SAMPLES], [I64], {"with_replacement": 1, name: value}))


def test_the_library_may_be_registered_repeatedly() -> None:
    model = nodes.model("Multinomial", [PROBS, SAMPLES], [I64], {"with_replacement": 1, "op_seed": 1})
    feeds = {"i0": PROBS, "i1": SAMPLES}
    answers = []
    for _ in range(3):
        options = ort.SessionOptions()
        options.register_custom_ops_library(onnx_specops.library_path())
        made = [ort.InferenceSession(model, options) for _ in range(2)]
        answers += [session.run(None, feeds)[0].tolist() for session in made]
    assert all(answer == answers[0] for answer in answers)


def test_a_session_may_run_in_several_threads() -> None:
    rng = np.random.default_rng(0)
    data, indices = np.zeros((64, 300), np.float32), rng.integers(0, 300, (64, 200))
    updates = rng.standard_normal((64, 200)).astype(np.float32)
    inputs = [data, indices, updates, np.array(1)]
    session = nodes.session(nodes.model("ScatterElementsUpdate", inputs, [F32], {"reduction": "mean"}))
    feeds = {f"i{k}": array for k, array in enumerate(inputs)}
    expected = session.run(None, feeds)[0]
    wrong = []

    def call() -> None:
        wrong.extend(1 for _ in range(50) if not np.array_equal(session.run(None, feeds)[0], expected))

    threads = [threading.Thread(target=call) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.parametrize(
    ("op", "inputs", "type_", "attributes", "message"),
    [
        (
            "EmbeddingBagOffsetsSum",
            [TABLE, np.array([0, 9, 1]), OFFSETS],
            F32,
            {},
            r"EmbeddingBagOffsetsSum: indices\[1\] = 9 is out of range \[0, 3\]",
        ),
        (
            "ScatterElementsUpdate",
            [DATA, np.array([[0, 1, 2, -4]]), UPDATES, AXIS],
            F64,
            {},
            r"ScatterElementsUpdate: indices\[0, 3\] = -4 is out of range \[-3, 2\]",
        ),
        (
            "Multinomial",
            [PROBS, np.array(4)],
            I64,
            {"with_replacement": 0},
            "Multinomial: num_samples = 4 is more than the 3 classes",
        ),
        (
            "Multinomial",
            [PROBS, np.array(2**62)],
            I64,
            {"with_replacement": 1},
            r"Multinomial: .*\[2, 4611686018427387904\]",
        ),
    ],
)
def test_errors_of_a_run_are_statuses(op, inputs, type_, attributes, message) -> None:
    session = nodes.session(nodes.model(op, inputs, [type_], attributes))
    feeds = {f"i{k}": array for k, array in enumerate(inputs)}
    for _ in range(2):  # the session remains usable
        with pytest.raises(Exception, match=message):
            session.run(None, feeds)


def test_more_samples_than_fit_in_memory() -> None:
    with pytest.raises(Exception, match=r"Multinomial|memory|alloc"):
        nodes.run("Multinomial", [PROBS, np.array(2**48)], [I64], {"with_replacement": 1})


def test_the_first_error_is_reported_with_any_number_of_threads() -> None:
    rng = np.random.default_rng(1)
    indices = rng.integers(0, 1000, 100_000)
    indices[[40_000, 70_000, 99_999]] = [-1, 1000, 2000]
    inputs = [np.ones((1000, 16), np.float32), indices, np.arange(0, 100_000, 10)]
    for _ in range(5):
        with pytest.raises(Exception, match=r"indices\[40000\] = -1 is out of range \[0, 999\]"):
            nodes.run("EmbeddingBagOffsetsSum", inputs, [F32])
    at = rng.integers(0, 50, (3000, 20))
    at[1500, 3] = at[2999, 0] = 50
    inputs = [np.ones((3000, 50), np.float32), at, np.ones((3000, 20), np.float32), np.array(-1)]
    for _ in range(5):
        with pytest.raises(Exception, match=r"indices\[1500, 3\] = 50 is out of range \[-50, 49\]"):
            nodes.run("ScatterElementsUpdate", inputs, [F32])
    probs = np.ones((500, 400), np.float32)
    probs[[300, 499], [7, 0]] = -1
    for _ in range(5):
        with pytest.raises(Exception, match=r"row 300 contains a negative probability, -1.*, at class 7"):
            nodes.run("Multinomial", [probs, np.array(3)], [I64], {"with_replacement": 0})
