"""Detection of unreliable OpenVINO results, which ours may differ from."""

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
"""The number of runs to detect uninitialized memory, which may be equal three times."""
_SUMS = (
    "Convolution",
    "ConvolutionBackpropData",
    "CumSum",
    "DFT",
    "Einsum",
    "GroupConvolution",
    "GroupConvolutionBackpropData",
    "IDFT",
    "IRDFT",
    "MatMul",
    "RDFT",
    "ReduceMean",
    "ReduceSum",
)


_TAKES = ("Gather", "GatherElements", "GatherND")
"""The operations whose results contain only elements of the first input."""
_NORMS = ("GRN", "GroupNormalization", "LRN", "MVN", "NormalizeL2", "ReduceL2")
_OF_LEVELS = 0.003
"""The relative L2 distance of tensors in which a few of some thousand numbers have another level."""
_OF_ROUNDED_LEVELS = 0.02
"""The same if numbers are rounded to 16 or 8 bits before: more of them have another level."""
_FAR = 10
"""The factor by which a difference must exceed `_OF_LEVELS` if levels cannot explain it."""
_LAST_DIGITS = 3e-7
"""The relative change of the last digits of 32-bit floats."""
_OFF_LEVELS = 3e-4
"""The relative change that moves numbers away from the middle between two levels."""
_HUGE = 2.0**63
"""The squares of larger numbers may overflow in 32 bits, and so may their sums."""
_HUGE_HALF = float(np.finfo(np.float16).max)


def noisy(recipe: Recipe, judge: Judge) -> bool:
    """Return whether OpenVINO's own result changes as much when its floats change in their last digits."""
    first = judge.answers(recipe)["cpu"]
    for attempt in range(1, _TRIES + 1):  # compiled again each time, because uninitialized memory changes, too
        if isinstance(first, OracleError):
            return False
        answer = judge.openvinos(_with_other_digits(recipe, attempt))
        if isinstance(answer, OracleError):
            return False
        if differing(answer, first[0]):
            return True
    return False


def differs_from_itself(recipe: Recipe, verdict: Verdict, judge: Judge) -> bool:
    """Return whether the CPU plugin agrees with us on the separate results.

    All dimensions may be known, or the results of all layers added. If the reference kernels agree with the CPU plugin on
    the original model, the result is false, because our results are wrong then.
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
        if not any(all(not differing([form[k]], [answer], judge.options.tolerance) for form in ours) for answer in answers):
            return False
    return True


def depends_on_known_dimensions(recipe: Recipe, verdict: Verdict, judge: Judge) -> bool:
    """Return whether the CPU plugin agrees with us, except for a few levels of a FakeQuantize, if all dimensions are known.

    The plugin's own results then differ by much. Its emulation of quantized convolutions loses a sum if a dimension is
    unknown.
    """
    if not verdict.apart or not any(layer.operation == "FakeQuantize" for layer in recipe.layers()):
        return False
    answers = [judge.openvinos(recipe), judge.openvinos(recipe.static())]
    unknown, known = answers
    if isinstance(unknown, OracleError) or isinstance(known, OracleError):
        return False
    ours = judge.ours(recipe)
    near = _OF_ROUNDED_LEVELS if judge.options.rounding else _OF_LEVELS
    return all(
        relative_l2(unknown[k], known[k]) > max(_FAR * _OF_LEVELS, 2 * near)
        and all(relative_l2(form[k], known[k]) <= near for form in ours)
        for k in verdict.apart
    )


def differs_layer_by_layer(recipe: Recipe, verdict: Verdict, judge: Judge) -> bool:
    """Return whether we agree with the CPU plugin on each layer as a separate model, with the values of the previous layers.

    For a layer that the plugin rejects or crashes on, the reference kernels are used. If these agree with the plugin on the
    whole model, the result is false.
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
    return all(
        array is not None and not differing([form[k]], [array], judge.options.tolerance)
        for k, array in results.items()
        for form in ours
    )


