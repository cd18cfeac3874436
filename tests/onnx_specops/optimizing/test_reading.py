"""Reading models without the elements of their weights."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from onnx_specops.optimizing.reading import encoded_with_data, read_without_data
from tests.onnx_specops.runtime.graphs import PLACES, value


def made(**weights: np.ndarray) -> onnx.ModelProto:
    graph = helper.make_graph(
        [helper.make_node("Identity", ["x"], ["y"])],
        "graph",
        [value("x", TensorProto.FLOAT, [1])],
        [value("y", TensorProto.FLOAT, [1])],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


LARGE, SMALL = np.arange(3000, dtype=np.float32).reshape(3, 1000), np.array([1, 2])


@pytest.mark.parametrize("is_file", [False, True])
def test_large_initializers(is_file: bool, tmp_path: Path) -> None:
    model = made(small=SMALL, large=LARGE, last=SMALL)
    given: Path | bytes = model.SerializeToString()
    if is_file:
        given = tmp_path / "model.onnx"
        onnx.save(model, given)
    found = read_without_data(given)
    small, large, last = found.graph.initializer
    assert (large.name, list(large.dims), large.data_type) == ("large", [3, 1000], TensorProto.FLOAT)
    assert large.data_location == TensorProto.EXTERNAL
    assert not large.raw_data
    assert [small, last] == [model.graph.initializer[0], model.graph.initializer[2]]
    large.CopyFrom(model.graph.initializer[1])
    assert found == model


@pytest.mark.parametrize("is_file", [False, True])
def test_changes_with_the_original_elements(is_file: bool, tmp_path: Path) -> None:
    model = made(small=SMALL, large=LARGE)
    given: Path | bytes = model.SerializeToString()
    if is_file:
        given = tmp_path / "model.onnx"
        onnx.save(model, given)
    changed = read_without_data(given)
    for either in (changed, model):
        either.graph.node[0].name = "name"
        either.opset_import.append(helper.make_opsetid("other", 1))
    assert onnx.load_from_string(encoded_with_data(changed, given)) == model


def test_a_model_without_initializers() -> None:
    given = made().SerializeToString()
    assert onnx.load_from_string(encoded_with_data(read_without_data(given), given)) == made()


@pytest.mark.parametrize("place", PLACES)
def test_other_models_are_whole(place) -> None:
    model = place()
    assert read_without_data(model.SerializeToString()) == model


def test_elements_of_other_fields() -> None:
    model = made()
    model.graph.initializer.append(TensorProto(name="w", dims=[1000], data_type=1, float_data=[0.5] * 1000))
    (found,) = read_without_data(model.SerializeToString()).graph.initializer
    assert (found.name, list(found.dims), len(found.float_data)) == ("w", [1000], 0)


def test_elements_that_are_separate_fields() -> None:
    """Their number is not limited by the size of a message, so their model is not read."""
    model = made()
    model.graph.initializer.append(TensorProto(name="w", dims=[300], data_type=8, string_data=[b"text"] * 300))
    with pytest.raises(ValueError, match="separate fields"):
        read_without_data(model.SerializeToString())


def test_damaged_files(tmp_path: Path) -> None:
    """They are errors of Python, or models."""
    given, chance = made(large=LARGE, small=SMALL).SerializeToString(), random.Random(0)
    for _ in range(2000):
        data = bytearray(given[: chance.choice([len(given), chance.randrange(len(given))])])
        for _ in range(chance.randrange(4)):
            if data:
                data[chance.randrange(min(len(data), 200))] = chance.randrange(256)
        try:
            read_without_data(bytes(data))
        except Exception as error:
            assert type(error).__name__ in ("ValueError", "DecodeError")
    empty = tmp_path / "empty.onnx"
    empty.touch()
    with pytest.raises(ValueError, match="empty"):
        read_without_data(empty)
