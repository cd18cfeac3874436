"""Where OpenVINO's answer is none that ours could be held to: it parts from itself."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace

import ml_dtypes
import numpy as np

from converters.openvino.runtime.inference import read_model
from converters.validation.compare import relative_l2
from tests.conformance.oracle import OracleError
from tests.conformance.random.graph import INTEGERS
from tests.conformance.random.judge import Judge, Verdict, differing
from tests.conformance.random.recipe import Layer, Leaf, Recipe, Ref, leaf_of

_TRIES = 3
_ASKED = 8
"""How often for what is in memory, which may well be the same thrice."""
_SUMS = (
    "Convolution",
    "ConvolutionBackpropData",
    "CumSum",
    "Einsum",
    "GroupConvolution",
    "GroupConvolutionBackpropData",
    "MatMul",
    "ReduceMean",
    "ReduceSum",
)


_NORMS = ("GRN", "GroupNormalization", "LRN", "MVN", "NormalizeL2", "ReduceL2")
_OF_LEVELS = 0.003
"""The relative L2 distance of tensors in which a few of some thousand numbers are another level."""
_OFF_LEVELS = 3e-4
"""The relative change that takes numbers away from the middle between two levels."""
_HUGE = 2.0**63
"""Numbers beyond this may have squares that are infinite in 32 bits, and so may their sums."""


def noisy(recipe: Recipe, judge: Judge) -> bool:
    """Whether OpenVINO's own answer changes as far when its floats change in their last digits."""
    first = judge.answers(recipe)["cpu"]
    for attempt in range(1, _TRIES + 1):  # compiled anew each time: what reads unset memory differs then, too
        if isinstance(first, OracleError):
            return False
        answer = judge.openvinos(replace(recipe, nodes=tuple(_changed(node, attempt) for node in recipe.nodes)))
        if isinstance(answer, OracleError):
            return False
        if differing(answer, first[0]):
            return True
    return False


def differs_from_itself(recipe: Recipe, verdict: Verdict, judge: Judge) -> bool:
    """Whether the CPU plugin gives our answers where those results stand alone, also with all dimensions known, or those of
    all layers beside them.

    Not where the reference kernels say what it says: ours are wrong then, however it happens that they agree elsewhere.
    """
    if not verdict.apart or not _plugin_stands_alone(recipe, verdict.apart, judge):
        return False
    everything = tuple((place, 0) for place, node in enumerate(recipe.nodes) if isinstance(node, Layer))
    ours = judge.ours(recipe)
    for k in verdict.apart:
        ref = recipe.results[k]
        alone = replace(recipe, results=(ref,)).pruned()
        others = [alone, alone.static(), replace(recipe, results=(ref, *everything))]
        answers = [answer[0] for answer in map(judge.openvinos, others) if not isinstance(answer, OracleError)]
        if not any(all(not differing([form[k]], [answer]) for form in ours) for answer in answers):
            return False
    return True


def differs_layer_by_layer(recipe: Recipe, verdict: Verdict, judge: Judge) -> bool:
    """Whether we give what the CPU plugin gives where each layer is a model of its own, with the values of those before it.

    Or what the reference kernels do, of a layer that it refuses by itself, or at which it crashes. Not where those say what
    it says of the whole.
    """
    if not verdict.apart or len(recipe.layers()) < 2 or not _plugin_stands_alone(recipe, verdict.apart, judge):
        return False
    values: dict[Ref, np.ndarray] = {}
    for place, node in enumerate(recipe.nodes):
        if isinstance(node, Leaf):
            continue
        sources = {ref: recipe.nodes[ref[0]] for ref in node.inputs}
        leaves = {ref: source if isinstance(source, Leaf) else leaf_of(values[ref]) for ref, source in sources.items()}
        alone = recipe.alone(place, leaves)
        answer = judge.openvinos(alone)
        if isinstance(answer, OracleError):
            answer = judge.openvinos(alone, "evaluate")
        if isinstance(answer, OracleError):
            return False
        values |= {(place, index): array for index, array in zip(recipe.outputs(place), answer, strict=True)}
    ours = judge.ours(recipe)
    results = {k: values.get(recipe.results[k]) for k in verdict.apart}
    return all(array is not None and not differing([form[k]], [array]) for k, array in results.items() for form in ours)


