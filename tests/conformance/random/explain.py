"""Find the layer of a model that causes a difference, and whether OpenVINO's CPU plugin is known to differ there."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from converters.openvino.rule import Departure, find_rule
from tests.conformance.oracle import OracleError
from tests.conformance.random.judge import Judge, Verdict, crashed, differing, distance, is_drawn
from tests.conformance.random.noise import (
    amplified,
    depends_on_known_dimensions,
    differs_from_itself,
    differs_layer_by_layer,
    has_wrong_shape_stated,
    misshapen,
    noisy,
    of_levels,
    of_rounded_inputs,
    overflown,
    takes_from_nothing,
    tied,
    unset,
)
from tests.conformance.random.recipe import Dims, Layer, Leaf, Recipe, Ref, leaf_of, side_by_side
from tests.conformance.random.restate import seconded_in_other_words

# The entries of the table of departures for all operations.
_EVERYWHERE = ("f64", "i64", "u32", "u64")
_INTEGER = re.compile(r"[iu]\d+")
# The difference of shapes of two empty results: the CPU plugin loses track of unknown dimensions in this case.
_EMPTY = re.compile(r"cpu: output \d+: \[\] \[[^]]*\b0\b[^]]*\] instead of \[\] \[[^]]*\b0\b")
# Messages for inputs that OpenVINO does not check. It does not count the elements of a Reshape, or of limits of higher rank
# than the data or of data of unknown dimensions. It ignores invalid axes and sizes, also the axes of a Squeeze whose sizes
# are not 1. With limits larger than the data it accesses memory out of bounds.
_OVERLOOKED = re.compile(
    r"\((Reshape|FakeQuantize), id \d+\): .* Reshape: \d+ elements cannot become|its batch_dims -\d+ is out of range"
    r"|\(FakeQuantize, id \d+\): its limits (are larger|have more dimensions) than its data"
    r"|FakeQuantize: a limit does not broadcast to the data"
    r"|\(FakeQuantize, id \d+\): its \w+ input \[.*\] does not broadcast to the first"
    r"|\(Interpolate, id \d+\): it has \d+ sizes or scales for \d+ axes|IsAxisInRange"
    r"|\(Interpolate, id \d+\): its axes are \[(?:\d+, )*(?P<axis>\d+), (?:\d+, )*(?P=axis)[,\]]"
    r"|running Squeeze node.* Dimension of input \d+ must be 1 instead of"
)
# OpenVINO's messages for windows of a pooling that are larger than its padded data, and for matrices that do not match. The
# CPU plugin accepts both if the dimensions are unknown. It checks the matrices unless it multiplies integers.
_MISMATCH = re.compile("larger than the data shape after padding|Incompatible MatMul matrix dimension")
_IGNORED_LEVELS = 65536
"""The levels of a FakeQuantize that the CPU plugin ignores, see the table of departures."""
_LARGE = 88
"""The exponential function of larger numbers is infinite in float32."""
# Operations whose outputs only contain elements of the first input.
_MOVES = {"Reshape", "GatherElements", "GatherND", "GridSample"}
# The name of the layer in a conversion error, or in an error of its node.
_NAMED = {"lacks": r'layer "v(\d+)"', "fails": r"Name:'v(\d+)/"}
# Messages of kernels about indices into empty tensors, and about empty images.
_LOOKED_UP = (
    "must be within the inclusive range [0,-1]",
    "is greater than input dim=0",
    "Input dim is zero but required output dim is non-zero",
    "Input spatial dimensions must be non-empty",
    " 0 elements along axis",
)


@dataclass(frozen=True)
class Explanation:
    """Why a model differs.

    Attributes:
        kind: ``"departure"``: a known departure of the named layers. ``"noise"``: OpenVINO's own results are unreliable.
            They change as much when its inputs change in their last digits, when it runs again, when results are added or
            removed, when dimensions become known, or when the model is restated. Or they differ from the shapes that
            OpenVINO infers, or from its results layer by layer. Or they are elements of an empty tensor. Or
            numbers are halfway between two integers or two levels of a FakeQuantize, or sums or inputs overflow, or float16
            rounds inputs to numbers for which OpenVINO agrees with us.
            ``"found"``: a finding.
        recipe: the smallest model that shows the difference.
        verdict: the verdict on that model.
    """

    kind: str
    recipe: Recipe
    verdict: Verdict


@dataclass(frozen=True)
class Single:
    """A layer of a model as a separate model.

    Attributes:
        place: the layer's index among the model's nodes.
        recipe: the model of this layer.
    """

    place: int
    recipe: Recipe


def explain(recipe: Recipe, verdict: Verdict, judge: Judge) -> Explanation:
    """Judge each layer separately with OpenVINO's values, otherwise shrink the model.

    A difference in an If is explained by the layers of the taken branch, if these differ without the If.
    """
    explanation = _explained(recipe, verdict, judge)
    decided = explanation.recipe.decided()
    if explanation.kind != "found" or str(decided) == str(explanation.recipe):
        return explanation
    verdict = judge.judge(decided)
    return explain(decided, verdict, judge) if verdict.suspect else explanation


def _explained(recipe: Recipe, verdict: Verdict, judge: Judge) -> Explanation:
    recipe, verdict = _narrowed(recipe, verdict, judge)
    explained = _of_layers(recipe, verdict, judge)
    if isinstance(explained, Explanation):
        return explained
    recipe, verdict = explained
    if noisy(recipe, judge) or differs_from_itself(recipe, verdict, judge) or of_levels(recipe, verdict, judge):
        return Explanation("noise", recipe, verdict)
    small, verdict = shrink(recipe, verdict, judge)
    if len(small.layers()) < len(recipe.layers()):
        # The layers may get other values now, because a removed layer may have corrupted the memory of others.
        explained = _of_layers(small, verdict, judge)
        if isinstance(explained, Explanation):
            return explained
        small, verdict = explained
    recipe = small
    if _between(recipe) or _outside(verdict) or (len(recipe.layers()) == 1 and _excused(recipe, verdict)):
        return Explanation("departure", recipe, verdict)
    if _of_16_bits(recipe, verdict):
        return Explanation("departure", recipe, verdict)
    if is_refused(recipe, verdict, judge) or _is_nothing(recipe, verdict, judge) or spoiled(recipe, verdict, judge):
        return Explanation("departure", recipe, verdict)
    if is_invalid(recipe, verdict, judge) or ignores_levels(recipe, verdict, judge):
        return Explanation("departure", recipe, verdict)
    if unfit(recipe, verdict) or misshapen(recipe, judge) or differs_layer_by_layer(recipe, verdict, judge):
        return Explanation("noise", recipe, verdict)
    if any(has_wrong_shape_stated(recipe, verdict, place, judge) for place in range(len(recipe.nodes))):
        return Explanation("noise", recipe, verdict)
    named = _named(recipe, verdict)
    if named is not None and takes_from_nothing(recipe, verdict, named, judge):
        return Explanation("noise", recipe, verdict)
    if amplified(recipe, verdict, judge, lambda rest: _departs(rest, judge)) or seconded_in_other_words(
        recipe, verdict, judge
    ):
        return Explanation("noise", recipe, verdict)
    if unset(recipe, verdict, judge) or overflown(recipe, judge) or agrees_result_by_result(recipe, verdict, judge):
        return Explanation("noise", recipe, verdict)
    if of_levels(recipe, verdict, judge) or depends_on_known_dimensions(recipe, verdict, judge):
        return Explanation("noise", recipe, verdict)
    if of_rounded_inputs(recipe, verdict, judge):
        return Explanation("noise", recipe, verdict)
    return Explanation("found", recipe, verdict)


def _departs(recipe: Recipe, judge: Judge) -> bool:
    """Return whether a known departure explains all differences."""
    verdict = judge.judge(recipe)
    explained = _of_layers(recipe, verdict, judge) if verdict.suspect else None
    return isinstance(explained, Explanation) and explained.kind == "departure"


def _of_layers(recipe: Recipe, verdict: Verdict, judge: Judge) -> Explanation | tuple[Recipe, Verdict]:
    """Explain the difference by separate layers with OpenVINO's values, otherwise return the unexplained rest."""
    known: dict[int, Explanation] = {}
    for single, found in suspects(_variants(singles(recipe, judge)), judge):
        folded = _folded(single.recipe, judge) or _folded_within(single.recipe, judge)
        excused = _excused(single.recipe, found) or undecided(single.recipe, found, judge)
        if folded or excused or _is_nothing(single.recipe, found, judge) or is_invalid(single.recipe, found, judge):
            known[single.place] = Explanation("departure", single.recipe, found)
        elif _is_noise(single.recipe, found, judge) or _takes_noise(recipe, found, single.place, judge):
            known.setdefault(single.place, Explanation("noise", single.recipe, found))
        else:
            return Explanation("found", single.recipe, found)
    if known:
        # A difference that does not depend on these layers is still to be explained.
        left = recipe.apart_from(known)
        rest = None if verdict.apart is None or not left.results else judge.judge(left)
        if rest is None or not rest.suspect:
            return min(known.values(), key=lambda explanation: explanation.kind)
        recipe, verdict = _narrowed(left, rest, judge)
    return recipe, verdict


