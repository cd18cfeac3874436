"""Which layer of a model is to blame for a parting, and whether it is known that OpenVINO's CPU plugin parts there."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import ml_dtypes
import numpy as np

from converters.openvino.rule import find_rule
from converters.validation.openvino_inference import read_model
from tests.conformance.operation_models import TYPES
from tests.conformance.oracle import OracleError
from tests.conformance.random.judge import Judge, Verdict, differing, is_drawn, save
from tests.conformance.random.recipe import Layer, Leaf, Recipe, Ref, side_by_side

_TRIES = 3
# What the table of departures says of all operations.
_EVERYWHERE = ("f64", "i64", "u32", "u64")
# Where ONNX Runtime fails with its optimisations alone: a product whose batch is none, that one side has one of.
_OF_ONNX_RUNTIME = ("FusedMatMul node.",)


@dataclass(frozen=True)
class Explanation:
    """Why a model parts.

    Attributes:
        kind: ``"departure"``: a known one of the layers named; ``"noise"``: the CPU plugin parts as far from itself when its
            inputs change in their last digits, or from the shapes that it infers; ``"found"``: something to be mended.
        recipe: the smallest model that shows it.
        verdict: on that.
    """

    kind: str
    recipe: Recipe
    verdict: Verdict


def explain(recipe: Recipe, verdict: Verdict, judge: Judge) -> Explanation:
    """Look at each layer by itself, with the values that OpenVINO gives it; else make the model as small as can be."""
    departs = None
    for single, found in suspects(_variants(singles(recipe, judge)), judge):
        if _excused(single, found) or _folded(single, judge):
            departs = departs or Explanation("departure", single, found)
        elif _noisy(single, judge) or _misshapen(single, judge):
            departs = departs or Explanation("noise", single, found)
        else:
            return Explanation("found", single, found)
    if departs is not None:
        return departs
    if _noisy(recipe, judge):
        return Explanation("noise", recipe, verdict)
    recipe, verdict = shrink(recipe, verdict, judge)
    return Explanation("noise" if _misshapen(recipe, judge) else "found", recipe, verdict)


def _excused(single: Recipe, found: Verdict) -> bool:
    """Whether the table of departures says that of the layer."""
    if (found.kind == "reference" or found.unseconded) and _known(single):
        return True
    return (found.kind == "parts" and _unsaid(single)) or any(said in found.text for said in _OF_ONNX_RUNTIME)


def _folded(single: Recipe, judge: Judge) -> bool:
    """Whether OpenVINO parts because it computes a layer of constants when it loads the model, by another kernel."""
    first = single.nodes[0]
    if single.parameters() or not isinstance(first, Leaf):
        return False
    given = replace(single, nodes=(replace(first, constant=False), *single.nodes[1:]))
    found = judge.judge(given)
    return found.kind == "agrees" or (found.suspect and _excused(given, found))


def suspects(recipes: Sequence[Recipe], judge: Judge) -> Iterator[tuple[Recipe, Verdict]]:
    """Which of the models part, each with its verdict: all are judged side by side first, then halves of them."""
    if not recipes:
        return
    # What draws random numbers would let the others' values go unseen.
    if len(recipes) == 1 or not any(map(is_drawn, recipes)):
        verdict = judge.judge(side_by_side(recipes))
        if verdict.kind == "agrees" and not verdict.unseconded:
            return
        if len(recipes) == 1:
            if verdict.suspect:
                yield recipes[0], verdict
            return
    middle = len(recipes) // 2
    yield from suspects(recipes[:middle], judge)
    yield from suspects(recipes[middle:], judge)


def _variants(recipes: Iterable[Recipe]) -> list[Recipe]:
    """The models as they are, and with all dimensions known."""
    variants = []
    for recipe in recipes:
        variants += [recipe] if recipe.static() == recipe else [recipe, recipe.static()]
    return variants


def values(recipe: Recipe, judge: Judge) -> dict[Ref, np.ndarray]:
    """What the layers give, by the CPU plugin, or by the reference kernels where it refuses; none where both do."""
    refs = [(place, 0) for place, node in enumerate(recipe.nodes) if isinstance(node, Layer)]
    needed = {ref for node in recipe.nodes if isinstance(node, Layer) for ref in node.inputs if ref[1]}
    refs += sorted(needed | {ref for ref in recipe.results if ref[1]})
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.xml"
        try:
            judge.oracle.ask(save, replace(recipe, results=tuple(refs)), str(path))
        except OracleError:
            return {}
        for name in ("cpu", "evaluate"):
            answer = judge.answer(name, path, recipe.arrays())
            if not isinstance(answer, OracleError):
                return dict(zip(refs, answer[0], strict=True))
    return {}


def singles(recipe: Recipe, judge: Judge) -> list[Recipe]:
    """Each layer as a model of its own, whose inputs are what OpenVINO computes for them; constants stay constants."""
    known = values(recipe, judge)
    found = []
    for node in recipe.nodes:
        if not isinstance(node, Layer):
            continue
        leaves: dict[Ref, Leaf] = {}
        for ref in node.inputs:
            source = recipe.nodes[ref[0]]
            if isinstance(source, Leaf):
                leaves[ref] = source
            elif ref in known:
                leaves[ref] = _leaf(known[ref])
        if len(leaves) < len(set(node.inputs)):
            continue
        places = {ref: place for place, ref in enumerate(leaves)}
        own = replace(node, inputs=tuple((places[ref], 0) for ref in node.inputs))
        outputs = _outputs(recipe, node)
        found.append(Recipe((*leaves.values(), own), tuple((len(leaves), k) for k in outputs)))
    return found


def _outputs(recipe: Recipe, node: Layer) -> list[int]:
    """The outputs of a node that something takes."""
    place = next(k for k, other in enumerate(recipe.nodes) if other is node)
    taken = {ref for other in recipe.nodes if isinstance(other, Layer) for ref in other.inputs} | set(recipe.results)
    return sorted({index for source, index in taken if source == place}) or [0]


def _leaf(array: np.ndarray) -> Leaf:
    name = next((name for name, dtype in TYPES.items() if np.dtype(dtype) == array.dtype), "string")
    return Leaf(name, array, array.shape)


def _known(recipe: Recipe) -> bool:
    """Whether the table of departures says something of one of the layers, or of their types."""
    types = {node.type for node in recipe.nodes if isinstance(node, Leaf)}
    types |= {word for layer in recipe.layers() for word in layer.attributes.values() if isinstance(word, str)}
    if types & set(_EVERYWHERE):
        return True
    return any(
        departure.follows != "cpu"
        for layer in recipe.layers()
        for departure in find_rule(layer.operation, layer.opset).departs
    )


def _unsaid(recipe: Recipe) -> bool:
    """Whether the runtime decides what becomes of what is not finite."""
    finite = all(np.isfinite(array).all() for array in recipe.arrays() if array.dtype.kind in "fV")
    departures = [d for layer in recipe.layers() for d in find_rule(layer.operation, layer.opset).departs]
    return not finite and any(departure.follows == "runtime" for departure in departures)


def _noisy(recipe: Recipe, judge: Judge) -> bool:
    """Whether OpenVINO's own answer changes as far when its floats change in their last digits."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.xml"
        judge.oracle.ask(save, recipe, str(path))
        answers = []
        for attempt in range(_TRIES + 1):  # compiled anew each time: what reads unset memory differs then, too
            answer = judge.answer("cpu", path, [_changed(array, attempt) for array in recipe.arrays()])
            if isinstance(answer, OracleError):
                return False
            answers.append(answer[0])
            if differing(answer[0], answers[0]):
                return True
    return False