def of_levels(recipe: Recipe, verdict: Verdict, judge: Judge) -> bool:
    """Whether it parts by as little as a few numbers halfway between two levels of a FakeQuantize make.

    In floats, as OpenVINO emulates it, we give what it gives, then: integers round such numbers to either level.
    """
    answer = judge.openvinos(recipe)
    if (
        not verdict.apart
        or not any(n.operation == "FakeQuantize" for n in recipe.layers())
        or isinstance(answer, OracleError)
    ):
        return False
    if any(differing(form, answer) for form in judge.ours(recipe, "float")):
        return False
    floats = [k for k, array in enumerate(answer) if array.dtype == np.float32]
    if all(relative_l2(form[k], answer[k]) <= _OF_LEVELS for form in judge.ours(recipe) for k in floats):
        return True
    # A product makes more of it. Other inputs are halfway nowhere.
    others = (replace(recipe, nodes=tuple(_changed(node, seed, _OFF_LEVELS) for node in recipe.nodes)) for seed in (1, 2))
    return all(judge.judge(other).kind == "agrees" for other in others)


def unset(recipe: Recipe, verdict: Verdict, judge: Judge) -> bool:
    """Whether the CPU plugin, asked again, gives something else, by however little, or nothing: what was in memory."""
    if not verdict.apart:
        return False
    answers = [judge.openvinos(replace(recipe)) for _ in range(_ASKED)]
    if judge.is_silent("cpu"):
        return False
    known = [answer for answer in answers if not isinstance(answer, OracleError)]
    if len(known) < len(answers):
        return True
    return any(answer[k].tobytes() != known[0][k].tobytes() for answer in known for k in verdict.apart)


def overflown(recipe: Recipe, judge: Judge) -> bool:
    """Whether we part in sums alone, by being infinite where OpenVINO's are NaN, or the other way round.

    Which of the two a sum is that overflows, or has infinite terms, depends on its order and on what is multiplied first,
    and so does whether the squares of a norm overflow at all.
    """
    layers = [recipe.nodes[place] for place, _ in recipe.results]
    if _is_norm_of_huge(recipe, judge):
        return True
    if not all(isinstance(layer, Layer) and layer.operation in _SUMS for layer in layers):
        return False
    given = judge.openvinos(recipe)
    return not isinstance(given, OracleError) and all(
        not differing([_without_infinities(one, other)], [_without_infinities(other, one)])
        for form in judge.ours(recipe)
        for one, other in zip(form, given, strict=True)
    )


def _is_norm_of_huge(recipe: Recipe, judge: Judge) -> bool:
    """Whether the layer is a norm of numbers whose squares overflow in one of the answers, and agrees on smaller numbers."""
    if [layer.operation in _NORMS for layer in recipe.layers()] != [True]:
        return False
    given = judge.openvinos(recipe)
    if isinstance(given, OracleError):
        return False
    finite = {
        bool(np.isfinite(array.astype(np.float64)).all()) for answer in [given, *judge.ours(recipe)] for array in answer
    }
    nodes = tuple(map(_smaller, recipe.nodes))
    if len(finite) < 2 or all(one is other for one, other in zip(nodes, recipe.nodes, strict=True)):
        return False
    return judge.judge(replace(recipe, nodes=nodes)).kind == "agrees"


def _smaller(node: Leaf | Layer) -> Leaf | Layer:
    """The node with finite numbers that are no longer huge."""
    if isinstance(node, Layer) or node.array is None or node.array.dtype.kind not in "fV":
        return node
    numbers = node.array.astype(np.float64)
    huge = np.isfinite(numbers) & (np.abs(numbers) > _HUGE)
    return replace(node, array=np.where(huge, numbers / 2.0**120, numbers).astype(node.array.dtype)) if huge.any() else node