def _is_nothing(recipe: Recipe, verdict: Verdict, judge: Judge) -> bool:
    """Return whether OpenVINO accepts a model that we reject, because there is nothing to compute.

    OpenVINO then reads no number, or only moves memory. This includes cases in which only one of OpenVINO's two
    implementations accepts it, or both give different results. It also includes cases in which both accept it, if kernels
    check indices that the rule knows to be unused once dimensions are known, or if one of them also rejects the same model
    with elements.
    """
    if verdict.kind not in ("lacks", "fails"):
        return False
    given = _openvinos(recipe, judge)
    if given and _moves_nothing(recipe):
        return True
    if not given or any(array.size for array in given[0]):
        return False
    if len(given) < 2 or differing(*given):
        return True
    if any(said in verdict.text for said in _LOOKED_UP):
        known = [other for other in (recipe.static(), _of_constants(recipe)) if str(other) != str(recipe)]
        if any(not judge.judge(other).found for other in known):
            return True
    filled = recipe.filled()
    found = judge.judge(filled)
    if _numberless(found) != _numberless(verdict):
        return False
    given = _openvinos(filled, judge)
    return len(given) < 2 or bool(differing(*given))


def _of_constants(recipe: Recipe) -> Recipe:
    """Return the recipe with constants in place of non-empty inputs, so that all sizes are known."""
    nodes = (
        replace(node, constant=True) if isinstance(node, Leaf) and node.array is not None and node.array.size else node
        for node in recipe.nodes
    )
    return replace(recipe, nodes=tuple(nodes))


