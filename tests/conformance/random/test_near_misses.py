"""A sample of the near misses, and tests of their creation."""

from __future__ import annotations

import os
import shutil
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.conformance.oracle import Oracle, OracleError
from tests.conformance.random import __main__ as command
from tests.conformance.random import models
from tests.conformance.random.explain import Explanation, _excused, explain, ignores_levels, is_invalid
from tests.conformance.random.judge import Judge, Verdict, differing
from tests.conformance.random.near.changes import CHANGES, another_attribute, another_body, changed
from tests.conformance.random.near.enclosing import enclosed
from tests.conformance.random.near.networks import FOLDER, check, names, network
from tests.conformance.random.near.reading import recipe_of
from tests.conformance.random.noise import beyond_float16, depends_on_known_dimensions, noisy, of_levels, of_rounded_inputs
from tests.conformance.random.options import BY_NAME, TARGETED
from tests.conformance.random.recipe import Layer, Leaf, Recipe, build
from tests.onnx_specops.ops.gated_delta_layers import arrays, layers
from tests.worker import Worker

SEED, MODELS, TARGETED_MODELS = 1, 12, 12
SAMPLE = (640, 1248, 1664)
"""The first numbers of the sample: networks of convolutions, quantized networks and language models."""

X = Leaf("f32", np.arange(12, dtype=np.float32).reshape(1, 3, 4), (-1, 3, 4))
LOW, HIGH = (Leaf("f32", np.array(limit, np.float32), (), constant=True) for limit in (-1, 2))
BIASED = Recipe(
    (
        X,
        Leaf("i64", np.array([-1]), (1,), constant=True),
        Layer("MVN", "opset6", ((0, 0), (1, 0)), {"normalize_variance": True, "eps": 1e-5, "eps_mode": "inside_sqrt"}),
        Leaf("f32", np.ones((1, 1, 4), np.float32), (1, 1, 4), constant=True),
        Layer("Add", "opset1", ((2, 0), (3, 0)), {}),
        Layer("Relu", "opset1", ((4, 0),), {}),
        LOW,
        HIGH,
        Layer(
            "FakeQuantize", "opset1", ((5, 0), (6, 0), (7, 0), (6, 0), (7, 0)), {"levels": 256, "auto_broadcast": "numpy"}
        ),
        Leaf("i64", np.array([[1, 1, 0, 1]]), (1, 4)),
        Layer("Convert", "opset1", ((9, 0),), {"destination_type": "f32"}),
        Layer("Multiply", "opset1", ((8, 0), (10, 0)), {}),
    ),
    ((11, 0),),
)


@pytest.mark.parametrize("first", SAMPLE)
def test_near_misses(first: int, idle: list[Worker]) -> None:
    kinds: Counter[str] = Counter()
    for outcome in models.run(SEED, range(first, first + MODELS), kind="near", idle=idle):
        assert not outcome.found, outcome.text
        kinds[outcome.kind] += 1
    assert kinds["agrees"] >= MODELS // 2, kinds


def test_near_misses_for_targets(idle: list[Worker]) -> None:
    """Spellings of targets, run by ONNX Runtime: an operator that a target lacks or computes incorrectly is not rejected."""
    options = [TARGETED[name].name for name in ("opencv", "mnn", "tract", "iree", "qnn", "onnx2torch")]
    kinds: Counter[str] = Counter()
    for outcome in models.run(SEED, range(660, 660 + TARGETED_MODELS), kind="near", options=options, idle=idle):
        assert not outcome.found, outcome.text
        kinds[outcome.kind] += 1
    assert kinds["agrees"] >= TARGETED_MODELS // 2, kinds


def test_a_number_always_gives_the_same_near_miss(oracle: Oracle) -> None:
    one, again, other = (oracle.ask(models.recipe, SEED, number, "near") for number in (700, 700, 701))
    assert str(one) == str(again) != str(other)


def test_all_kinds_of_networks_occur() -> None:
    archives = {path.parent.parent.name for path, _ in names()}
    assert archives >= {"conformance", "models", "quantized", "language"}
    assert len(names()) > 60


@pytest.mark.parametrize("change", dict.fromkeys(CHANGES), ids=lambda change: change.__name__)
def test_each_change_changes_something(change: object, oracle: Oracle) -> None:
    """For any network: one of many attempts succeeds."""
    assert oracle.ask(_differs, change.__name__)  # type: ignore[attr-defined]