def _without_infinities(array: np.ndarray, other: np.ndarray) -> np.ndarray:
    """The array with 0 where it is NaN and the other infinite, or the other way round."""
    if array.shape != other.shape or array.dtype.kind not in "fV":
        return array
    one, two = array.astype(np.float64), other.astype(np.float64)
    return np.where(np.isnan(one) & np.isinf(two) | np.isinf(one) & np.isnan(two), np.zeros_like(array), array)


def amplified(
    recipe: Recipe, verdict: Verdict, judge: Judge, explained: Callable[[Recipe], bool] = lambda rest: False
) -> bool:
    """Whether OpenVINO gives our answer where the layers from some one on get our values of those before.

    Those values agree with OpenVINO's: of what is left between them the others make more. ``explained`` tells whether it is
    known why the layers from there on, with our values, give another answer.
    """
    if verdict.kind not in ("parts", "reference"):
        return False
    count = len(recipe.results)
    for place in reversed(range(len(recipe.nodes))):
        later = [ref for node in recipe.nodes[place + 1 :] if isinstance(node, Layer) for ref in node.inputs]
        taken = tuple(sorted({ref for ref in later if ref[0] <= place and isinstance(recipe.nodes[ref[0]], Layer)}))
        if any(ref[0] <= place for ref in recipe.results) or any(recipe.outputs(source) != [0] for source, _ in taken):
            continue
        if not taken:
            continue
        shown = replace(recipe, results=(*recipe.results, *taken))
        found = judge.judge(shown)
        if found.apart is None or not found.apart <= set(range(count)):
            continue
        if all(_seconded_after(recipe, taken, form[:count], form[count:], judge, explained) for form in judge.ours(shown)):
            return True
    return False


def _seconded_after(
    recipe: Recipe,
    refs: Sequence[Ref],
    ours: Sequence[np.ndarray],
    values: Sequence[np.ndarray],
    judge: Judge,
    explained: Callable[[Recipe], bool],
) -> bool:
    """Whether OpenVINO's answer, with those values in the place of what the layers give, is ours, or is known to differ."""
    nodes = list(recipe.nodes)
    for (place, _), array in zip(refs, values, strict=True):
        nodes[place] = leaf_of(array)
    rest = replace(recipe, nodes=tuple(nodes)).pruned()
    answer = judge.openvinos(rest)
    if isinstance(answer, OracleError):
        return False
    if not differing(ours, answer):
        return True
    return not any(differing(ours, form) for form in judge.ours(rest)) and explained(rest)


def _plugin_stands_alone(recipe: Recipe, apart: Collection[int], judge: Judge) -> bool:
    """Whether the CPU plugin gives those results, and the reference kernels second none of them."""
    plain, seconded = judge.openvinos(recipe), judge.openvinos(recipe, "evaluate")
    if isinstance(plain, OracleError):
        return False
    return isinstance(seconded, OracleError) or all(differing([seconded[k]], [plain[k]]) for k in apart)


def misshapen(recipe: Recipe, judge: Judge) -> bool:
    """Whether the only answer, of the CPU plugin or of the reference kernels, is of other shapes than OpenVINO itself infers
    for the model."""
    answers = judge.answers(recipe)
    given = [answer[0] for name in ("cpu", "evaluate") if not isinstance(answer := answers[name], OracleError)]
    if len(given) != 1:
        return False
    inferred = judge.oracle.ask(_inferred, str(answers.path))
    return any(
        dims is not None
        and (len(dims) != array.ndim or any(d not in (None, size) for d, size in zip(dims, array.shape, strict=True)))
        for dims, array in zip(inferred, given[0], strict=True)
    )


def has_wrong_shape_stated(recipe: Recipe, verdict: Verdict, place: int, judge: Judge) -> bool:
    """Whether what we refuse takes, in the layer there, values of other shapes than OpenVINO infers for them.

    It fits those that are inferred: indices of as many elements, or as far, as there would be.
    """
    layer = recipe.nodes[place]
    if verdict.kind not in ("lacks", "fails") or not isinstance(layer, Layer):
        return False
    taken = tuple(sorted({ref for ref in layer.inputs if isinstance(recipe.nodes[ref[0]], Layer)}))
    return bool(taken) and misshapen(replace(recipe, results=taken).pruned(), judge)