def _misshapen(recipe: Recipe, judge: Judge) -> bool:
    """Whether the CPU plugin's answer, the only one, is of other shapes than OpenVINO itself infers for the model."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.xml"
        judge.oracle.ask(save, recipe, str(path))
        answer, other = (judge.answer(name, path, recipe.arrays()) for name in ("cpu", "evaluate"))
        if isinstance(answer, OracleError) or not isinstance(other, OracleError):
            return False
        inferred = judge.oracle.ask(_inferred, str(path))
    return any(
        dims is not None
        and (len(dims) != array.ndim or any(d not in (None, size) for d, size in zip(dims, array.shape, strict=True)))
        for dims, array in zip(inferred, answer[0], strict=True)
    )


def _inferred(path: str) -> list[list[int | None] | None]:
    """The dimensions of a model's outputs as OpenVINO infers them, ``None`` for what it does not know."""
    _, model = read_model(path)
    shapes = [port.partial_shape for port in model.outputs]
    return [[d.get_length() if d.is_static else None for d in s] if s.rank.is_static else None for s in shapes]


def _changed(array: np.ndarray, seed: int) -> np.ndarray:
    if not seed or array.dtype.kind not in "fV":
        return array
    rng = np.random.default_rng(seed)
    relative = max(3e-7, float(ml_dtypes.finfo(array.dtype).eps))
    return (array.astype(np.float64) * (1 + relative * rng.standard_normal(array.shape))).astype(array.dtype)


def shrink(recipe: Recipe, verdict: Verdict, judge: Judge) -> tuple[Recipe, Verdict]:
    """The smallest recipe found that has a verdict of the same kind."""
    changed = True
    while changed:
        changed = False
        for smaller in _smaller(recipe, judge):
            found = judge.judge(smaller)
            if found.kind == verdict.kind:
                recipe, verdict, changed = smaller, found, True
                break
    return recipe, verdict


def _smaller(recipe: Recipe, judge: Judge) -> list[Recipe]:
    """One result alone; a layer's values in the place of the layer; known dimensions."""
    found = []
    if len(recipe.results) > 1:
        found += [replace(recipe, results=(ref,)).pruned() for ref in recipe.results]
    known = values(recipe, judge)
    for place in range(len(recipe.nodes) - 1):
        node = recipe.nodes[place]
        if isinstance(node, Layer) and (place, 0) in known:
            nodes = list(recipe.nodes)
            nodes[place] = _leaf(known[place, 0])
            if all(ref[1] == 0 or ref[0] != place for other in nodes if isinstance(other, Layer) for ref in other.inputs):
                results = tuple(ref for ref in recipe.results if ref[0] != place)
                if results:
                    found.append(Recipe(tuple(nodes), results).pruned())
    if recipe.static() != recipe:
        found.append(recipe.static())
    return found