def _differs(name: str) -> bool:
    change = next(change for change in CHANGES if change.__name__ == name)
    others = (change(BIASED, np.random.default_rng(seed)) for seed in range(40))
    return any(other is not None and str(other) != str(BIASED) for other in others)


def test_levels_stay_in_the_range_of_the_specification() -> None:
    """With one level, OpenVINO divides by 0, and the conversion rejects the layer."""
    layer = Layer("FakeQuantize", "opset1", ((0, 0), (1, 0), (2, 0), (1, 0), (2, 0)), {"levels": 2})
    recipe = Recipe((X, LOW, HIGH, layer), ((3, 0),))
    made = (another_attribute(recipe, np.random.default_rng(seed)) for seed in range(20))
    assert {one.layers()[0].attributes["levels"] for one in made if one is not None} == {3}


def test_changes_are_accepted_by_openvino(oracle: Oracle) -> None:
    judge = Judge(oracle)
    for seed in range(2, 10):  # the CPU plugin's FakeQuantize confuses the axes of seed 1
        made = oracle.ask(_changed, seed)
        assert judge.judge(made).kind in ("agrees", "reference", "unjudged"), made


def _changed(seed: int) -> Recipe:
    return changed(BIASED, np.random.default_rng(seed))


def test_parts_in_bodies_compute_the_same(oracle: Oracle) -> None:
    """An If, a Loop or a TensorIterator around some layers: OpenVINO's results stay, and so do ours."""
    judge = Judge(oracle)
    expected = judge.openvinos(BIASED)
    assert isinstance(expected, list)
    found = Counter()
    for seed in range(24):
        made = oracle.ask(_enclosed, seed)
        if made is None:
            continue
        found[next(node.operation for node in made.nodes if isinstance(node, Layer) and node.bodies)] += 1
        got = judge.openvinos(made)
        assert isinstance(got, list), got
        if not any(port[0] == "set_merged_input" for layer in made.layers() for port in layer.ports):
            assert not differing(got[:1], expected), made
        assert judge.judge(made).kind in ("agrees", "reference"), made
    assert set(found) == {"If", "Loop", "TensorIterator"}


def test_bodies_are_read_as_they_were_built(oracle: Oracle) -> None:
    """If, Loop and TensorIterator: OpenVINO computes the same."""
    judge, kinds = Judge(oracle), set()
    for seed in range(24):
        if (made := oracle.ask(_enclosed, seed)) is None:
            continue
        again = oracle.ask(_read, made)
        (layer,) = (node for node in made.nodes if isinstance(node, Layer) and node.bodies)
        (other,) = (node for node in again.nodes if isinstance(node, Layer) and node.bodies)
        assert sorted(layer.ports) == sorted(other.ports) and len(layer.layers()) == len(other.layers())
        expected, got = judge.openvinos(made), judge.openvinos(again)
        assert isinstance(expected, list) and isinstance(got, list) and not differing(got, expected)
        kinds.add(layer.operation)
    assert kinds == {"If", "Loop", "TensorIterator"}


def _read(made: Recipe) -> Recipe:
    found = recipe_of(build(made))
    given = iter(made.arrays())
    nodes = [replace(n, array=next(given)) if isinstance(n, Leaf) and not n.constant else n for n in found.nodes]
    return replace(found, nodes=tuple(nodes))


def test_layers_and_ports_of_bodies_change(oracle: Oracle) -> None:
    """OpenVINO runs the changed bodies, and the converter computes the same, except for known departures."""
    judge, operators, ports = Judge(oracle), set(), set()
    for seed in range(30):
        made, changed_ = oracle.ask(_changed_loop, seed)
        verdict = judge.judge(changed_)
        # The reference kernels reject some models, as we do, and OpenVINO does not check whether updates fit their indices.
        assert not verdict.found or verdict.unseconded or explain(changed_, verdict, judge).kind == "departure", changed_
        (loop,), (other,) = ([n for n in recipe.nodes if isinstance(n, Layer) and n.bodies] for recipe in (made, changed_))
        operators.add(str(loop.bodies) != str(other.bodies))
        ports.add(loop.ports != other.ports)
    assert operators == ports == {False, True}


