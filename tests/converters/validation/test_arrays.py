"""Random inputs, and arrays in .npz files."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from converters.validation.arrays import (
    InputSpec,
    check_inputs,
    guessed_inputs,
    load_inputs,
    random_inputs,
    write_arrays,
)

TYPES = {
    "bool": np.bool_, "int8": np.int8, "uint8": np.uint8, "int16": np.int16, "uint16": np.uint16, "int32": np.int32,
    "uint32": np.uint32, "int64": np.int64, "uint64": np.uint64, "float16": np.float16, "bfloat16": ml_dtypes.bfloat16,
    "float": np.float32, "double": np.float64, "string": np.object_, "int4": ml_dtypes.int4, "uint4": ml_dtypes.uint4,
    "float8e4m3fn": ml_dtypes.float8_e4m3fn, "float8e5m2": ml_dtypes.float8_e5m2,
}  # fmt: skip


@pytest.mark.parametrize("name", TYPES)
def test_random_inputs_of_every_type(name: str) -> None:
    specs = [InputSpec("a", name, (3, None)), InputSpec("b", name, ()), InputSpec("c", name, (0, 4))]
    first, again, other = random_inputs(specs, 1), random_inputs(specs, 1), random_inputs(specs, 2)
    assert [array.shape for array in first.values()] == [(3, 2), (), (0, 4)]
    assert all(array.dtype == TYPES[name] for array in first.values())
    assert all((first[key] == again[key]).all() for key in first)
    assert any((first[key] != other[key]).any() for key in first) or name == "bool"
    if name != "string":
        numbers = first["a"].astype(np.float64)
        assert (numbers >= 0).all()
        assert (numbers <= 1).all()


def test_random_inputs_of_given_shapes() -> None:
    specs = [InputSpec("a", "float", (None, 3)), InputSpec("b", "int64", (None,)), InputSpec("c", "float", ())]
    arrays = random_inputs(specs, shapes={"a": [5, 3], "c": []})
    assert [array.shape for array in arrays.values()] == [(5, 3), (2,), ()]
    assert guessed_inputs(specs, {"a": [5, 3]}) == ["b"]
    for shapes, message in (
        ({"a": [5, 4]}, r"a has the shape \[5, 4\], but the model requires \[\?, 3\]"),
        ({"b": []}, "b has the shape"),
        ({"x": [1]}, "there is no input named x; the inputs are a, b, c"),
    ):
        with pytest.raises(ValueError, match=message):
            random_inputs(specs, shapes=shapes)


def test_arrays_in_a_file(tmp_path) -> None:
    names = {f"a/{kind}": kind for kind in TYPES} | {"file": "float"}  # `np.savez` has a parameter of that name
    arrays = {name: random_inputs([InputSpec("x", kind, (2, 3))], 1)["x"] for name, kind in names.items()}
    write_arrays(tmp_path / "file", arrays)
    loaded = load_inputs(tmp_path / "file", [InputSpec(name, kind, (2, None)) for name, kind in names.items()])
    for name, array in arrays.items():
        assert loaded[name].dtype == array.dtype
        assert loaded[name].tolist() == array.tolist()


@pytest.mark.parametrize("kind", ["bfloat16", "float8e4m3fn", "uint4"])
def test_stored_types_that_numpy_lacks(tmp_path, kind: str) -> None:
    array = np.array([1, 2.5]).astype(TYPES[kind])
    np.savez(tmp_path / "in.npz", a=array)
    loaded = load_inputs(tmp_path / "in.npz", [InputSpec("a", kind, (2,))])["a"]
    assert (loaded.dtype, loaded.tolist()) == (array.dtype, array.tolist())


@pytest.mark.parametrize(
    ("array", "kind", "fits"),
    [
        (np.array([1, 2], np.int64), "int8", True),
        (np.array([1, 200], np.int64), "int8", False),
        (np.array([-1], np.int64), "uint64", False),
        (np.array([2**53 + 1], np.int64), "double", False),
        (np.array([0.5]), "float16", True),
        (np.array([0.1]), "float", False),
        (np.array([np.nan, np.inf]), "float", True),
        (np.array([1.5]), "int32", False),
        (np.array([1.0]), "int32", True),
        (np.array([2]), "bool", False),
        (np.array([True]), "float", True),
        (np.array(["a"]), "string", True),
        (np.array([b"a"]), "string", True),
        (np.array([1]), "string", False),
        (np.array(["1"]), "int64", False),
        (np.array([1j]), "float", False),
    ],
)
def test_lossless_type_conversions(array: np.ndarray, kind: str, fits: bool) -> None:
    spec = InputSpec("a", kind, (None,))
    if not fits:
        with pytest.raises(ValueError, match="a contains"):
            check_inputs({"a": array}, [spec], "here")
        return
    found = check_inputs({"a": array}, [spec], "here")["a"]
    assert found.dtype == spec.dtype
    assert found.shape == array.shape


def test_arrays_have_the_models_order() -> None:
    arrays = {"b": np.ones(1, np.float32), "more": np.ones(1), "a": np.zeros(1, np.float32)}
    assert list(check_inputs(arrays, [InputSpec("a", "float", (1,)), InputSpec("b", "float", (1,))], "here")) == ["a", "b"]


def test_random_inputs_respect_the_bounds_of_the_ir() -> None:
    spec = InputSpec("x", "float", (None, None, None, 7), ((5, 8), (3, None), (0, 1), (7, 7)))
    assert random_inputs([spec])["x"].shape == (5, 3, 1, 7)
    assert random_inputs([spec], shapes={"x": [8, 9, 0, 7]})["x"].shape == (8, 9, 0, 7)
    with pytest.raises(
        ValueError, match=r"x has the shape \[9, 3, 1, 7\], but the model requires \[5\.\.8, 3\.\., \.\.1, 7\]"
    ):
        random_inputs([spec], shapes={"x": [9, 3, 1, 7]})


def test_an_input_of_unknown_rank_accepts_any_shape() -> None:
    spec = InputSpec("x", "float", None)
    assert random_inputs([spec], shapes={"x": [2, 3]})["x"].shape == (2, 3)
    assert guessed_inputs([spec], {}) == ["x"]
    assert check_inputs({"x": np.ones((1, 2, 3), np.float32)}, [spec], "here")["x"].shape == (1, 2, 3)


def test_a_scalar_accepts_no_other_shape() -> None:
    spec = InputSpec("x", "float", ())
    assert random_inputs([spec])["x"].shape == () and guessed_inputs([spec], {}) == []
    assert check_inputs({"x": np.float32(1)}, [spec], "here")["x"].shape == ()
    with pytest.raises(ValueError, match=r"here: x has the shape \[1\], but the model requires \[\]"):
        check_inputs({"x": np.ones(1, np.float32)}, [spec], "here")
    with pytest.raises(ValueError, match=r"the shapes: x has the shape \[2, 3\], but the model requires \[\]"):
        random_inputs([spec], shapes={"x": [2, 3]})


def test_changed_arrays_are_reported() -> None:
    notes: list[str] = []
    arrays = {"a": np.array([1, 2]), "b": np.ones(1, np.float32), "c": np.ones(1)}
    check_inputs(arrays, [InputSpec("a", "float", (2,)), InputSpec("b", "float", (1,))], "in.npz", notes.append)
    assert notes == ["a is int64 in in.npz, and float32 for the model", "c in in.npz is not one of the model's inputs"]
