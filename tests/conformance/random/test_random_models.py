"""A sample of the random models, and the generator itself."""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from converters.openvino.coverage.operations import operations
from tests.conformance.oracle import Oracle, OracleError
from tests.conformance.random import models
from tests.conformance.random.explain import (
    agrees_result_by_result,
    explain,
    is_refused,
    singles,
    spoiled,
    undecided,
    unfit,
    values,
)
from tests.conformance.random.judge import Judge, Verdict, save, save_and_infer
from tests.conformance.random.noise import (
    amplified,
    differs_from_itself,
    halfway,
    has_wrong_shape_stated,
    overflown,
    takes_from_nothing,
    tied,
    unset,
)
from tests.conformance.random.recipe import Layer, Leaf, Recipe, leaf_of
from tests.conformance.random.restate import seconded_in_other_words
from tests.processor import HAS_AVX512
from tests.worker import Worker

SEED, MODELS = 2026, 8
SAMPLE = (1, 5, 6)
"""The seeds of the sample. `python -m tests.conformance.random` searches for findings, and other seeds still have some."""


@pytest.mark.parametrize("seed", SAMPLE)
def test_random_models(seed: int, idle: list[Worker]) -> None:
    kinds: Counter[str] = Counter()
    for outcome in models.run(seed, range(MODELS), idle=idle):
        assert not outcome.found, outcome.text
        kinds[outcome.kind] += 1
    assert kinds["agrees"] >= MODELS // 2, kinds


def test_a_number_always_gives_the_same_model(oracle: Oracle) -> None:
    one, again, other = (oracle.ask(models.recipe, SEED, number) for number in (3, 3, 4))
    assert str(one) == str(again) != str(other)


def test_a_record_survives_an_interruption(tmp_path: Path) -> None:
    path = tmp_path / "findings" / "1.txt"
    for number, kind in ((3, "agrees"), (1, "found")):
        with closing(models.Record(path)) as record:
            record.add(models.Outcome(number, kind, Counter()))
    assert models.Record(path).kinds == {3: "agrees", 1: "found"}


def test_all_families_occur(oracle: Oracle) -> None:
    made = {layer.operation for number in range(60) for layer in oracle.ask(models.recipe, SEED, number).layers()}
    assert len(made) > 120
    assert made <= {operation.name for operation in operations()} | {"LogicalXor"}


# -- differences are found and explained ------------------------------------------------------------------------------------

X = Leaf("f32", np.array([1, 2, 3], np.float32), (3,))
CHAIN = Recipe(
    (
        X,
        Layer("Relu", "opset1", ((0, 0),), {}),
        Layer("SoftSign", "opset9", ((1, 0),), {}),
        Layer("Abs", "opset1", ((2, 0),), {}),
        Layer("Negative", "opset1", ((1, 0),), {}),
    ),
    ((3, 0), (4, 0)),
)


def _wrong(monkeypatch: pytest.MonkeyPatch, operation: str, opset: str = "opset9") -> None:
    """Let the rule of an operation give another result."""
    from converters.openvino.rule import find_rule

    rule = find_rule(operation, opset)
    right = rule.function

    def function(op: Any, *x: Any, **given: Any) -> Any:
        first, *others = result if isinstance(result := right(op, *x, **given), (list, tuple)) else [result]
        return [op.Add(first, 1), *others]

    monkeypatch.setattr(rule, "function", function)


def test_the_differing_layer_is_found(oracle: Oracle, monkeypatch: pytest.MonkeyPatch) -> None:
    judge = Judge(oracle)
    assert judge.judge(CHAIN).kind == "agrees"
    _wrong(monkeypatch, "SoftSign")
    verdict = judge.judge(CHAIN)
    assert verdict.kind == "parts"
    found = explain(CHAIN, verdict, judge)
    assert found.kind == "found"
    assert [layer.operation for layer in found.recipe.layers()] == ["SoftSign"]


def test_a_known_departure_is_excused(oracle: Oracle) -> None:
    nan = Leaf("f32", np.array([np.nan, 1], np.float32), (2,))
    recipe = Recipe((nan, Layer("Relu", "opset1", ((0, 0),), {})), ((1, 0),))
    judge = Judge(oracle)
    verdict = judge.judge(recipe)
    assert verdict.kind == "reference"
    assert explain(recipe, verdict, judge).kind == "departure"