def _changed_loop(seed: int) -> tuple[Recipe, Recipe]:
    given = arrays(1, 3, 2, 1, 2, 2)
    made = recipe_of(layers(given))
    values = iter(given.values())
    nodes = [replace(n, array=next(values)) if isinstance(n, Leaf) and not n.constant else n for n in made.nodes]
    made = replace(made, nodes=tuple(nodes))
    for again in range(100):
        other = another_body(made, np.random.default_rng([seed, again]))
        try:
            if other is not None and build(other):
                return made, other
        except Exception:  # any error of OpenVINO about contradictions
            continue
    raise AssertionError("no change succeeds")


def test_networks_with_loops_are_read(oracle: Oracle) -> None:
    number = next(k for k, (path, _) in enumerate(names()) if path.stem == "granite_hybrid")
    assert oracle.ask(check, number) == ""
    loops = oracle.ask(_loops, number)
    assert loops == 2


def _loops(number: int) -> int:
    return sum(isinstance(node, Layer) and node.operation == "Loop" for node in network(number).recipe.nodes)


def _enclosed(seed: int) -> Recipe | None:
    return enclosed(BIASED, np.random.default_rng(seed))


def test_numbers_between_two_levels_are_noise(oracle: Oracle) -> None:
    """For sums that are halfway, integers round some to the other level."""
    made = oracle.ask(models.recipe, 20261127, 1219, "near")
    judge = Judge(oracle)
    verdict = judge.judge(made)
    assert verdict.kind == "parts"
    explained = explain(made, verdict, judge)
    assert isinstance(explained, Explanation)
    assert explained.kind == "noise"


@pytest.mark.parametrize(("largest", "excused"), [(4, True), (4.01, False)])
def test_whole_numbers_between_two_levels_are_noise(largest: float, excused: bool, oracle: Oracle) -> None:
    """2 is halfway between two of 256 levels up to 4, for all elements."""
    zero, high = (Leaf("f32", np.array(limit, np.float32), (), constant=True) for limit in (0, largest))
    recipe = Recipe(
        (
            Leaf("f32", np.full((1, 2, 4, 4), 2.3, np.float32), (1, 2, 4, 4)),
            Layer("Floor", "opset1", ((0, 0),), {}),
            zero,
            high,
            Layer(
                "FakeQuantize",
                "opset1",
                ((1, 0), (2, 0), (3, 0), (2, 0), (3, 0)),
                {"levels": 256, "auto_broadcast": "numpy"},
            ),
            Leaf("i64", np.array([2, 3]), (2,), constant=True),
            Layer("ReduceMean", "opset1", ((4, 0), (5, 0)), {"keep_dims": True}),
        ),
        ((6, 0),),
    )
    judge = Judge(oracle)
    verdict = judge.judge(recipe)
    assert verdict.suspect == excused
    assert of_levels(recipe, verdict, judge) == excused


@pytest.mark.parametrize(("levels", "excused"), [(16, True), (65536, False)])
def test_numbers_between_two_levels_are_noise_in_floats(levels: int, excused: bool, oracle: Oracle) -> None:
    """The CPU plugin rounds a few of 16,384 numbers to the other level. It ignores the layer with 65,536 levels."""
    low, high = np.float32(-0.3), np.float32(0.9)
    array = np.random.default_rng(0).random((128, 128), np.float32) - low
    array[0, :15] = low + (np.arange(15) + 0.5) * (np.float64(high) - low) / 15
    leaves = [Leaf("f32", np.array(limit, np.float32), (), constant=True) for limit in (low, high)]
    attributes = {"levels": levels, "auto_broadcast": "numpy"}
    recipe = Recipe(
        (
            Leaf("f32", array, array.shape, constant=False),
            *leaves,
            Layer("FakeQuantize", "opset1", ((0, 0), (1, 0), (2, 0), (1, 0), (2, 0)), attributes),
            Layer("Abs", "opset1", ((3, 0),), {}),
        ),
        ((4, 0),),
    )
    judge = Judge(oracle, BY_NAME["floats"])
    verdict = judge.judge(recipe)
    assert verdict.suspect
    assert of_levels(recipe, verdict, judge) == excused


def test_openvinos_emulation_with_unknown_dimensions_is_noise(oracle: Oracle) -> None:
    """The CPU plugin loses the Add after a quantized Convolution of unknown width, but not if the width is known."""
    made = oracle.ask(models.recipe, 20261127, 1233, "near")
    judge = Judge(oracle, BY_NAME["float16-opset17"])
    verdict = judge.judge(made)
    assert verdict.kind == "parts"
    explained = explain(made, verdict, judge)
    assert explained.kind == "noise"
    assert depends_on_known_dimensions(explained.recipe, explained.verdict, judge)
    assert not depends_on_known_dimensions(explained.recipe.static(), explained.verdict, judge)