def _moves_nothing(recipe: Recipe) -> bool:
    """Return whether the model only moves elements of empty tensors."""
    first, operations = recipe.nodes[0], {layer.operation for layer in recipe.layers()}
    return operations <= _MOVES and isinstance(first, Leaf) and first.array is not None and not first.array.size


def unfit(recipe: Recipe, verdict: Verdict) -> bool:
    """Return whether a failing layer's input has other dimensions than its body declares.

    The CPU plugin then produced other dimensions than OpenVINO infers.
    """
    for layer in recipe.nodes if verdict.kind == "fails" else ():
        if not isinstance(layer, Layer) or not layer.bodies or layer.operation == "If":
            continue
        body = layer.bodies[0]
        parameters = [body.nodes[place] for place in body.parameters()]
        for name, *given in layer.ports:
            if name not in ("set_merged_input", "set_invariant_input"):
                continue
            parameter, source = parameters[given[0]], recipe.nodes[layer.inputs[given[1]][0]]
            if isinstance(parameter, Leaf) and isinstance(source, Leaf) and not _fits(source.array, parameter.dims):
                return True
    return False


def _fits(array: np.ndarray | None, dims: Dims) -> bool:
    """Return whether an array has these dimensions, as far as they are known."""
    if array is None or dims is None:
        return True
    sizes = zip(array.shape, dims, strict=False)
    return array.ndim == len(dims) and all(not isinstance(dim, int) or dim in (-1, size) for size, dim in sizes)


def _openvinos(recipe: Recipe, judge: Judge) -> list[list[np.ndarray]]:
    """Return the available results of OpenVINO's CPU plugin and reference kernels."""
    answers = [judge.openvinos(recipe, name) for name in ("cpu", "evaluate")]
    return [answer for answer in answers if not isinstance(answer, OracleError)]


