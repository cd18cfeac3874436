"""Which layer of a model is to blame for a parting, and whether it is known that OpenVINO's CPU plugin parts there."""

from __future__ import annotations

import re
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
from tests.conformance.random.graph import INTEGERS
from tests.conformance.random.judge import Judge, Verdict, differing, is_drawn, save
from tests.conformance.random.recipe import Layer, Leaf, Recipe, Ref, side_by_side

_TRIES = 3
# What the table of departures says of all operations.
_EVERYWHERE = ("f64", "i64", "u32", "u64")
# How the shapes differ of what both say has no elements: the CPU plugin loses track of dimensions that are unknown, then.
_EMPTY = re.compile(r"cpu: output \d+: \[\] \[[^]]*\b0\b[^]]*\] instead of \[\] \[[^]]*\b0\b")
# Where ONNX Runtime fails with its optimisations alone: a product whose batch is none, that one side has one of.
_OF_ONNX_RUNTIME = ("FusedMatMul node.",)


@dataclass(frozen=True)
class Explanation:
    """Why a model parts.

    Attributes:
        kind: ``"departure"``: a known one of the layers named; ``"noise"``: the CPU plugin parts as far from itself when its
            inputs change in their last digits, or when results come or go, or from the shapes that it infers, or it rounds
            what lies halfway between two whole numbers; ``"found"``: something to be mended.
        recipe: the smallest model that shows it.
        verdict: on that.
    """

    kind: str
    recipe: Recipe
    verdict: Verdict


@dataclass(frozen=True)
class Single:
    """A layer of a model as a model of its own.

    Attributes:
        place: the layer's, among the model's nodes.
        recipe: the model of it alone.
    """

    place: int
    recipe: Recipe


def explain(recipe: Recipe, verdict: Verdict, judge: Judge) -> Explanation:
    """Look at each layer by itself, with the values that OpenVINO gives it; else make the model as small as can be."""
    recipe, verdict = _narrowed(recipe, verdict, judge)
    known: dict[int, Explanation] = {}
    for single, found in suspects(_variants(singles(recipe, judge)), judge):
        if _excused(single.recipe, found) or _folded(single.recipe, judge):
            known[single.place] = Explanation("departure", single.recipe, found)
        elif _noisy(single.recipe, judge) or _misshapen(single.recipe, judge) or _tied(single.recipe, found, judge):
            known.setdefault(single.place, Explanation("noise", single.recipe, found))
        else:
            return Explanation("found", single.recipe, found)
    if known:
        # What parts and needs none of those layers is to be explained still.
        left = recipe.apart_from(known)
        rest = None if verdict.apart is None or not left.results else judge.judge(left)
        if rest is None or not rest.suspect:
            return min(known.values(), key=lambda explanation: explanation.kind)
        recipe, verdict = left, rest
    if _noisy(recipe, judge) or parts_from_itself(recipe, verdict, judge):
        return Explanation("noise", recipe, verdict)
    recipe, verdict = shrink(recipe, verdict, judge)
    if _between(recipe) or _outside(verdict) or (len(recipe.layers()) == 1 and _excused(recipe, verdict)):
        return Explanation("departure", recipe, verdict)
    return Explanation("noise" if _misshapen(recipe, judge) else "found", recipe, verdict)


def _narrowed(recipe: Recipe, verdict: Verdict, judge: Judge) -> tuple[Recipe, Verdict]:
    """The model with no results but those that part, if they still do."""
    if not verdict.apart or len(verdict.apart) == len(recipe.results):
        return recipe, verdict
    apart = replace(recipe, results=tuple(recipe.results[k] for k in sorted(verdict.apart))).pruned()
    found = judge.judge(apart)
    return (apart, found) if found.kind == verdict.kind else (recipe, verdict)


def _excused(single: Recipe, found: Verdict) -> bool:
    """Whether the table of departures says that of the layer."""
    if (found.kind == "reference" or found.unseconded) and _known(single):
        return True
    if found.kind == "fails" and _follows_the_runtime(single):
        return True
    return (found.kind == "parts" and _unsaid(single)) or _outside(found)


def _outside(found: Verdict) -> bool:
    """Whether ONNX Runtime fails alone, or the CPU plugin alone has an answer, of a shape for nothing."""
    if any(said in found.text for said in _OF_ONNX_RUNTIME):
        return True
    return found.unseconded and _EMPTY.search(found.text) is not None


def _folded(single: Recipe, judge: Judge) -> bool:
    """Whether OpenVINO parts because it computes a layer of constants when it loads the model, by another kernel."""
    first = single.nodes[0]
    if single.parameters() or not isinstance(first, Leaf):
        return False
    given = replace(single, nodes=(replace(first, constant=False), *single.nodes[1:]))
    found = judge.judge(given)
    return found.kind == "agrees" or (found.suspect and _excused(given, found))