@pytest.mark.parametrize(("largest", "excused"), [(1e6, True), (6e4, False)])
def test_inputs_beyond_float16_are_noise(largest: float, excused: bool, oracle: Oracle) -> None:
    array = np.array([[1, 2, 3, largest], [4, 5, 6, 7]], np.float32)
    recipe = Recipe(
        (
            Leaf("f32", array, array.shape, constant=False),
            Leaf("i64", np.array([1]), (1,), constant=True),
            Layer("MVN", "opset6", ((0, 0), (1, 0)), {"normalize_variance": True, "eps": 1e-5, "eps_mode": "inside_sqrt"}),
        ),
        ((2, 0),),
    )
    judge = Judge(oracle, BY_NAME["float16"])
    assert judge.judge(recipe).suspect == excused
    assert beyond_float16(recipe, judge) == excused
    assert not beyond_float16(recipe, Judge(oracle))


@pytest.mark.parametrize(("number", "excused"), [(0.4 + 1e-5, True), (0.41, False)])
def test_remainders_of_numbers_that_float16_rounds_are_noise(number: float, excused: bool, oracle: Oracle) -> None:
    """The remainder of 0.40001 and 0.2 is 0.00001, and 0 in float16."""
    data, divisor = np.array([[number, -0.7]], np.float32), np.array([[0.2]], np.float32)
    layers = Layer("Mod", "opset1", ((0, 0), (1, 0)), {"auto_broadcast": "numpy"}), Layer("Sign", "opset1", ((2, 0),), {})
    recipe = Recipe((Leaf("f32", data, (1, 2)), Leaf("f32", divisor, (1, 1), constant=True), *layers), ((3, 0),))
    judge = Judge(oracle, BY_NAME["float16"])
    verdict = judge.judge(recipe)
    assert verdict.suspect == excused, verdict
    assert not excused or of_rounded_inputs(recipe, verdict, judge)
    assert not of_rounded_inputs(recipe, verdict, Judge(oracle))


@pytest.mark.parametrize(("scale", "excused"), [(1e-3, True), (2e-3, False)])
def test_computed_constants_beyond_float16_are_noise(scale: float, excused: bool, oracle: Oracle) -> None:
    """127 divided by 0.001 is beyond float16."""
    leaves = (
        Leaf("f32", np.array([[1, 2, 3, 4]], np.float32), (1, 4), constant=False),
        Leaf("i8", np.array([[127, -1], [3, 4], [5, 6], [-7, 8]], np.int8), (4, 2), constant=True),
        Leaf("f32", np.array(scale, np.float32), (), constant=True),
    )
    layers = (
        Layer("Convert", "opset1", ((1, 0),), {"destination_type": "f32"}),
        Layer("Divide", "opset1", ((3, 0), (2, 0)), {"auto_broadcast": "numpy", "m_pythondiv": True}),
        Layer("MatMul", "opset1", ((0, 0), (4, 0)), {"transpose_a": False, "transpose_b": False}),
        Layer("Sigmoid", "opset1", ((5, 0),), {}),
    )
    recipe = Recipe((*leaves, *layers), ((6, 0),))
    assert beyond_float16(recipe, Judge(oracle, BY_NAME["float16"])) == excused


@pytest.mark.parametrize(("masked", "excused"), [(-3.4028235e38, True), (-6e4, False)])
def test_masks_beyond_float16_are_noise(masked: float, excused: bool, oracle: Oracle) -> None:
    """All keys of a query are masked: the scores decide in float32, but not in float16."""
    scores = np.array([[1.25, 2.5, 0.125, -3.75]], np.float32)
    recipe = Recipe(
        (
            Leaf("f32", scores, scores.shape, constant=False),
            Leaf("f32", np.array(masked, np.float32), (), constant=True),
            Layer("Add", "opset1", ((0, 0), (1, 0)), {"auto_broadcast": "numpy"}),
            Layer("Softmax", "opset8", ((2, 0),), {"axis": 1}),
        ),
        ((3, 0),),
    )
    judge = Judge(oracle, BY_NAME["float16"])
    assert judge.judge(recipe).suspect == excused
    assert beyond_float16(recipe, judge) == excused