def _numberless(verdict: Verdict) -> str:
    """Return our message without numbers."""
    return re.sub(r"\d+", "", verdict.text.partition("\n")[0])


def _is_noise(single: Recipe, found: Verdict, judge: Judge) -> bool:
    """Return whether OpenVINO's result for a layer is unreliable. Ours may then differ."""
    followed = ("cpu", "evaluate") if _known(single) else ("cpu",)
    noise = unfit(single, found) or noisy(single, judge) or misshapen(single, judge) or tied(single, found, judge, followed)
    noise = noise or differs_from_itself(single, found, judge) or seconded_in_other_words(single, found, judge)
    return noise or overflown(single, judge)


def _takes_noise(recipe: Recipe, found: Verdict, place: int, judge: Judge) -> bool:
    """Return whether OpenVINO gives the layer different inputs each time, from uninitialized memory, or of other shapes than
    declared.
    """
    node = recipe.nodes[place]
    known = [values(recipe, judge) for _ in range(2)]
    given = [[one[ref] for ref in node.inputs if ref in one] for one in known if isinstance(node, Layer)]
    return bool(differing(*given)) or has_wrong_shape_stated(recipe, found, place, judge)


def is_refused(recipe: Recipe, verdict: Verdict, judge: Judge) -> bool:
    """Return whether OpenVINO also rejects the layer that the conversion or the runtime rejects.

    OpenVINO may accept the whole model because nothing depends on the layer, because it and the previous one are only a
    Reshape, or because it does not check shapes and crashes.
    """
    place = _named(recipe, verdict)
    node = None if place is None else recipe.nodes[place]
    if place is None or not isinstance(node, Layer):
        return False
    needed = replace(recipe, results=tuple((place, index) for index in recipe.outputs(place))).pruned()
    if judge.judge(needed).kind == "refused":
        return True
    if not any(isinstance(recipe.nodes[source], Layer) for source, _ in node.inputs):
        return False
    alone = _alone_after(recipe, place, judge)
    return alone is not None and (judge.judge(alone).kind == "refused" or _crashes(alone, judge))


def _named(recipe: Recipe, verdict: Verdict) -> int | None:
    """Return the index of the layer that a conversion error or an error of a node names."""
    named = re.search(_NAMED[verdict.kind], verdict.text) if verdict.kind in _NAMED else None
    return int(named.group(1)) if named and int(named.group(1)) < len(recipe.nodes) else None


def _crashes(recipe: Recipe, judge: Judge) -> bool:
    """Return whether one of OpenVINO's implementations crashes: the other one's result comes from reading out of bounds."""
    return any(crashed(judge.openvinos(recipe, name)) for name in ("cpu", "evaluate"))


def agrees_result_by_result(recipe: Recipe, verdict: Verdict, judge: Judge) -> bool:
    """Return whether each result separately equals OpenVINO's, if its CPU plugin cannot compute all of them at once.

    Only the reference kernels differ from us in this case.
    """
    if verdict.kind != "parts" or verdict.apart is not None or len(recipe.results) < 2:
        return False
    return all(judge.judge(replace(recipe, results=(ref,)).pruned()).kind == "agrees" for ref in recipe.results)


def spoiled(recipe: Recipe, verdict: Verdict, judge: Judge) -> bool:
    """Return whether all differences depend on one layer with a known departure that crashes the CPU plugin when run alone.

    Among other layers it may not crash, and return the content of memory.
    """
    if not verdict.apart:
        return False
    apart = {recipe.results[k][0] for k in verdict.apart}
    alone = [single.recipe for single in singles(recipe, judge) if apart <= recipe.needing([single.place])]
    return any(_known(single) and crashed(judge.openvinos(single)) for single in alone)


def is_invalid(recipe: Recipe, verdict: Verdict, judge: Judge) -> bool:
    """Return whether all differences depend on one layer whose inputs the specification does not allow.

    The values are OpenVINO's. With their dimensions OpenVINO's shape inference rejects the layer, or they are negative
    sizes.
    """
    named = _named(recipe, verdict)
    apart = {recipe.results[k][0] for k in verdict.apart or ()} or ({named} if named is not None else set())
    for place, layer in enumerate(recipe.nodes if apart else ()):
        if not isinstance(layer, Layer) or not apart <= recipe.needing([place]):
            continue
        own = {departure.name for departure in _departures_of(layer)} & {"larger windows", "negative sizes"}
        alone = _alone_after(recipe, place, judge) if own or layer.operation == "MatMul" else None
        if alone is None:
            continue
        if "negative sizes" not in own and _is_mismatch(judge.openvinos(alone.static())):
            return True
        target = alone.nodes[alone.layers()[0].inputs[1][0]] if "negative sizes" in own else None
        if isinstance(target, Leaf) and target.array is not None and (target.array < 0).any():
            return True
    return False