def of_levels(recipe: Recipe, verdict: Verdict, judge: Judge) -> bool:
    """Return whether the difference is that of a few numbers halfway between two levels of a FakeQuantize.

    In floats, as OpenVINO emulates it, we usually agree then. Integers round such numbers to either level. If a sum is
    halfway, floats do, too.
    """
    answer = judge.openvinos(recipe)
    if (
        not verdict.apart
        or not any(n.operation == "FakeQuantize" for n in recipe.layers())
        or isinstance(answer, OracleError)
    ):
        return False
    floats = [k for k, array in enumerate(answer) if array.dtype == np.float32]
    forms = judge.ours(recipe, "float")
    are_near = all(relative_l2(form[k], answer[k]) <= _OF_LEVELS for form in (*forms, *judge.ours(recipe)) for k in floats)
    if not any(differing(form, answer) for form in forms):
        if are_near:
            return True
    elif not are_near:
        return False
    # A product amplifies the difference. Other inputs are not halfway, and whole numbers are not with other limits.
    others = (replace(recipe, nodes=tuple(_changed(node, seed, _OFF_LEVELS) for node in recipe.nodes)) for seed in (1, 2))
    if all(judge.judge(other).kind == "agrees" for other in others):
        return True
    return judge.judge(_with_scaled_limits(recipe, 1 + _OFF_LEVELS)).kind == "agrees"


def _with_other_digits(recipe: Recipe, seed: int) -> Recipe:
    """Return the recipe with other last digits of its floats, including the limits of each FakeQuantize.

    With different digits, a level that is 0 except for rounding moves. Other layers may divide by it, or multiply it by
    infinity.
    """
    changed = replace(recipe, nodes=tuple(_changed(node, seed) for node in recipe.nodes))
    return _with_scaled_limits(changed, 1 + _LAST_DIGITS * (-1) ** seed * seed)


def _with_scaled_limits(recipe: Recipe, factor: float) -> Recipe:
    """Return the recipe with the constant limits of each FakeQuantize, also in bodies, multiplied by a number near 1."""
    layers = [node for node in recipe.nodes if isinstance(node, Layer)]
    limits = {place for n in layers if n.operation == "FakeQuantize" for place, _ in n.inputs[1:]}
    nodes = [
        replace(node, bodies=tuple(_with_scaled_limits(body, factor) for body in node.bodies))
        if isinstance(node, Layer) and node.bodies
        else node
        for node in recipe.nodes
    ]
    for place in limits:
        node = nodes[place]
        if isinstance(node, Leaf) and node.constant and node.array is not None and node.array.dtype == np.float32:
            nodes[place] = replace(node, array=node.array * np.float32(factor))
    return replace(recipe, nodes=tuple(nodes))


def unset(recipe: Recipe, verdict: Verdict, judge: Judge) -> bool:
    """Return whether the CPU plugin gives another result, or none, when it runs again, because of uninitialized memory."""
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
    """Return whether we only differ in sums that are infinite in one result and NaN in the other.

    Which of them results from an overflow or infinite terms depends on the order of the sum and of the products, as does the
    overflow of a norm's squares. Or in numbers beyond float16.
    """
    layers = [recipe.nodes[place] for place, _ in recipe.results]
    if _is_norm_of_huge(recipe, judge) or beyond_float16(recipe, judge):
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
    """Return whether the layer is a norm of numbers whose squares overflow in one result, and agrees on smaller numbers."""
    if [layer.operation in _NORMS for layer in recipe.layers()] != [True]:
        return False
    given = judge.openvinos(recipe)
    if isinstance(given, OracleError):
        return False
    finite = {
        bool(np.isfinite(array.astype(np.float64)).all()) for answer in [given, *judge.ours(recipe)] for array in answer
    }
    nodes = tuple(_reduced(node, _HUGE) for node in recipe.nodes)
    if len(finite) < 2 or all(one is other for one, other in zip(nodes, recipe.nodes, strict=True)):
        return False
    return judge.judge(replace(recipe, nodes=nodes)).kind == "agrees"