def suspects(alone: Sequence[Single], judge: Judge) -> Iterator[tuple[Single, Verdict]]:
    """Which of the models part, each with its verdict.

    They are judged side by side first, and then by themselves those whose outputs part; or halves of them where those are
    not known, for one model that is refused hides the others' answers.
    """
    together = [single for single in alone if not is_drawn(single.recipe)]
    for single in alone:
        # What draws random numbers would let the others' values go unseen.
        if len(together) == 1 or is_drawn(single.recipe):
            verdict = judge.judge(single.recipe)
            if verdict.suspect:
                yield single, verdict
    if len(together) < 2:
        return
    verdict = judge.judge(side_by_side([single.recipe for single in together]))
    if verdict.apart is not None:
        last = 0
        for single in together:
            first, last = last, last + len(single.recipe.results)
            if verdict.apart & set(range(first, last)):
                yield from suspects([single], judge)
    elif verdict.kind != "agrees" or verdict.unseconded:
        middle = len(together) // 2
        yield from suspects(together[:middle], judge)
        yield from suspects(together[middle:], judge)


def _variants(alone: Iterable[Single]) -> list[Single]:
    """The models as they are, and with all dimensions known."""
    variants = []
    for single in alone:
        static = single.recipe.static()
        variants += [single] if static == single.recipe else [single, replace(single, recipe=static)]
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


def singles(recipe: Recipe, judge: Judge) -> list[Single]:
    """Each layer as a model of its own, whose inputs are what OpenVINO computes for them; constants stay constants."""
    known = values(recipe, judge)
    found = []
    for place, node in enumerate(recipe.nodes):
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
        places = {ref: at for at, ref in enumerate(leaves)}
        own = replace(node, inputs=tuple((places[ref], 0) for ref in node.inputs))
        outputs = _outputs(recipe, place)
        found.append(Single(place, Recipe((*leaves.values(), own), tuple((len(leaves), k) for k in outputs))))
    return found


def _outputs(recipe: Recipe, place: int) -> list[int]:
    """The outputs of a layer that something takes."""
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


def _between(recipe: Recipe) -> bool:
    """Whether the table of departures says something of the last layer behind the one before it."""
    names = [layer.operation for layer in recipe.layers()]
    return names[-1:] == ["GRN"] and any(name.endswith("Sequence") for name in names[:-1])


def _unsaid(recipe: Recipe) -> bool:
    """Whether the runtime decides what becomes of what is not finite."""
    finite = all(np.isfinite(array).all() for array in recipe.arrays() if array.dtype.kind in "fV")
    return not finite and _follows_the_runtime(recipe)


def _follows_the_runtime(recipe: Recipe) -> bool:
    departures = [d for layer in recipe.layers() for d in find_rule(layer.operation, layer.opset).departs]
    return any(departure.follows == "runtime" for departure in departures)


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


def parts_from_itself(recipe: Recipe, verdict: Verdict, judge: Judge) -> bool:
    """Whether the CPU plugin gives our answers where those results stand alone, or those of all layers beside them."""
    if not verdict.apart:
        return False
    everything = tuple((place, 0) for place, node in enumerate(recipe.nodes) if isinstance(node, Layer))
    ours = judge.ours(recipe)
    for k in verdict.apart:
        ref = recipe.results[k]
        others = [replace(recipe, results=(ref,)).pruned(), replace(recipe, results=(ref, *everything))]
        answers = [answer[0] for answer in map(judge.openvinos, others) if not isinstance(answer, OracleError)]
        if not any(all(not differing([form[k]], [answer]) for form in ours) for answer in answers):
            return False
    return True


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


def _tied(single: Recipe, found: Verdict, judge: Judge) -> bool:
    """Whether a layer rounds floats to whole numbers, and parts by one where its float lies halfway between the two.

    The float is what the CPU plugin gives for the same numbers as floats, which we have to agree to.
    """
    node = single.nodes[-1]
    data = single.nodes[node.inputs[0][0]] if isinstance(node, Layer) and node.inputs else node
    if not isinstance(node, Layer) or not isinstance(data, Leaf) or data.array is None or found.apart is None:
        return False
    if data.type not in INTEGERS or any(ref[0] == node.inputs[0][0] for ref in node.inputs[1:]):
        return False
    as_floats = replace(data, type="f32", array=data.array.astype(np.float32))
    floated = replace(single, nodes=tuple(as_floats if n is data else n for n in single.nodes))
    if judge.judge(floated).kind != "agrees":
        return False
    whole, floats = judge.openvinos(single), judge.openvinos(floated)
    if isinstance(whole, OracleError) or isinstance(floats, OracleError):
        return False
    return all(halfway(*arrays) for ours in judge.ours(single) for arrays in zip(ours, whole, floats, strict=True))


def halfway(ours: np.ndarray, whole: np.ndarray, floats: np.ndarray) -> bool:
    """Whether the whole numbers are equal, or next to each other with the floats halfway between them."""
    if not ours.shape == whole.shape == floats.shape:
        return False
    one, other, float_ = (array.astype(np.float64) for array in (ours, whole, floats))
    near = np.abs(float_ - (one + other) / 2) <= 1e-6 * np.maximum(np.abs(float_), 1)
    return bool(np.all((one == other) | (np.abs(one - other) == 1) & near))


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