def _is_mismatch(answer: list[np.ndarray] | OracleError) -> bool:
    return isinstance(answer, OracleError) and _MISMATCH.search(str(answer)) is not None


def _alone_after(recipe: Recipe, place: int, judge: Judge) -> Recipe | None:
    """Return a layer as a separate model, with OpenVINO's values of its inputs in the model without it."""
    layer = recipe.nodes[place]
    refs = tuple(dict.fromkeys(ref for ref in layer.inputs if isinstance(recipe.nodes[ref[0]], Layer)))
    given = judge.openvinos(replace(recipe, results=refs).pruned()) if refs else []
    if isinstance(given, OracleError):
        return None
    return _alone(recipe, place, dict(zip(refs, given, strict=True)), _constant(recipe, judge))


def ignores_levels(recipe: Recipe, verdict: Verdict, judge: Judge) -> bool:
    """Return whether the CPU plugin gives the same result without the layers of 65,536 levels, which it ignores.

    If the reference kernels do not agree with us, we must agree with the CPU plugin on 65,535 levels, and our results for
    both must be near each other: at most twice as far as its results for 65,535 and 65,534 levels, because later layers may
    round them to other levels.
    """
    ignored = {place for place, node in enumerate(recipe.nodes) if _has_ignored_levels(node)}
    given = judge.openvinos(recipe)
    if not ignored or verdict.kind not in ("parts", "reference") or isinstance(given, OracleError):
        return False
    without = judge.openvinos(_bypassing(recipe, ignored))
    if isinstance(without, OracleError) or differing(without, given):
        return False
    if verdict.kind == "reference":
        return True
    fewer, fewest = (
        replace(recipe, nodes=tuple(_with_levels(node, _IGNORED_LEVELS - less) for node in recipe.nodes)) for less in (1, 2)
    )
    rounded = [judge.openvinos(one) for one in (fewer, fewest)]
    if any(isinstance(one, OracleError) for one in rounded) or judge.judge(fewer).kind != "agrees":
        return False
    forms, of_fewer = judge.ours(recipe), judge.ours(fewer)
    return all(
        _farthest(one, other) <= 2 * _farthest(*rounded) or not differing(one, other, judge.options.tolerance)
        for one in forms
        for other in of_fewer
    )


def _farthest(some: Sequence[np.ndarray], others: Sequence[np.ndarray]) -> float:
    return max((distance(*pair) for pair in zip(some, others, strict=True)), default=0.0)


def _has_ignored_levels(node: Leaf | Layer) -> bool:
    return isinstance(node, Layer) and node.operation == "FakeQuantize" and node.attributes.get("levels") == _IGNORED_LEVELS


def _with_levels(node: Leaf | Layer, levels: int) -> Leaf | Layer:
    """Return the layer with other levels if it has those that are ignored."""
    if not isinstance(node, Layer) or not _has_ignored_levels(node):
        return node
    return replace(node, attributes={**node.attributes, "levels": levels})


def _bypassing(recipe: Recipe, places: Collection[int]) -> Recipe:
    """Return the recipe with the first input of each of these layers in place of its result."""
    moved: dict[Ref, Ref] = {}
    nodes = []
    for place, node in enumerate(recipe.nodes):
        if isinstance(node, Layer):
            node = replace(node, inputs=tuple(moved.get(ref, ref) for ref in node.inputs))
            if place in places:
                moved[place, 0] = node.inputs[0]
        nodes.append(node)
    return Recipe(tuple(nodes), tuple(moved.get(ref, ref) for ref in recipe.results)).pruned(keep_parameters=True)