def test_runtime_dependent_results_are_excused_for_nonfinite_numbers_only(
    oracle: Oracle, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also for a layer without a reference kernel."""
    regions, image = np.float32([[9, 9, 1, 1, 0]]), np.array([0], np.int32)
    attributes = {"pooled_h": 1, "pooled_w": 1, "sampling_ratio": 1, "spatial_scale": 1.0, "clockwise_mode": True}
    _wrong(monkeypatch, "ROIAlignRotated", "opset15")
    judge = Judge(oracle)
    for number, kind in ((np.nan, "departure"), (1, "found")):
        feat = np.float32([[[[number, 2]]]])
        recipe = _of_one("ROIAlignRotated", "opset15", feat, regions, image, **attributes)
        verdict = judge.judge(recipe)
        assert verdict.kind == "parts"
        assert verdict.unseconded
        assert explain(recipe, verdict, judge).kind == kind


def test_a_known_departure_does_not_hide_other_differences(oracle: Oracle, monkeypatch: pytest.MonkeyPatch) -> None:
    nan = Leaf("f32", np.array([np.nan, 1], np.float32), (2,))
    layers = (
        Layer("Relu", "opset1", ((0, 0),), {}),
        Layer("Abs", "opset1", ((2, 0),), {}),
        Layer("SoftSign", "opset9", ((3, 0),), {}),
    )
    recipe = Recipe((nan, layers[0], X, *layers[1:]), ((1, 0), (4, 0)))
    judge = Judge(oracle)
    assert explain(recipe, judge.judge(recipe), judge).kind == "departure"
    # An error that only occurs in a combination of two layers.
    alone = Judge.judge

    def judged(self: Judge, given: Recipe, *, python: bool = False) -> Verdict:
        if [layer.operation for layer in given.layers()][-2:] == ["Abs", "SoftSign"]:
            return Verdict("parts", apart=frozenset({len(given.results) - 1}))
        return alone(self, given, python=python)

    verdict = Verdict("parts", apart=frozenset({0, 1}))
    monkeypatch.setattr(Judge, "judge", judged)
    found = explain(recipe, verdict, judge)
    assert found.kind == "found"
    assert [layer.operation for layer in found.recipe.layers()] == ["Abs", "SoftSign"]


def test_integers_next_to_halfway_floats_are_excused(oracle: Oracle) -> None:
    """OpenVINO's two implementations and we compute floats in different orders that are halfway between two integers."""
    rows = np.array([[[2, 7, 5], [3, 8, 1]]], np.uint8)
    floats = np.array([[[2.5, 7.0, 5.5]]], np.float32)
    assert halfway(np.array([[[2, 7, 6]]], np.uint8), np.array([[[3, 7, 5]]], np.uint8), floats)
    assert not halfway(np.array([[[2, 8, 6]]], np.uint8), np.array([[[3, 7, 5]]], np.uint8), floats)
    assert not halfway(np.array([[[2, 7, 7]]], np.uint8), np.array([[[3, 7, 5]]], np.uint8), floats)
    assert not halfway(rows, np.array([[[3, 7, 5]]], np.uint8), floats)
    ours, cut, floats = (
        np.array([3, -2, 1], np.int8),
        np.array([2, -3, 1], np.int8),
        np.array([2.9999999, -3, 1.7], np.float32),
    )
    assert halfway(ours, cut, floats)
    assert not halfway(ours + 1, cut + 1, floats)
    assert not halfway(np.array([3, -3, 2], np.int8), cut, floats)
    assert not halfway(ours, np.array([2, -3, 2], np.int8), floats)


def test_integers_of_several_inputs_are_compared_with_floats_of_all(oracle: Oracle, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pixel whose green is 138.5, which the CPU plugin rounds up."""
    planes = [np.full((1, size, size, 1), number, np.uint8) for size, number in ((2, 190), (1, 219), (1, 163))]
    recipe, judge = _of_one("I420toRGB", "opset8", *planes), Judge(oracle)
    verdict = judge.judge(recipe)
    assert verdict.kind == "parts"
    assert tied(recipe, verdict, judge)
    _wrong(monkeypatch, "I420toRGB")
    assert not tied(recipe, judge.judge(recipe), judge)


def test_contradictions_of_openvino_are_excused(oracle: Oracle, monkeypatch: pytest.MonkeyPatch) -> None:
    """For the same layers with other results it agrees with us on both."""
    judge, verdict = Judge(oracle), Verdict("parts", apart=frozenset({0}))
    assert not differs_from_itself(CHAIN, verdict, judge)  # the reference kernels agree with it
    right = Judge.openvinos

    def answered(self: Judge, recipe: Recipe, name: str = "cpu") -> list[np.ndarray] | OracleError:
        answer = right(self, recipe, name)
        assert not isinstance(answer, OracleError)
        return [array + 1 for array in answer] if recipe is CHAIN and name == "cpu" else answer

    monkeypatch.setattr(Judge, "openvinos", answered)
    assert differs_from_itself(CHAIN, verdict, judge)
    _wrong(monkeypatch, "SoftSign")
    assert not differs_from_itself(CHAIN, verdict, judge)


_NONE = {name: [0] for name in ("end_mask", "new_axis_mask", "ellipsis_mask")}


def _of_one(operation: str, opset: str, *arrays: np.ndarray, **attributes: object) -> Recipe:
    leaves = [leaf_of(array) for array in arrays]
    layer = Layer(operation, opset, tuple((k, 0) for k in range(len(leaves))), attributes)
    return Recipe((*leaves, layer), ((len(leaves), 0),))


OTHERWISE = [
    # The reference kernel ignores the mask.
    _of_one(
        "StridedSlice",
        "opset1",
        *(np.array([k]) for k in ([1, 2, 3], 2, 0)),
        begin_mask=[1],
        shrink_axis_mask=[1],
        **_NONE,
    ),
    # The plugin writes nothing; in the reference kernel the new axis precedes the ellipsis.
    _of_one(
        "StridedSlice",
        "opset1",
        np.array([1, 2, 3], np.float32),
        *(np.array([k]) for k in (-5, -4, 1)),
        begin_mask=[1],
        shrink_axis_mask=[0],
        **{**_NONE, "new_axis_mask": [1], "ellipsis_mask": [1]},
    ),
    # The shrunk axis precedes the ellipsis in it.
    _of_one(
        "StridedSlice",
        "opset1",
        *(np.array([k]) for k in ([1, 2, 3], 2, 0)),
        **{**_NONE, "begin_mask": [0], "shrink_axis_mask": [1], "ellipsis_mask": [1]},
    ),
    # An intermediate value is infinite or 0, depending on the order.
    _of_one("ReduceProd", "opset1", np.array([[1e30, 1e30, 0], [1, 2, 3]], np.float32), np.array([1])),
    _of_one("ReduceSum", "opset1", np.arange(24, dtype=np.float32).reshape(2, 3, 4), np.array([-1, 0])),
    # It overflows in sums of more elements than ours.
    _of_one(
        "AdaptiveAvgPool",
        "opset8",
        np.array([[[[3e38, 3e38, 1], [1, 2, 3]], [[1, 2, 3], [4, 5, 6]]]], np.float32),
        np.array([1, 2]),
    ),
    # Both of OpenVINO's implementations lose the remainder.
    _of_one("FloorMod", "opset1", np.array([-2e22, 5], np.float32), np.array([3], np.float32), auto_broadcast="numpy"),
    # Both pad like same_upper.
    Recipe(
        (
            Leaf("f32", np.array([[[3, 1, 2, 5]]], np.float32), (-1, -1, -1)),
            Layer(
                "MaxPool",
                "opset8",
                ((0, 0),),
                {
                    "strides": [1],
                    "kernel": [2],
                    "pads_begin": [0],
                    "pads_end": [0],
                    "dilations": [1],
                    "auto_pad": "same_lower",
                    "index_element_type": "i64",
                },
            ),
        ),
        ((1, 0),),
    ),
    # It folds with known shapes when it loads the model.
    Recipe(
        (
            Leaf("f32", np.ones((1, 3), np.float32), (1, 3)),
            Layer("ShapeOf", "opset3", ((0, 0),), {"output_type": "i32"}),
            Layer("Exp", "opset1", ((1, 0),), {}),
        ),
        ((2, 0),),
    ),
]


@pytest.mark.parametrize("recipe", OTHERWISE, ids=lambda recipe: recipe.layers()[-1].operation)
def test_agreement_on_an_equivalent_model_is_excused(
    recipe: Recipe, oracle: Oracle, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge, verdict = Judge(oracle), Verdict("parts", apart=frozenset({0}))
    assert seconded_in_other_words(recipe, verdict, judge)
    _wrong(monkeypatch, recipe.layers()[-1].operation)
    assert not seconded_in_other_words(recipe, verdict, judge)


def test_amplified_differences_are_excused(oracle: Oracle, monkeypatch: pytest.MonkeyPatch) -> None:
    """ONNX Runtime's sigmoid is 0 where OpenVINO's is 6e-16."""
    judge = Judge(oracle)
    beta = Leaf("f32", np.array(-3.5, np.float32), ())
    layers = (
        Layer("Swish", "opset4", ((0, 0), (1, 0)), {}),
        Layer("NonZero", "opset3", ((2, 0),), {}),
        Layer("Abs", "opset1", ((3, 0),), {}),
    )
    recipe = Recipe((Leaf("f32", np.array([10, 1], np.float32), (2,)), beta, *layers), ((4, 0),))
    verdict = judge.judge(recipe)
    assert verdict.kind == "parts"
    assert amplified(recipe, verdict, judge)
    _wrong(monkeypatch, "Abs")
    assert not amplified(recipe, judge.judge(recipe), judge)


def test_amplified_differences_are_excused_with_the_reference_kernels(oracle: Oracle) -> None:
    """The CPU plugin quantizes to a number next to -0.25, which is the highest."""
    limits = (Leaf("f32", np.full((1, 1), limit, np.float32), (1, 1), True) for limit in (-4, -0.875, -2.75, -0.25))
    layers = (
        Layer("FakeQuantize", "opset1", tuple((k, 0) for k in range(5)), {"levels": 16, "auto_broadcast": "numpy"}),
        Layer("NotEqual", "opset1", ((5, 0), (0, 0)), {"auto_broadcast": "numpy"}),
    )
    recipe = Recipe((leaf_of(np.float32([[-1.875, -0.25]])), *limits, *layers), ((6, 0),))
    judge = Judge(oracle)
    verdict = judge.judge(recipe)
    assert verdict.kind == "reference"
    assert amplified(recipe, verdict, judge)


def test_amplified_differences_may_be_departures(oracle: Oracle) -> None:
    """A level near 0, by whose rounding Mod gives NaN, which FakeQuantize maps to the lower limit."""
    low, high = (Leaf("f32", np.array(limit, np.float32), (), constant=True) for limit in (-0.464609, 0.49860477))
    x = Leaf("f32", np.array([[0.125, 0.375]], np.float32), (1, 2))
    small = Leaf("f32", np.array([[-0.0014893487, 0.3]], np.float32), (1, 2))
    limits = ((2, 0), (3, 0), (2, 0), (3, 0))
    quantize = {"levels": 256, "auto_broadcast": "numpy"}
    recipe = Recipe(
        (
            x,
            small,
            low,
            high,
            Layer("FakeQuantize", "opset1", ((1, 0), *limits), quantize),
            Layer("Mod", "opset1", ((0, 0), (4, 0)), {"auto_broadcast": "numpy"}),
            Layer("FakeQuantize", "opset1", ((5, 0), *limits), quantize),
        ),
        ((6, 0),),
    )
    judge = Judge(oracle)
    verdict = judge.judge(recipe)
    assert verdict.kind == "parts"
    assert not amplified(recipe, verdict, judge)
    explained = explain(recipe, verdict, judge)
    assert explained.kind == "noise"


def test_results_that_change_between_runs_are_excused(oracle: Oracle, monkeypatch: pytest.MonkeyPatch) -> None:
    judge, verdict, right = Judge(oracle), Verdict("parts", apart=frozenset({0})), Judge.openvinos
    assert not unset(CHAIN, verdict, judge)
    left_in_memory = iter(np.float32([0, 0, 0, 0, 0, 0, 0, 1e-30]))

    def answered(self: Judge, recipe: Recipe, name: str = "cpu") -> list[np.ndarray] | OracleError:
        answer = right(self, recipe, name)
        assert not isinstance(answer, OracleError)
        return [array * next(left_in_memory) for array in answer[:1]]

    monkeypatch.setattr(Judge, "openvinos", answered)
    assert unset(CHAIN, verdict, judge)
    monkeypatch.setattr(Judge, "openvinos", lambda self, recipe: OracleError("OpenVINO crashed"))
    assert unset(CHAIN, verdict, judge)


def test_a_layer_that_crashes_alone_is_excused_among_others(oracle: Oracle) -> None:
    """The CPU plugin ignores a run-time step, and divides by uninitialized memory."""
    given = [leaf_of(np.array(array, np.int32)) for array in ([2, -1], [4], [-4], [1])]
    step, axis = leaf_of(np.array([1], np.int32)), replace(leaf_of(np.array([-1])), constant=True)
    layer = Layer("SliceScatter", "opset15", tuple((k, 0) for k in range(6)), {})
    recipe = Recipe((*given, step, axis, layer, Layer("Abs", "opset1", ((0, 0),), {})), ((6, 0), (7, 0)))
    for apart in (0, 1):
        assert spoiled(recipe, Verdict("parts", apart=frozenset({apart})), Judge(oracle)) == (apart == 0)


@pytest.mark.skipif(not HAS_AVX512, reason="the CPU plugin only divides by them with AVX-512")
def test_differences_from_the_reference_kernels_are_excused_next_to_a_crash(oracle: Oracle) -> None:
    """They ignore a mask, and the CPU plugin divides by the zero elements of the gathered rows."""
    masks = {name: [0] for name in ("end_mask", "new_axis_mask", "ellipsis_mask")}
    given = [replace(leaf_of(np.array([k])), constant=True) for k in (2, 0)]
    data = leaf_of(np.array([1, 2, 3]))
    layer = Layer("StridedSlice", "opset1", ((0, 0), (1, 0), (2, 0)), {"begin_mask": [1], "shrink_axis_mask": [1], **masks})
    rows, row, axis = leaf_of(np.zeros((3, 0), np.int8)), leaf_of(np.array(0, np.int32)), _constant(0)
    gather = Layer("Gather", "opset8", ((4, 0), (5, 0), (6, 0)), {"batch_dims": 0})
    recipe, judge = Recipe((data, *given, layer, rows, row, axis, gather), ((3, 0), (7, 0))), Judge(oracle)
    verdict = judge.judge(recipe)
    assert verdict.kind == "parts", verdict
    assert agrees_result_by_result(recipe, verdict, judge)
    assert explain(recipe, verdict, judge).kind == "noise"


def test_a_crash_in_corrupted_memory_is_repeated(oracle: Oracle, monkeypatch: pytest.MonkeyPatch) -> None:
    right, crashes = Oracle.ask, [OracleError("OpenVINO crashed: its process ended with SIGSEGV")]

    def asked(self: Oracle, function: Any, *given: Any, **named: Any) -> Any:
        if function is save:
            return right(self, function, *given, **named)
        if function is save_and_infer:
            right(self, save, *given)
        if crashes:
            raise crashes.pop()
        return right(self, function, *given, **named)

    monkeypatch.setattr(Oracle, "ask", asked)
    assert not Judge(oracle).judge(CHAIN).unseconded
    assert not crashes


def test_sums_that_overflow_are_excused(oracle: Oracle, monkeypatch: pytest.MonkeyPatch) -> None:
    rows, columns = np.array([[3e38, 3e38], [1, 2]], np.float32), np.array([[-2], [2]], np.float32)
    recipe, judge = _of_one("MatMul", "opset1", rows, columns, transpose_a=False, transpose_b=False), Judge(oracle)
    monkeypatch.setattr(Judge, "ours", lambda self, recipe: [[np.array([[np.nan], [2]], np.float32)]])
    for first, is_so in ((np.inf, True), (-np.inf, True), (np.nan, True), (5, False)):
        answer = [np.array([[first], [2]], np.float32)]
        monkeypatch.setattr(Judge, "openvinos", lambda self, recipe, answer=answer: answer)
        assert overflown(recipe, judge) == is_so
    monkeypatch.setattr(Judge, "openvinos", lambda self, recipe: [np.array([[np.inf], [3]], np.float32)])
    assert not overflown(recipe, judge)


def test_a_norm_whose_squares_overflow_is_excused(oracle: Oracle, monkeypatch: pytest.MonkeyPatch) -> None:
    judge, attributes = Judge(oracle), {"eps": 1e-3, "across_channels": False, "normalize_variance": True}
    for number, is_so in ((-3.4e38, True), (2.0, False)):
        recipe = _of_one("MVN", "opset2", np.full((1, 2, 3), number, np.float32), **attributes)
        ours = np.zeros((1, 2, 3), np.float32)
        with monkeypatch.context() as patch:
            patch.setattr(Judge, "openvinos", lambda self, recipe, ours=ours: [ours * np.nan])
            patch.setattr(Judge, "ours", lambda self, recipe, ours=ours: [[ours]])
            patch.setattr(Judge, "judge", lambda self, recipe: Verdict("agrees"))
            assert overflown(recipe, judge) == is_so


def test_a_layer_whose_sums_overflow_is_excused(oracle: Oracle) -> None:
    """OpenVINO multiplies the last two operands first."""
    columns = np.array([[2.75, -1.5], [-3e38, -3e38]], np.float32)
    operands = np.array([[[1, 2]]], np.float32), columns, np.array([1.5, -0.25], np.float32)
    recipe, judge = _of_one("Einsum", "opset7", *operands, equation="abc,cd,d->ab"), Judge(oracle)
    verdict = judge.judge(recipe)
    assert verdict.kind == "parts", verdict
    assert explain(recipe, verdict, judge).kind == "noise"


def test_differences_between_openvinos_implementations_are_excused(oracle: Oracle, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only if the table of departures has an entry for the layer."""
    known, other = _of_one("StridedSlice", "opset1", X.array), _of_one("Identity", "opset16", X.array)
    judge = Judge(oracle)
    for second, is_so in ((1, True), (0, False)):
        answers = {"cpu": [np.zeros(3)], "evaluate": [np.full(3, second, float)]}
        monkeypatch.setattr(Judge, "openvinos", lambda self, recipe, name, answers=answers: answers[name])
        assert undecided(known, Verdict("parts"), judge) == is_so
        assert not undecided(known, Verdict("lacks"), judge) and not undecided(other, Verdict("parts"), judge)


def test_departures_of_integers_excuse_integers_only(oracle: Oracle, monkeypatch: pytest.MonkeyPatch) -> None:
    judge = Judge(oracle)
    answers = {"cpu": [np.zeros(3)], "evaluate": [np.ones(3)]}
    monkeypatch.setattr(Judge, "openvinos", lambda self, recipe, name: answers[name])
    for type_ in (np.int32, np.float32):
        operands = np.ones((1, 2), type_), np.ones((2, 1), type_)
        recipe = _of_one("Einsum", "opset7", *operands, equation="ab,bc->ac")
        assert undecided(recipe, Verdict("parts"), judge) == (type_ == np.int32)


@pytest.mark.parametrize(("equation", "excused"), [("...a,a...->...", True), ("ab,bc->ac", False)])
def test_departures_of_an_ellipsis_excuse_it_only(
    oracle: Oracle, monkeypatch: pytest.MonkeyPatch, equation: str, excused: bool
) -> None:
    answers = {"cpu": [np.zeros(3)], "evaluate": [np.ones(3)]}
    monkeypatch.setattr(Judge, "openvinos", lambda self, recipe, name: answers[name])
    recipe = _of_one("Einsum", "opset7", np.ones((1, 2), np.float32), np.ones((2, 1), np.float32), equation=equation)
    assert undecided(recipe, Verdict("parts"), Judge(oracle)) == excused


def test_values_of_constants_are_constants_of_a_single_layer(oracle: Oracle) -> None:
    one = Leaf("f32", np.ones(3, np.float32), (3,), True)
    layers = Layer("Relu", "opset1", ((1, 0),), {}), Layer("Add", "opset1", ((0, 0), (2, 0)), {"auto_broadcast": "numpy"})
    _, add = singles(Recipe((X, one, *layers), ((3, 0),)), Judge(oracle))
    assert [leaf.constant for leaf in add.recipe.nodes if isinstance(leaf, Leaf)] == [False, True]


def test_booleans_of_openvino_are_0_or_1() -> None:
    left_in_memory = np.array([0, 1, 7], np.uint8).view(np.bool_)
    array = leaf_of(left_in_memory).array
    assert array is not None
    assert array.view(np.uint8).tolist() == [0, 1, 1]


NOTHING = Leaf("i64", np.zeros((0, 0, 3), np.int64), (-1, -1, -1))
NO_ROWS = Leaf("i64", np.zeros((0, 1), np.int64), (-1, -1))
LARGEST = {"axis": 1, "sort": "value", "index_element_type": "i32", "mode": "max"}


def _constant(*numbers: int) -> Leaf:
    return Leaf("i64", np.array(numbers), (len(numbers),), True)


def _number(number: int) -> Leaf:
    return Leaf("i64", np.array(number), (), True)


@pytest.mark.parametrize(
    ("inputs", "layer"),
    [
        ((NOTHING, _number(5)), Layer("TopK", "opset3", ((0, 0), (1, 0)), LARGEST)),  # rejected with elements, too
        (
            (NO_ROWS, leaf_of(np.zeros((1, 1), np.int64))),  # for lack of memory checks
            Layer("GatherElements", "opset6", ((0, 0), (1, 0)), {"axis": 0}),
        ),
        (
            (leaf_of(np.zeros((4, 0), np.float32)), _constant(0)),  # for lack of memory checks
            Layer("Reshape", "opset1", ((0, 0), (1, 0)), {"special_zero": True}),
        ),
        ((NOTHING, _constant(1), _number(0)), Layer("Gather", "opset8", ((0, 0), (1, 0), (2, 0)), {"batch_dims": 0})),
        ((NOTHING, _number(1), _constant(5, -1)), Layer("VariadicSplit", "opset1", ((0, 0), (1, 0), (2, 0)), {})),
    ],
)
def test_invalid_models_without_numbers_are_excused(oracle: Oracle, inputs: tuple[Leaf, ...], layer: Layer) -> None:
    judge, recipe = Judge(oracle), Recipe((*inputs, layer), ((len(inputs), 0),))
    verdict = judge.judge(recipe)
    assert verdict.kind in ("lacks", "fails"), verdict
    assert explain(recipe, verdict, judge).kind != "found"  # noise, if it gives another result each time


def test_failures_for_empty_tensors_only_are_findings(oracle: Oracle, monkeypatch: pytest.MonkeyPatch) -> None:
    from converters.openvino.rule import find_rule

    rule = find_rule("SoftSign", "opset9")
    monkeypatch.setattr(rule, "function", lambda op, x: op.Gather(x, op.const([0]), axis=0))
    nothing = Leaf("f32", np.zeros((0,), np.float32), (0,))
    judge, recipe = Judge(oracle), Recipe((nothing, Layer("SoftSign", "opset9", ((0, 0),), {})), ((1, 0),))
    verdict = judge.judge(recipe)
    assert verdict.kind == "fails"
    assert explain(recipe, verdict, judge).kind == "found"


def test_a_body_with_other_dimensions_than_declared_is_excused(oracle: Oracle) -> None:
    """The CPU plugin produced other dimensions than OpenVINO had inferred."""
    ports = (("set_merged_input", 0, 2, 0), ("get_iter_value", 0, -1))
    indices, updates = _constant(0, 2, 1), Leaf("f32", np.ones((3, 3), np.float32), (3, 3), True)
    update = Layer("ScatterUpdate", "opset3", ((0, 0), (1, 0), (2, 0), (3, 0)), {})
    true = Leaf("boolean", np.array(True), (), True)
    body = Recipe((Leaf("f32", None, (3, 3)), indices, updates, _number(1), update, true), ((4, 0), (5, 0)))
    data = Leaf("f32", np.zeros((0, 3), np.float32), (0, 3))
    loop = Layer("Loop", "opset5", ((0, 0), (1, 0), (2, 0)), {"special": (-1, 1)}, (body,), ports)
    recipe = Recipe((_number(2), true, data, loop), ((3, 0),))
    judge = Judge(oracle)
    verdict = judge.judge(recipe)
    assert verdict.kind == "fails", verdict
    assert explain(recipe, verdict, judge).kind == "noise"
    fitting = replace(body, nodes=(Leaf("f32", None, (-1, 3)), *body.nodes[1:]))
    loop = replace(loop, bodies=(fitting,))
    assert not unfit(replace(recipe, nodes=(*recipe.nodes[:3], loop)), verdict)


def test_values_that_fit_wrongly_inferred_dimensions_are_excused(oracle: Oracle) -> None:
    """The maximum number of boxes, one of which remains."""
    boxes, scores = np.zeros((1, 2, 4), np.float32) + np.float32([0, 0, 1, 1]), np.float32([[[0.5, 0.75]]])
    limits = (replace(leaf_of(np.array(limit)), constant=True) for limit in (np.int32(2), np.float32(0.5), np.float32(0)))
    layers = (
        Layer("NonMaxSuppression", "opset4", tuple((k, 0) for k in range(5)), {"output_type": "i32"}),
        Layer("GatherND", "opset5", ((6, 0), (5, 0)), {"batch_dims": 0}),
    )
    recipe = Recipe((leaf_of(boxes), leaf_of(scores), *limits, leaf_of(np.int32([[1]])), *layers), ((7, 0),))
    judge = Judge(oracle)
    verdict = judge.judge(recipe)
    assert verdict.kind == "fails", verdict
    assert has_wrong_shape_stated(recipe, verdict, 7, judge)
    assert explain(recipe, verdict, judge).kind == "noise"
    assert not has_wrong_shape_stated(recipe, verdict, 6, judge)


def _element(count: int, index: int) -> Recipe:
    """An element of a Range, times 0, so that OpenVINO's result is 0 whatever it reads."""
    numbers = (Leaf("i64", np.array(number), ()) for number in (3, 3 + count, 1))
    layers = (
        Layer("Range", "opset4", ((0, 0), (1, 0), (2, 0)), {"output_type": "i64"}),
        Layer("Gather", "opset8", ((5, 0), (3, 0), (4, 0)), {"batch_dims": 0}),
        Layer("Multiply", "opset1", ((6, 0), (4, 0)), {}),
    )
    scalars = (Leaf("i64", np.array(number), (), True) for number in (index, 0))
    return Recipe((*numbers, *scalars, *layers), ((7, 0),))


def test_an_element_of_an_empty_tensor(oracle: Oracle, monkeypatch: pytest.MonkeyPatch) -> None:
    """ONNX Runtime rejects an index for which OpenVINO reads out of bounds, or reads 0."""
    judge, recipe = Judge(oracle), _element(0, 0)
    verdict = judge.judge(recipe)
    assert verdict.kind == "fails" and "Name:'v6/" in verdict.text, verdict
    assert takes_from_nothing(recipe, verdict, 6, judge)
    assert not takes_from_nothing(recipe, verdict, 5, judge)
    assert not takes_from_nothing(recipe, Verdict("parts", verdict.text), 6, judge)
    # If the memory happens to be 0, the layer agrees as a separate model.
    monkeypatch.setattr("tests.conformance.random.explain.singles", lambda recipe, judge: [])
    assert explain(recipe, verdict, judge).kind == "noise"


@pytest.mark.parametrize(("count", "index"), [(1, 0), (2, 2)])
def test_an_element_of_a_tensor_with_elements(count: int, index: int, oracle: Oracle) -> None:
    """If only our tensor were empty, this would be a finding."""
    judge, recipe = Judge(oracle), _element(count, index)
    failed = judge.judge(_element(0, 0))
    assert not takes_from_nothing(recipe, failed, 6, judge)


def test_a_failed_layer_of_openvino_invalidates_the_result(oracle: Oracle) -> None:
    """Not even for other layers: with one thread it returned uninitialized memory for all."""
    none = {f"{name}_mask": [0] for name in ("begin", "end", "new_axis", "ellipsis")}
    element = Layer("StridedSlice", "opset1", ((0, 0), (1, 0), (2, 0)), {**none, "shrink_axis_mask": [1]})
    recipe = Recipe((X, leaf_of(np.array([1])), _constant(2), element, *CHAIN.nodes[1:2]), ((3, 0), (4, 0)))
    judge = Judge(oracle)
    assert isinstance(judge.openvinos(recipe), OracleError)
    assert judge.judge(recipe).kind == "agrees"  # with the reference kernels


def test_an_unused_layer_may_be_rejected_by_both(oracle: Oracle) -> None:
    """OpenVINO's plugin omits a layer that it would reject."""
    masks = {
        f"{name}_mask": [int(name == "shrink_axis")] for name in ("begin", "end", "new_axis", "shrink_axis", "ellipsis")
    }
    beyond = Layer("StridedSlice", "opset1", ((1, 0), (2, 0), (3, 0)), masks)
    square = Layer("Squeeze", "opset1", ((0, 0),), {})
    shape = Layer("ShapeOf", "opset3", ((4, 0),), {"output_type": "i64"})
    data = Leaf("f32", np.ones((2, 7, 1), np.float32), (2, 7, 1))
    judge, recipe = Judge(oracle), Recipe((data, square, _constant(4), _constant(5), beyond, shape), ((5, 0),))
    verdict = judge.judge(recipe)
    assert verdict.kind == "lacks", verdict
    assert explain(recipe, verdict, judge).kind == "departure"


@pytest.mark.parametrize(("rows", "refused"), [(2**13, True), (2, False)])
def test_models_that_openvino_accepts_with_unknown_shapes_may_fail(rows: int, refused: bool) -> None:
    """OpenVINO writes 512 MiB beyond the data, and crashes. Nearer writes may go unnoticed."""
    data = Leaf("f32", np.ones((2, 2**14), np.float32), (-1, 2**14))
    indices = Leaf("i32", np.zeros((rows, 1), np.int32), (rows, 1))
    updates = Leaf("f32", np.ones((rows, 1), np.float32), (rows, 1))
    scatter = Layer("ScatterElementsUpdate", "opset3", ((3, 0), (1, 0), (2, 0), (4, 0)), {})
    recipe = Recipe((data, indices, updates, Layer("Relu", "opset1", ((0, 0),), {}), _constant(1), scatter), ((5, 0),))
    with closing(Oracle()) as own:
        assert is_refused(recipe, Verdict("fails", "Name:'v5/ScatterElements'"), Judge(own)) == refused


def test_a_layer_that_is_a_reshape_may_be_rejected_alone(oracle: Oracle) -> None:
    masks = {
        "begin_mask": [0, 1],
        "end_mask": [1, 1],
        "new_axis_mask": [0, 1],
        "shrink_axis_mask": [1, 0],
        "ellipsis_mask": [0, 0],
    }
    beyond = Layer("StridedSlice", "opset1", ((2, 0), (3, 0), (4, 0)), masks)
    unsqueeze = Layer("Unsqueeze", "opset1", ((0, 0), (1, 0)), {})
    judge, recipe = Judge(oracle), Recipe((X, _constant(0), unsqueeze, _constant(-3, 0), _constant(3, 0), beyond), ((5, 0),))
    verdict = judge.judge(recipe)
    assert verdict.kind == "lacks", verdict
    assert explain(recipe, verdict, judge).kind == "departure"


def test_noise_is_excused(oracle: Oracle) -> None:
    """If the last digits determine the result, OpenVINO contradicts itself."""
    x = Leaf("f32", np.array([1, 2, 3], np.float32) / np.float32(3), (3,))
    big = Leaf("f32", np.array(2.0**24, np.float32), (), True)
    layers = Layer("Multiply", "opset1", ((0, 0), (1, 0)), {}), Layer("Sin", "opset1", ((2, 0),), {})
    recipe = Recipe((x, big, *layers), ((3, 0),))
    found = explain(recipe, Verdict("parts"), Judge(oracle))
    assert found.kind == "noise"


def test_a_rejected_layer_does_not_hide_other_values(oracle: Oracle) -> None:
    attributes = {"strides": [1, 1], "pads_begin": [0, 0], "pads_end": [0, 0], "dilations": [1, 1]}
    attributes |= {"mode": "xnor-popcount", "pad_value": 0.0}
    binary = Layer("BinaryConvolution", "opset1", ((1, 0), (2, 0)), attributes)
    image, kernel = (Leaf("f32", np.ones((1, 1, 3, 3), np.float32), (1, 1, 3, 3), constant) for constant in (False, True))
    layers = Layer("Relu", "opset1", ((0, 0),), {}), binary, Layer("Abs", "opset1", ((3, 0),), {})
    recipe = Recipe((X, image, kernel, *layers), ((5, 0),))
    assert values(recipe, Judge(oracle)).keys() == {(3, 0), (5, 0)}


def test_a_rejected_layer_is_removed(oracle: Oracle) -> None:
    kernel = Leaf("f32", np.ones((1, 1, 1), np.float32), (-1, -1, -1))
    data = Leaf("f32", np.ones((1, 1, 3), np.float32), (1, 1, 3))
    unlike = {"strides": [1], "pads_begin": [0], "pads_end": [0], "dilations": [1]}
    layers = (
        Layer("Abs", "opset1", ((0, 0),), {}),
        Layer("Convolution", "opset1", ((2, 0), (1, 0)), unlike),
        Layer("Relu", "opset1", ((3, 0),), {}),
    )
    mended = Judge(oracle).runnable(Recipe((data, kernel, *layers), ((4, 0),)))
    assert mended is not None
    assert next(layer.operation for layer in mended.layers()) == "Abs"


def test_a_branch_is_explained_by_its_layers(oracle: Oracle, monkeypatch: pytest.MonkeyPatch) -> None:
    """The CPU plugin passes fractions from one function of integers to the next, also in a branch."""
    functions = Layer("Cos", "opset1", ((0, 0),), {}), Layer("Sign", "opset1", ((1, 0),), {})
    branches = tuple(
        Recipe((Leaf("i32", None, (2,)), *layers), ((len(layers), 0),)) for layers in (functions, functions[:1])
    )
    condition, data = leaf_of(np.array(True)), leaf_of(np.int32([256, 64]))
    ports = ("set_input", 1, 0, 0), ("set_output", 0, 0)
    layer = Layer("If", "opset8", ((0, 0), (1, 0)), {}, branches, ports)
    judge, recipe = Judge(oracle), Recipe((condition, data, layer), ((2, 0),))
    verdict = judge.judge(recipe)
    assert verdict.kind == "parts", verdict
    found = explain(recipe, verdict, judge)
    assert found.kind == "noise", found
    assert [layer.operation for layer in found.recipe.layers()] == ["Cos", "Sign"]
    other = replace(recipe, nodes=(leaf_of(np.array(False)), data, layer)).decided()
    assert [layer.operation for layer in other.layers()] == ["Cos"]
    _wrong(monkeypatch, "Sign", "opset1")
    assert explain(recipe, judge.judge(recipe), judge).kind == "found"


def test_a_folded_layer_may_differ_in_the_last_digit(oracle: Oracle) -> None:
    """Folded numbers are truncated, others rounded, and beyond 2^23 there is no digit for the exact result."""
    judge, numbers = Judge(oracle), np.array([4, 16, 19])
    recipe = Recipe((replace(leaf_of(numbers), constant=True), Layer("Exp", "opset1", ((0, 0),), {})), ((1, 0),))
    verdict = judge.judge(recipe)
    assert verdict.kind == "parts", verdict
    assert judge.judge(replace(recipe, nodes=(leaf_of(numbers), recipe.nodes[1]))).kind == "parts"
    assert explain(recipe, verdict, judge).kind == "departure"


def test_pdpd_broadcasting_is_restated_as_numpy_broadcasting(oracle: Oracle) -> None:
    """The CPU plugin fuses a product with the multiplication by a constant, along another dimension."""
    x, y, z = leaf_of(np.float32([[1, 2], [3, 4]])), np.float32([[1, 0], [0, 1]]), np.float32([3, 4])
    product = Layer("MatMul", "opset1", ((0, 0), (1, 0)), {"transpose_a": False, "transpose_b": False})
    pdpd = {"auto_broadcast": "pdpd", "auto_broadcast.auto_broadcast_axis": 0}
    multiply = Layer("Multiply", "opset1", ((2, 0), (3, 0)), pdpd)
    constants = [replace(leaf_of(array), constant=True) for array in (y, z)]
    recipe = Recipe((x, constants[0], product, constants[1], multiply), ((4, 0),))
    judge = Judge(oracle)
    verdict = judge.judge(recipe)
    assert verdict.suspect, verdict
    assert seconded_in_other_words(recipe, verdict, judge)