def _reduced(node: Leaf | Layer, most: float, exponent: int = 10) -> Leaf | Layer:
    """Return the node with its finite numbers beyond ``most`` divided by powers of two, to below two to the ``exponent``."""
    if isinstance(node, Layer) or node.array is None or node.array.dtype.kind not in "fV":
        return node
    numbers = node.array.astype(np.float64)
    huge = np.isfinite(numbers) & (np.abs(numbers) > most)
    if not huge.any():
        return node
    _, exponents = np.frexp(np.where(huge, numbers, 1))
    return replace(node, array=np.where(huge, np.ldexp(numbers, exponent - exponents), numbers).astype(node.array.dtype))


def beyond_float16(recipe: Recipe, judge: Judge) -> bool:
    """Return whether numbers of a float16 model are beyond float16, and smaller ones agree.

    Inputs become infinite. Constants become the largest number, to which OpenVINO adds others in float32: in float16 nothing
    is left of these.
    """
    if judge.options.arguments.get("precision") != "float16":
        return False
    recipe = _folded(recipe, judge)
    nodes = tuple(_reduced(node, _HUGE_HALF, 3 if isinstance(node, Leaf) and node.constant else 10) for node in recipe.nodes)
    if all(one is other for one, other in zip(nodes, recipe.nodes, strict=True)):
        return False
    return judge.judge(replace(recipe, nodes=nodes)).kind == "agrees"


def of_rounded_inputs(recipe: Recipe, verdict: Verdict, judge: Judge) -> bool:
    """Return whether OpenVINO agrees with a float16 model if the inputs and constants are rounded to float16.

    A remainder may be 0 afterwards, and its sign another one.
    """
    if judge.options.arguments.get("precision") != "float16" or verdict.kind not in ("parts", "reference"):
        return False
    answer = judge.openvinos(replace(recipe, nodes=tuple(_in_float16(node) for node in recipe.nodes)))
    if isinstance(answer, OracleError):
        return False
    return all(not differing(form, answer, judge.options.tolerance) for form in judge.ours(recipe))


def _in_float16(node: Leaf | Layer) -> Leaf | Layer:
    if not isinstance(node, Leaf) or node.array is None or node.array.dtype != np.float32:
        return node
    limit = np.float32(_HUGE_HALF)
    return replace(node, array=np.clip(node.array, -limit, limit).astype(np.float16).astype(np.float32))


def _folded(recipe: Recipe, judge: Judge) -> Recipe:
    """Return the recipe with OpenVINO's values of the layers that depend on constants only, as constants."""
    varying = recipe.needing(recipe.parameters())
    inner = {
        ref
        for place, node in enumerate(recipe.nodes)
        if place in varying and isinstance(node, Layer)
        for ref in node.inputs
        if ref[0] not in varying and isinstance(recipe.nodes[ref[0]], Layer)
    }
    refs = tuple(sorted(ref for ref in inner if recipe.outputs(ref[0]) == [0]))
    answer = judge.openvinos(replace(recipe, results=refs).pruned()) if refs else []
    if isinstance(answer, OracleError) or not refs:
        return recipe
    nodes = list(recipe.nodes)
    for (place, _), array in zip(refs, answer, strict=True):
        nodes[place] = replace(leaf_of(array), constant=True)
    return replace(recipe, nodes=tuple(nodes)).pruned()