def _narrowed(recipe: Recipe, verdict: Verdict, judge: Judge) -> tuple[Recipe, Verdict]:
    """Return the model with only the differing results, if they still differ."""
    if not verdict.apart or len(verdict.apart) == len(recipe.results):
        return recipe, verdict
    apart = replace(recipe, results=tuple(recipe.results[k] for k in sorted(verdict.apart))).pruned()
    found = judge.judge(apart)
    # Without the other results the reference kernels, which rejected one of them, may agree with us.
    return (apart, found) if found.kind == verdict.kind or found.kind == "reference" else (recipe, verdict)


def _excused(single: Recipe, found: Verdict) -> bool:
    """Return whether the table of departures describes this difference of the layer."""
    if found.kind == "reference" and _known(single):
        return True
    if found.unseconded and _known(single, ("specification", "reference")):
        return True
    if found.kind in ("parts", "fails") and _is_empty(single) and _follows_the_runtime(single):
        return True
    return (found.kind == "parts" and _unsaid(single, found)) or _outside(found)


def undecided(single: Recipe, found: Verdict, judge: Judge) -> bool:
    """Return whether the layer has a departure, and OpenVINO's two implementations differ from each other as much as from
    us.
    """
    if found.kind != "parts" or not _known(single):
        return False
    given = _openvinos(single, judge)
    return len(given) == 2 and bool(differing(*given))


def _outside(found: Verdict) -> bool:
    """Return whether the CPU plugin's result has another, empty shape, or belongs to inputs that it does not check."""
    if found.kind in ("lacks", "fails"):
        return _OVERLOOKED.search(found.text) is not None
    return found.kind == "parts" and _EMPTY.search(found.text) is not None


def _folded(single: Recipe, judge: Judge) -> bool:
    """Return whether OpenVINO differs because it folds a layer of constants with another kernel."""
    first = single.nodes[0]
    if single.parameters() or not isinstance(first, Leaf):
        return False
    given = replace(single, nodes=(replace(first, constant=False), *single.nodes[1:]))
    found = judge.judge(given)
    return found.kind == "agrees" or (found.suspect and (_excused(given, found) or _is_noise(given, found, judge)))


def _folded_within(single: Recipe, judge: Judge) -> bool:
    """Return whether a body of the layer has a layer of constants that OpenVINO folds with another kernel."""
    for body in (body for layer in single.layers() for body in layer.bodies):
        for place, node in enumerate(body.nodes):
            if not isinstance(node, Layer) or not node.inputs:
                continue
            leaves = {ref: leaf for ref in node.inputs if isinstance(leaf := body.nodes[ref[0]], Leaf) and leaf.constant}
            if len(leaves) == len(set(node.inputs)):
                alone = body.alone(place, leaves)
                if judge.judge(alone).suspect and _folded(alone, judge):
                    return True
    return False


def suspects(alone: Sequence[Single], judge: Judge) -> Iterator[tuple[Single, Verdict]]:
    """Yield the models that differ, each with its verdict.

    They are judged side by side first, and then individually those whose outputs differ. If these are unknown, halves are
    judged, because one rejected model hides the results of the others.
    """
    together = [single for single in alone if not is_drawn(single.recipe)]
    for single in alone:
        # A layer with random numbers would disable the comparison of the others' values.
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
    """Return the models unchanged, and with all dimensions known."""
    variants = []
    for single in alone:
        static = single.recipe.static()
        variants += [single] if static == single.recipe else [single, replace(single, recipe=static)]
    return variants


def values(recipe: Recipe, judge: Judge) -> dict[Ref, np.ndarray]:
    """Return the layers' values by the CPU plugin, or by the reference kernels if it rejects them; omit those that both
    reject.
    """
    refs = [(place, 0) for place, node in enumerate(recipe.nodes) if isinstance(node, Layer)]
    needed = {ref for node in recipe.nodes if isinstance(node, Layer) for ref in node.inputs if ref[1]}
    return _values_of(recipe, refs + sorted(needed | {ref for ref in recipe.results if ref[1]}), judge)


def _settled(recipe: Recipe, judge: Judge) -> dict[Ref, np.ndarray]:
    """Return the layers' values that are equal in two runs: others are uninitialized memory, for example as a size."""
    one, other = (values(recipe, judge) for _ in range(2))
    return {ref: array for ref, array in one.items() if ref in other and not differing([array], [other[ref]])}