_OF_256 = {"levels": 256, "auto_broadcast": "numpy"}


@pytest.mark.parametrize("name", ["limits", "limits along the batch", "squeezed", "repeated axes"])
def test_layers_that_openvino_does_not_check_are_departures(name: str, oracle: Oracle) -> None:
    number, larger = np.array(0.5, np.float32), np.ones((2, 3), np.float32)
    recipes = {
        "limits": Recipe(
            (
                Leaf("f32", number, (), constant=True),
                Leaf("f32", larger, larger.shape, constant=False),
                Layer("FakeQuantize", "opset1", ((0, 0),) * 4 + ((1, 0),), {"levels": 256, "auto_broadcast": "numpy"}),
            ),
            ((2, 0),),
        ),
        "limits along the batch": Recipe(
            (
                Leaf("f32", np.ones((2, 3, 2, 2), np.float32), (-1, 3, 2, 2), constant=False),
                Leaf("f32", number, (), constant=True),
                Leaf("f32", np.ones((1, 3, 1, 1, 1), np.float32), (1, 3, 1, 1, 1), constant=True),
                Layer("FakeQuantize", "opset1", ((0, 0), (1, 0), (2, 0), (1, 0), (2, 0)), _OF_256),
            ),
            ((3, 0),),
        ),
        "repeated axes": Recipe(
            (
                Leaf("f32", np.ones((1, 1, 2, 2), np.float32), (1, 1, -1, -1), constant=False),
                Leaf("f32", np.float32([2, 2]), (2,), constant=True),
                Leaf("i32", np.int32([2, 2]), (2,), constant=True),
                Layer(
                    "Interpolate",
                    "opset11",
                    ((0, 0), (1, 0), (2, 0)),
                    {"mode": "nearest", "shape_calculation_mode": "scales"},
                ),
            ),
            ((3, 0),),
        ),
        "squeezed": Recipe(
            (
                Leaf("f32", larger, (-1, -1), constant=False),
                Leaf("i64", np.array(0), (), constant=True),
                Layer("Squeeze", "opset1", ((0, 0), (1, 0)), {}),
            ),
            ((2, 0),),
        ),
    }
    judge = Judge(oracle)
    verdict = judge.judge(recipes[name])
    assert verdict.kind in ("lacks", "fails")
    assert explain(recipes[name], verdict, judge).kind == "departure"