def tied(single: Recipe, found: Verdict, judge: Judge, followed: Collection[str] = ("cpu",)) -> bool:
    """Whether a layer rounds floats to whole numbers, and parts by one where its float lies halfway between the two.

    The float is what OpenVINO gives for the same numbers as floats, by its CPU plugin or what else is ``followed``, which we
    have to agree to.
    """
    if found.apart is None:
        return False
    ours = judge.ours(single)
    for floated in _floated(single):
        if isinstance(judge.openvinos(floated), OracleError):
            continue
        as_floats = judge.ours(floated)
        for name in followed:
            whole, floats = judge.openvinos(single, name), judge.openvinos(floated, name)
            if isinstance(whole, OracleError) or isinstance(floats, OracleError):
                continue
            if any(differing(form, floats) for form in as_floats):
                continue
            if all(halfway(*arrays) for form in ours for arrays in zip(form, whole, floats, strict=True)):
                return True
    return False


def _floated(single: Recipe) -> Iterator[Recipe]:
    """The layer of floats instead of integers: its first input, or all of that type."""
    node = single.nodes[-1]
    data = single.nodes[node.inputs[0][0]] if isinstance(node, Layer) and node.inputs else node
    if not isinstance(node, Layer) or not isinstance(data, Leaf) or data.type not in INTEGERS:
        return
    if not any(ref[0] == node.inputs[0][0] for ref in node.inputs[1:]):
        yield replace(single, nodes=tuple(_as_float(n) if n is data else n for n in single.nodes))
    if sum(isinstance(n, Leaf) and n.type == data.type for n in single.nodes) > 1:
        yield replace(
            single, nodes=tuple(_as_float(n) if isinstance(n, Leaf) and n.type == data.type else n for n in single.nodes)
        )


def _as_float(leaf: Leaf) -> Leaf:
    return leaf if leaf.array is None else replace(leaf, type="f32", array=leaf.array.astype(np.float32))


def halfway(ours: np.ndarray, whole: np.ndarray, floats: np.ndarray) -> bool:
    """Whether the whole numbers are equal, or next to each other with the floats halfway between them, or so far from 0 that
    floats there have no digit for the difference, or the CPU plugin, which computes those of 64 bits in 32, has none.

    Where it cuts the floats' fractions off, what is halfway is a whole number, and the next one to 0.
    """
    if not ours.shape == whole.shape == floats.shape:
        return False
    one, other, float_ = (array.astype(np.float64) for array in (ours, whole, floats))
    digit = 1e-6 * np.maximum(np.abs(float_), 1)
    apart = np.abs(one - other)
    near = np.abs(float_ - (one + other) / 2) <= digit
    broken = np.abs(float_ - np.round(float_)) > digit
    if np.array_equal(other[broken], np.trunc(float_[broken])):
        near |= ~broken & (np.maximum(np.abs(one), np.abs(other)) == np.abs(np.round(float_)))
    beyond = (np.abs(float_) >= 2.0**31) if whole.dtype.itemsize == 8 else np.False_
    return bool(np.all((apart == 0) | (apart == 1) & near | (apart >= 1) & (apart <= digit) | beyond))


def _inferred(path: str) -> list[list[int | None] | None]:
    """The dimensions of a model's outputs as OpenVINO infers them, ``None`` for what it does not know."""
    _, model = read_model(path)
    shapes = [port.partial_shape for port in model.outputs]
    return [[d.get_length() if d.is_static else None for d in s] if s.rank.is_static else None for s in shapes]


def _changed(node: Leaf | Layer, seed: int, least: float = 3e-7) -> Leaf | Layer:
    """The node, with other last digits of its floats; a constant vector may be an attribute, and stays."""
    if isinstance(node, Layer) or node.array is None or node.array.dtype.kind not in "fV":
        return node
    if node.constant and node.array.ndim < 2:
        return node
    rng = np.random.default_rng(seed)
    relative = max(least, float(ml_dtypes.finfo(node.array.dtype).eps))
    changed = node.array.astype(np.float64) * (1 + relative * rng.standard_normal(node.array.shape))
    return replace(node, array=changed.astype(node.array.dtype))