def _values_of(recipe: Recipe, refs: list[Ref], judge: Judge) -> dict[Ref, np.ndarray]:
    """Return these values, by halves if both reject them, because one unneeded value may be the rejected one."""
    exposed = replace(recipe, results=tuple(refs))
    for name in ("cpu", "evaluate"):
        answer = judge.openvinos(exposed, name)
        if not isinstance(answer, OracleError):
            return dict(zip(refs, answer, strict=True))
    middle = len(refs) // 2
    return _values_of(recipe, refs[:middle], judge) | _values_of(recipe, refs[middle:], judge) if middle else {}


def singles(recipe: Recipe, judge: Judge) -> list[Single]:
    """Return each layer as a separate model, whose inputs are OpenVINO's values.

    Constants stay constants, as do values that only depend on constants, because OpenVINO folds them.
    """
    known, constant = values(recipe, judge), _constant(recipe, judge)
    places = [place for place, node in enumerate(recipe.nodes) if isinstance(node, Layer)]
    return [Single(place, alone) for place in places if (alone := _alone(recipe, place, known, constant)) is not None]


def _alone(recipe: Recipe, place: int, known: Mapping[Ref, np.ndarray], constant: Collection[int]) -> Recipe | None:
    """Return a layer as a separate model with given values, some of them constants; ``None`` if one is missing."""
    node = recipe.nodes[place]
    leaves: dict[Ref, Leaf] = {}
    for ref in node.inputs if isinstance(node, Layer) else ():
        source = recipe.nodes[ref[0]]
        if isinstance(source, Leaf):
            leaves[ref] = source
        elif ref in known:
            leaves[ref] = replace(leaf_of(known[ref]), constant=ref[0] in constant)
        else:
            return None
    return recipe.alone(place, leaves)


def _constant(recipe: Recipe, judge: Judge) -> set[int]:
    """Return the indices of constants, and of layers with constant inputs that have a reference kernel."""
    found: set[int] = set()
    for place, node in enumerate(recipe.nodes):
        if isinstance(node, Leaf):
            is_constant = node.constant
        elif node.bodies or any(ref[0] not in found for ref in node.inputs):
            is_constant = False
        else:
            alone = replace(recipe, results=((place, 0),)).pruned()
            is_constant = not isinstance(judge.openvinos(alone, "evaluate"), OracleError)
        if is_constant:
            found.add(place)
    return found


def _known(recipe: Recipe, follows: Collection[str] = ("specification", "reference", "runtime")) -> bool:
    """Return whether the table of departures has an entry for a layer or its types that follows one of the given
    references.
    """
    return bool(_wide_types(recipe) & set(_EVERYWHERE)) or any(found.follows in follows for found in _departures(recipe))


def _wide_types(recipe: Recipe) -> set[str]:
    """Return the element types as `_types`, without those of constants within the range of i32, and of indices.

    The CPU plugin computes these as others. Most axes and shapes are such constants.
    """
    types = {node.type for node in recipe.nodes if isinstance(node, Leaf) and not _is_narrow(node)}
    attributes = (item for layer in recipe.layers() for item in layer.attributes.items())
    return types | {word for name, word in attributes if isinstance(word, str) and name != "index_element_type"}


def _is_narrow(leaf: Leaf) -> bool:
    """Return whether a leaf is a constant of integers within the range of i32."""
    if not leaf.constant or leaf.array is None or leaf.array.dtype.kind not in "iu":
        return False
    limits = np.iinfo(np.int32)
    return bool((leaf.array >= limits.min).all() and (leaf.array <= limits.max).all())


def _types(recipe: Recipe) -> set[str]:
    """Return the element types of leaves, and all words of attributes, among them element types."""
    types = {node.type for node in recipe.nodes if isinstance(node, Leaf)}
    return types | {word for layer in recipe.layers() for word in layer.attributes.values() if isinstance(word, str)}


def _departures_of(layer: Layer) -> Sequence[Departure]:
    return find_rule(layer.operation, layer.opset).departs