def _without_infinities(array: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Return the array with 0 where one is NaN and the other infinite."""
    if array.shape != other.shape or array.dtype.kind not in "fV":
        return array
    one, two = array.astype(np.float64), other.astype(np.float64)
    return np.where(np.isnan(one) & np.isinf(two) | np.isinf(one) & np.isnan(two), np.zeros_like(array), array)


def amplified(
    recipe: Recipe, verdict: Verdict, judge: Judge, explained: Callable[[Recipe], bool] = lambda rest: False
) -> bool:
    """Return whether OpenVINO agrees with us if the layers from some layer on get our values of the previous ones.

    These values agree with OpenVINO's, and the later layers amplify the remaining difference. ``explained`` returns whether
    a difference of the later layers with our values has a known reason.
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
    """Return whether OpenVINO's result with the given values of layers equals ours, or has a known difference."""
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
    """Return whether the reference kernels agree with none of the CPU plugin's results."""
    plain, seconded = judge.openvinos(recipe), judge.openvinos(recipe, "evaluate")
    if isinstance(plain, OracleError):
        return False
    return isinstance(seconded, OracleError) or all(differing([seconded[k]], [plain[k]]) for k in apart)


def misshapen(recipe: Recipe, judge: Judge) -> bool:
    """Return whether OpenVINO's only result has other shapes than OpenVINO infers for the model."""
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
    """Return whether the layer that we reject has inputs of other shapes than OpenVINO infers for them.

    It would fit the inferred shapes: indices have that many elements, or that range.
    """
    layer = recipe.nodes[place]
    if verdict.kind not in ("lacks", "fails") or not isinstance(layer, Layer):
        return False
    taken = tuple(sorted({ref for ref in layer.inputs if isinstance(recipe.nodes[ref[0]], Layer)}))
    return bool(taken) and misshapen(replace(recipe, results=taken).pruned(), judge)


def takes_from_nothing(recipe: Recipe, verdict: Verdict, place: int, judge: Judge) -> bool:
    """Return whether the layer that fails takes elements of a tensor that is empty in OpenVINO, too.

    OpenVINO then reads out of bounds. Its result is memory that may change, or be 0 each time.
    """
    layer = recipe.nodes[place]
    if verdict.kind != "fails" or not isinstance(layer, Layer) or layer.operation not in _TAKES:
        return False
    shown = replace(recipe, results=(layer.inputs[0], (place, 0))).pruned()
    answers = [answer for name in ("cpu", "evaluate") if not isinstance(answer := judge.openvinos(shown, name), OracleError)]
    return bool(answers) and all(data.size == 0 and taken.size > 0 for data, taken in answers)


def tied(single: Recipe, found: Verdict, judge: Judge, followed: Collection[str] = ("cpu",)) -> bool:
    """Return whether a layer rounds floats to integers, and differs by one where its float is halfway.

    The float is OpenVINO's result for the same numbers as floats, by its CPU plugin or the other ``followed`` references. We
    must agree with it.
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
    """Yield the layer with floats instead of integers: its first input, or all of that type."""
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
    """Return whether integers are equal, or adjacent with the float halfway between them.

    They may also be so large that floats, or the CPU plugin's 32-bit floats for 64-bit integers, cannot represent the
    difference. Where fractions are truncated, the halfway point is an integer and the next one towards 0.
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
    """Return the dimensions of a model's outputs that OpenVINO infers, ``None`` for unknown ones."""
    _, model = read_model(path)
    shapes = [port.partial_shape for port in model.outputs]
    return [[d.get_length() if d.is_static else None for d in s] if s.rank.is_static else None for s in shapes]


def _changed(node: Leaf | Layer, seed: int, least: float = _LAST_DIGITS) -> Leaf | Layer:
    """Return the node with other last digits of its floats; a constant vector may be an attribute, and is unchanged."""
    if isinstance(node, Layer) or node.array is None or node.array.dtype.kind not in "fV":
        return node
    if node.constant and node.array.ndim < 2:
        return node
    rng = np.random.default_rng(seed)
    relative = max(least, float(ml_dtypes.finfo(node.array.dtype).eps))
    changed = node.array.astype(np.float64) * (1 + relative * rng.standard_normal(node.array.shape))
    return replace(node, array=changed.astype(node.array.dtype))
