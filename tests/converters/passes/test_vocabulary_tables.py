"""TensorFlow's vocabulary tables become one node; near misses stay correct."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import pytest

import onnx_specops
from converters.openvino import convert
from converters.passes.vocabulary_tables import FuseVocabularyTables, LabelVocabularyTables
from onnx_specops.building import new_value
from tests.converters.passes import string_models
from tests.converters.passes.graphs import rewritten

TABLE, LABELS, HASH = "onnx_specops.VocabularyTable", "ai.onnx.ml.LabelEncoder", "onnx_specops.StringToHashBucket"

# The relevant operators of each converted model, with their counts.
BECOMES: dict[str, dict[str, int]] = {
    "table": {TABLE: 1},
    "table-swapped": {TABLE: 1},
    "table-other-miss": {TABLE: 1},
    "table-miss-above": {TABLE: 1},
    "table-one-bucket": {TABLE: 1},
    "table-shared": {TABLE: 2, LABELS: 1},
    "table-numbers": {TABLE: 1},
    "table-numbers-i32": {TABLE: 1},
    "look-up": {LABELS: 1},
    "look-up-i32": {LABELS: 1},
    "look-up-ids-of-equals": {LABELS: 1},
    "numbers": {LABELS: 1},
    "numbers-i32": {LABELS: 1},
    "numbers-matrix": {LABELS: 1},
    "numbers-positive-axis": {LABELS: 1},
    "numbers-values": {LABELS: 1, "Gather": 1},
    "numbers-large": {LABELS: 1, "Gather": 1},
    "miss-inside-the-ids": {LABELS: 1, HASH: 1, "Where": 1},
    "miss-of-another-number": {LABELS: 1, HASH: 1, "Where": 1},
    "other-offset": {LABELS: 1, HASH: 1, "Where": 1},
    "other-keys": {LABELS: 1, HASH: 1, "Where": 1},
    "values-in-another-order": {LABELS: 1, HASH: 1},
    "values-with-a-gap": {LABELS: 1, HASH: 1},
    "greater-instead": {LABELS: 1, HASH: 1, "Where": 1},
    "numbers-of-other-keys": {LABELS: 1, HASH: 1, "Where": 1},
    "numbers-equal-entries": {"Equal": 1, "ReduceMax": 2},
    "numbers-other-places": {"Equal": 1, "ReduceMax": 2},
    "numbers-other-miss": {"Equal": 1, "ReduceMax": 2},
    "hash": {HASH: 1},
    "text": {HASH: 1, "Cast": 1},
}


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create the models and OpenVINO's results in a separate process."""
    folder = tmp_path_factory.mktemp("string_models")
    script = Path(string_models.__file__)
    done = subprocess.run([sys.executable, script, folder], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return folder


def arrays(path: Path) -> list[np.ndarray]:
    with np.load(path) as file:
        return [file[name] for name in file.files]


@pytest.mark.parametrize("name", string_models.MODELS)
def test_tables_and_near_misses(models: Path, tmp_path: Path, name: str) -> None:
    folder = models / name
    _, report = convert(folder / "model.xml", tmp_path / "model.onnx")
    onnx.checker.check_model(str(tmp_path / "model.onnx"))
    kernels = ["python", "auto"] if report.without_body else ["none", "python", "auto"]
    for kernel in kernels if report.custom_operators else ["none"]:
        session = onnx_specops.InferenceSession(tmp_path / "model.onnx", kernels=kernel)  # type: ignore[arg-type]
        inputs = arrays(folder / "inputs.npz")
        feeds = {
            i.name: array.astype(object) if array.dtype.kind == "U" else array
            for i, array in zip(session.get_inputs(), inputs, strict=True)
        }
        for got, expected in zip(session.run(None, feeds), arrays(folder / "expected.npz"), strict=True):
            assert got.dtype == expected.dtype
            np.testing.assert_array_equal(got, expected, err_msg=kernel, strict=True)
    counts = Counter(report.nodes)
    watched = (TABLE, LABELS, HASH) if TABLE in BECOMES.get(name, {}) else ()
    for operator in {*BECOMES.get(name, {}), *watched}:
        assert counts[operator] == BECOMES[name].get(operator, 0), counts


def test_tensorflows_own_example(models: Path) -> None:
    """The ids that TensorFlow documents for this table equal OpenVINO's."""
    (ids,) = arrays(models / "table" / "expected.npz")
    assert ids[:7].tolist() == [0, 1, 10, 2, 9, 3, 9]


# -- the conditions, without OpenVINO ---------------------------------------------------------------------------------------

KEYS = np.array([[11, 3, 42], [7, 0, 3]])


def compared(
    entries=(3, 7, 42), places=(0, 1, 2), miss=3, one=1, zero=0, column=-1, axes=(-1, -1), miss_dims=(), more=False
):  # fmt: skip
    """Every key is compared with every entry, as in a table of integers."""

    def emit(op, keys):
        equal = op.Equal(op.const(np.array(entries, np.int64)), op.Unsqueeze(keys, [column]))
        place = op.Mul(op.Where(equal, one, zero), op.const(np.array(places, np.int64)))
        found = op.ReduceMax(equal, [axes[0]], keepdims=0)
        number = op.const(np.full(miss_dims, miss, np.int64))
        ids = op.Where(found, op.ReduceMax(place, [axes[1]], keepdims=0), number)
        return (ids, found) if more else ids

    return emit


PLAIN = ["Equal", "Mul", "ReduceMax", "ReduceMax", "Unsqueeze", "Where", "Where"]


@pytest.mark.parametrize(
    ("emit", "operators"),
    [
        (compared(), ["LabelEncoder"]),
        (compared(column=2, axes=(2, -1)), ["LabelEncoder"]),
        (compared(entries=[[3, 7, 42]]), ["LabelEncoder"]),
        (compared(miss_dims=(1, 1)), ["LabelEncoder"]),
        (compared(more=True), ["Equal", "LabelEncoder", "ReduceMax", "Unsqueeze"]),  # values with other consumers remain
        (compared(entries=(3, 7, 3)), PLAIN),  # the last of equal entries counts, in a table the first
        (compared(places=(0, 2, 1)), PLAIN),
        (compared(miss=-1), PLAIN),
        (compared(one=2), PLAIN),
        (compared(zero=-1), PLAIN),
        (compared(miss_dims=(1, 1, 1)), PLAIN),  # an extra dimension
        (compared(entries=[[[3, 7, 42]]] * 2, places=(0, 1, 2)), PLAIN),  # an entry for each row
        (compared(axes=(-1, 1), places=[[0], [1], [2]]), PLAIN),
    ],
)
def test_conditions_of_tables_of_integers(emit, operators) -> None:
    keys = new_value(ir.DataType.INT64, [2, 3], "keys")
    passes = [FuseVocabularyTables(), LabelVocabularyTables()]
    assert rewritten(emit, keys, by=passes, numbers=[KEYS]) == operators


@pytest.mark.parametrize(("given", "operators"), [(False, ["LabelEncoder"]), (True, ["VocabularyTable"])])
def test_a_vocabulary_with_an_input_is_unchanged(given: bool, operators: list[str]) -> None:
    keys, vocabulary = (new_value(ir.DataType.INT64, dims, name) for dims, name in (([2, 3], "keys"), ([3], "vocabulary")))
    vocabulary.const_value = ir.tensor(np.array([3, 7, 42]), name="vocabulary")

    def emit(op, keys, vocabulary):
        return op.specops.VocabularyTable(keys, vocabulary if given else np.array([3, 7, 42]), default_value=-1)

    by = [FuseVocabularyTables(), LabelVocabularyTables()]
    assert rewritten(emit, keys, vocabulary, by=by, numbers=[KEYS, np.array([11, 7, 0])]) == operators