def _departures(recipe: Recipe) -> Iterator[Departure]:
    """Yield the departures of the layers that can apply to their types and attributes, except those of `is_invalid`."""
    with_integers = any(_INTEGER.fullmatch(type_) for type_ in _types(recipe))

    def applies(name: str, layer: Layer) -> bool:
        match name:
            case "integers":
                return with_integers
            case "ellipsis":
                return "..." in str(layer.attributes.get("equation"))
            case "ellipsis and axes":
                return _has_mask(layer, "ellipsis") and (_has_mask(layer, "new_axis") or _has_mask(layer, "shrink_axis"))
            case "no detections":
                return not np.all(layer.attributes.get("keep_top_k", 1))
            case "larger windows" | "negative sizes":
                return False
            case "large sums":
                return _has_large_sum(_data(recipe, layer))
            case "large numbers":
                return bool(np.any(_data(recipe, layer) > _LARGE))
        return True

    for layer in recipe.layers():
        yield from (found for found in _departures_of(layer) if applies(found.name, layer))


def _data(recipe: Recipe, layer: Layer) -> np.ndarray:
    """Return the first input of a layer; empty if it is not a leaf of the recipe itself."""
    source = recipe.nodes[layer.inputs[0][0]] if any(node is layer for node in recipe.nodes) else layer
    return source.array if isinstance(source, Leaf) and source.array is not None else np.zeros((0,) * 3)


def _has_large_sum(data: np.ndarray) -> bool:
    """Return whether a sum over the spatial dimensions is beyond the range of the data's type, i8 or u8."""
    if data.dtype not in (np.int8, np.uint8):
        return False
    sums, limits = data.astype(np.int64).sum(axis=tuple(range(2, data.ndim))), np.iinfo(data.dtype)
    return bool(((sums < limits.min) | (sums > limits.max)).any())


def _has_mask(layer: Layer, name: str) -> bool:
    """Return whether a StridedSlice selects an axis for a purpose."""
    return bool(np.any(layer.attributes.get(f"{name}_mask", ())))


def _between(recipe: Recipe) -> bool:
    """Return whether the table of departures has an entry for the last layer after the previous one."""
    names = [layer.operation for layer in recipe.layers()]
    return names[-1:] == ["GRN"] and any(name.endswith("Sequence") for name in names[:-1])


def _of_16_bits(recipe: Recipe, verdict: Verdict) -> bool:
    """Return whether it only differs from the reference kernels, which round to 16 bits, and the plugin has no result."""
    types = {node.type for node in recipe.nodes if isinstance(node, Leaf)}
    types |= {str(layer.attributes.get("destination_type")) for layer in recipe.layers()}
    return verdict.kind == "parts" and verdict.unseconded and verdict.apart is None and bool(types & {"f16", "bf16"})


def _is_empty(recipe: Recipe) -> bool:
    """Return whether an input is empty."""
    return any(isinstance(node, Leaf) and node.array is not None and node.array.size == 0 for node in recipe.nodes)


def _unsaid(recipe: Recipe, found: Verdict) -> bool:
    """Return whether the result for nonfinite or invalid numbers is up to the runtime."""
    finite = all(np.isfinite(array).all() for array in recipe.arrays() if array.dtype.kind in "fV")
    return (not finite or "NaN at different positions" in found.text) and _follows_the_runtime(recipe)


def _follows_the_runtime(recipe: Recipe) -> bool:
    return any(departure.follows == "runtime" for departure in _departures(recipe))


def shrink(recipe: Recipe, verdict: Verdict, judge: Judge) -> tuple[Recipe, Verdict]:
    """Return the smallest recipe found with a verdict of the same kind."""
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
    """Return smaller recipes: one result only; a layer replaced by its values; known dimensions."""
    found = []
    if len(recipe.results) > 1:
        found += [replace(recipe, results=(ref,)).pruned() for ref in recipe.results]
    known = _settled(recipe, judge)
    for place in range(len(recipe.nodes) - 1):
        node = recipe.nodes[place]
        if isinstance(node, Layer) and (place, 0) in known:
            nodes = list(recipe.nodes)
            nodes[place] = leaf_of(known[place, 0])
            if all(ref[1] == 0 or ref[0] != place for other in nodes if isinstance(other, Layer) for ref in other.inputs):
                results = tuple(ref for ref in recipe.results if ref[0] != place)
                if results:
                    found.append(Recipe(tuple(nodes), results).pruned())
    if recipe.static() != recipe:
        found.append(recipe.static())
    return found