def test_a_folder_of_networks(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Archives are supported; a file that OpenVINO does not read, or a missing file, is an error."""
    monkeypatch.setenv(FOLDER, "")  # restores the variable that the command sets
    archive = Path(__file__).parents[1] / "compressed" / "files.zip"
    read = shutil.copy(archive, tmp_path)
    arguments = ["random", "--near", "--networks", str(tmp_path), "--keep", str(tmp_path / "kept"), "--options", "default"]

    def run(*more: str) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", [*arguments, *more])
        names.cache_clear()
        code = command.main()
        names.cache_clear()
        return code, capsys.readouterr().err

    assert run("--count", "1") == (0, "")
    Path(read).write_bytes(b"no archive")
    code, said = run("--count", "2")
    assert code == 2
    assert "files.zip cannot be read" in said
    Path(read).unlink()
    code, said = run("--count", "2")
    assert code == 2
    assert "has no .xml" in said
    (tmp_path / "broken.xml").write_text("<net/>")
    code, said = run("--count", "2")
    assert code == 2
    assert "broken.xml" in said


def test_an_index_into_an_empty_axis_is_excused(oracle: Oracle) -> None:
    """OpenVINO returns zeros. ONNX Runtime rejects the index, which nothing needs; see docs/reliability.md."""

    def leaf(value: object, *, constant: bool = True) -> Leaf:
        array = np.array(value, np.int64)
        return Leaf("i64", array, array.shape, constant=constant)

    recipe = Recipe(
        (
            leaf(0, constant=False),
            leaf(0),
            leaf(1),
            Layer("Range", "opset4", ((1, 0), (0, 0), (2, 0)), {"output_type": "i64"}),
            Leaf("i64", np.zeros(0, np.int64), (0,)),
            Layer("Gather", "opset8", ((3, 0), (1, 0), (1, 0)), {"batch_dims": 0}),
            Layer("Add", "opset1", ((4, 0), (5, 0)), {"auto_broadcast": "numpy"}),
        ),
        ((6, 0),),
    )
    judge = Judge(oracle)
    verdict = judge.judge(recipe)
    assert verdict.kind == "fails"
    assert explain(recipe, verdict, judge).kind == "departure"


_POOL = {"strides": [2, 2], "pads_begin": [0, 0], "pads_end": [0, 0], "kernel": [2, 2], "rounding_type": "floor"}


def _pool(wide: int, *, dims: tuple[int, ...] = (1, 2, 4, -1)) -> Recipe:
    image = np.random.default_rng(0).random((1, 2, 4, wide), np.float32)
    return Recipe(
        (
            Leaf("f32", image, dims),
            Layer("Sin", "opset1", ((0, 0),), {}),
            Layer("MaxPool", "opset1", ((1, 0),), {**_POOL, "auto_pad": "explicit"}),
            Layer("Abs", "opset1", ((2, 0),), {}),
        ),
        ((3, 0),),
    )


@pytest.fixture
def narrow_oracle() -> Iterator[Oracle]:
    """OpenVINO on one core."""
    if not hasattr(os, "sched_setaffinity"):
        pytest.skip("the system does not limit a process to a core")
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})
    try:
        oracle = Oracle()
        oracle.ask(os.getpid)
    finally:
        os.sched_setaffinity(0, cores)
    yield oracle
    oracle.close()


def test_windows_larger_than_the_data_are_departures(narrow_oracle: Oracle) -> None:
    """OpenVINO rejects them if dimensions are known, and on several cores."""
    judge, recipe = Judge(narrow_oracle), _pool(1)
    verdict = judge.judge(recipe)
    assert verdict.kind == "parts", verdict
    assert is_invalid(recipe, verdict, judge)
    assert explain(recipe, verdict, judge).kind == "departure"
    assert isinstance(judge.openvinos(recipe.static()), OracleError)
    assert not is_invalid(_pool(2), replace(verdict, apart=frozenset([0])), judge)


def test_windows_larger_than_the_data_explain_only_results_that_depend_on_them(oracle: Oracle) -> None:
    pool = _pool(1)
    recipe = replace(pool, nodes=(*pool.nodes, Layer("Cos", "opset1", ((0, 0),), {})), results=((4, 0), (3, 0)))
    judge = Judge(oracle)
    for apart, excused in (({1}, True), ({0, 1}, False), ({0}, False), (set(), False)):
        assert is_invalid(recipe, Verdict("parts", apart=frozenset(apart)), judge) == excused


@pytest.mark.parametrize(("inner", "excused"), [(1, True), (32, False)])
def test_quantized_matrices_that_do_not_match_are_departures(inner: int, excused: bool, oracle: Oracle) -> None:
    """OpenVINO does not compare unknown dimensions, and multiplies integers of other matrices."""
    low, high = (Leaf("f32", np.array(limit, np.float32), (), constant=True) for limit in (-0.5, 0.5))
    codes = np.random.default_rng(0).integers(-90, 90, (10, inner)).astype(np.int8)
    recipe = Recipe(
        (
            Leaf("f32", np.linspace(-1, 1, 64, dtype=np.float32).reshape(2, 32), (2, -1)),
            low,
            high,
            Layer(
                "FakeQuantize",
                "opset1",
                ((0, 0), (1, 0), (2, 0), (1, 0), (2, 0)),
                {"levels": 256, "auto_broadcast": "numpy"},
            ),
            Leaf("i8", codes, codes.shape, constant=True),
            Layer("Convert", "opset1", ((4, 0),), {"destination_type": "f32"}),
            Leaf("f32", np.full((10, 1), 0.01, np.float32), (10, 1), constant=True),
            Layer("Multiply", "opset1", ((5, 0), (6, 0)), {"auto_broadcast": "numpy"}),
            Layer("MatMul", "opset1", ((3, 0), (7, 0)), {"transpose_a": False, "transpose_b": True}),
        ),
        ((8, 0),),
    )
    judge = Judge(oracle)
    verdict = judge.judge(recipe)
    assert verdict.suspect == excused, verdict
    assert is_invalid(recipe, Verdict("fails", "Name:'v8/MatMul'"), judge) == excused
    if excused:
        assert explain(recipe, verdict, judge).kind == "departure"


@pytest.mark.parametrize(("size", "excused"), [(24, True), (1, False)])
def test_limits_larger_than_data_of_unknown_dimensions_are_departures(size: int, excused: bool, oracle: Oracle) -> None:
    """OpenVINO accesses memory out of bounds."""
    low, high = (
        Leaf("f32", np.full((1, 1, 1, size), limit, np.float32), (1, 1, 1, size), constant=True) for limit in (-3, 3)
    )
    attributes = {"levels": 255, "auto_broadcast": "numpy"}
    data = Leaf("f32", np.linspace(-4, 4, 72, dtype=np.float32).reshape(1, 3, 24, 1), (-1, 3, 24, 1))
    layer = Layer("FakeQuantize", "opset1", ((0, 0), (1, 0), (2, 0), (1, 0), (2, 0)), attributes)
    recipe = Recipe((data, low, high, layer), ((3, 0),))
    judge = Judge(oracle)
    verdict = judge.judge(recipe)
    assert (verdict.kind == "lacks") == excused
    if excused:
        assert explain(recipe, verdict, judge).kind == "departure"


@pytest.mark.parametrize(("size", "excused"), [(-5, True), (3, False)])
def test_negative_sizes_are_departures(size: int, excused: bool, oracle: Oracle) -> None:
    """OpenVINO gives no elements, ONNX Runtime an error."""
    recipe = Recipe(
        (
            Leaf("f32", np.ones(1, np.float32), (1,)),
            Leaf("i64", np.array([-size]), (1,)),
            Layer("Negative", "opset1", ((1, 0),), {}),
            Layer("Broadcast", "opset3", ((0, 0), (2, 0)), {"mode": "numpy"}),
        ),
        ((3, 0),),
    )
    judge = Judge(oracle)
    verdict = judge.judge(recipe)
    assert verdict.suspect == excused
    assert is_invalid(recipe, Verdict("fails", "Name:'v3/Expand'"), judge) == excused
    if excused:
        assert explain(recipe, verdict, judge).kind == "departure"


@pytest.mark.parametrize("seconded", [True, False])
@pytest.mark.parametrize("levels", [65536, 65535])
def test_levels_that_openvino_ignores_are_departures(
    levels: int, seconded: bool, oracle: Oracle, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The CPU plugin does not even clamp to the limits. The reference kernels lack Convolution."""
    array = np.linspace(-2, 2, 64, dtype=np.float32).reshape(1, 4, 4, 4)
    weights = np.random.default_rng(0).random((3, 4, 1, 1), np.float32)
    slide = {"strides": [1, 1], "dilations": [1, 1], "pads_begin": [0, 0], "pads_end": [0, 0], "auto_pad": "explicit"}
    recipe = Recipe(
        (
            Leaf("f32", array, array.shape),
            LOW,
            replace(HIGH, array=np.array(1.5, np.float32)),
            Layer(
                "FakeQuantize",
                "opset1",
                ((0, 0), (1, 0), (2, 0), (1, 0), (2, 0)),
                {"levels": levels, "auto_broadcast": "numpy"},
            ),
            Leaf("f32", weights, weights.shape, constant=True),
            Layer("Abs", "opset1", ((3, 0),), {}) if seconded else Layer("Convolution", "opset1", ((3, 0), (4, 0)), slide),
        ),
        ((5, 0),),
    ).pruned()
    judge = Judge(oracle)
    verdict = judge.judge(recipe)
    if levels == 65535:
        assert verdict.kind == "agrees"
        assert not ignores_levels(recipe, replace(verdict, kind="parts"), judge)
        return
    assert verdict.kind == ("reference" if seconded else "parts"), verdict
    assert ignores_levels(recipe, verdict, judge)
    assert explain(recipe, verdict, judge).kind == "departure"
    # A wrong result of ours is still a finding.
    ours = Judge.ours
    monkeypatch.setattr(
        Judge,
        "ours",
        lambda self, r, *q: [[a * (1.01 if _levels(r) == 65536 else 1) for a in form] for form in ours(self, r, *q)],
    )
    assert not ignores_levels(recipe, replace(verdict, kind="parts"), judge)


def test_ignored_levels_before_other_levels_are_departures(oracle: Oracle) -> None:
    """Later layers round small differences to whole levels, which are larger than the tolerance."""
    rng = np.random.default_rng(0)
    fine, coarse = ({"levels": levels, "auto_broadcast": "numpy"} for levels in (65536, 256))
    slide = {"strides": [1, 1], "dilations": [1, 1], "pads_begin": [0, 0], "pads_end": [0, 0], "auto_pad": "explicit"}
    data, factors, weights = (rng.random(shape, np.float32) for shape in ((2, 48, 12, 12), (2, 48, 1, 1), (4, 48, 1, 1)))
    recipe = Recipe(
        (
            Leaf("f32", data, data.shape),
            LOW,
            HIGH,
            Layer("FakeQuantize", "opset1", ((0, 0), (1, 0), (2, 0), (1, 0), (2, 0)), fine),
            Leaf("f32", factors, factors.shape),
            Layer("Multiply", "opset1", ((3, 0), (4, 0)), {"auto_broadcast": "numpy"}),
            Layer("FakeQuantize", "opset1", ((5, 0), (1, 0), (2, 0), (1, 0), (2, 0)), coarse),
            Leaf("f32", weights, weights.shape),
            Layer("Convolution", "opset1", ((6, 0), (7, 0)), slide),
        ),
        ((8, 0),),
    )
    judge = Judge(oracle)
    verdict = judge.judge(recipe)
    assert verdict.kind == "parts"
    assert ignores_levels(recipe, verdict, judge)


def _levels(recipe: Recipe) -> object:
    return next(layer.attributes["levels"] for layer in recipe.layers() if layer.operation == "FakeQuantize")


@pytest.mark.parametrize(("high", "levels", "excused"), [(3, 255, True), (4, 257, False)])
def test_a_level_that_is_0_but_for_rounding_is_noise(high: float, levels: int, excused: bool, oracle: Oracle) -> None:
    """OpenVINO's level is 1e-8 for the first limits. Infinity times it depends on its sign, and is NaN for 0."""
    limits = [Leaf("f32", np.array(limit, np.float32), (), constant=True) for limit in (-high, high)]
    attributes = {"levels": levels, "auto_broadcast": "numpy"}
    recipe = Recipe(
        (
            Leaf("f32", np.linspace(-0.01, 0.01, 64, dtype=np.float32).reshape(16, 4), (16, 4)),
            *limits,
            Layer("FakeQuantize", "opset1", ((0, 0), (1, 0), (2, 0), (1, 0), (2, 0)), attributes),
            Leaf("f32", np.array([[np.inf]], np.float32), (1, 1)),
            Layer("Multiply", "opset1", ((3, 0), (4, 0)), {"auto_broadcast": "numpy"}),
        ),
        ((5, 0),),
    )
    assert noisy(recipe, Judge(oracle)) == excused


@pytest.mark.parametrize(("number", "excused"), [(200, True), (80, False)])
def test_departures_of_large_numbers_excuse_only_these(number: float, excused: bool, oracle: Oracle) -> None:
    """The reference kernels lack RegionYolo."""
    array = np.zeros((1, 8, 4, 4), np.float32)
    array[0, 7] = number
    attributes = {"coords": 4, "classes": 3, "num": 1, "do_softmax": True, "mask": [], "axis": 1, "end_axis": 1}
    layer = Layer("RegionYolo", "opset1", ((0, 0),), {**attributes, "anchors": []})
    recipe, judge = Recipe((Leaf("f32", array, array.shape), layer), ((1, 0),)), Judge(oracle)
    verdict = judge.judge(recipe)
    assert verdict.suspect == excused
    assert _excused(recipe, Verdict("parts", unseconded=True, apart=frozenset([0]))) == excused


@pytest.mark.parametrize(("number", "excused"), [(100, True), (20, False)])
def test_departures_of_large_sums_excuse_only_these(number: int, excused: bool, oracle: Oracle) -> None:
    """The reference kernels lack AdaptiveAvgPool."""
    array = np.full((1, 1, 2, 2), number, np.int8)
    one = Leaf("i64", np.array([1, 1]), (2,), constant=True)
    layer = Layer("AdaptiveAvgPool", "opset8", ((0, 0), (1, 0)), {})
    recipe, judge = Recipe((Leaf("i8", array, array.shape), one, layer), ((2, 0),)), Judge(oracle)
    verdict = judge.judge(recipe)
    assert verdict.suspect == excused
    assert _excused(recipe, Verdict("parts", unseconded=True, apart=frozenset([0]))) == excused
